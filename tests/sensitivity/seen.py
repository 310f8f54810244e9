"""What `--no-worse-than` has seen of planted changes, and of an eval that was only repeated."""

from collections.abc import Sequence
from pathlib import Path

from temporal_supervisor.supervision.contract.base import Model

SEEN_FILE = Path(__file__).parents[2] / "benchmarks" / "scores" / "sensitivity.json"


class Seen(Model):
    """An eval that was compared with the one before: whether it was called worse, and its counts."""

    name: str
    is_change: bool
    questions: int
    right: int
    unflagged: int
    is_worse: bool


def share_of(found: Sequence[Seen], *, is_change: bool) -> float:
    """Returns the share of the changes, or of the repetitions, that were called worse."""
    kind = [each.is_worse for each in found if each.is_change is is_change]
    return sum(kind) / len(kind) if kind else 0.0


def lines_of(found: Sequence[Seen]) -> list[str]:
    """Returns a table in Markdown: a row for each change, one for all repetitions."""
    lines = ["| change | right | wrong, not flagged | called worse |", "|---|---|---|---|"]
    for each in found:
        if each.is_change:
            right = f"{each.right} of {each.questions}"
            lines.append(f"| {each.name} | {right} | {each.unflagged} | {'yes' if each.is_worse else 'no'} |")
    again = [each for each in found if not each.is_change]
    if again:
        right = f"{min(each.right for each in again)} to {max(each.right for each in again)} of {again[0].questions}"
        silent = f"{min(each.unflagged for each in again)} to {max(each.unflagged for each in again)}"
        worse = f"{sum(each.is_worse for each in again)} of {len(again)}"
        lines.append(f"| none: the same eval {len(again)} times again | {right} | {silent} | {worse} |")
    return lines
