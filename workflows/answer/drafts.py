"""Incremental synthesis: drafts of the answer while subtasks still run, at most one in flight."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.judgement_contracts import SynthesisInput
    from supervision import limits
    from supervision.errors import SupervisionError
    from workflows.calls import activity_calls
    from workflows.calls.finding_refs import as_refs, estimate
    from workflows.run_context import RunContext


class Drafts:
    """From `after` findings on (0 is never), a draft folds in what has arrived; the final answer takes it up."""

    def __init__(self, context: RunContext, after: int) -> None:
        self._context = context
        self._after = after
        self._task: asyncio.Task[None] | None = None
        self.folded: set[str] = set()
        self.draft_ref: str | None = None

    def consider(self) -> None:
        """Begins a draft when enough is new and none is being written."""
        if not self._after or (self._task is not None and not self._task.done()):
            return
        new = [r for r in self._context.state.board.usable() if r.state == "completed" and r.id not in self.folded]
        waits = any(r.state in ("waiting", "running") for r in self._context.state.board.reports())
        if waits and len(new) + len(self.folded) >= self._after and new:
            self._task = asyncio.create_task(self._draft([report.id for report in new]))

    def tasks(self) -> list[asyncio.Task[None]]:
        """The draft in flight, if any."""
        return [self._task] if self._task is not None and not self._task.done() else []

    async def stop(self) -> None:
        """Gives a draft in flight up: the final answer is due."""
        for task in self.tasks():
            task.cancel()
            await workflow.wait([task])

    def forget(self, subtask_id: str) -> None:
        """A finding that was replaced is folded in again."""
        if subtask_id in self.folded:
            self.folded.clear()
            self.draft_ref = None

    async def _draft(self, ids: list[str]) -> None:
        context, state = self._context, self._context.state
        state.syntheses += 1
        draft = SynthesisInput(
            run=context.run,
            goal_ref=context.setup.goal_ref,
            plan_ref=context.plan_ref,
            model=context.setup.supervisor_model,
            findings=as_refs([state.board[id] for id in ids]),
            mode="draft",
            draft_ref=self.draft_ref,
            number=state.syntheses,
            max_tokens=limits.SYNTHESIS_MAX_TOKENS,
        )
        try:
            reply = await context.ask(
                "a draft", estimate(draft.findings), lambda by: activity_calls.synthesize(draft, by)
            )
        except (SupervisionError, ActivityError, asyncio.CancelledError):
            state.note("draft_failed")
            self._after = 0  # a draft saves time: what keeps one from being written is not worth trying again
            return
        if reply.answer_ref:
            self.draft_ref = reply.answer_ref
            self.folded.update(ids)
            state.note("draft_written", number=draft.number, findings=len(self.folded))
        context.show()
