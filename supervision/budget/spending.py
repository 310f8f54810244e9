"""Who spent what: the consumption of a run by role and model."""

from supervision import limits
from supervision.contract.usage import Spend, Usage

SUPERVISOR = "supervisor"
"""Stands for a role where the supervisor itself calls a model."""


class Spending:
    """Sums by role and model. A role that is a team has its members' under `role/member`."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], Usage] = {}

    def add(self, role: str, model: str, usage: Usage) -> None:
        """Adds what was consumed; nothing leaves no row."""
        if usage != Usage():
            key = role, model
            self._sums[key] = self._sums.get(key, Usage()) + usage

    def add_team(self, role: str, rows: list[Spend], total: Usage) -> None:
        """Adds the rows of a nested run; without any, its `total` in one."""
        for row in rows:
            self.add(f"{role}/{row.role}", row.model, row.usage)
        if not rows:
            self.add(role, "", total)

    def rows(self) -> list[Spend]:
        """Returns the sums, the largest first; those beyond STATUS_PAGE are one row."""
        rows = [Spend(role=role, model=model, usage=usage) for (role, model), usage in self._sums.items()]
        rows.sort(key=lambda row: row.usage.tokens, reverse=True)
        shown, rest = rows[: limits.STATUS_PAGE], rows[limits.STATUS_PAGE :]
        if rest:
            total = sum((row.usage for row in rest), Usage())
            shown.append(Spend(role=f"{len(rest)} more", model="", usage=total))
        return shown
