"""What a run may use: slices of the budget and their refills, deadlines, and both extended while it works."""

import asyncio
import functools
from collections.abc import Callable

import pytest

from temporal_supervisor.standin.server.api_reply import tool_block
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.budget.ledger import call_estimate
from temporal_supervisor.supervision.contract.updates import ExtendLimits, NewBudget
from tests.scripted_model import Reply, Step, answer, hang, message, plan, script, text, when
from tests.waiting import until
from tests.workflow.runs import GOAL, Lab, end_soon, is_in
from tests.workflow.scripts import FOUND, Turns, item, subtasks, with_replies
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "house"}


def spending(tokens: int, turns: int) -> Callable[[Step], Reply]:
    """Turns that each take so many tokens, the last one with the finding."""

    def play(step: Step) -> Reply:
        if step.number < turns and "last turn" not in step.prompt:
            return message([tool_block("lookup", {"query": "pears"})], "tool_use", tokens=tokens // 2)
        return text("many pears", tokens=tokens // 2)

    return play


# --- budget ---------------------------------------------------------------------------------------------


async def test_a_budget_too_small_to_plan_fails_before_any_request(lab: Lab) -> None:
    lab.play(script(plan(answer="There are no pears.")))
    least = 2 * call_estimate(len(GOAL) + limits.PLAN_PROMPT_BYTES)  # half of a small total is kept for the answer
    error = await lab.failure(budget={"tokens": least - 2})
    assert error.type == "BudgetExhausted"
    assert "plan" in error.message
    assert lab.calls == []
    enough = lab.named(f"{lab.run_id}-enough")
    enough.play(script(plan(answer="There are no pears.")))
    assert (await enough.run(budget={"tokens": least})).answer == "There are no pears."


async def test_a_worker_agent_without_more_budget_waits_for_others_then_concludes(lab: Lab) -> None:
    hold = asyncio.Event()

    play = spending(9_000, 2)

    def greedy(step: Step) -> Reply:
        reply = play(step)
        return when(hold, reply) if step.number == 2 else reply

    turns: Turns = {"t1": spending(9_000, 99), "t2": greedy}
    lab.play(script(subtasks(item("t1", "finder"), item("t2", "finder")), turns))
    handle = await lab.start(team="lab", budget={"tokens": 100_000}, max_turns=99)
    await until(lab.sent("t2/1/turn.2"))
    hold.set()
    result = await handle.result()
    assert [r.state for r in result.subtasks] == ["completed", "completed"]
    assert "last turn" in lab.prompt([s for s in lab.steps if s.startswith("t1")][-1])
    assert result.usage.input_tokens + result.usage.output_tokens <= 100_000 + 9_000


# --- deadline -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_deadlines")
async def test_the_deadline_in_planning_fails_the_run_and_ends_its_call(lab: Lab) -> None:
    lab.play(lambda step: hang())
    error = await lab.failure(deadline="PT2S")
    assert error.type == "DeadlineExceeded"
    await until(lambda: lab.calls[-1].aborted_at is not None)


@pytest.mark.usefixtures("time_to_answer")
@pytest.mark.parametrize(("stage", "candidates"), [("refine", 1), ("review", 1), ("judge", 2)])
async def test_the_deadline_in_any_judgement_leaves_time_for_the_answer(lab: Lab, stage: str, candidates: int) -> None:
    """The judge compares two candidates of a subtask."""
    shape = subtasks(item("t1", candidates=candidates), item("t2"))
    hold = asyncio.Event()
    turns: Turns = {"t2": lambda step: when(hold, text("") if stage == "refine" else FOUND)}
    usual = script(shape, turns, answer("in time", ["t1"]))
    lab.play(with_replies(usual, **{stage: lambda step: hang()}))
    handle = await lab.start(max_reviews=1, max_turns=1)
    await until(lab.sent("t2/1/turn.1"))
    if candidates == 1:
        await until(functools.partial(is_in, handle, "completed", "t1"))
    else:
        await until(lambda: lab.calls[-1].step.kind == "judge")
    await end_soon(handle, 2)
    hold.set()
    result = await handle.result()
    assert result.answer.startswith("in time")
    assert result.subtasks[0].state == "completed"
    assert result.status == ("partial" if stage == "refine" else "completed")
    assert lab.steps[-1].startswith("synthesis")


# --- extending ------------------------------------------------------------------------------------------


async def test_a_larger_budget_continues_a_run_that_waits_for_it_and_counts_once(lab: Lab) -> None:
    hold = asyncio.Event()
    turns: Turns = {"t1": spending(9_000, 9), "t2": lambda step: when(hold, text("little"))}
    lab.play(script(subtasks(item("t1", "finder"), item("t2", "finder")), turns))
    handle = await lab.start(team="lab", budget={"tokens": 60_000, "usd": 3.0}, max_turns=20)
    await until(lambda: len([s for s in lab.steps if s.startswith("t1")]) >= 1)
    larger = ExtendLimits(budget=NewBudget(tokens=300_000), request_id="more")
    for _ in range(2):
        assert (await handle.execute_update(SupervisorWorkflow.extend_limits, larger)).accepted
    shown = (await handle.query(SupervisorWorkflow.status)).limits
    assert (shown.budget_tokens, shown.budget_usd) == (300_000, 3.0)
    await until(lab.sent("t1/1/turn.9"))
    hold.set()
    result = await handle.result()
    assert (result.status, result.subtasks[0].turns) == ("completed", 9)
    events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [e.type for e in events].count("limits_extended") == 1
