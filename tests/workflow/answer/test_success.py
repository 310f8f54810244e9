"""When a run has succeeded: the rule, replanning, failed dependencies, failure of everything, and being cancelled."""

import asyncio
from collections.abc import Callable

import pytest
from temporalio.client import WorkflowFailureError

from tests.scripted_model import Reply, Script, Step, answer, as_json, hang, plan, script, stop, when
from tests.scripted_model import status as http_error
from tests.waiting import until
from tests.workflow.runs import Lab, closed, details, events, failure, partial_result, search_attribute, status_of
from tests.workflow.scripts import FOUND, item, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "relay"}

pytestmark = pytest.mark.usefixtures("short_rest")

REFUSAL = stop("refusal", details={"category": "cyber"})


def failing(*ids: str) -> dict[str, Callable[[Step], Reply]]:
    """Turns with which those subtasks never come to a finding."""
    return {subtask_id: lambda step: REFUSAL for subtask_id in ids}


def revised(first: Reply, turns: dict[str, Callable[[Step], Reply]], *revisions: Reply) -> Script:
    """A run whose plan is revised, by nothing beyond those revisions; what fails is not described better."""
    played, left = script(first, turns), list(revisions)

    def reply(step: Step) -> Reply:
        if step.kind == "plan" and ".1." not in step.call.rpartition("/")[2]:
            return left.pop(0) if left else subtasks()
        return as_json({"description": ""}) if step.kind == "refine" else played(step)

    return reply


# --- Replanning -----------------------------------------------------------------------------------

CHAIN = plan(
    {"id": "t1", "role": "lone"}, {"id": "t2", "role": "scribe"}, {"id": "t3", "role": "scribe", "after": ["t1"]}
)


async def test_failed_work_is_replaced_by_a_revision_and_finished_work_is_kept(lab: Lab) -> None:
    hold = asyncio.Event()
    turns = failing("t1") | dict.fromkeys(("t1b", "t2"), lambda step: when(hold, FOUND))
    better = subtasks(item("t1b", "lone", replaces=["t1"], description="Ask the neighbours"))
    lab.play(revised(CHAIN, turns, better))
    handle = await lab.start(success="all", max_replans=2)
    await until(lab.sent("t1b/1/turn.1"))
    shown = await status_of(handle)
    assert (shown.revision, shown.phase) == (2, "executing")
    assert {s.id: s.state for s in shown.subtasks} == {
        "t1": "failed",
        "t2": "running",
        "t3": "waiting",
        "t1b": "running",
    }
    assert (shown.subtasks[0].replaced_by, shown.subtasks[2].depends_on) == ("t1b", ["t1b"])
    said = await details(handle)
    assert "plan revision 2" in said
    assert "replaced by t1b" in said
    known = await handle.query(SupervisorWorkflow.plan)
    assert [s.id for s in known.subtasks] == ["t1", "t2", "t3", "t1b"]
    hold.set()
    result = await handle.result()
    assert (result.status, result.plan_revisions, result.gaps) == ("completed", 2, [])
    asked = lab.prompt("plan.2.1")
    assert "Refused" in asked
    assert 'state="failed"' in asked
    assert "- scribe" not in lab.prompt("plan.1.1")
    assert lab.steps.count("t2/1/turn.1") == 1
    assert "found it" in lab.prompt("t3/1/turn.1")
    assert "revision 2" in await lab.labels("activity")
    assert [s.state for s in result.subtasks] == ["failed", "completed", "completed", "completed"]


async def test_replacements_that_fail_too_end_after_two_revisions_with_gaps(lab: Lab) -> None:
    second = subtasks(item("t1b", "lone", replaces=["t1"]))
    third = subtasks(item("t1c", "lone", replaces=["t1b"]))
    more = subtasks(item("t1d", "lone", replaces=["t1c"]))
    first = plan({"id": "t1", "role": "lone"}, {"id": "t2", "role": "lone"})
    lab.play(revised(first, failing("t1", "t1b", "t1c"), second, third, more))
    handle = await lab.start(success="all", max_replans=2)
    error = await failure(handle)
    partial = partial_result(error)
    assert (error.type, 'success "all"' in error.message, partial.plan_revisions) == ("QuorumNotMet", True, 3)
    assert "QuorumNotMet" in await details(handle)
    assert not any(step.startswith("synthesis") for step in lab.steps)
    assert "t1d" not in {s.id for s in partial.subtasks}
    assert "t1c" in {gap.subtask_id for gap in partial.gaps}


# --- Failed dependencies --------------------------------------------------------------------------


async def test_a_subtask_runs_from_what_succeeded_and_is_skipped_where_nothing_did(lab: Lab) -> None:
    shape = plan(
        {"id": "T1", "role": "lone"},
        {"id": "T2", "role": "scribe"},
        {"id": "T3", "role": "scribe", "after": ["T1"]},
        {"id": "T4", "role": "scribe", "after": ["T2"]},
        {"id": "T5", "role": "scribe", "after": ["T3", "T4"]},
        {"id": "T6", "role": "scribe", "after": ["T3"]},
    )
    lab.play(script(shape, failing("T1"), answer("from the rest", ["T5", "T3"])))
    handle = await lab.start()
    result = await handle.result()
    assert result.status == "partial"
    assert {s.id: (s.state, s.attempts) for s in result.subtasks} == {
        "T1": ("failed", 2),
        "T2": ("completed", 1),
        "T3": ("skipped", 0),
        "T4": ("completed", 1),
        "T5": ("completed", 1),
        "T6": ("skipped", 0),
    }
    told = lab.prompt("T5/1/turn.1")
    assert "finding of T4" in told
    assert '<missing subtask_id="T3"' in told
    assert "Say in your finding what you could not do without them" in told
    assert [gap.subtask_id for gap in result.gaps] == ["T1", "T3", "T6"]
    assert all("none of its dependencies succeeded" in gap.reason for gap in result.gaps[1:])
    assert (await events(handle)).count("subtask_skipped") == (await status_of(handle)).counts.skipped == 2
    assert await search_attribute(handle, "SupervisorStatus") == "partial"
    assert await search_attribute(handle, "SupervisorOwner") is None
    assert "`T1`" in result.answer
    assert "`T3`" in result.answer
    assert [c.subtask_ids for c in result.citations] == [["T5"]]
    assert 'subtask_id="T1"' in lab.prompt("synthesis.1")
    assert "| T3 | scribe | – skipped | T1 |" in await details(handle)
    children = await lab.labels("child")
    assert not any(label.startswith("T3") for label in children)


# --- Cancelled runs -------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["planning", "executing", "waiting_provider", "validating", "synthesizing"])
async def test_a_cancelled_run_closes_soon_keeps_what_it_had_and_calls_no_more(
    lab: Lab, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {"planning": "plan", "validating": "review", "synthesizing": "synthesis"}.get(phase)
    shape = plan({"id": "t1", "role": "lone"}, {"id": "t2", "role": "scribe", "after": ["t1"]})
    never = hang()
    second = http_error(529, "overloaded_error", retry_after="90") if phase == "waiting_provider" else never
    turns = {"t2": lambda step: second} if held is None else {}
    played = script(shape, turns)
    lab.play(lambda step: never if step.kind == held else played(step))
    handle = await lab.start(max_reviews=1, models={"workers": f"{lab.run_id}-workers"})

    async def there() -> bool:
        shown = await status_of(handle)
        if phase == "waiting_provider":
            return shown.flags.waiting_provider
        waited_for = f"{held}." if held else "t2/"
        return shown.phase == phase and any(step.startswith(waited_for) for step in lab.steps)

    await until(there)
    calls = len(lab.calls)
    await handle.cancel()
    await until(lambda: closed(handle))
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    shown = await status_of(handle)
    assert (shown.phase, shown.flags.waiting_provider) == ("cancelled", False)
    assert await search_attribute(handle, "SupervisorStatus") == "cancelled"
    partial = await handle.query(SupervisorWorkflow.result)
    assert partial.status == "partial"
    done = {"planning": []}.get(phase, ["t1"] if held is None else ["t1", "t2"])
    assert [s.id for s in partial.subtasks if s.state == "completed"] == done
    kept = (await (await lab.client.get_workflow_handle(lab.run_id).describe()).memo())["partial"]
    assert kept["ref"] == partial.result_ref
    assert all(f"finding of {subtask_id}" in kept["preview"] for subtask_id in done)
    assert "Phase **cancelled**" in await details(handle)
    await until(lambda: all(call.answered_at or call.aborted_at for call in lab.calls))
    assert len(lab.calls) == calls
