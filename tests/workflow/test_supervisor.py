"""Runs on the real server, with the real sandbox, the real model client and a scripted model."""

import asyncio
import re
from typing import Any

from tests.scripted_model import Step, answer, plan, script, text, tools, when
from tests.waiting import until
from tests.workflow.runs import Lab, search_attribute
from workflows.supervisor import SupervisorWorkflow


async def test_a_goal_becomes_a_plan_findings_and_an_answer(lab: Lab) -> None:
    def turns(step: Step) -> Any:
        return tools(("lookup", {"query": "swans"})) if step.number == 1 else text("swans are white\n\nConfidence: 0.7")

    lab.play(script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}), {"t1": turns}, answer("white", ["t1"])))
    handle = await lab.start(metadata={"owner": "pear\n desk", "cost_centre": "7"})
    result = await handle.result()
    assert result.status == "completed"
    assert await search_attribute(handle, "SupervisorStatus") == "completed"
    assert await search_attribute(handle, "SupervisorOwner") == "pear desk"
    assert result.answer == "white About t1 [t1]."
    assert [s.state for s in result.subtasks] == ["completed", "completed"]
    first = result.subtasks[0].finding
    assert first is not None
    assert (first.summary, first.confidence, first.sources) == ("swans are white", 0.7, ["catalogue"])
    assert [c.subtask_ids for c in result.citations] == [["t1"]]
    assert result.usage.model_calls == 5
    systems = [str(call.step.body["system"]) for call in lab.calls]
    assert all(re.search(r"Today is \d{4}-\d\d-\d\d\.", system) for system in systems)
    assert result.usage.tool_calls == 1
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "t2/1/turn.1", "synthesis.1"]
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.counts.completed, shown.review) == ("done", 2, "off")
    assert [subtask.id for subtask in (await handle.query(SupervisorWorkflow.plan)).subtasks] == ["t1", "t2"]
    events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [e.type for e in events if e.subtask_id == "t1"] == ["subtask_started", "subtask_completed"]
    assert (await handle.query(SupervisorWorkflow.trace, events[-1].seq)).events == []


async def test_a_subtask_starts_the_moment_its_own_dependencies_ended(lab: Lab) -> None:
    hold = asyncio.Event()
    shape = plan(
        {"id": "t1"},
        {"id": "t2"},
        {"id": "t3", "after": ["t1"]},
        {"id": "t4", "after": ["t2"]},
        {"id": "t5", "after": ["t3", "t4"]},
    )
    lab.play(script(shape, {"t2": lambda step: when(hold, text("late"))}))
    handle = await lab.start()
    await until(lab.sent("t3/1/turn.1"))
    states = {s.id: s.state for s in (await handle.query(SupervisorWorkflow.status)).subtasks}
    assert states["t1"] == "completed"
    assert states["t2"] == "running"
    assert states["t5"] == "waiting"
    hold.set()
    assert (await handle.result()).status == "completed"
