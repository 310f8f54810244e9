"""Supervisors inside supervisors: a role that is a team, to three levels, as one tree with one purse and one clock."""

import asyncio
import functools
import logging
from datetime import datetime, timedelta

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.worker import Worker

from temporal_supervisor.client import decide, waiting
from temporal_supervisor.standin.server.api_reply import ApiReply
from temporal_supervisor.supervision.base.queues import fairness_key
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.request import Attachment
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.updates import ExtendLimits, NewBudget
from temporal_supervisor.trees import tree_status
from tests.scripted_model import Reply, Script, Step, answer, hang, plan, status, text, tools, when
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import (
    GOAL,
    Caller,
    Lab,
    closed,
    end_soon,
    found,
    is_in,
    refusal,
    scheduled,
    status_of,
    waits_of,
)
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import DEEP, PLANS, leaves, nested_handle, nested_status, one_waits, tree
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "house", "max_depth": 3}
STOPPED = {"t1/f1/l1": "cancelled", "t1/f1/l2": "completed", "t1/f2": "completed", "t2": "completed"}
"""The leaves of PLANS when all but `l1` had ended before the run did."""


async def others_are_done(lab: Lab) -> bool:
    """True if of PLANS all but the leaf `l1`, and its supervisors, have completed."""
    states = await leaves(lab.client, lab.run_id)
    return {states.get(subtask_id) for subtask_id in ("t1/f1/l2", "t1/f2", "t2")} == {"completed"}


async def test_three_levels_answer_upward_and_are_one_tree_in_status_and_result(lab: Lab) -> None:
    hold = asyncio.Event()
    late = when(hold, text("late pears"))
    lab.play(tree(PLANS, **{"l2/1/turn.1": late, "l2/1/turn.2": late}))
    handle = await lab.start()

    async def seen() -> bool:
        return await leaves(lab.client, lab.run_id) == {
            "t1/f1/l1": "completed", "t1/f1/l2": "running", "t1/f2": "completed", "t2": "completed",
        }  # fmt: skip

    async def counted() -> bool:
        nested = (await tree_status(lab.client, lab.run_id)).subtasks[0].nested
        return nested is not None and nested.counts == Counts(total=4, running=2, completed=2)

    await until(seen)
    await until(counted)
    hold.set()
    result = await handle.result()
    assert (result.status, result.answer) == ("completed", "answer of the root")
    assert set((await leaves(lab.client, lab.run_id)).values()) == {"completed"}
    assert "answer of t1/1" in lab.prompt("synthesis.1")
    assert "answer of t1/1/f1/1" in lab.prompt("t1/1/synthesis.1")
    assert "late pears" in lab.prompt("t1/1/f1/1/synthesis.1")
    assert result.usage.model_calls == len(lab.calls) == 3 + 3 + 6  # two findings go back once
    nested = result.subtasks[0]
    assert (nested.workflow_id, nested.turns) == (f"{lab.run_id}/t1/1", 5)
    assert nested.nested is not None
    assert (nested.nested.status, nested.nested.counts) == ("completed", Counts(total=4, completed=4))
    assert (nested.nested.workflow_id, nested.nested.named) == (f"{lab.run_id}/t1/1", 4)
    assert nested.nested.spent == nested.usage
    assert await lab.started_children() == [f"{lab.run_id}/t1/1", f"{lab.run_id}/t2/1"]
    child = await lab.client.get_workflow_handle(f"{lab.run_id}/t1/1").describe()
    assert (child.workflow_type, child.parent_id, child.root_id) == ("SupervisorWorkflow", lab.run_id, lab.run_id)


async def test_supervisors_come_before_their_agents_in_the_queue(lab: Lab) -> None:
    """After the loss of a Worker their replays are first: nothing new begins without them."""
    lab.play(tree(PLANS))
    await lab.run()

    async def priorities(workflow_id: str) -> dict[str, int]:
        begun = await scheduled(lab.client, workflow_id, "child")
        children = [event.start_child_workflow_execution_initiated_event_attributes for event in begun]
        return {child.workflow_id.removeprefix(f"{lab.run_id}/"): child.priority.priority_key for child in children}

    assert await priorities(lab.run_id) == {"t1/1": 4, "t2/1": 5}
    begun = await scheduled(lab.client, f"{lab.run_id}/t2/1", "activity")
    assert {event.activity_task_scheduled_event_attributes.priority.priority_key for event in begun} == {3}


async def test_a_nested_supervisor_gets_its_subtask_its_dependencies_and_attachments(lab: Lab) -> None:
    root = subtasks(item("t0"), item("t1", "storey", depends_on=["t0"], attachments=["notes.txt"]))
    nested = subtasks(item("f2", "walker", attachments=["notes.txt"]))
    lab.play(tree({"": root, "t1/1": nested}))
    await lab.run(attachments=[Attachment(name="notes.txt", text="remember")])
    asked = lab.prompt("t1/1/plan.1.1")
    assert "Find out about part t1" in asked
    assert "finding of t0/1" in asked
    assert "notes.txt" in asked
    assert GOAL not in asked
    assert '<attachment name="notes.txt">\nremember\n</attachment>' in lab.prompt("t1/1/f2/1/turn.1")
    assert "notes.txt" not in lab.prompt("t0/1/turn.1"), "it does not list it"


async def test_a_nested_answer_has_no_marks_of_its_own_subtasks_above(lab: Lab) -> None:
    root, nested = subtasks(item("t1"), item("t2", "storey")), subtasks(item("t1", "walker"), item("f2", "walker"))
    said = answer("They grew [t2].")
    lab.play(tree({"": root, "t2/1": nested}, **{"t2/1/synthesis.1": answer("They grew [t1]."), "synthesis.1": said}))
    result = await lab.run()
    assert "They grew." in lab.prompt("synthesis.1")
    assert [citation.subtask_ids for citation in result.citations] == [["t2"]]
    assert found(result, 1).summary.startswith("They grew.")


async def test_a_deliverable_goes_up_as_it_was_written_and_no_supervisor_types_it_again(lab: Lab) -> None:
    """Three levels, in each of which the plan makes one finding its answer."""
    deliverable = "# Pears of the garden\n\nFourteen of them.\n\n```python\nprint(14)\n```"
    below = item("l2", "scribe", depends_on=["l1"])
    lab.play(
        tree(
            {
                "": subtasks(item("t1", "storey"), aggregation="finding", answer_from="t1"),
                "t1/1": subtasks(item("f0", "walker"), item("f1", "bench"), aggregation="finding", answer_from="f1"),
                "t1/1/f1/1": subtasks(item("l1", "finder"), below, aggregation="finding", answer_from="l2"),
            },
            **{"l2/1/turn.1": text(deliverable)},
        )
    )
    result = await lab.run()
    assert (result.status, result.answer) == ("completed", deliverable)
    assert [step for step in lab.steps if "synthesis" in step] == []
    assert [citation.subtask_ids for citation in result.citations] == [["t1"]]


async def test_what_is_known_of_a_nested_answer_is_known_above(lab: Lab) -> None:
    plans = {"": subtasks(item("t1", "storey"), item("t2", depends_on=["t1"])), "t1/1": subtasks(item("f1", "walker"))}
    below = {f"t1/1/synthesis.{n}": answer("They weigh 777 kg [f1].", confidence=0.7) for n in (1, 2)}
    lab.play(tree(plans, **below))
    result = await lab.run()
    nested = found(result)
    for asked in ("t2/1/turn.1", "synthesis.1"):
        assert f'role="storey" confidence="{nested.confidence:.2f}"' in lab.prompt(asked)
    assert "No tool output has: 777 kg" in lab.prompt("synthesis.1")
    assert [(claim.text, claim.where) for claim in result.unsupported] == [("777 kg", "t1")]


# --- budget and deadline --------------------------------------------------------------------------------


async def test_a_budget_that_ends_below_is_a_gap_above_and_all_that_was_paid_is_counted(lab: Lab) -> None:
    dear = text("dear pears", tokens=9_000)
    plans = {"": PLANS[""], "t1/1": subtasks(*[item(f"f{n}", "walker") for n in range(6)])}
    lab.play(tree(plans, **{f"f{n}/1/turn.1": dear for n in range(6)}))
    result = await lab.run(max_parallel=1, budget={"tokens": 120_000})
    states = await leaves(lab.client, lab.run_id)
    assert {states[f"t1/f{n}"] for n in range(6)} == {"completed", "failed"}
    assert result.usage.model_calls == len(lab.calls)
    assert all(gap.subtask_id.startswith("t1/f") and "BudgetExhausted" in gap.reason for gap in result.gaps)
    assert result.usage.input_tokens + result.usage.output_tokens <= 120_000 + 18_000


@pytest.mark.usefixtures("time_to_answer")
async def test_a_nested_supervisor_answers_at_its_own_deadline_before_the_parents(lab: Lab) -> None:
    lab.play(tree(PLANS, **{"t1/1/f1/1/l1/1/turn.1": hang()}))
    handle = await lab.start()
    await until(lambda: others_are_done(lab))
    await end_soon(handle, 2.5)
    await handle.result()
    assert await leaves(lab.client, lab.run_id) == STOPPED
    assert "answer of t1/1" in lab.prompt("synthesis.1")


async def test_a_nested_run_ends_partial_with_its_budget_and_a_retry_has_a_new_grant(lab: Lab) -> None:
    hold = asyncio.Event()
    below = subtasks(item("f1", "walker"), item("f2", "walker", depends_on=["f1"]))
    plans = {"": subtasks(item("t1", "storey"), item("t2")), "t1/1": below, "t1/2": below}
    calls = {"t2/1/turn.1": when(hold, text("late")), "t1/1/f1/1/turn.1": text("dear pears", tokens=47_000)}
    lab.play(tree(plans, **calls))
    handle = await lab.start(max_parallel=2, budget={"tokens": 200_000})
    nested = nested_handle(lab.client, f"{lab.run_id}/t1/1")
    await until(lab.sent("t1/1/f1/1/turn.1"))
    await until(functools.partial(closed, nested))
    first = (await status_of(nested)).subtasks[1]
    assert first.error is not None
    assert (first.state, first.error.type) == ("failed", "BudgetExhausted")
    await handle.execute_update("extend_limits", {"budget": {"tokens": 900_000}})
    await handle.execute_update("retry_subtask", {"subtask_id": "t1"})
    await until(lab.sent("t1/2/plan.1.1"))
    hold.set()
    result = await handle.result()
    assert (result.gaps, result.subtasks[0].attempts) == ([], 2)
    again = await nested_status(lab.client, f"{lab.run_id}/t1/2")
    assert (again.limits.budget_tokens or 0) > 2 * ((await status_of(nested)).limits.budget_tokens or 0)


async def test_the_subtasks_of_all_levels_are_within_the_runs_limit(lab: Lab) -> None:
    """The root names two of seven, so t1 may plan the other five, and f1 what is left of them."""
    lab.play(tree(PLANS))
    result = await lab.run(max_subtasks=7)
    assert result.status == "completed"
    limits = [(await nested_status(lab.client, f"{lab.run_id}/{where}")).limits.max_subtasks for where in DEEP]
    assert limits == [5, 3]


async def test_a_plan_that_leaves_a_team_too_few_subtasks_is_refused(lab: Lab) -> None:
    lab.play(tree({"": subtasks(item("t1", "storey"), item("t2"))}))
    error = await lab.failure(max_subtasks=3)
    assert error.type == "InvalidPlan"
    assert "t1: their roles are teams" in error.message
    assert lab.steps == ["plan.1.1", "plan.1.2", "plan.1.3"]


# --- failure and cancellation ---------------------------------------------------------------------------


async def test_what_fails_below_is_named_above_and_a_nested_supervisor_that_fails_is_a_failed_attempt(lab: Lab) -> None:
    bad = {f"f1/{attempt}/turn.{turn}": text("") for attempt in (1, 2, 3) for turn in (1, 2)}
    below = subtasks(item("f1", "walker"), item("f2", "walker"))
    nothing = {f"t2/{attempt}": plan() for attempt in (1, 2, 3)}
    lab.play(tree({"": subtasks(item("t1", "storey"), item("t2", "storey")), "t1/1": below, **nothing}, **bad))
    result = await lab.run(max_turns=1)
    assert [(report.state, report.attempts) for report in result.subtasks] == [("completed", 1), ("failed", 3)]
    reasons = {gap.subtask_id: gap.reason for gap in result.gaps}
    assert sorted(reasons) == ["t1/f1", "t2"]
    assert ("TurnLimit" in reasons["t1/f1"], "NoSubtasks" in reasons["t2"]) == (True, True)
    assert (result.status, result.usage.model_calls) == ("partial", len(lab.calls))
    assert "`t1/f1`" in result.answer
    assert '<missing subtask_id="t1/f1"' in lab.prompt("synthesis.1")


async def test_a_wrong_key_below_fails_the_whole_run_once(lab: Lab) -> None:
    refused = status(401, "authentication_error")
    lab.play(tree({"": subtasks(item("t1", "storey")), "t1/1": refused}))
    error = await lab.failure()
    assert error.type == "ProviderAuthentication"
    assert lab.steps == ["plan.1.1", "t1/1/plan.1.1"]


async def test_a_wrong_key_below_loses_no_finding_of_work_that_was_under_way(lab: Lab) -> None:
    later, refused = asyncio.Event(), status(401, "authentication_error")
    late = {"t2/1/turn.1": when(later, text("found"))}
    lab.play(tree({"": subtasks(item("t1", "storey"), item("t2")), "t1/1": refused}, **late))
    handle = await lab.start()
    await until(lab.sent("t1/1/plan.1.1", "t2/1/turn.1"))
    await until(functools.partial(closed, nested_handle(lab.client, f"{lab.run_id}/t1/1")))
    later.set()
    result = await handle.result()
    assert [report.state for report in result.subtasks] == ["failed", "completed"]
    assert ["ProviderAuthentication" in gap.reason for gap in result.gaps] == [True]


async def test_log_and_turns_at_a_rate_limit_are_the_runs_at_every_level_though_another_workflow_started_it(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "supervisor.run")
    lab.play(tree({"": subtasks(item("t1", "storey")), "t1/1": subtasks(item("f1", "walker"))}))
    async with Worker(lab.client, task_queue=lab.run_id, workflows=[Caller]):
        given, caller = [lab.run_id, {"team": "house", "max_reviews": 0}], f"{lab.run_id}-caller"
        await lab.client.execute_workflow(Caller.run, args=given, id=caller, task_queue=lab.run_id)
    fields = [record.fields for record in caplog.records if record.message == "subtask_completed"]  # type: ignore[attr-defined]
    assert {(line["run"], line["subtask"]) for line in fields} == {(lab.run_id, "t1"), (lab.run_id, "t1/1/f1")}
    calls = [
        call
        for below in ("", "/t1/1", "/t1/1/f1/1")
        for call in await scheduled(lab.client, lab.run_id + below, "activity")
    ]
    keys = {call.activity_task_scheduled_event_attributes.priority.fairness_key for call in calls}
    assert keys - {""} == {fairness_key(lab.run_id)}


async def test_cancelling_the_root_stops_every_level_and_keeps_what_there_was(lab: Lab) -> None:
    lab.play(tree(PLANS, **{"l1/1/turn.1": hang()}))
    handle = await lab.start()
    await until(lambda: others_are_done(lab))
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    calls = len(lab.calls)
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    for path in (*DEEP, "t1/1/f1/1/l1/1"):
        described = await lab.client.get_workflow_handle(f"{lab.run_id}/{path}").describe()
        assert described.status is WorkflowExecutionStatus.COMPLETED
    open_call = next(call for call in lab.calls if call.step.call.endswith("l1/1/turn.1"))
    await until(lambda: open_call.aborted_at is not None)
    partial = await handle.query(SupervisorWorkflow.result)
    assert await leaves(lab.client, lab.run_id) == STOPPED
    report = partial.subtasks[0]
    assert report.state == "cancelled"
    assert report.finding is not None
    assert report.finding.outcome == "partial"
    assert "finding of t1/1/f2/1" in report.finding.summary
    assert "finding of t1/1/f1/1/l2/1" in report.finding.summary
    assert partial.usage.model_calls == calls - 1
    assert len(lab.calls) == calls


def partial_finding(result: RunResult) -> Finding:
    """Returns the finding of the first subtask, which says that it is partial."""
    finding = found(result)
    assert (finding.outcome, bool(finding.text_ref)) == ("partial", True)
    return finding


# --- findings are not lost upward -----------------------------------------------------------------------


async def test_the_findings_of_a_nested_run_without_an_answer_go_upward(lab: Lab) -> None:
    refused = status(400, "invalid_request_error", "no such thing")
    lab.play(tree(PLANS, **{"t1/1/f1/1/synthesis.1": refused, "t1/1/synthesis.1": refused}))
    result = await lab.run()
    assert (result.status, result.answer.partition("\n")[0]) == ("partial", "answer of the root")
    finding = partial_finding(result)
    assert "finding of t1/1/f2/1" in finding.summary
    assert any("no answer could be written" in limitation for limitation in finding.limitations)
    shown = lab.prompt("synthesis.1")
    assert "finding of t1/1/f1/1/l1/1" in shown
    assert "finding of t1/1/f2/1" in shown
    assert result.subtasks[0].attempts == 1


# --- waits ----------------------------------------------------------------------------------------------


async def test_a_cancel_after_a_reset_brings_what_nested_runs_had_found(lab: Lab) -> None:
    lab.play(tree(PLANS, **{"l1/1/turn.1": hang()}))
    base = await lab.start()

    await until(lambda: others_are_done(lab))
    hung = "t1/1/f1/1/l1/1/turn.1"
    handle = await reset(lab.client, base, (await workflow_tasks(base))[0])
    await until(lambda: lab.steps.count(hung) == 2)
    await until(lambda: others_are_done(lab))
    await handle.cancel()
    await until(lambda: runs.closed(handle))
    result = await handle.query(SupervisorWorkflow.result)
    assert "finding of t1/1/f2/1" in partial_finding(result).summary
    assert {step for step in lab.steps if lab.steps.count(step) > 1} == {hung}
    assert result.usage.model_calls == len(lab.calls) - 2  # without the call that hung, twice


# --- limits ---------------------------------------------------------------------------------------------


async def test_limits_that_a_person_changes_at_the_root_reach_every_level(lab: Lab) -> None:
    hold = asyncio.Event()
    lab.play(tree(PLANS, **{"l1/1/turn.1": when(hold, text("pears"))}))
    handle = await lab.start(deadline="PT40S")
    await until(lab.sent("t1/1/f1/1/l1/1/turn.1"))
    before = (await nested_status(lab.client, f"{lab.run_id}/t1/1")).limits.budget_tokens
    for where in DEEP:  # they are given at the root only
        below, more = nested_handle(lab.client, f"{lab.run_id}/{where}"), {"budget": {"tokens": 50_000_000}}
        assert f"its root '{lab.run_id}'" in await refusal(below.execute_update("extend_limits", more))
    assert (await nested_status(lab.client, f"{lab.run_id}/t1/1")).limits.budget_tokens == before
    reply = await handle.execute_update(
        SupervisorWorkflow.extend_limits, ExtendLimits(deadline=timedelta(hours=2), budget=NewBudget(tokens=2_000_000))
    )
    assert reply.accepted

    async def extended() -> bool:
        ends = [
            datetime.fromisoformat((await nested_status(lab.client, f"{lab.run_id}/{where}")).deadline_at)
            for where in DEEP
        ]
        began = (await handle.describe()).start_time
        return all(timedelta(hours=1) < end - began < timedelta(hours=2) for end in ends) and ends[0] > ends[1]

    await until(extended)
    hold.set()
    assert (await handle.result()).status == "completed"


# --- slots -------------------------------------------------------------------------------------------


class Turns:
    """The turns of a run: the first `held` ones are answered `together` at a time, the others at once."""

    def __init__(self, together: int, held: int) -> None:
        self._batch, self._held = asyncio.Barrier(together), held
        self._open = self.most = 0

    def within(self, script: Script) -> Script:
        """The script with its turns so."""
        return lambda step: self._counted(script(step)) if step.kind == "turn" else script(step)

    def _counted(self, then: Reply) -> Reply:
        async def reply() -> ApiReply:
            self._open += 1
            self.most = max(self.most, self._open)
            self._held -= 1
            if self._held >= 0:
                await self._batch.wait()
            self._open -= 1
            return await then()

        return reply


async def test_a_nested_run_has_its_share_of_the_slots(lab: Lab) -> None:
    below = subtasks(*[item(f"f{n}", "walker") for n in range(4)])
    turns = Turns(together=3, held=3)
    lab.play(turns.within(tree({"": subtasks(item("t1", "storey"), item("t2")), "t1/1": below})))
    result = await lab.run(max_parallel=4)
    assert (result.status, turns.most) == ("completed", 3)


async def test_a_nested_run_keeps_its_slots_while_it_waits(lab: Lab) -> None:
    account, turns = one_waits(), Turns(together=1, held=0)
    lab.play(turns.within(account.reply))
    handle = await lab.start(max_parallel=1)

    async def asks_for_people() -> bool:
        return (await status_of(handle)).flags.waiting_person

    await until(asks_for_people)
    shown = await tree_status(lab.client, lab.run_id)
    assert [(wait.kind, wait.subtask_id) for wait in shown.waiting] == [("resume", "t1/f1")]
    assert await is_in(handle, "waiting", "t2")
    account.paid = True
    await handle.execute_update(SupervisorWorkflow.resume)
    assert ((await handle.result()).status, turns.most) == ("completed", 1)


async def test_work_that_lacks_a_slot_of_a_nested_run_that_waits_for_people_holds_the_clock(lab: Lab) -> None:
    def play(step: Step) -> Reply:
        if step.kind == "turn" and step.call.endswith("/n1/1/turn.1"):
            return tools(("ask_person", {"question": "Which one?"}))
        return usual(step)

    usual = tree({"": subtasks(item("t1", "group"), item("t2", "hand")), "t1/1": subtasks(item("n1", "asker"))})
    lab.play(play)
    handle = await lab.start(team="people", max_depth=2, max_parallel=1, deadline="PT1M")

    async def asks() -> bool:
        return bool(await waits_of(handle))

    await until(asks)
    (asked,) = await waiting(lab.client, lab.run_id)
    await asyncio.sleep(2)  # time is what this test is about
    assert (asked.wait.subtask_id, asked.wait.workflow_id) == ("t1/n1", f"{lab.run_id}/t1/1")
    assert await is_in(handle, "waiting", "t2")
    await decide(lab.client, asked, "reply", "the second")
    result = await handle.result()
    assert (result.status, result.timing.held_seconds > 1) == ("completed", True)
