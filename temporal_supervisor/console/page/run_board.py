"""The parts of a run's live page, each with the number of its last change: only news are sent.

A part is rendered once, for all watchers, when it is first sent and what it shows has changed: of
1,000 folded rows, and as many events, nobody may ever ask.
"""

import json
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.live_view import Picture, TreeRow

LINES = 1000  # events that the page keeps
LINES_AT_ONCE = 100  # of them that a page comes with
ITEMS_AT_ONCE = 200  # rows of folded items that are sent at a time
_FOLDED_FROM = 12  # items of a template: so many are folded away
Render = Callable[..., str]


@dataclass
class _Part:
    """A part of the page since a version; it is rendered when somebody asks for it."""

    version: int
    key: object
    made: Callable[[], str]

    @cached_property
    def shown(self) -> str:
        """The text of the part."""
        return self.made()


@dataclass(frozen=True)
class RowView:
    """A subtask as the page shows it: what it does now, and how deep it stands."""

    place: str
    row: TreeRow
    turn: int
    doing: str

    @property
    def key(self) -> object:
        """The facts that the row shows: it is rendered again when they have changed."""
        report = self.row.report
        finding = report.finding
        return (
            *(report.state, report.attempts, report.role, report.description, report.stale),
            *(report.started_at, report.finished_at, report.replaced_by, report.model),
            *(report.usage.tokens, report.usage.usd, report.counts, finding and finding.outcome),
            *(self.turn, self.doing, self.row.depth, report.error and report.error.message),
        )


class Group(NamedTuple):
    """Rows one below the other; below them the `items` of the `template` at a path, folded."""

    rows: list[RowView]
    items: list[RowView]
    template: str = ""


class ItemRows(NamedTuple):
    """Some rows of folded items, from a place on, and the count of all that were asked for."""

    template: str
    state: str
    start: int
    rows: list[str]
    total: int

    @property
    def following(self) -> int:
        """The place of the next rows; 0 if there are none."""
        end = self.start + len(self.rows)
        return end if end < self.total else 0


@dataclass
class RunBoard:
    """The page of a run at a time; `epoch` tells it from one of an earlier process."""

    render: Render
    place: str
    epoch: str = field(default_factory=lambda: secrets.token_hex(4))
    version: int = 0
    ended: bool = False
    _parts: dict[str, _Part] = field(default_factory=dict)
    _lines: deque[_Part] = field(default_factory=lambda: deque(maxlen=LINES))
    _rows: dict[str, RowView] = field(default_factory=dict)
    _order: list[tuple[str, int]] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)
    _tree_version: int = 0
    _sent: tuple[int, int, bool, str] = (-1, -1, False, "")

    def put(self, name: str, key: object, template: str, **values: object) -> None:
        """Takes a part if what it shows, its `key`, is new."""
        if not self.has(name, key):
            self._put(name, key, partial(self.render, template, **values))

    def put_text(self, name: str, key: object, shown: str) -> None:
        """Takes a part that has been rendered."""
        self._put(name, key, lambda: shown)

    def _put(self, name: str, key: object, made: Callable[[], str]) -> None:
        self.version += 1
        self._parts[name] = _Part(self.version, key, made)

    def has(self, name: str, key: object) -> bool:
        """True if a part shows just that."""
        known = self._parts.get(name)
        return known is not None and known.key == key

    def part(self, name: str) -> str:
        """Returns a part as it is now; empty if there is none."""
        known = self._parts.get(name)
        return known.shown if known else ""

    def take_lines(self, lines: Iterable[Line]) -> None:
        """Adds events at the end."""
        for line in lines:
            self.version += 1
            made = partial(self.render, "event.html.j2", item=line)
            self._lines.append(_Part(self.version, line, made))

    def take_tree(self, picture: Picture, doing: dict[str, str]) -> None:
        """Takes the subtasks; `doing` says of each what its worker agent did last."""
        tree = picture.tree()
        order = [(row.path, row.depth) for row in tree]
        for row in tree:
            self._take_row(picture, row, doing)
        if order != self._order:
            self._order = order
            self.version += 1
            self._tree_version = self.version

    def _take_row(self, picture: Picture, row: TreeRow, doing: dict[str, str]) -> None:
        agent = picture.agents.get(row.report.workflow_id or "")
        place = self._places.setdefault(row.path, f"r{len(self._places) + 1}")
        is_running = row.report.state == "running"
        now = (agent.tail if agent else "") or doing.get(row.path, "")
        turn = max(row.report.turns, agent.turn if agent else 0)
        view = RowView(place, row, turn, now if is_running else "")
        self._rows[row.path] = view
        self.put(place, view.key, "row.html.j2", view=view, place=self.place)

    @property
    def paths(self) -> list[str]:
        """The subtasks, in the order of the tree."""
        return [path for path, _ in self._order]

    def tree(self) -> str:
        """Returns the whole tree."""
        groups = _groups([self._rows[path] for path, _ in self._order])
        return self.render("tree.html.j2", groups=groups, part=self.part, place=self.place)

    def items(self, template: str, state: str = "", start: int = 0) -> ItemRows:
        """Returns the rows of items from a place on, of those in a state if one is named."""
        views = [self._rows[path] for path, _ in self._order]
        found = [view for view in views if template_path(view.row) == template]
        found = [view for view in found if state in ("", view.row.report.state)]
        rows = [self.part(view.place) for view in found[start : start + ITEMS_AT_ONCE]]
        return ItemRows(template, state, start, rows, len(found))

    def newest_lines(self) -> list[str]:
        """Returns the events that a page comes with, the newest first."""
        newest = list(self._lines)[-LINES_AT_ONCE:]
        return [line.shown for line in reversed(newest)]

    @property
    def older_than(self) -> int:
        """The version of the first of these; 0 if there are none before it."""
        has_older = len(self._lines) > LINES_AT_ONCE
        return self._lines[-LINES_AT_ONCE].version if has_older else 0

    def older_lines(self, version: int) -> list[str]:
        """Returns the events before that of a version, the newest first."""
        return [line.shown for line in reversed(self._lines) if line.version < version]

    def news(self, since: int) -> str:
        """Returns the news since a version, as JSON; most watchers ask for the same."""
        asked = (since, self.version, self.ended)
        if self._sent[:3] != asked:
            self._sent = (*asked, self._news(since))
        return self._sent[3]

    def _news(self, since: int) -> str:
        parts = {name: part.shown for name, part in self._parts.items() if part.version > since}
        if self._tree_version > since:  # it holds all rows
            parts = {name: shown for name, shown in parts.items() if not _is_row(name)}
            parts["tree"] = self.tree()
        news = {"version": self.version, "parts": parts, "ended": self.ended}
        if not since:  # of a page that has nothing yet
            lines = self.newest_lines()[::-1]
            return json.dumps({**news, "lines": lines, "older_than": self.older_than})
        lines = [line.shown for line in self._lines if line.version > since]
        return json.dumps({**news, "lines": lines})


def _is_row(name: str) -> bool:
    return name[0] == "r" and name[1:].isdecimal()


def template_path(row: TreeRow) -> str:
    """Returns the path of the template that an item is of; empty for any other subtask."""
    template = row.report.template
    return row.path.removesuffix(row.report.id) + template if template else ""


def _groups(rows: Sequence[RowView]) -> list[Group]:
    """Returns the rows with those of a template's items apart, where they are many."""
    groups = [Group([], [])]
    for view in rows:
        template = template_path(view.row)
        if groups[-1].items and template != groups[-1].template:
            groups.append(Group([], []))
        if template and not groups[-1].items:
            groups[-1] = groups[-1]._replace(template=template)
        (groups[-1].items if template else groups[-1].rows).append(view)
    return [_unfolded(group) for group in groups]


def _unfolded(group: Group) -> Group:
    """Returns the group with few items among its rows."""
    if len(group.items) >= _FOLDED_FROM:
        return group
    return Group([*group.rows, *group.items], [])
