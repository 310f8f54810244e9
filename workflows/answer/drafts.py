"""Drafts of the answer, written while subtasks still run, one at a time."""

import asyncio
from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import as_refs
    from activities.questions.synthesis import SYNTHESIS, SynthesisInput
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.base.text import one_line
    from temporal_supervisor.supervision.contract.result import SubtaskReport
    from temporal_supervisor.supervision.results.answer import Answer
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.background import BackgroundTask
    from workflows.calls.supervisor_model import SupervisorModel


class Drafts(BackgroundTask):
    """Writes drafts of the answer as findings arrive; the final answer builds on them.

    The request's `incremental_synthesis` is the number of findings that the first draft needs, 0
    for no drafts. If the plan has a direct answer, that is the first draft. `folded` holds the
    subtasks whose findings are in the draft at `draft_ref`. `issue_soon` publishes a change of the
    run.
    """

    def __init__(
        self,
        state: RunState,
        model: SupervisorModel,
        planned: Answer,
        issue_soon: Callable[[], None],
    ) -> None:
        super().__init__()
        self._state = state
        self._model = model
        self._issue_soon = issue_soon
        self._after = state.request.incremental_synthesis
        self.folded: set[str] = set()
        self.draft_ref = planned.ref
        self.doubtful = [item.text for item in planned.unsupported]

    def discard(self) -> None:
        """Drops the draft, also one that is being written, and stops drafting."""
        self._after = 0
        self.folded = set()
        self.draft_ref = None
        self._state.answer.replace_draft(Answer())

    def _is_due(self) -> bool:
        if not self._after or self._state.plan.answer_subtask is not None:
            return False
        unfolded = self._unfolded()
        reports = self._state.board.reports()
        has_work_left = any(report.state in ("waiting", "running") for report in reports)
        has_enough = len(unfolded) + len(self.folded) >= self._after
        return bool(has_work_left and unfolded and has_enough)

    def _unfolded(self) -> list[SubtaskReport]:
        """Returns the completed subtasks whose findings are not in the draft yet."""
        usable = self._state.board.usable()
        completed = [report for report in usable if report.state == "completed"]
        return [report for report in completed if report.id not in self.folded]

    async def _work(self) -> None:
        state, unfolded = self._state, self._unfolded()
        payload = SynthesisInput(
            **self._model.call_fields,
            findings=as_refs(unfolded),
            mode="draft",
            draft_ref=self.draft_ref,
            number=state.next_number("synthesis"),
            max_tokens=state.request.max_tokens or limits.SYNTHESIS_MAX_TOKENS,
        )
        try:
            # Findings that arrive while this waits are new to the next draft, or to the answer. If
            # one is done again meanwhile, the draft is dropped.
            reply = await self._model.reply_to(SYNTHESIS, payload)
        except (SupervisionError, asyncio.CancelledError):
            state.trace.note("draft_failed")
            # A draft saves time: after a failure it is not worth another try.
            self._after = 0
            return
        if self._after and reply.answer.ref:
            self.draft_ref = reply.answer.ref
            self.folded.update(report.id for report in unfolded)
            self.doubtful = [item.text for item in reply.answer.unsupported]
            state.answer.replace_draft(reply.answer)
            state.trace.note(
                "draft_written",
                number=payload.number,
                findings=len(self.folded),
                preview=one_line(reply.answer.text, limits.SENTENCE_BYTES),
                ref=reply.answer.ref,
            )
        self._issue_soon()
