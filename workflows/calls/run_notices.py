"""Notices to the operator: the waits of a run, and the end of a root."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Literal, NamedTuple

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import Notice, NoticeKind, RunRef
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.status_and_result import result_of

    from workflows.background import in_background
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed


class _Cause(NamedTuple):
    """The reason for a notice: `id` names a decision, `of` names a model or an ending."""

    kind: NoticeKind
    id: str = ""
    of: str = ""


class Notices:
    """Sends notices to the operator: when a run begins to wait, and when the root has ended.

    Each run of a tree sends the notices of its own waits. Only the root reports a pause and the
    end.
    """

    def __init__(self, run: RunRef, state: RunState, *, is_root: bool) -> None:
        self._run = run
        self._state = state
        self._is_root = is_root
        self._known: dict[_Cause, None] = {}
        self._sending: list[asyncio.Task[None]] = []

    def send_new(self) -> None:
        """Begins to send a notice for each cause that is new since the last call."""
        before, self._known = self._known, dict.fromkeys(self._causes())
        new = [cause for cause in self._known if cause not in before]
        self._sending += [in_background(self._send_notice(cause)) for cause in new]

    async def all_sent(self) -> None:
        """Returns when no notice is being sent.

        The server drops the activities of a run that has ended.
        """
        while pending := [task for task in self._sending if not task.done()]:
            # A cancellation comes once, and the result is stored.
            with contextlib.suppress(asyncio.CancelledError):
                await workflow.wait(pending)

    def _causes(self) -> Iterator[_Cause]:
        state = self._state
        if state.ending is not None:
            if self._is_root:
                yield _Cause("ended", of=state.ending)
            return
        if self._is_root and state.steering.paused:
            yield _Cause("paused")
        # The wait for a model ends with each try, the outage when one has succeeded.
        yield from (cause for cause in self._known if state.models.outage(cause.of))
        for wait in state.waits.current:
            if wait.for_decision:
                yield _Cause(wait.kind, wait.id)
            else:
                yield _Cause(wait.kind, of=wait.model)

    async def _send_notice(self, cause: _Cause) -> None:
        state = self._state
        has_ended = cause.kind == "ended"
        event: Literal["waiting", "ended", "failed"] = "ended" if has_ended else "waiting"
        if state.ending == "failed":
            event = "failed"
        notice = Notice(
            run=self._run,
            event=event,
            kind=cause.kind,
            id=cause.id or None,
            status=state.ending or "running",
            error=state.error.type if state.error else None,
            confidence=result_of(state).confidence if has_ended else None,
            owner=state.owner,
            at=workflow.now().isoformat(),
        )
        try:
            await activity_calls.notify(notice)
        except CallFailed as failed:
            state.warn(f"a notice was not sent: {failed.problem.message}")
