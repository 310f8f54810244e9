"""Review: findings are held against the goal, what falls short is done again, conflicts go to a judge."""

from collections import Counter
from collections.abc import Collection

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import as_refs
    from activities.questions.judgement import REVIEW, ReviewInput, ReviewReply
    from temporal_supervisor.supervision.contract.result import Contradiction, SubtaskReport
    from workflows.calls.asking import ask_or_warn, judge
    from workflows.plan.make_plan import Replanning
    from workflows.run_context import RunContext
    from workflows.subtasks.dispatch import Dispatch

_ITEMS_REVIEWED = 3  # of a template: they show whether its description is any good
_JUDGED_CONFLICTS = 5  # conflicts settled one by one; more than that are listed as found


_RESTS_ON_OLDER = "These findings, which yours rests on, were changed after it:"
_CHECK_AGAIN = "Hold yours against them as they are now, and correct what follows from the change."


async def review(context: RunContext, dispatch: Dispatch, replanning: Replanning) -> None:
    """Has findings reviewed and done again, at most `max_reviews` times; what is still open then becomes a gap.

    What the plan lacks in the reviewer's eyes is planned for, as far as `max_replans` allows.
    """
    context.enter("validating")
    state = context.state
    former: dict[str, str] = {}
    for number in range(1, state.request.max_reviews + 2):
        if not state.time_and_budget.time_left:
            return
        with context.own_work():
            reply = await _review(context, number, former)
            if reply is None:
                return
            former = reply.feedback
            await _settle_conflicts(context, reply.conflicts)
        flagged = {id_: words for id_, words in reply.feedback.items() if state.board[id_].state == "completed"}
        state.trace.note(
            "reviewed",
            round=number,
            flagged=[*flagged],
            feedback={**flagged},
            missing=[*reply.missing],
            without_effect=[*reply.without_effect],
        )
        state.plan_lacks(reply.missing)
        more_rounds = number <= state.request.max_reviews
        added = more_rounds and await replanning.add_missing(list(reply.missing))
        if not flagged and not added:
            return
        why = "there was no time to fix it" if more_rounds else "a review still finds"
        for subtask_id, feedback in flagged.items():
            # Open before the work begins, because that may end in many ways (deadline, cancellation, an error of the
            # run); only a better finding closes the point, where the subtask completes.
            state.open_point(subtask_id, f"{why}: {feedback}")
        if not more_rounds:
            return
        await _redo(context, dispatch, flagged)


async def _redo(context: RunContext, dispatch: Dispatch, feedback: dict[str, str]) -> None:
    """Has findings done again, and what was added to the plan, then those that rest on a finding that changed.

    The first continue their conversations; their dependents begin again, with these findings as they are now.
    What cannot be done again, for lack of time or budget, stays marked as resting on an older finding.
    """
    board, warm = context.state.board, True
    while True:
        before = {subtask_id: board.text_ref(subtask_id) for subtask_id in feedback}
        for subtask_id, words in feedback.items():
            dispatch.reopen(subtask_id, words, warm=warm, reviewed=warm)
        await dispatch.execute()
        changed = [subtask_id for subtask_id, ref in before.items() if board.text_ref(subtask_id) != ref]
        unchanged = [subtask_id for subtask_id in before if subtask_id not in changed]
        context.state.trace.note("review_brought", changed=[*changed], unchanged=[*unchanged])
        dependents = board.mark_stale(changed)
        if not dependents or not context.state.time_and_budget.time_left:
            return
        warm = False
        feedback = {
            subtask_id: f"{_RESTS_ON_OLDER} {', '.join(of)}. {_CHECK_AGAIN}" for subtask_id, of in dependents.items()
        }


async def _review(context: RunContext, number: int, former: dict[str, str]) -> ReviewReply | None:
    """Returns one round's verdicts; None, with a warning, if there could be none."""
    state = context.state
    taken = {subtask.id for subtask in state.plan.subtasks if subtask.taken_from}
    findings = as_refs(_reviewable(state.board.usable(), taken), state.board)
    if not findings:
        return None
    call = ReviewInput(**context.call_fields, round=number, findings=findings, former=former)
    reply = await ask_or_warn(context, REVIEW, call, "the findings were not reviewed")
    if reply and reply.problem and reply.refusal is None:
        call.problems = [reply.problem]
        reply = await ask_or_warn(context, REVIEW, call, "the findings were not reviewed")
    if reply and reply.problem:
        state.warn(f"a review could not be read: {reply.problem}")
        return None
    return reply


def _reviewable(usable: list[SubtaskReport], taken: Collection[str] = ()) -> list[SubtaskReport]:
    """Returns the completed subtasks; of a template's items the first ones.

    Very many fit into no prompt. Those that are `taken` from earlier runs by name are not done
    again, whatever a review says.
    """
    of_template, chosen = Counter[str](), []
    for report in usable:
        if report.id in taken:
            continue
        template = report.template
        if report.state == "completed" and (template is None or of_template[template] < _ITEMS_REVIEWED):
            chosen.append(report)
            of_template[template or ""] += 1
    return chosen


async def _settle_conflicts(context: RunContext, conflicts: list[Contradiction]) -> None:
    """Has new conflicts judged, the first JUDGED_CONFLICTS of a run; all stay in the result."""
    for conflict in conflicts:
        known = [set(item.subtask_ids) for item in context.state.contradictions]
        if set(conflict.subtask_ids) in known:
            continue
        if len(known) < _JUDGED_CONFLICTS:
            findings = as_refs([context.state.board[subtask_id] for subtask_id in conflict.subtask_ids])
            preferred, reason = await judge(context, "conflict", conflict.description, findings)
            if preferred is not None:
                counts = f"{findings[preferred].subtask_id} counts"
                reason = f"{counts}: {reason}" if reason else counts
            conflict = conflict.model_copy(update={"resolution": reason})
        context.state.add_contradiction(conflict)
        context.state.trace.note(
            "conflict",
            subtasks=list(conflict.subtask_ids),
            description=conflict.description,
            resolved=bool(conflict.resolution),
            resolution=conflict.resolution,
        )
