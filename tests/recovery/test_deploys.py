"""Deploys with open runs: each run stays with the build that began it, through a deploy, a rollback and new keys."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor import RunRequest, start
from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.commands.doctor import server_rows
from temporal_supervisor.console.run.required_workers import require_workers
from temporal_supervisor.console.run.standstill import observed_standstills
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.supervision.base.queues import DEPLOYMENT
from tests.scripted_model import ScriptedModel, plan, script, text, tools, when
from tests.serving import address_of, keys_in, own_server, worker_processes
from tests.task_failures import task_failures
from tests.waiting import until

# how often the server looks whether a build has open runs
DRAINAGE = ("VersionDrainageStatusRefreshInterval", "VersionDrainageStatusVisibilityGracePeriod")
AT_ONCE = {f"matching.wv.{name}": "1s" for name in DRAINAGE}
RUNS = 2  # of each build: a model that has not answered a process yet is sent four calls at a time
LOOK = tools(("harvest", {"year": 2009}))


async def _is_current(client: Client, build: str) -> bool:
    """Does what `temporal worker deployment set-current-version` does; False while its Workers begin to poll."""
    try:
        await client.workflow_service.set_worker_deployment_current_version(
            SetWorkerDeploymentCurrentVersionRequest(
                namespace=client.namespace, deployment_name=DEPLOYMENT, build_id=build, identity="test"
            )
        )
    except RPCError as error:
        if error.status in (RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.NOT_FOUND):
            return False
        raise
    return True


async def _make_current(client: Client, build: str) -> None:
    await until(partial(_is_current, client, build))


async def _has_row(client: Client, level: str, name: str, words: str) -> bool:
    """True if `doctor` says so."""
    rows = [row async for row in server_rows(client, None)]
    return any((row.level, row.name) == (level, name) and words in row.text for row in rows)


async def _waits(run: Run, words: str) -> bool:
    """True if commands say that a run waits for that."""
    return any(words in cause.text for cause in await observed_standstills(run, await run.describe()))


async def test_open_runs_outlive_a_deploy_a_rollback_and_new_keys(lone_model: ScriptedModel, tmp_path: Path) -> None:
    file, hold = tmp_path / "keys", asyncio.Event()
    async with own_server(AT_ONCE, keys=keys_in(file, old=bytes(32))) as client:
        with worker_processes(client, lone_model.url, str(tmp_path / "store"), tmp_path) as workers:

            async def begin(build: str, count: int) -> list[str]:
                """Starts runs, and returns when each is at work."""
                ids = [f"{build}-{number}" for number in range(count)]
                for run_id in ids:
                    turns = {"t1": lambda step: when(hold, LOOK) if step.number == 1 else text("12 kg of pears")}
                    lone_model.play(run_id, script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}), turns))
                    request = RunRequest(goal="Weigh the pears", team="orchard", max_reviews=0, max_replans=0)
                    await start(client, request, run_id)
                await until(lambda: all("t1/1/turn.1" in lone_model.steps(run_id) for run_id in ids))
                return ids

            workers.environ |= {"SUPERVISOR_KEYS_FILE": str(file), "SUPERVISOR_BUILD_ID": "a"}
            first = await workers.start()
            await start(client, RunRequest(goal="Weigh the pears"), "early")
            await until(partial(_waits, Run(client, "early"), "a current build"))
            with pytest.raises(CommandFailed, match="none is current.*set-current-version"):
                await require_workers(client)
            await client.get_workflow_handle("early").terminate()
            await _make_current(client, "a")
            runs = await begin("a", RUNS)
            client = await connect(address=address_of(client), keys=keys_in(file, new=bytes(range(32)), old=bytes(32)))
            workers.environ["SUPERVISOR_BUILD_ID"] = "b"
            second = await workers.start()
            await _make_current(client, "b")
            runs += await begin("b", RUNS)
            await until(partial(_has_row, client, "ok", "builds", "b (current), a (its runs may still be open)"))
            first.kill()  # its runs need a Worker of their build
            await until(partial(_has_row, client, "problem", "build a", "no Worker serves it"))
            await client.get_workflow_handle("a-0").signal("a-word")  # for which its Worker is needed
            await until(partial(_waits, Run(client, "a-0"), "a Worker of build a"))
            workers.environ["SUPERVISOR_BUILD_ID"] = "a"
            await workers.start()
            await _make_current(client, "a")  # a rollback
            runs += await begin("a2", RUNS)
            hold.set()
            handles = [client.get_workflow_handle(run_id) for run_id in runs]
            results = await asyncio.gather(*(handle.result() for handle in handles))
            assert Counter(result["status"] for result in results) == {"completed": 3 * RUNS}
            for run_id, handle in zip(runs, handles, strict=True):
                repeated = {step for step, times in Counter(lone_model.steps(run_id)).items() if times > 1}
                assert repeated <= ({"t1/1/turn.1"} if run_id.startswith("a-") else set())  # in flight at the kill
                events = (await handle.fetch_history()).events
                assert list(task_failures(events)) == []
                done = [event.workflow_task_completed_event_attributes.deployment_version for event in events]
                assert {version.build_id for version in done if version.build_id} == {run_id[0]}
            assert second.code is None
