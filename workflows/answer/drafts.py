"""Drafts of the answer, written while subtasks still run, at most one in flight."""

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
    """From some findings on (0 is never), a draft folds in what has arrived.

    The final answer takes it up. The first draft is the plan's direct answer, if it has one.
    `folded` are the subtasks whose findings the draft at `draft_ref` holds. `show` makes a change
    visible.
    """

    def __init__(
        self, state: RunState, model: SupervisorModel, planned: Answer, show: Callable[[], None]
    ) -> None:
        super().__init__()
        self._state = state
        self._model = model
        self._show = show
        self._after = state.request.incremental_synthesis
        self.folded: set[str] = set()
        self.draft_ref = planned.ref
        self.doubtful = [item.text for item in planned.unsupported]

    def forget(self) -> None:
        """Drops the draft, and one that is being written; there are no others then."""
        self._after, self.folded, self.draft_ref = 0, set(), None
        self._state.take_draft(Answer())

    def _is_due(self) -> bool:
        if not self._after or self._state.plan.answer_subtask is not None:
            return False
        new = self._new()
        reports = self._state.board.reports()
        has_work_left = any(report.state in ("waiting", "running") for report in reports)
        return bool(has_work_left and new and len(new) + len(self.folded) >= self._after)

    def _new(self) -> list[SubtaskReport]:
        """Returns the completed subtasks whose findings no draft has."""
        completed = [each for each in self._state.board.usable() if each.state == "completed"]
        return [report for report in completed if report.id not in self.folded]

    async def _work(self) -> None:
        state, new = self._state, self._new()
        payload = SynthesisInput(
            **self._model.call_fields,
            findings=as_refs(new),
            mode="draft",
            draft_ref=self.draft_ref,
            number=state.next_number("synthesis"),
            max_tokens=state.request.max_tokens or limits.SYNTHESIS_MAX_TOKENS,
        )
        try:
            # Findings that arrive while this waits are new to the next draft, or to the answer. If
            # one is done again meanwhile, the draft is dropped.
            reply = await self._model.ask(SYNTHESIS, payload)
        except (SupervisionError, asyncio.CancelledError):
            state.trace.note("draft_failed")
            # A draft saves time: after a failure it is not worth another try.
            self._after = 0
            return
        if self._after and reply.answer.ref:
            self.draft_ref = reply.answer.ref
            self.folded.update(report.id for report in new)
            self.doubtful = [item.text for item in reply.answer.unsupported]
            state.take_draft(reply.answer)
            state.trace.note(
                "draft_written",
                number=payload.number,
                findings=len(self.folded),
                preview=one_line(reply.answer.text, limits.SENTENCE_BYTES),
                ref=reply.answer.ref,
            )
        self._show()
