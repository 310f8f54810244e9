"""The command `repair`: runs stand still because their histories do not replay, and end whole after it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

import temporal_supervisor
from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.commands.repair_command import CodeFails, check_build, fault_of
from temporal_supervisor.console.run.found_runs import stuck_sentence
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.run.run_state import RunState
from tests.console.conftest import Cli
from tests.console.test_hints import hints, run_as_printed
from tests.console.test_standstills import screens_say, waits
from tests.replay.record import HISTORIES
from tests.replay.replaying import recorded, replayer
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, scripted_model, text, tools, when
from tests.serving import address_of, own_server, settings_for
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import tree
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

AGENTS = ("t1", "t2")
STARTS_CHILDREN, TAKES_A_TURN = "start_child_workflow", "start_activity"


@dataclass
class Workshop:
    """A server without a Worker, commands there, and a model whose third turns wait for `released`."""

    client: Client
    cli: Cli
    model: ScriptedModel
    settings: Settings
    released: asyncio.Event

    def begin(self, run_id: str) -> Awaitable[runs.Handle]:
        """Starts a run of two subtasks with three turns each."""

        def turns(step: Step) -> Reply:
            if step.number < 3:
                return tools(("lookup", {"query": "x"}))
            return when(self.released, text(f"found by {step.subtask_id}"))

        shape = plan(*[{"id": subtask_id} for subtask_id in AGENTS])
        self.model.play(run_id, script(shape, dict.fromkeys(AGENTS, turns)))
        return runs.start(self.client, run_id, team="lab")

    async def is_at_work(self, run_id: str) -> None:
        """Returns once the third turns of its worker agents are under way."""
        await until(lambda: {f"{agent}/1/turn.3" for agent in AGENTS} <= set(self.model.steps(run_id)))

    async def broken(self, run_id: str, *where: str) -> runs.Handle:
        """Returns a run that Workers with other code began; they are gone."""
        with other_code(*where):
            async with serving(self.client, self.settings, strict_sandbox=False):
                handle = await self.begin(run_id)
                await self.is_at_work(run_id)
        return handle

    def paid_again(self, run_id: str) -> set[str]:
        """Returns the calls that were sent after their answer had come."""
        answered: dict[str, float] = {}
        for call in self.model.of(run_id):
            if call.answered_at:
                answered[call.step.call] = min(call.answered_at, answered.get(call.step.call, call.answered_at))
        sent = {call.step.call for call in self.model.of(run_id) if call.at > answered.get(call.step.call, call.at)}
        return {call.removeprefix(f"{run_id}/") for call in sent}


@pytest.fixture
async def workshop(base: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workshop]:
    """See `Workshop`."""
    monkeypatch.setattr(limits, "GRACEFUL_SHUTDOWN", timedelta(milliseconds=100))
    async with own_server() as client, scripted_model() as model:
        artifacts = tmp_path / "artifacts"
        cli = Cli(
            {**base, "TEMPORAL_ADDRESS": address_of(client), "SUPERVISOR_ARTIFACTS_URL": str(artifacts)}, tmp_path
        )
        yield Workshop(client, cli, model, settings_for(model.url, artifacts), asyncio.Event())


@contextlib.contextmanager
def other_code(*where: str) -> Any:
    """For the time of the block workflow code starts a timer more before it does one of those."""

    def with_a_timer(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            if make.__name__ == STARTS_CHILDREN or getattr(arguments[1], "step", "") == "turn.2":
                asyncio.get_running_loop().call_later(3600, lambda: None)
            return make(*arguments, **options)

        return made

    with pytest.MonkeyPatch.context() as patch:
        for name in where:
            patch.setattr(workflow, name, with_a_timer(getattr(workflow, name)))
        yield


async def ends_whole(handle: runs.Handle) -> RunResult:
    """Returns the result of a run in which no subtask was tried twice."""
    result = await asyncio.wait_for(handle.result(), 60)
    assert (result.status, result.gaps) == ("completed", [])
    assert {report.id: (report.state, report.attempts) for report in result.subtasks} == {
        agent: ("completed", 1) for agent in AGENTS
    }
    return result


async def resets(client: Client, workflow_id: str) -> list[str]:
    """Returns the reasons of the resets in a workflow's history."""
    events = client.get_workflow_handle(workflow_id).fetch_history_events()
    failed = [event.workflow_task_failed_event_attributes async for event in events]
    return [task.failure.message for task in failed if task.base_run_id]


async def test_a_run_that_does_not_replay_is_named_and_mended_with_its_agents_and_ends_whole(
    workshop: Workshop,
) -> None:
    run_id, cli = "broken-1", workshop.cli
    handle = await workshop.broken(run_id, STARTS_CHILDREN, TAKES_A_TURN)
    workshop.released.set()
    async with serving(workshop.client, workshop.settings, strict_sandbox=False):
        waiting = asyncio.create_task(cli("result", run_id, "--wait"))
        program = asyncio.create_task(temporal_supervisor.wait(workshop.client, run_id))
        cause = await waits(cli, run_id, "code", "t1")
        await screens_say(cli, run_id, "history", f"repair {run_id}")
        (printed,) = hints(cause["helps"])
        code, out = await run_as_printed(cli, printed)
        assert code == 0, out
        mended = {line.split("'")[1] for line in out.splitlines()}
        assert mended == {run_id, *(f"{run_id}/{agent}/1" for agent in AGENTS)}
        assert all(" did not replay from event " in line and "[TMPRL1100]" in line for line in out.splitlines())
        handle = workshop.client.get_workflow_handle_for(SupervisorWorkflow.run, run_id)
        await ends_whole(handle)
    assert ((await waiting).code, (await program).status) == (0, "completed"), "who waited is told of the reset one"
    assert [row["state"] for row in await cli.json("list")] == ["completed"]
    assert await cli.json("list", "--state", "terminated") == []
    (reason,) = await resets(workshop.client, run_id)
    assert "TMPRL1100" in reason
    assert workshop.paid_again(run_id) == frozenset()
    assert workshop.model.steps(run_id).count("plan.1.1") == 1
    kinds = Counter([event.event_type async for event in handle.fetch_history_events()])
    assert kinds[EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED] <= len(AGENTS)


async def test_a_nested_run_is_mended_with_the_run_above_it(workshop: Workshop) -> None:
    run_id = "broken-4"
    plans = {"": subtasks(item("t1", "storey")), "t1/1": subtasks(item("t1", "walker"))}
    walked = when(workshop.released, text("walked\n\nConfidence: 0.8"))
    workshop.model.play(run_id, tree(plans, **{"/turn.1": walked}))
    with other_code(STARTS_CHILDREN):
        async with serving(workshop.client, workshop.settings, strict_sandbox=False):
            await runs.start(workshop.client, run_id, team="house")
            await until(lambda: "t1/1/t1/1/turn.1" in workshop.model.steps(run_id))
    workshop.released.set()
    async with serving(workshop.client, workshop.settings, strict_sandbox=False):

        async def fails() -> bool:
            described = await workshop.client.get_workflow_handle(f"{run_id}/t1/1").describe()
            return stuck_sentence(described) is not None

        await until(fails)
        done = await workshop.cli("repair", run_id)
        assert done.code == 0, done.err
        assert {line.split("'")[1] for line in done.out.splitlines()} == {run_id, f"{run_id}/t1/1"}
        handle = workshop.client.get_workflow_handle_for(SupervisorWorkflow.run, run_id)
        result = await asyncio.wait_for(handle.result(), 60)
    assert (result.status, result.gaps, result.subtasks[0].attempts) == ("completed", [], 1)
    assert workshop.paid_again(run_id) == frozenset()


async def test_a_healthy_run_an_ended_one_and_none_are_left_alone(workshop: Workshop) -> None:
    async with serving(workshop.client, workshop.settings, strict_sandbox=False):
        handle = await workshop.begin("healthy")
        await workshop.is_at_work("healthy")
        length = (await handle.describe()).history_length
        done = await workshop.cli("repair")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("no workflow task of run 'healthy' or below it fails: nothing to repair")
        replayed = await workshop.cli("repair", "healthy", "--anyway")
        assert replayed.out == "the histories of run 'healthy' and what is open below it replay: nothing to repair\n"
        assert (await handle.describe()).history_length == length
        workshop.released.set()
        await ends_whole(handle)
        ended = "error: run 'healthy' has ended (completed): nothing to repair"
        assert await workshop.cli.refused("repair", "healthy") == ended
        assert "not a run" in await workshop.cli.refused("repair", "healthy/t1/1")
        assert "there is no run 'nobodys'" in await workshop.cli.refused("repair", "nobodys")


async def test_a_run_that_waits_is_not_reset_by_a_program_with_other_code(workshop: Workshop) -> None:
    """As the new build's command line would have it, while the run's own Workers serve it."""
    handle = await workshop.broken("waits", STARTS_CHILDREN)
    length = (await handle.describe()).history_length
    done = await workshop.cli("repair", "waits")
    assert done.code == 0
    assert "nothing to repair" in done.out
    assert "--anyway" in done.out
    assert (await handle.describe()).history_length == length


def test_a_run_of_another_build_is_left_to_the_program_of_that_build() -> None:
    for own_build in (None, "new"):
        with pytest.raises(CommandFailed, match="belongs to build old, .*use the program of build old"):
            check_build("waits", "old", own_build)
    for build in ("", "new"):
        check_build("waits", build, "new")


async def test_code_that_raises_an_error_is_not_mended_by_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    history = recorded(next(HISTORIES.rglob("diamond_with_tools.0.json")))
    assert await fault_of(history, replayer(strict=False)) is None

    def raises(*_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(RunState, "enter", raises)
    with pytest.raises(CodeFails, match="a defect"):
        await fault_of(history, replayer(strict=False))
