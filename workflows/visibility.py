"""What the server's lists show of a run: search attributes where they can be used, the memo where not."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from supervision import limits
    from supervision.contract.result import RunResult, SubtaskReport
    from supervision.run.payload_fit import slim
    from supervision.run.run_state import RunState
    from supervision.text import cut
    from workflows.child_contracts import NestedInput, NestedReport

PHASE = SearchAttributeKey.for_keyword("SupervisorPhase")
TEAM = SearchAttributeKey.for_keyword("SupervisorTeam")
WAITING = SearchAttributeKey.for_keyword("SupervisorWaiting")
USD = SearchAttributeKey.for_float("SupervisorUsd")


class Visibility:
    """Shows a run in lists, and a nested one to its parent.

    Only the attributes in `usable`, from `prepare_run`, are written: setting one that the server lacks blocks the run.
    """

    def __init__(self) -> None:
        self.usable: list[str] = []
        self._shown_team = False
        self._waits: list[str] = []
        self._reported: object = None
        self._unsent: NestedReport | None = None
        self._sending: asyncio.Task[None] | None = None

    def enter(self, state: RunState) -> None:
        """Shows the phase, once the team, and the cost so far."""
        updates: list[SearchAttributeUpdate[Any]] = [PHASE.value_set(state.phase)]
        if not self._shown_team:
            self._shown_team = True
            updates.append(TEAM.value_set(state.request.team_name))
        cost = state.usage.usd
        if cost:
            updates.append(USD.value_set(cost))
        usable = [update for update in updates if update.key.name in self.usable]
        if usable:
            workflow.upsert_search_attributes(usable)
        if PHASE.name not in self.usable:
            workflow.upsert_memo({"phase": state.phase, "team": state.request.team_name})

    def waiting(self, state: RunState) -> None:
        """Shows in the lists what the run waits for; only when that changed."""
        waits = [name.removeprefix("waiting_") for name, value in state.flags.model_dump().items() if value]
        if waits == self._waits:
            return
        self._waits = waits
        if WAITING.name in self.usable:
            workflow.upsert_search_attributes(
                [WAITING.value_set(",".join(waits))] if waits else [WAITING.value_unset()]
            )

    def report_to_parent(self, nested: NestedInput, state: RunState) -> None:
        """Sends the subtasks of a nested supervisor upward when one of them has changed its state.

        One signal is under way at a time, as they could overtake each other: what changes meanwhile goes with the next.
        """
        reports = slim(state.board.reports())
        waits = state.waits.current
        shape = (state.phase, _shape(reports), waits)
        if shape == self._reported:
            return
        self._reported = shape
        self._unsent = NestedReport(
            subtask_id=nested.subtask_id,
            report_key=nested.report_key,
            phase=state.phase,
            subtasks=reports,
            waits=waits,
        )
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        parent = workflow.info().parent
        while self._unsent is not None and parent is not None:
            report, self._unsent = self._unsent, None
            try:
                await workflow.get_external_workflow_handle(parent.workflow_id).signal("nested_report", report)
            except FailureError:
                workflow.logger.debug("the parent has ended: nobody to report to")

    def keep_partial(self, result: RunResult) -> None:
        """Leaves the partial result of a cancelled run where `describe` finds it without a worker."""
        preview = cut(memo_line(result), limits.REPLY_PREVIEW_BYTES)
        workflow.upsert_memo({"partial": {"ref": result.result_ref, "preview": preview}})


def _shape(reports: list[SubtaskReport]) -> tuple[object, ...]:
    """Returns what makes a report worth sending. A subtask counts as running once its workflow is known."""
    return tuple(
        (r.id, r.state if r.workflow_id or r.state != "running" else "waiting", r.workflow_id, _shape(r.subtasks))
        for r in reports
    )


def memo_line(result: RunResult) -> str:
    """Returns one line on what a cancelled run had."""
    findings = [f"{r.id}: {r.finding.summary}" for r in result.subtasks if r.finding]
    return result.answer or "; ".join(findings) or "no findings yet"
