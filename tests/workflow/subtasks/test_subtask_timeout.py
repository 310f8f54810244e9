"""A subtask's own time: it ends an attempt with `Timeout`, and stands still while the provider is awaited."""

import asyncio
import functools

from supervision.contract.updates import Resume
from tests.scripted_model import Reply, Step, plan, script, status, text, tools, when
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab, scheduled, waits_for_provider
from workflows.supervisor import SupervisorWorkflow

NEVER = when(asyncio.Event(), text("never"))
"""A reply that is cut: the worker agent has a text, and asks for a longer one."""


async def test_an_attempt_whose_time_is_over_fails_with_timeout_and_is_tried_again(lab: Lab) -> None:
    def turns(step: Step) -> Reply:
        if step.attempt == 1:
            return tools(("lookup", {"query": "x"})) if step.number == 1 else NEVER
        return text("found at last")

    lab.play(script(plan({"id": "t1"}), {"t1": turns}))
    result = await lab.run(subtask_timeout="PT2S")
    assert (result.status, result.subtasks[0].attempts) == ("completed", 2)
    assert "Timeout" in lab.prompt("refine.t1.2")
    calls = [call for call in lab.calls if call.answered_at]
    assert result.usage.model_calls == len(calls)


async def test_the_clock_goes_on_where_it_stood_after_a_wait_for_a_person(lab: Lab) -> None:
    first, refused = asyncio.Event(), {"on": True}

    def turns(step: Step) -> Reply:
        if step.attempt > 1:
            return text("found at last")
        if step.number == 1:
            return when(first, tools(("lookup", {"query": "x"})))
        return status(401, "authentication_error") if refused["on"] else NEVER

    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns}))
    handle = await lab.start(subtask_timeout="PT4S")

    async def other_is_done() -> bool:
        return (await runs.status_of(handle)).counts.completed == 1

    await until(other_is_done)
    first.set()
    await until(functools.partial(waits_for_provider, handle))
    before = (await scheduled(lab.client, f"{lab.run_id}/t1/1", "timer"))[0]
    refused["on"] = False
    await handle.execute_update(SupervisorWorkflow.resume, Resume())
    await until(lambda: lab.steps.count("t1/1/turn.2") == 2)
    after = (await scheduled(lab.client, f"{lab.run_id}/t1/1", "timer"))[0]
    lengths = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        for event in (before, after)
    ]
    assert 3.9 < lengths[0] <= 4 > lengths[1] > 0
    result = await handle.result()
    assert (result.status, result.subtasks[0].attempts) == ("completed", 2)
    assert "Timeout" in lab.prompt("refine.t1.2")
