"""Review rounds: findings are checked against the goal, faulty ones redone, conflicts judged."""

from collections import Counter
from collections.abc import Collection

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import as_refs
    from activities.questions.judgement import REVIEW, ReviewInput, ReviewReply
    from temporal_supervisor.supervision.contract.result import Contradiction, SubtaskReport
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls.supervisor_model import SupervisorModel
    from workflows.plan.replanning import Replanning
    from workflows.subtasks.dispatch import Dispatch

_ITEMS_REVIEWED = 3  # of a template: they show whether its description is any good
_JUDGED_CONFLICTS = 5  # conflicts settled one by one; more than that are listed as found

_NOT_REVIEWED = "the findings were not reviewed"
_RESTS_ON_OLDER = "These findings, which yours rests on, were changed after it:"
_CHECK_AGAIN = "Hold yours against them as they are now, and correct what follows from the change."


class ReviewRounds:
    """Has findings reviewed and redone, at most `max_reviews` times."""

    def __init__(
        self, state: RunState, model: SupervisorModel, dispatch: Dispatch, replanning: Replanning
    ) -> None:
        self._state = state
        self._model = model
        self._dispatch = dispatch
        self._replanning = replanning

    async def run(self) -> None:
        """Returns when a review finds no more faults, or when the rounds or the time are used up.

        Points that are open by then become gaps. Points that the reviewer misses in the plan are
        planned for, as far as `max_replans` allows.
        """
        state = self._state
        former: dict[str, str] = {}
        # After the last round a review only tells which points are still open.
        for number in range(1, state.request.max_reviews + 2):
            if not state.time_and_budget.time_left:
                return
            with state.time_and_budget.own_work():
                reply = await self._review(number, former)
                if reply is None:
                    return
                former = reply.feedback
                await self._settle_conflicts(reply.conflicts)
            flagged = self._flagged(reply)
            self._note_round(number, reply, flagged)
            state.open_points.set_of_plan(reply.missing)
            more_rounds = number <= state.request.max_reviews
            added = more_rounds and await self._replanning.add_missing(list(reply.missing))
            if not flagged and not added:
                return
            why = "there was no time to fix it" if more_rounds else "a review still finds"
            for subtask_id, feedback in flagged.items():
                # Open before the work begins, because that may end in many ways (deadline,
                # cancellation, an error of the run); only a better finding closes the point, where
                # the subtask completes.
                state.open_points.set_gap(subtask_id, f"{why}: {feedback}")
            if not more_rounds:
                return
            await self._redo_findings(flagged)

    def _flagged(self, reply: ReviewReply) -> dict[str, str]:
        """Returns the feedback by subtask, for the findings that can be redone."""
        board = self._state.board
        return {
            subtask_id: words
            for subtask_id, words in reply.feedback.items()
            if board[subtask_id].state == "completed"
        }

    def _note_round(self, number: int, reply: ReviewReply, flagged: dict[str, str]) -> None:
        self._state.trace.note(
            "reviewed",
            round=number,
            flagged=[*flagged],
            feedback={**flagged},
            missing=[*reply.missing],
            without_effect=[*reply.without_effect],
        )

    async def _redo_findings(self, feedback: dict[str, str]) -> None:
        """Has findings redone by their `feedback`, then the findings that depend on changed ones.

        New subtasks of the plan run, too. The first subtasks continue their conversations; their
        dependents start over with the findings as they are now. A finding that cannot be redone for
        lack of time or budget stays marked as based on an older one.
        """
        board, warm = self._state.board, True
        while True:
            before = {subtask_id: board.text_ref(subtask_id) for subtask_id in feedback}
            for subtask_id, words in feedback.items():
                self._dispatch.reopen(subtask_id, words, warm=warm, reviewed=warm)
            await self._dispatch.execute()
            changed = [name for name, ref in before.items() if board.text_ref(name) != ref]
            unchanged = [name for name in before if name not in changed]
            self._state.trace.note("review_brought", changed=[*changed], unchanged=[*unchanged])
            dependents = board.mark_stale(changed)
            if not dependents or not self._state.time_and_budget.time_left:
                return
            warm = False
            feedback = {name: _check_against(basis) for name, basis in dependents.items()}

    async def _review(self, number: int, former: dict[str, str]) -> ReviewReply | None:
        """Returns the verdicts of one round; None, with a warning, if the review failed."""
        state, model = self._state, self._model
        taken = {subtask.id for subtask in state.plan.subtasks if subtask.taken_from}
        findings = as_refs(_reviewable(state.board.usable(), taken), state.board)
        if not findings:
            return None
        call = ReviewInput(**model.call_fields, round=number, findings=findings, former=former)
        reply = await model.reply_or_none(REVIEW, call, _NOT_REVIEWED)
        if reply and reply.problem and reply.refusal is None:
            call = call.model_copy(update={"problems": [reply.problem]})
            reply = await model.reply_or_none(REVIEW, call, _NOT_REVIEWED)
        if reply and reply.problem:
            state.warn(f"a review could not be read: {reply.problem}")
            return None
        return reply

    async def _settle_conflicts(self, conflicts: list[Contradiction]) -> None:
        """Has the first _JUDGED_CONFLICTS conflicts of a run judged, and keeps all new ones."""
        state = self._state
        for conflict in conflicts:
            known = [set(item.subtask_ids) for item in state.answer.contradictions]
            if set(conflict.subtask_ids) in known:
                continue
            if len(known) < _JUDGED_CONFLICTS:
                resolution = await self._resolution(conflict)
                conflict = conflict.model_copy(update={"resolution": resolution})
            state.answer.add_contradiction(conflict)
            state.trace.note(
                "conflict",
                subtasks=list(conflict.subtask_ids),
                description=conflict.description,
                resolved=bool(conflict.resolution),
                resolution=conflict.resolution,
            )

    async def _resolution(self, conflict: Contradiction) -> str:
        """Returns the finding that counts, with a judge's reason.

        For example `t2 counts: it cites the newer report`; only the reason if the judge prefers
        none.
        """
        board = self._state.board
        findings = as_refs([board[subtask_id] for subtask_id in conflict.subtask_ids])
        preferred, reason = await self._model.judge("conflict", conflict.description, findings)
        if preferred is None:
            return reason
        counts = f"{findings[preferred].subtask_id} counts"
        return f"{counts}: {reason}" if reason else counts


def _check_against(changed: Collection[str]) -> str:
    """Returns the feedback for a finding whose dependencies have changed since."""
    return f"{_RESTS_ON_OLDER} {', '.join(changed)}. {_CHECK_AGAIN}"


def _reviewable(usable: list[SubtaskReport], taken: Collection[str] = ()) -> list[SubtaskReport]:
    """Returns the completed subtasks; of a template's items only the first _ITEMS_REVIEWED.

    All items of a large template would not fit into one prompt. Subtasks in `taken` have a finding
    of an earlier run, named by the plan: no review has that redone.
    """
    counts, chosen = Counter[str](), []
    for report in usable:
        if report.id in taken:
            continue
        template = report.template
        has_room = template is None or counts[template] < _ITEMS_REVIEWED
        if report.state == "completed" and has_room:
            chosen.append(report)
            counts[template or ""] += 1
    return chosen
