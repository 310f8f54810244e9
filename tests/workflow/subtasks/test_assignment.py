"""Who works on a subtask: by name, by capability, by load, by a plan's own roles, in a pool."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import RunRef
from activities.contracts.turn_contracts import BacklogInput
from activities.run.run_activities import RunActivities
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.queues import pool_queue
from tests.scripted_model import tools, when
from tests.serving import WorkerProcesses, worker_processes
from tests.waiting import until
from tests.workflow.runs import Lab, queues
from tests.workflow.scripts import FOUND, in_order, item, plans, subtasks
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew"}


COOK = {"name": "cook", "description": "Cooks pears.", "system_prompt": "You are the cook.", "tools": ["weigh"]}


async def test_the_planner_sees_how_busy_other_runs_are(lab: Lab) -> None:
    other, busy = lab.named(f"{lab.run_id}-other"), asyncio.Event()

    other.play(plans(subtasks(item("t1")), turns={"t1": lambda step: when(busy, FOUND)}))
    handle = await other.start()
    query = (
        f"WorkflowType = 'WorkerAgentWorkflow' AND ExecutionStatus = 'Running' AND RootWorkflowId = '{other.run_id}'"
    )

    async def listed() -> bool:
        return (await lab.client.count_workflows(query)).count == 1

    await until(listed)
    lab.play(plans(subtasks(item("t1")), turns={"t1": in_order(FOUND)}))
    await lab.run()
    assert re.search(r"<at_work>\n- of other runs: [1-9]\d*\n</at_work>", lab.prompt("plan.1.1"))
    busy.set()
    await handle.result()


async def test_work_that_no_single_role_can_do_is_split_among_several_also_in_a_callers_own_plan(lab: Lab) -> None:
    both = item("t1", "auto", capabilities=["maps", "sums"])
    after = item("t2", "hand", depends_on=["t1"])
    turns = {name: in_order(FOUND) for name in ("t1", "t1-2", "t2")}
    expected = [("t1", "reader", []), ("t1-2", "reckoner", []), ("t2", "hand", ["t1", "t1-2"])]
    lab.play(plans(subtasks(both, after), turns=turns))
    result = await lab.run()
    assert [(s.id, s.role, s.depends_on) for s in result.subtasks] == expected
    assert "Your part of this: sums. Leave the rest: t1 does maps." in lab.prompt("t1-2/1/turn.1")

    own = lab.named(f"{lab.run_id}-own")
    own.play(plans(subtasks(), turns=turns))
    result = await own.run(plan={"subtasks": [both, after]})
    assert [(s.id, s.role, s.depends_on) for s in result.subtasks] == expected
    refused = await lab.named(f"{lab.run_id}-few").failure(plan={"subtasks": [both, after]}, max_subtasks=2)
    assert "split among roles the plan has 3 subtasks, at most 2 are allowed" in refused.message


FETCHER = {"name": "fetcher", "description": "Fetches ripe pears.", "system_prompt": "You fetch.", "backup": "hand"}
HAND = {"name": "hand", "description": "Takes what nobody else takes.", "system_prompt": "You are the hand."}


def with_backup(**fields: Any) -> dict[str, Any]:
    return {"name": "own", "generalist": "hand", "roles": [{**FETCHER, **fields}, HAND]}


async def test_a_subtask_goes_to_the_backup_while_work_waits_too_long_for_the_pool(
    lab: Lab, settings: Settings
) -> None:
    ready, environment = asyncio.Event(), ActivityEnvironment(lab.client)
    backlog = BacklogInput(run=RunRef(run_id=lab.run_id), queue=pool_queue("remote"))

    async def waits_too_long() -> bool:
        return await environment.run(RunActivities.pool_backlog, backlog) > 0.5

    planned = subtasks(item("t1", "fetcher"), item("t2"), item("t3", "fetcher", depends_on=["t2"]))
    turns = {"t1": in_order(FOUND), "t2": lambda step: when(ready, FOUND), "t3": in_order(FOUND)}
    lab.play(plans(planned, turns=turns))
    handle = await lab.start(team=with_backup(pool="remote", backlog_seconds=0.5))
    await until(waits_too_long)
    ready.set()
    await until(lab.sent("t3/1/turn.1"))
    assert "t1/1/turn.1" not in lab.steps
    async with serving(lab.client, settings, pool="remote"):
        result = await handle.result()
    assert [(s.id, s.role, s.state) for s in result.subtasks] == [
        ("t1", "fetcher", "completed"),
        ("t2", "hand", "completed"),
        ("t3", "hand", "completed"),
    ]
    diverted = [e for e in (await handle.query(SupervisorWorkflow.trace)).events if e.type == "subtask_diverted"]
    assert [(event.subtask_id, event.data["role"]) for event in diverted] == [("t3", "hand")]
    assert "pool remote is " in str(diverted[0].data["why"])


async def test_a_subtask_goes_to_the_backup_once_the_role_has_become_slow(lab: Lab) -> None:
    names = ["t1", "t2", "t3", "t4"]
    chain = [item(name, "fetcher", depends_on=names[:at][-1:]) for at, name in enumerate(names)]
    lab.play(plans(subtasks(*chain), turns={name: in_order(FOUND) for name in names}))
    result = await lab.run(team=with_backup(latency_seconds=0.001))
    assert [s.role for s in result.subtasks] == ["fetcher", "fetcher", "fetcher", "hand"]


async def test_a_role_of_the_plan_works_with_its_own_prompt_and_tools(lab: Lab) -> None:
    weighs = tools(("weigh", {"thing": "the pot"}), ("fetch", {"thing": "a pan"}))
    planned = subtasks(item("t1", new_role="cook"), item("t2", "reader"), new_roles=[COOK])
    lab.play(plans(planned, turns={"t1": in_order(weighs, FOUND)}))
    handle = await lab.start()
    result = await handle.result()
    assert [(s.id, s.role, s.state) for s in result.subtasks] == [
        ("t1", "cook", "completed"),
        ("t2", "reader", "completed"),
    ]
    assert "You are the cook." in lab.system("t1/1/turn.1")
    body = next(c.step.body for c in lab.calls if c.step.call.endswith("t1/1/turn.1"))
    assert [tool["name"] for tool in body["tools"]] == ["weigh", "read_output", "finish"]
    told = lab.prompt("t1/1/turn.2")
    assert "the pot weighs 3 kg" in told
    assert "'fetch' is not available to this role" in told
    shown = await handle.query(SupervisorWorkflow.plan)
    assert [(role.name, role.tools) for role in shown.new_roles] == [("cook", ["weigh"])]


FETCHES = tools(("fetch", {"thing": "a pear"}))


async def test_calls_of_a_role_with_a_pool_wait_for_its_workers(lab: Lab, settings: Settings) -> None:
    lab.play(plans(subtasks(item("t1", "far"), item("t2")), turns={"t1": in_order(FETCHES, FOUND)}))
    handle = await lab.start()
    await until(lab.sent("t2/1/turn.1"))
    assert "t1/1/turn.1" not in lab.steps
    async with serving(lab.client, settings, pool="far"):
        result = await handle.result()
    assert (result.status, [s.role for s in result.subtasks]) == ("completed", ["far", "hand"])
    assert await queues(lab.client, f"{lab.run_id}/t1/1") == ["supervisor.far"] * 3
    assert await queues(lab.client, f"{lab.run_id}/t2/1") == ["supervisor"]


async def test_a_worker_process_of_a_pool_serves_its_tools_without_a_model_and_nothing_else(
    lab: Lab, processes: WorkerProcesses
) -> None:
    lab.play(plans(subtasks(item("t1", "abroad")), turns={"t1": in_order(FETCHES, FOUND)}))
    del processes.environ["ANTHROPIC_BASE_URL"]
    worker = await processes.start("--pool", "abroad", "--roles", "tools")
    assert "worker ready (pool abroad: tools)" in worker.log.read_text()
    result = await lab.run()
    assert (result.status, result.subtasks[0].role) == ("completed", "abroad")
    assert await queues(lab.client, f"{lab.run_id}/t1/1") == ["supervisor", "supervisor.abroad", "supervisor"]
    serves = [queue for queue in QUEUES if await polls(lab.client, queue, worker.pid)]
    assert serves == ["supervisor.abroad"]
    worker.process.terminate()
    assert await worker.ended() == 0


QUEUES = [
    "supervisor",
    "supervisor-model",
    "supervisor-tools",
    "supervisor-outward",
    *map(pool_queue, ["far", "abroad"]),
]


@pytest.fixture
def processes(client: Client, settings: Settings, tmp_path: Path) -> Iterator[WorkerProcesses]:
    """Starts Worker processes beside the session's."""
    url = str(settings.anthropic_base_url)
    with worker_processes(client, url, settings.artifacts_url, tmp_path) as starting:
        yield starting


async def polls(client: Client, queue: str, pid: int) -> bool:
    """True if the process polls a queue for activities or workflows."""
    name, seen = TaskQueue(name=queue), list[PollerInfo]()
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        asked = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=name, task_queue_type=kind)
        seen += (await client.workflow_service.describe_task_queue(asked)).pollers
    return any(each.identity.startswith(f"{pid}@") for each in seen)


@pytest.mark.parametrize("words", [["far", "--roles", "workflows,tools"], [""]])
async def test_a_pool_that_can_not_be_served_is_a_usage_error(processes: WorkerProcesses, words: list[str]) -> None:
    worker = processes.launch("--pool", *words)
    assert await worker.ended() == 2
    assert "--pool" in worker.log.read_text()
