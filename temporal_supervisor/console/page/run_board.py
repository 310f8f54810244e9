"""The parts of a run's live page, each with the version of its last change.

Only news are sent. A part is rendered once for all watchers, when it is first sent and its content
has changed: of 1,000 folded rows, and as many events, most may never be needed.
"""

import json
import re
import secrets
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple, get_args

from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.live_view import Picture, TreeRow
from temporal_supervisor.supervision.contract.result import SubtaskState

LINES = 1000  # events that the page keeps
LINES_AT_ONCE = 100  # of them that a page comes with
ITEMS_AT_ONCE = 200  # folded rows that are sent at a time
ROWS_UNFOLDED = 200  # subtasks of a plan: of more than these all but the first are folded away
ROWS_FOLDED = 100  # that many with one head
_FOLDED_FROM = 12  # items of a template: so many are folded away
_STATES = get_args(SubtaskState)
Render = Callable[..., str]


@dataclass
class _Part:
    """A part of the page since a version, which is rendered on demand."""

    version: int
    key: object
    made: Callable[[], str]

    @cached_property
    def text(self) -> str:
        """The rendered part."""
        return self.made()


@dataclass
class _LinePart(_Part):
    """An event of the page; its time determines its place among the others."""

    at: datetime


@dataclass(frozen=True)
class RowView:
    """A subtask on the page, with its present activity and its depth."""

    place: str
    row: TreeRow
    turn: int
    doing: str

    @property
    def key(self) -> object:
        """The facts in the row: if they change, the row is rendered again."""
        report = self.row.report
        finding = report.finding
        return (
            *(report.state, report.attempts, report.role, report.description, report.stale),
            *(report.started_at, report.finished_at, report.replaced_by, report.model),
            *(report.usage.tokens, report.usage.usd, report.counts, finding and finding.outcome),
            *(self.turn, self.doing, self.row.depth, report.error and report.error.message),
        )


class Fold(NamedTuple):
    """Rows that are folded under a name: items of a template, or some of many subtasks."""

    name: str
    words: str
    paths: list[str]


class Group(NamedTuple):
    """Rows in order, followed by others that are folded."""

    paths: list[str]
    fold: Fold | None = None


class FoldedRows(NamedTuple):
    """Some rows of a fold, from a position on, and the number of all matching rows."""

    name: str
    state: str
    start: int
    rows: list[str]
    total: int

    @property
    def following(self) -> int:
        """The position of the next rows; 0 if there are none."""
        end = self.start + len(self.rows)
        return end if end < self.total else 0


@dataclass
class RunBoard:
    """The page of a run at a time; `epoch` identifies the process that built it."""

    render: Render
    place: str
    epoch: str = field(default_factory=lambda: secrets.token_hex(4))
    version: int = 0
    ended: bool = False
    _parts: dict[str, _Part] = field(default_factory=dict)
    _lines: list[_LinePart] = field(default_factory=list)
    _rows: dict[str, RowView] = field(default_factory=dict)
    _order: list[tuple[str, int]] = field(default_factory=list)
    _groups: list[Group] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)
    _tree_version: int = 0
    _sent: tuple[int, int, bool, str] = (-1, -1, False, "")

    def update_part(self, name: str, key: object, template: str, **values: object) -> None:
        """Replaces a part, rendered from a template, if its `key` has changed."""
        if not self.has_part(name, key):
            self._set_part(name, key, partial(self.render, template, **values))

    def update_text(self, name: str, key: object, shown: str) -> None:
        """Replaces a part that is rendered already, if its `key` has changed."""
        self._set_part(name, key, lambda: shown)

    def _set_part(self, name: str, key: object, made: Callable[[], str]) -> None:
        self.version += 1
        self._parts[name] = _Part(self.version, key, made)

    def has_part(self, name: str, key: object) -> bool:
        """True if a part has exactly this key."""
        known = self._parts.get(name)
        return known is not None and known.key == key

    def part(self, name: str) -> str:
        """Returns a rendered part; empty if there is none."""
        known = self._parts.get(name)
        return known.text if known else ""

    def add_lines(self, lines: Iterable[Line]) -> None:
        """Adds events in the order of time; a worker agent's may be read late."""
        for line in lines:
            self.version += 1
            made = partial(self.render, "event.html.j2", item=line)
            part = _LinePart(self.version, line, made, line.at)
            insort(self._lines, part, key=lambda known: known.at)
        del self._lines[:-LINES]

    def update_tree(self, picture: Picture, doing: dict[str, str]) -> None:
        """Updates the subtasks; `doing` has the last action of each worker agent."""
        tree = picture.tree()
        order = [(row.path, row.depth) for row in tree]
        for row in tree:
            self._update_row(picture, row, doing)
        if order != self._order:
            self._order = order
            self._groups = _groups([self._rows[path] for path, _ in order])
            self.version += 1
            self._tree_version = self.version
        for fold in self._folds.values():
            self._update_fold(fold)

    def _update_fold(self, fold: Fold) -> None:
        """Updates the counts of a fold, by state, next to its head."""
        states = Counter(self._rows[path].row.report.state for path in fold.paths)
        shown = [(state, states[state]) for state in _STATES if states[state]]
        self.update_part(self._place_of(fold), shown, "counts.html.j2", counts=shown)

    @property
    def _folds(self) -> dict[str, Fold]:
        return {group.fold.name: group.fold for group in self._groups if group.fold}

    def _place_of(self, fold: Fold) -> str:
        """Returns the id of a fold on the page: its first row's, which never changes."""
        return f"g-{self._places[fold.paths[0]]}"

    def _update_row(self, picture: Picture, row: TreeRow, doing: dict[str, str]) -> None:
        agent = picture.agents.get(row.report.workflow_id or "")
        place = self._places.setdefault(row.path, f"r{len(self._places) + 1}")
        is_running = row.report.state == "running"
        now = (agent.tail if agent else "") or doing.get(row.path, "")
        turn = max(row.report.turns, agent.turn if agent else 0)
        view = RowView(place, row, turn, now if is_running else "")
        self._rows[row.path] = view
        self.update_part(place, view.key, "row.html.j2", view=view, place=self.place)

    @property
    def paths(self) -> list[str]:
        """The subtasks in the order of the tree."""
        return [path for path, _ in self._order]

    def tree(self) -> str:
        """Returns the whole tree, without folded rows."""
        shown = [(self._shown_rows(group), group.fold) for group in self._groups]
        return self.render(
            "tree.html.j2",
            groups=shown,
            part=self.part,
            place_of=self._place_of,
            place=self.place,
            has_rows=bool(self._order),
        )

    def _shown_rows(self, group: Group) -> list[str]:
        """Returns the rendered rows of a group that are not folded."""
        return [self.part(self._places[path]) for path in group.paths]

    def folded(self, name: str, state: str = "", start: int = 0) -> FoldedRows:
        """Returns the rows of a fold from a position on; with a `state` only those in it."""
        fold = self._folds.get(name)
        views = [self._rows[path] for path in fold.paths] if fold else []
        found = [view for view in views if state in ("", view.row.report.state)]
        rows = [self.part(view.place) for view in found[start : start + ITEMS_AT_ONCE]]
        return FoldedRows(name, state, start, rows, len(found))

    def newest_lines(self) -> list[str]:
        """Returns the events of a new page, the newest first."""
        return [line.text for line in reversed(self._lines[-LINES_AT_ONCE:])]

    @property
    def older_than(self) -> int:
        """The version of the oldest of these events; 0 if there are no older ones."""
        has_older = len(self._lines) > LINES_AT_ONCE
        return self._lines[-LINES_AT_ONCE].version if has_older else 0

    def older_lines(self, version: int) -> list[str]:
        """Returns the events before a version, the newest first."""
        versions = [line.version for line in self._lines]
        end = versions.index(version) if version in versions else 0
        return [line.text for line in reversed(self._lines[:end])]

    def news(self, since: int) -> str:
        """Returns the news since a version as JSON; most watchers share a version."""
        asked = (since, self.version, self.ended)
        if self._sent[:3] != asked:
            self._sent = (*asked, self._news(since))
        return self._sent[3]

    def _news(self, since: int) -> str:
        new = {name: part for name, part in self._parts.items() if part.version > since}
        has_tree = self._tree_version > since  # it holds all rows
        if has_tree:
            new = {name: part for name, part in new.items() if not _is_in_tree(name)}
        parts = {name: part.text for name, part in new.items()}
        if has_tree:
            parts["tree"] = self.tree()
        news = {"version": self.version, "parts": parts, "ended": self.ended}
        if not since:  # of a page that has nothing yet
            lines = self.newest_lines()[::-1]
            return json.dumps({**news, "lines": lines, "older_than": self.older_than})
        lines = [line.text for line in self._lines if line.version > since]
        return json.dumps({**news, "lines": lines})


def _is_in_tree(name: str) -> bool:
    """True for a part of the tree: a row, or the counts of a fold."""
    return re.fullmatch(r"(g-)?r\d+", name) is not None


def template_path(row: TreeRow) -> str:
    """Returns the path of an item's template; empty for other subtasks."""
    template = row.report.template
    return row.path.removesuffix(row.report.id) + template if template else ""


def _groups(rows: Sequence[RowView]) -> list[Group]:
    """Returns the rows in groups, with many items or very many subtasks folded."""
    found: list[Group] = []
    for template, views in groupby(rows, lambda view: template_path(view.row)):
        paths = [view.row.path for view in views]
        if template and len(paths) >= _FOLDED_FROM:
            words = f"{len(paths):,} items of {template}"
            found.append(Group([], Fold(template, words, paths)))
        else:
            found.append(Group(paths))
    groups = _joined(found)
    many = sum(len(group.paths) for group in groups) > ROWS_UNFOLDED
    return _joined(_in_blocks(groups)) if many else groups


def _joined(groups: Iterable[Group]) -> list[Group]:
    """Returns groups joined so that each ends with a fold."""
    joined = [Group([])]
    for group in groups:
        if joined[-1].fold:
            joined.append(Group([]))
        joined[-1] = Group([*joined[-1].paths, *group.paths], group.fold)
    return joined


def _in_blocks(groups: Iterable[Group]) -> Iterator[Group]:
    """Yields the groups with the first rows unfolded, and the others folded in blocks."""
    unfolded = ROWS_FOLDED
    for group in groups:
        yield Group(group.paths[:unfolded])
        others = group.paths[unfolded:]
        unfolded = max(0, unfolded - len(group.paths))
        for start in range(0, len(others), ROWS_FOLDED):
            yield _block(others[start : start + ROWS_FOLDED])
        yield Group([], group.fold)


def _block(paths: list[str]) -> Group:
    """Returns folded rows, named by the first and the last; a few rows stay unfolded."""
    if len(paths) < _FOLDED_FROM:
        return Group(paths)
    name = f"{paths[0]} to {paths[-1]}"
    return Group([], Fold(name, f"{len(paths):,} subtasks, {name}", paths))
