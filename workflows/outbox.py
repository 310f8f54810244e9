"""The outbox of a run: one task issues search attributes, notices and signals in a fixed order."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.text import cut
    from temporal_supervisor.supervision.contract.progress import Phase
    from temporal_supervisor.supervision.contract.result import RunResult
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.background import in_background
    from workflows.calls.run_notices import Notices
    from workflows.children.links import ChildLinks, ParentLink

PHASE = SearchAttributeKey.for_keyword("SupervisorPhase")
TEAM = SearchAttributeKey.for_keyword("SupervisorTeam")
WAITING = SearchAttributeKey.for_keyword("SupervisorWaiting")
USD = SearchAttributeKey.for_float("SupervisorUsd")
OWNER = SearchAttributeKey.for_keyword("SupervisorOwner")
STATUS = SearchAttributeKey.for_keyword("SupervisorStatus")

UPDATES_SHOWN_EACH = 100  # in the memo, once there are many


class Outbox:
    """Publishes the state of a run to lists, to the operator, to its parent and to its children.

    Code that changes the state calls `issue_soon`, or `children.mark_news`, and issues nothing
    itself. The outbox looks at the state once all work of the workflow task has come to rest, so
    handlers, waits and the dispatch do not influence the order of its commands. Nothing is issued
    before `begin`: until then it is unknown which search attributes the server has.
    """

    def __init__(self, state: RunState, *, is_nested: bool) -> None:
        self.children = ChildLinks(state, self.issue_soon)
        self._parent = ParentLink(state, self.issue_soon) if is_nested else None
        self._visibility = Visibility(state)
        self._notices: Notices | None = None
        self._is_due = False
        self._task: asyncio.Task[None] | None = None

    def issue_soon(self) -> None:
        """Has the outbox look at the state when the work of this workflow task is at rest."""
        self._is_due = True

    def begin(self, usable: list[str], notices: Notices | None) -> None:
        """Begins to issue changes.

        Only `usable` attributes are set: an attribute that the server lacks would block the run.
        """
        self._visibility.allow(usable)
        self._notices = notices
        self._task = in_background(self._issue_changes())

    async def close(self) -> None:
        """Stops the outbox, publishes the end of the run, and awaits all notices.

        The runs above and below get no more signals: the run above gets the result, the children
        have ended.
        """
        if self._task is not None:
            self._task.cancel()
        self._visibility.publish_changes()
        if self._notices is not None:
            self._notices.send_new()
            await self._notices.all_sent()

    def publish_partial(self, result: RunResult) -> None:
        """Puts a cancelled run's partial result into its memo, readable without a Worker."""
        found = [(report.id, report.finding) for report in result.subtasks]
        findings = "; ".join(f"{name}: {finding.summary}" for name, finding in found if finding)
        preview = cut(result.answer or findings or "no findings yet", limits.REPLY_PREVIEW_BYTES)
        workflow.upsert_memo({"partial": {"ref": result.result_ref, "preview": preview}})

    async def _issue_changes(self) -> None:
        while True:
            # The SDK looks at conditions when no task is ready: what changes together is shown
            # together.
            await workflow.wait_condition(lambda: self._is_due)
            self._is_due = False
            self._issue()

    def _issue(self) -> None:
        self._visibility.publish_changes()
        if self._notices is not None:
            self._notices.send_new()
        if self._parent is not None:
            self._parent.report()
        self.children.send_news()


class Visibility:
    """Publishes a run's state in its memo, and in the search attributes that the server has."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._usable: list[str] = []
        self._phase: Phase | None = None
        self._waiting: str | None = None
        self._updates = 0

    def allow(self, usable: list[str]) -> None:
        """Allows search attributes by name; without them everything goes into the memo."""
        self._usable = usable

    def publish_changes(self) -> None:
        """Publishes all changes since the last call."""
        if self._state.phase != self._phase:
            self._phase = self._state.phase
            self._publish_phase()
        waiting = self._state.flags.most_urgent
        if waiting != self._waiting:
            self._waiting = waiting
            self._publish_waiting(waiting)
        taken = self._state.update_replies.taken
        updates = taken - taken % UPDATES_SHOWN_EACH
        if updates >= limits.UPDATES_WARNED and updates != self._updates:
            self._updates = updates
            workflow.upsert_memo({"updates": updates})

    def _publish_phase(self) -> None:
        """Publishes phase, team, owner, the cost so far, and the status of an ended run."""
        state = self._state
        shown: dict[SearchAttributeKey[Any], Any] = {
            PHASE: state.phase,
            TEAM: state.request.team_name,
            OWNER: state.owner,
            USD: state.usage.usd,
            STATUS: state.ending,
        }
        usable = {key: value for key, value in shown.items() if key.name in self._usable}
        updates = [key.value_set(value) for key, value in usable.items() if value]
        if updates:
            workflow.upsert_search_attributes(updates)
        if PHASE.name not in self._usable:
            workflow.upsert_memo({"phase": state.phase, "team": state.request.team_name})

    def _publish_waiting(self, waiting: str | None) -> None:
        """Publishes the most urgent cause of waiting, if the server can list runs by it."""
        if WAITING.name not in self._usable:
            return
        update = WAITING.value_set(waiting) if waiting else WAITING.value_unset()
        workflow.upsert_search_attributes([update])
