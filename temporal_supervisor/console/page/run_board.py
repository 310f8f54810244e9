"""The parts of a run's live page, each with the number of its last change: only news are sent.

A part is rendered once, for all watchers, and only when what it shows has changed.
"""

import json
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.live_view import Picture, TreeRow

LINES = 1000  # events that the page keeps
_FOLDED_FROM = 12  # items of a template: so many are folded away
Render = Callable[..., str]


class _Part(NamedTuple):
    version: int
    shown: str
    key: object


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
    """Rows one below the other; `items` of the last one are folded if they are many."""

    rows: list[RowView]
    items: list[RowView]


@dataclass
class RunBoard:
    """The page of a run at a time; `epoch` tells it from one of an earlier process."""

    render: Render
    place: str
    epoch: str = field(default_factory=lambda: secrets.token_hex(4))
    version: int = 0
    ended: bool = False
    _parts: dict[str, _Part] = field(default_factory=dict)
    _lines: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=LINES))
    _rows: dict[str, RowView] = field(default_factory=dict)
    _order: list[tuple[str, int]] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)
    _tree_version: int = 0
    _sent: tuple[int, int, bool, str] = (-1, -1, False, "")

    def put(self, name: str, key: object, template: str, **values: object) -> None:
        """Renders a part if what it shows, its `key`, is new."""
        known = self._parts.get(name)
        if known is None or known.key != key:
            self.put_text(name, key, self.render(template, **values))

    def put_text(self, name: str, key: object, shown: str) -> None:
        """Keeps a part that has been rendered."""
        self.version += 1
        self._parts[name] = _Part(self.version, shown, key)

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
            self._lines.append((self.version, self.render("event.html.j2", item=line)))

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
        return self.render("tree.html.j2", groups=groups, part=self.part)

    def lines(self) -> list[str]:
        """Returns the events, the oldest first."""
        return [shown for _, shown in self._lines]

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
        lines = [shown for version, shown in self._lines if version > since]
        news = {"version": self.version, "parts": parts, "lines": lines, "ended": self.ended}
        return json.dumps(news)


def _is_row(name: str) -> bool:
    return name[0] == "r" and name[1:].isdecimal()


def _groups(rows: Sequence[RowView]) -> list[Group]:
    """Returns the rows with those of a template's items apart, where they are many."""
    groups = [Group([], [])]
    for view in rows:
        is_item = view.row.report.template is not None
        if groups[-1].items and not is_item:
            groups.append(Group([], []))
        (groups[-1].items if is_item else groups[-1].rows).append(view)
    return [_unfolded(group) for group in groups]


def _unfolded(group: Group) -> Group:
    """Returns the group with few items among its rows."""
    if len(group.items) >= _FOLDED_FROM:
        return group
    return Group([*group.rows, *group.items], [])
