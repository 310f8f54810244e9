"""Differences between a run and the earlier run that it repeats: findings, rows, figures."""

from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.result import RunResult

_LINES = 200  # of a text, compared line by line
_SHOWN_BYTES = 600  # of what stands on each side
_SOURCE_COLUMNS = ("source", "source_")  # of a table of items: the file, row or line of each row
_LINK_COLUMNS = (*_SOURCE_COLUMNS, "item", "item_")

Row = Mapping[str, str]


class Change(Model):
    """A difference from the earlier run, with both sides; one that is `new` or `gone` has one."""

    kind: Literal["new", "gone", "changed"]
    name: str
    before: str = ""
    after: str = ""


def repeats(before: RunResult, after: RunResult) -> bool:
    """True if a run carried out the earlier run's plan: its subtasks have the same ids."""
    known, own = _planned(before), _planned(after)
    return bool(own) and own <= known


def _planned(result: RunResult) -> set[str]:
    """Returns the ids of the subtasks that the plan lists, without those of items."""
    return {report.id for report in result.subtasks if report.template is None}


def names_of(result: RunResult) -> dict[str, str]:
    """Returns the display names of subtasks with findings: their id, or their item."""
    names: dict[str, str] = {}
    for report in result.subtasks:
        if report.finding is not None and report.counts is None:
            names[report.id] = report.description if report.template else report.id
    return names


def text_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """Returns the differences between findings by name, new ones first."""
    new, gone = _only_in(after, before), _only_in(before, after)
    found = [_new_row(name, after[name]) for name in new]
    found += [_gone_row(name, before[name]) for name in gone]
    for name, text in after.items():
        if name in before and before[name] != text:
            found.append(_changed(name, before[name], text))
    return found


def _only_in(these: Iterable[str], others: Container[str]) -> list[str]:
    """Returns the names that are not in `others`."""
    return [name for name in these if name not in others]


def _changed(name: str, before: str, after: str) -> Change:
    """Returns the differing lines of two texts, side by side."""
    old, new = before.splitlines()[:_LINES], after.splitlines()[:_LINES]
    left: list[str] = []
    right: list[str] = []
    for tag, *places in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            begin, end, new_begin, new_end = places
            left += old[begin:end]
            right += new[new_begin:new_end]
    return _changed_row(name, "\n".join(left), "\n".join(right))


def row_changes(table: str, before: Sequence[Row], after: Sequence[Row]) -> list[Change]:
    """Returns the differences between two tables of items, whose rows are matched by item."""
    old = {f"{table}: {_source(row)}": row for row in before}
    new = {f"{table}: {_source(row)}": row for row in after}
    found = [_new_row(name, _cells(new[name])) for name in _only_in(new, old)]
    found += [_gone_row(name, _cells(old[name])) for name in _only_in(old, new)]
    for name, row in new.items():
        columns = [column for column in row if _differs(column, old.get(name), row)]
        if columns:
            earlier = {column: old[name].get(column, "") for column in columns}
            later = {column: row[column] for column in columns}
            found.append(_changed_row(name, _cells(earlier), _cells(later)))
    return found


def _new_row(name: str, after: str) -> Change:
    return Change(kind="new", name=name, after=_first(after))


def _gone_row(name: str, before: str) -> Change:
    return Change(kind="gone", name=name, before=_first(before))


def _changed_row(name: str, before: str, after: str) -> Change:
    return Change(kind="changed", name=name, before=_first(before), after=_first(after))


def _differs(column: str, before: Row | None, after: Row) -> bool:
    if before is None or column in _LINK_COLUMNS:
        return False
    return before.get(column, "") != after[column]


def _source(row: Row) -> str:
    for name in _SOURCE_COLUMNS:
        if name in row:
            return row[name]
    return ""


def _cells(row: Row) -> str:
    cells = [f"{name}: {value}" for name, value in row.items() if name not in _LINK_COLUMNS]
    return "; ".join(cells)


def _first(text: str) -> str:
    return cut(text.strip(), _SHOWN_BYTES)
