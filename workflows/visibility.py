"""What the server's lists show of a run: search attributes where they can be used, the memo where not."""

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from supervision.base import limits
    from supervision.base.text import cut, one_line
    from supervision.contract.result import RunResult
    from supervision.run.run_state import RunState

PHASE = SearchAttributeKey.for_keyword("SupervisorPhase")
TEAM = SearchAttributeKey.for_keyword("SupervisorTeam")
WAITING = SearchAttributeKey.for_keyword("SupervisorWaiting")
USD = SearchAttributeKey.for_float("SupervisorUsd")
OWNER = SearchAttributeKey.for_keyword("SupervisorOwner")
STATUS = SearchAttributeKey.for_keyword("SupervisorStatus")
_OWNER_BYTES = 200  # databases that lists are kept in take 255


class Visibility:
    """Shows a run in lists.

    Only the attributes in `usable`, from `prepare_run`, are written: setting one that the server lacks blocks the run.
    """

    def __init__(self) -> None:
        self.usable: list[str] = []
        self._shown_team = False
        self._waiting: str | None = None

    def enter(self, state: RunState) -> None:
        """Shows the phase, once the team and the owner, the cost so far, and how the run has ended."""
        updates: list[SearchAttributeUpdate[Any]] = [PHASE.value_set(state.phase)]
        if not self._shown_team:
            self._shown_team = True
            updates.append(TEAM.value_set(state.request.team_name))
            if owner := one_line(state.request.metadata.get("owner", ""), _OWNER_BYTES):
                updates.append(OWNER.value_set(owner))
        cost = state.usage.usd
        if cost:
            updates.append(USD.value_set(cost))
        if ending := state.ending:
            updates.append(STATUS.value_set(ending))
        usable = [update for update in updates if update.key.name in self.usable]
        if usable:
            workflow.upsert_search_attributes(usable)
        if PHASE.name not in self.usable:
            workflow.upsert_memo({"phase": state.phase, "team": state.request.team_name})

    def waiting(self, state: RunState) -> None:
        """Shows in the lists the most urgent thing that the run waits for; only when that changed."""
        waiting = state.flags.most_urgent
        if waiting == self._waiting:
            return
        self._waiting = waiting
        if WAITING.name in self.usable:
            workflow.upsert_search_attributes([WAITING.value_set(waiting) if waiting else WAITING.value_unset()])

    def keep_partial(self, result: RunResult) -> None:
        """Leaves the partial result of a cancelled run where `describe` finds it without a worker."""
        preview = cut(memo_line(result), limits.REPLY_PREVIEW_BYTES)
        workflow.upsert_memo({"partial": {"ref": result.result_ref, "preview": preview}})


def memo_line(result: RunResult) -> str:
    """Returns one line on what a cancelled run had."""
    findings = [f"{r.id}: {r.finding.summary}" for r in result.subtasks if r.finding]
    return result.answer or "; ".join(findings) or "no findings yet"
