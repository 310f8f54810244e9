"""kill -9 amid runs that build on an earlier one: nothing that was found before, or stored, is paid again."""

import asyncio
from uuid import uuid4

from tests.scripted_model import Reply, Step, as_json, script, when
from tests.serving import WorkerProcesses
from tests.waiting import until
from tests.workflow.runs import Lab
from tests.workflow.scripts import item


async def test_a_kill_amid_a_fork_repeats_only_the_call_in_flight(lone: Lab, workers: WorkerProcesses) -> None:
    def plan(words: str) -> dict[str, object]:
        changed = {**item("t2", "hand", depends_on=["t1"]), "description": words}
        return {"subtasks": [item("t1", "hand"), changed, item("t3", "hand", depends_on=["t2"]), item("t4", "hand")]}

    usual = script(as_json({}))
    lone.play(usual)
    worker = await workers.start()
    first = await lone.start(team="again", plan=plan("Weigh the pears of garden 2"))
    await first.result()

    forked, released = lone.named(f"run-{uuid4().hex[:12]}"), asyncio.Event()

    def reply(step: Step) -> Reply:
        return when(released, usual(step)) if step.subtask_id == "t2" else usual(step)

    forked.play(reply)
    fields = {"team": "again", "plan": plan("Weigh the plums of garden 3"), "reuse_from": [lone.run_id]}
    handle = await forked.start(**fields)
    await until(forked.sent("t2/1/turn.1"), 60)
    worker.kill()
    released.set()
    await workers.start()
    result = await asyncio.wait_for(handle.result(), 120)
    assert result.status == "completed"
    assert [report.id for report in result.reused] == ["t1", "t4"]
    assert set(forked.steps) == {"t2/1/turn.1", "t3/1/turn.1", "synthesis.1"}
    assert forked.repeated in ([], ["t2/1/turn.1"])
