"""The command `spend`: what ended runs have cost, from the artifact store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from activities.store.spending import RunSpend, run_spends
from console.command import Access
from console.terminal import Report, safe_line
from supervision.base.text import money
from supervision.contract.usage import Usage

SpendBy = Literal["owner", "day", "team", "model"]
_NAME_CHARS = 200
_NONE = Usage()


async def spend_report(access: Access, days: int, by: SpendBy) -> Report:
    """Returns dollars, tokens and runs of the last days, the most expensive first, days in their order."""
    today = datetime.now(UTC).date()
    spent = await run_spends(await access.store(), days, today)
    sums: dict[str, tuple[int, Usage]] = {}
    for run in spent:
        for name, usage in _parts(run, by).items():
            runs, sum_ = sums.get(name, (0, _NONE))
            sums[name] = runs + 1, sum_ + usage
    names = sorted(sums, key=lambda name: name if by == "day" else (-(sums[name][1].usd or 0.0), name))
    rows = [(name, *sums[name]) for name in names]
    data = [{by: name, "runs": runs, "tokens": usage.tokens, "usd": usage.usd} for name, runs, usage in rows]
    total = sum((run.usage for run in spent), _NONE)

    def screen(_: Console) -> Iterator[Table]:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column(by)
        for name in ("runs", "tokens", "cost"):
            table.add_column(name, justify="right")
        for name, runs, usage in [*rows, ("all", len(spent), total)]:
            cells = [safe_line(name, _NAME_CHARS) or "-", str(runs), f"{usage.tokens:,}", money(usage.usd)]
            table.add_row(*map(Text, cells))
        yield table

    none = [] if spent else [f"no run of this namespace ended in the last {days} days"]
    return Report(data, screen if spent else lambda _: (), notes=none)


def _parts(run: RunSpend, by: SpendBy) -> dict[str, Usage]:
    """Returns what a run has cost by the names that it counts for."""
    if by != "model":
        return {{"owner": run.owner, "day": f"{run.ended_at:%Y-%m-%d}", "team": run.team}[by]: run.usage}
    parts: dict[str, Usage] = {}
    for row in run.spend:
        parts[row.model] = parts.get(row.model, _NONE) + row.usage
    return parts
