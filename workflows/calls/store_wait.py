"""A root's wait for the artifact store: a single one, however many calls the store holds up."""

import asyncio
from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import RunRef
    from activities.contracts.store_contracts import StoreReport, StoreWatch
    from temporal_supervisor.supervision.contract.status import Wait
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.background import in_background, stop_all
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed

_WHY = "store"


class StoreWait:
    """Shows that the run waits for its store, until no call is held up any more.

    Temporal retries the calls by itself: this wait begins and ends no work. `hold_clock(reason,
    held)` stops or releases the run's clock, here and below; `issue_soon` publishes a change of the
    run.
    """

    def __init__(
        self,
        run: RunRef,
        state: RunState,
        hold_clock: Callable[[str, bool], None],
        issue_soon: Callable[[], None],
    ) -> None:
        self._run = run
        self._state = state
        self._hold_clock = hold_clock
        self._issue_soon = issue_soon
        self._reports: dict[tuple[str, str], StoreReport] = {}
        self._task: asyncio.Task[None] | None = None

    def take_report(self, report: StoreReport) -> None:
        """Takes a call's report that it can't use the store; the first one begins the wait.

        Only a root takes reports, and only those of its own tree.
        """
        root_id, own_id = self._run.run_id, workflow.info().workflow_id
        is_of_run = report.workflow_id == root_id or report.workflow_id.startswith(f"{root_id}/")
        if own_id != root_id or not is_of_run:
            return
        self._reports[report.key] = report
        if self._task is None:
            self._task = in_background(self._until_back())

    async def end(self) -> None:
        """Ends the wait, because the run is closing and may issue no further commands."""
        if self._task is not None:
            await stop_all([self._task])

    async def _until_back(self) -> None:
        self._hold_clock(_WHY, True)
        try:
            # Reports may come while this awaits: then the next round looks at these.
            while self._reports:
                await self._await_store(list(self._reports.values()))
        except asyncio.CancelledError:
            self._reports.clear()
        self._task = None
        self._hold_clock(_WHY, False)
        self._issue_soon()

    async def _await_store(self, reports: list[StoreReport]) -> None:
        """Shows the wait until none of the calls in `reports` is held up."""
        first = reports[0]
        wait = Wait(
            id=_WHY,
            kind="store",
            workflow_id=first.workflow_id,
            prompt_preview=first.why,
            since=workflow.now().isoformat(),
        )
        self._state.trace.note("waiting_store", why=first.why)
        self._state.waits.add(wait, None)
        self._issue_soon()
        try:
            await activity_calls.await_store(StoreWatch(run=self._run, reports=reports))
        except CallFailed as failed:  # it says nothing about the calls, which report again
            workflow.logger.warning("the run no longer knows whether its store is away: %s", failed)
        finally:
            self._state.waits.remove(wait)
        for report in reports:
            self._reports.pop(report.key, None)
