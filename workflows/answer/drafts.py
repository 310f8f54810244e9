"""Incremental synthesis: drafts of the answer while subtasks still run, at most one in flight."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.questions.synthesis import SYNTHESIS, SynthesisInput
    from supervision.base import limits
    from supervision.base.errors import SupervisionError
    from supervision.contract.result import SubtaskReport
    from workflows.calls.asking import ask
    from workflows.calls.finding_refs import as_refs, estimate
    from workflows.run_context import BackgroundTask, RunContext


class Drafts(BackgroundTask):
    """From `after` findings on (0 is never), a draft folds in what has arrived; the final answer takes it up.

    `folded` are the subtasks whose findings the draft at `draft_ref` holds, `_folding` those of the draft that is
    being written.
    """

    def __init__(self, context: RunContext, after: int) -> None:
        super().__init__()
        self._context = context
        self._after = after
        self.folded: set[str] = set()
        self.draft_ref: str | None = None
        self.doubtful: list[str] = []
        self._folding: set[str] = set()

    def forget(self, subtask_id: str) -> None:
        """Drops the draft if it holds that finding, and one that is being written."""
        if subtask_id in self.folded:
            self.folded.clear()
            self.draft_ref = None
        if subtask_id in self._folding:
            self._folding = set()

    def _is_due(self) -> bool:
        if not self._after:
            return False
        new = self._new()
        unfinished = any(report.state in ("waiting", "running") for report in self._context.state.board.reports())
        return bool(unfinished and new and len(new) + len(self.folded) >= self._after)

    def _new(self) -> list[SubtaskReport]:
        usable = self._context.state.board.usable()
        return [report for report in usable if report.state == "completed" and report.id not in self.folded]

    async def _work(self) -> None:
        context, state, new = self._context, self._context.state, self._new()
        folding = self._folding = self.folded.union(report.id for report in new)
        payload = SynthesisInput(
            **context.call_fields,
            findings=as_refs(new),
            mode="draft",
            draft_ref=self.draft_ref,
            number=state.next_number("synthesis"),
            max_tokens=limits.SYNTHESIS_MAX_TOKENS,
        )
        try:
            # Findings that arrive while this waits are new to the next draft, or to the answer. Those that a review
            # has done again meanwhile are forgotten.
            reply = await ask(context, SYNTHESIS, payload, estimate(payload.findings, context.setup))
        except (SupervisionError, asyncio.CancelledError):
            state.trace.note("draft_failed")
            self._after = 0  # a draft saves time: what keeps one from being written is not worth trying again
            return
        if self._folding is not folding:
            state.trace.note("draft_outdated", number=payload.number)
        elif reply.answer_ref:
            self.draft_ref, self.folded = reply.answer_ref, folding
            self.doubtful = [*reply.unsupported]
            state.trace.note("draft_written", number=payload.number, findings=len(folding))
        context.show()
