"""The waits of a run: for people, for an unavailable model, for the end of a pause."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PersonWords
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.status import Wait, WaitKind
    from temporal_supervisor.supervision.run.decisions import Decision
    from temporal_supervisor.supervision.run.events import decision_fields
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.serving_models import Outage
    from temporal_supervisor.supervision.run.waits import AWAITED

    from workflows.run.people import DecisionWaits, Words
    from workflows.run.run_terms import RunTerms, log_line


class Waiting:
    """Shows the waits of a run, and returns when one is over.

    `issue_soon` publishes a change of the run, setting `changed` wakes the dispatch, `words` stores
    people's texts.
    """

    def __init__(
        self,
        terms: RunTerms,
        state: RunState,
        words: Words,
        issue_soon: Callable[[], None],
        changed: asyncio.Event,
    ) -> None:
        self._terms = terms
        self._state = state
        self._words = words
        self._issue_soon = issue_soon
        self._changed = changed
        self._people = DecisionWaits()
        state.decisions.set_listener(self._people.wake)

    async def until_resumed(self) -> None:
        """Returns when the run is not paused."""
        if self._state.steering.paused:
            await workflow.wait_condition(lambda: not self._state.steering.paused)

    def new_wait(self, place: str, kind: WaitKind, *source: str | None, **fields: Any) -> Wait:
        """Returns a wait at a place of this run, bound to the `source` of its text."""
        wait = Wait(
            id=f"{self._terms.path}{place}",
            kind=kind,
            workflow_id=workflow.info().workflow_id,
            since=workflow.now().isoformat(),
            **fields,
        )
        return wait.bound_to(*source)

    async def decision(
        self, wait: Wait, timeout: timedelta, content: str | None = None
    ) -> Decision | None:
        """Returns a person's decision about a wait; None if the `timeout` is over first.

        `content` is the complete question, for the query `waiting`. Raises SupervisionError
        `DeadlineExceeded` if the run's time is over first.
        """
        decisions = self._state.decisions
        until = workflow.now() + timeout

        def is_decided() -> bool:
            return decisions.decision_about(wait) is not None

        if not is_decided():
            if wait.subtask_id is None:
                await self._until_over(wait, is_decided, until=lambda: until, content=content)
            else:
                await self._until_decided(wait, is_decided, until=until, content=content)
        known = decisions.decision_about(wait)
        self._state.trace.note("decided", wait.subtask_id, **decision_fields(wait, known))
        return known

    async def stored_words(self, decision: Decision) -> Finding:
        """Stores a person's words, and returns them as a finding. Raises CallFailed."""
        source = f"person {decision.by}" if decision.by else "a person"
        return await self._words.store(PersonWords(text=decision.text, source=source))

    async def until_served(
        self,
        subject: str,
        model: str,
        work: object,
        *,
        attempt: int | None = None,
        last: bool = False,
    ) -> None:
        """Returns when `work` may call a model: at once, unless an outage of the model is known.

        During an outage one piece of work tries the model first, when its time has come; the others
        wait for that call. The wait is shown as `subject`: the subtask of an `attempt`, else the
        supervisor's own work. Raises SupervisionError `DeadlineExceeded` if the run's time is over
        first.
        """
        outage = await self._outage_to_try_first(model, work)
        if outage is None:
            return
        outage.put_first(work)
        steering = self._state.steering
        resumes = steering.resumes
        # Without an attempt it is the supervisor's own work, which belongs to no subtask.
        is_own_work = attempt is None
        place = subject if is_own_work else f"{subject}/{attempt}"
        kind: WaitKind = "provider" if outage.until else "resume"
        wait = self.new_wait(
            place,
            kind,
            subtask_id=None if is_own_work else subject,
            prompt_preview=outage.why,
            model=model,
        )

        def is_resumed() -> bool:
            return steering.resumes > resumes

        # Other work that fails meanwhile may move the end of the outage.
        await self._until_over(wait, is_resumed, until=lambda: outage.until, last=last)

    async def _outage_to_try_first(self, model: str, work: object) -> Outage | None:
        """Returns the outage in which `work` is to try the model first, once no other work does.

        None if the work may call the model now.
        """
        models = self._state.models
        while True:
            outage = models.outage(model)
            if outage is None or outage.first is work:
                return None
            if outage.first is None:
                return outage
            outage.wait_behind(work)

            def is_my_turn(seen: Outage = outage) -> bool:
                return models.outage(model) is not seen or seen.first is None

            # The outage may end while this waits, and another one begin: so it looks again.
            await workflow.wait_condition(is_my_turn)

    async def _until_over(
        self,
        wait: Wait,
        is_over: Callable[[], bool],
        *,
        until: Callable[[], datetime | None],
        last: bool = False,
        content: str | None = None,
    ) -> None:
        """Shows a wait until `is_over` is true, or until the time `until`.

        Raises SupervisionError `DeadlineExceeded` if the run's time is over first.
        """
        label = f"{wait.subject}: wait for {AWAITED[wait.kind]}"
        waits, budget = self._state.waits, self._state.time_and_budget

        def ended() -> bool:
            end = until()
            return is_over() or (end is not None and workflow.now() >= end)

        def deadline() -> datetime | None:
            """Returns the end of the run's time; None while its clock is held."""
            return None if budget.held else budget.ends_at(last=last)

        self._log("waits", wait)
        try:
            while not ended():
                end = deadline()
                if end is not None and workflow.now() >= end:
                    raise SupervisionError(
                        ErrorKind.DEADLINE_EXCEEDED, f"the deadline came first: {label}"
                    )
                ends = [time for time in (until(), end) if time is not None]
                expires_at = min(ends, default=None)
                waits.add(wait, expires_at, content)
                self._issue_soon()
                if wait.for_decision:
                    # The dispatch holds the clock if nothing else is left to do.
                    self._changed.set()
                left = None if expires_at is None else expires_at - workflow.now()

                def is_over_or_moved(seen: datetime | None = end) -> bool:
                    return ended() or deadline() != seen

                # The deadline may move while this waits, or stand still: then the timer is set
                # again.
                with contextlib.suppress(TimeoutError):
                    await workflow.wait_condition(
                        is_over_or_moved, timeout=left, timeout_summary=label
                    )
        finally:
            waits.remove(wait)
        self._log("waits no longer", wait)
        if wait.for_decision:
            self._changed.set()  # the dispatch lets the clock run before the next work has ended
        self._issue_soon()

    async def _until_decided(
        self, wait: Wait, is_decided: Callable[[], bool], *, until: datetime, content: str | None
    ) -> None:
        """Shows a wait of a subtask until it is decided, or until the time `until`.

        There may be a thousand such waits at once: they share one timer, and the dispatch ends them
        at the deadline.
        """
        self._log("waits", wait)
        self._state.waits.add(wait, until, content)
        self._issue_soon()
        self._changed.set()  # the dispatch holds the clock if nothing else is left to do
        try:
            await self._people.until_decided(wait.sha256, is_decided, until)
        finally:
            self._state.waits.remove(wait)
        self._log("waits no longer", wait)
        self._changed.set()  # the dispatch lets the clock run before the next work has ended
        self._issue_soon()

    def _log(self, what: str, wait: Wait) -> None:
        log_line(self._terms.run.run_id, what, wait.subject, kind=wait.kind)
