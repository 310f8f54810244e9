"""What a run consumed by role and model, as a table and on one line."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from console.terminal import safe_line
from supervision.contract.usage import Spend
from supervision.text import money

_NAME_CHARS = 24
_ON_A_LINE = 4


def spend_table(spend: Sequence[Spend]) -> Table:
    """Returns a row for each role and model: calls, tokens read and the part of them from the cache, written, cost."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim", style="dim")
    for name in ("role", "model"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "input", "cached", "output", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for item in spend:
        usage = item.usage
        cells = [f"{usage.model_calls:,}", f"{usage.prompt_tokens:,}", f"{usage.cached_share:.0%}"]
        cells += [f"{usage.output_tokens:,}", money(usage.usd)]
        names = [safe_line(item.role, _NAME_CHARS), safe_line(item.model, _NAME_CHARS)]
        table.add_row(*map(Text, [*names, *cells]))
    return table


def spend_line(spend: Sequence[Spend]) -> str:
    """Returns the largest consumers on one line; empty if there is nothing to tell apart."""
    if len(spend) < 2:
        return ""
    parts = [f"{item.role} {item.usage.tokens:,}" for item in spend[:_ON_A_LINE]]
    more = len(spend) - _ON_A_LINE
    return "tokens: " + " · ".join([*parts, *([f"{more} more"] if more > 0 else [])])
