"""While a model is known to be away a run waits once: no child is started to fail, then one call goes first."""

import functools

import pytest

from supervision.base import limits
from tests.scripted_model import Reply, Step, plan, script, status, text, tools
from tests.waiting import until
from tests.workflow.runs import Handle, Lab, status_of, waits_for_provider

SUBTASKS, PARALLEL = 8, 3
AWAY = status(529, "overloaded_error", retry_after_ms="600")
SHAPE = plan(*[{"id": f"t{number}"} for number in range(1, SUBTASKS + 1)])
ROUND_EVENTS = 20


def two_turns(step: Step) -> Reply:
    return tools(("lookup", {"query": "x"})) if step.number == 1 else text(f"found by {step.subtask_id}")


async def shows_one_breaker(handle: Handle) -> bool:
    breakers = (await status_of(handle)).breakers
    assert len(breakers) <= 1
    return len(breakers) == 1


async def length(handle: Handle) -> int:
    return (await handle.describe()).history_length


async def test_an_outage_costs_one_wait_whatever_the_number_of_subtasks(
    lab: Lab, own_models: dict[str, str], short_outages: None
) -> None:
    away = {"on": True}

    def turns(step: Step) -> Reply:
        return AWAY if away["on"] else two_turns(step)

    lab.play(script(SHAPE, {f"t{number}": turns for number in range(1, SUBTASKS + 1)}))
    handle = await lab.start(models=own_models, max_subtasks=SUBTASKS, max_parallel=PARALLEL)
    await until(functools.partial(waits_for_provider, handle))
    await until(lambda: len(lab.calls) > PARALLEL + 1)  # the first one that went first, in vain
    before, rounds = await length(handle), len(lab.calls)
    await until(lambda: len(lab.calls) >= rounds + 2, 60)
    assert await length(handle) - before <= 3 * ROUND_EVENTS
    assert len(set(await lab.started_children())) == PARALLEL
    await until(functools.partial(shows_one_breaker, handle))  # none while the call that goes first is under way
    away["on"] = False
    result = await handle.result()
    assert (result.status, len(result.subtasks)) == ("completed", SUBTASKS)
    assert {report.attempts for report in result.subtasks} == {1}
    assert all(lab.steps.count(f"t{n}/1/turn.2") == 1 for n in range(1, SUBTASKS + 1))
    assert all("wait for the model provider" in label for label in (await lab.labels("timer"))[1:])


async def test_a_history_that_is_nearly_full_ends_in_a_partial_answer(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HISTORY_EVENTS", 60)
    lab.play(script(SHAPE, {f"t{number}": two_turns for number in range(1, SUBTASKS + 1)}))
    handle = await lab.start(max_subtasks=SUBTASKS, max_parallel=1)
    result = await handle.result()
    assert (result.status, result.answer.startswith("the answer")) == ("partial", True)
    done = [report for report in result.subtasks if report.state == "completed"]
    assert 0 < len(done) < SUBTASKS
    assert len(result.gaps) == SUBTASKS - len(done)
    assert all("the run's history is nearly as long as the server allows" in gap.reason for gap in result.gaps)
    assert not await lab.scheduled("timer") or await length(handle) < 150
