"""A followed run: a redrawn tree with events above on a terminal, otherwise lines."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from temporal_supervisor.console.base.terminal import (
    Paragraph,
    ScreenRow,
    duration,
    print_err,
    roughly,
    safe_line,
    wrapped,
)
from temporal_supervisor.console.run.standstill import Standstill, grouped, waits_of_status
from temporal_supervisor.console.view.event_lines import Line, now_line
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.plan import folded
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.status import Status
from temporal_supervisor.supervision.planning.to_go import rest_of_plan
from temporal_supervisor.supervision.results.success_rule import is_whole
from temporal_supervisor.supervision.run.events import Mood

LINE_CHARS = 240  # one event on one line
_STATES = {  # the sign, its style, and which give way first on a low screen
    "running": ("▶", "bold cyan", 0),
    "waiting": ("·", "dim", 1),
    "failed": ("✘", "red", 2),
    "cancelled": ("■", "yellow", 2),
    "skipped": ("–", "yellow", 3),
    "completed": ("✔", "green", 4),
}
_FLAGS = {
    "paused": "paused",
    "waiting_provider": "waiting for the provider",
    "waiting_person": "waiting for a person",
    "waiting_store": "waiting for the artifact store",
}
_MOODS: dict[Mood, str] = {
    "plain": "",
    "good": "green",
    "bad": "red",
    "faint": "dim",
    "head": "bold",
}
_PARTIAL = ("◐", "yellow")
_DEEPEST = 6  # further levels are not indented any more
_FOOTER_ROWS = 9  # of footer and margin
_WIDEST = 120  # columns of a picture in a report
_LEAST_ROWS = 3  # of the plan, of what waits
_REASON_COLUMN = 9  # below the text of an event, behind its time
ENDED_PHASES = ("done", "failed", "cancelled")


@dataclass
class LiveAgent:
    """A worker agent or nested supervisor, by the workflow id of its attempt.

    `path` is its subtask, such as `t3/t1` in a nested run. `moment` is its execution and history
    length at the last query. `tail` is the end of the text that it writes.
    """

    path: str = ""
    cursor: int = 0
    moment: tuple[str, int] | None = None
    turn: int = 0
    tail: str = ""
    ended: bool = False
    read_to_end: bool = False


@dataclass
class Picture:
    """The known state of a run; `notice` is set while the server is away.

    `reports` are its subtasks by id, and `nested` the subtasks of nested runs by workflow id.
    `tail` is the end of the text that the supervisor writes.
    """

    run_id: str
    web: str | None = None
    started: datetime | None = None
    closed: datetime | None = None
    state: str = ""
    status: Status | None = None
    reports: dict[str, SubtaskReport] = field(default_factory=dict)
    nested: dict[str, dict[str, SubtaskReport]] = field(default_factory=dict)
    agents: dict[str, LiveAgent] = field(default_factory=dict)
    tail: str = ""
    notice: str | None = None
    observed: list[Standstill] = field(default_factory=list)

    @property
    def phase(self) -> str:
        """The run's phase, or its state in Temporal if that ended it or the phase is unknown."""
        phase = self.status.phase if self.status else ""
        was_ended_from_outside = self.closed is not None and phase not in ENDED_PHASES
        if not phase or was_ended_from_outside:
            return self.state or "starting"
        return phase

    @property
    def standstills(self) -> list[Standstill]:
        """The waits of the run, from its own status and from the server."""
        said = waits_of_status(self.status, self.run_id) if self.status else []
        return grouped([*said, *self.observed])

    def tree(self) -> list["TreeRow"]:
        """Returns the subtasks of all levels."""
        return tree_rows(list(self.reports.values()), self.nested)


@dataclass(frozen=True)
class TreeRow:
    """One subtask at its depth; `path` includes its parents, such as `t3/t1`."""

    report: SubtaskReport
    depth: int
    path: str


def tree_rows(
    reports: list[SubtaskReport],
    nested: Mapping[str, Mapping[str, SubtaskReport]] | None = None,
    above: str = "",
    depth: int = 0,
) -> list[TreeRow]:
    """Returns every subtask once, under the last of its dependencies, in plan order.

    Items are under their template, and subtasks of `nested` runs under their run's subtask.
    """
    known = {report.id for report in reports}
    children: dict[str | None, list[SubtaskReport]] = {}
    for report in reports:
        possible = [report.template] if report.template else folded(report.depends_on)
        parents = [parent for parent in possible if parent in known and parent != report.id]
        children.setdefault(parents[-1] if parents else None, []).append(report)
    tree: list[TreeRow] = []
    pending = [(report, depth) for report in reversed(children.get(None, []))]
    while pending:
        report, level = pending.pop()
        path = f"{above}{report.id}"
        tree.append(TreeRow(report, level, path))
        below = nested.get(report.workflow_id or "") if nested else None
        if below:
            tree += tree_rows(list(below.values()), nested, f"{path}/", level + 1)
        pending += [(child, level + 1) for child in reversed(children.pop(report.id, []))]
    return tree


def fit_rows(tree: list[TreeRow], height: int) -> tuple[list[TreeRow], list[TreeRow]]:
    """Returns at most `height` rows in tree order, and the rest: ended ones first."""

    def rank(place: int) -> tuple[int, int]:
        _, _, gives_way = _STATES[tree[place].report.state]
        return gives_way, place

    ranked = sorted(range(len(tree)), key=rank)
    shown = sorted(ranked[: max(0, height)])
    left_out = ranked[len(shown) :]
    return [tree[place] for place in shown], [tree[place] for place in left_out]


def log_line(line: Line, limit: int = LINE_CHARS) -> Text:
    """Returns an event as one styled line."""
    time = (f"{line.at.astimezone():%H:%M:%S} ", "dim")
    subject = (f"{safe_line(line.subject, 40)} " if line.subject else "", "cyan")
    words = (safe_line(line.text, limit), _MOODS[line.mood])
    if line.mood == "head":  # the console's own lines are never cut
        return Text.assemble(time, subject, words, no_wrap=False, overflow="fold")
    return Text.assemble(time, subject, words, no_wrap=True, overflow="ellipsis")


def story_rows(line: Line) -> Iterator[ScreenRow | Text]:
    """Yields an event with its reasons, uncut."""
    head = log_line(line, limits.ERROR_BYTES)
    head.overflow = "ignore"  # the terminal breaks it
    yield head
    for text in line.why:
        yield Paragraph(safe_line(text, limits.ERROR_BYTES), _REASON_COLUMN)


@dataclass(frozen=True)
class WholePicture:
    """A picture with all of its subtasks, as a row of a report."""

    picture: Picture

    def renderables(self, screen: Console) -> Iterator[RenderableType]:
        """Yields the drawing in a width that is easy to read."""
        width = min(screen.width, _WIDEST)  # a table for a pipe is wider
        yield draw(self.picture, width, len(self.picture.tree()) + limits.STATUS_PAGE)


def draw(picture: Picture, width: int, height: int, hint: str = "") -> RenderableType:
    """Returns the picture for a terminal of that size; `hint` lists the keys."""
    parts: list[RenderableType] = [Text("─" * width, style="dim")]
    tree = [row for row in picture.tree() if row.report.template is None]
    waits = _waits(picture, width, height)
    if tree:
        tails = height // 4
        running = sum(1 for row in tree if row.report.state == "running")
        room = height - _FOOTER_ROWS - len(waits) - min(running, tails)
        shown, left_out = fit_rows(tree, max(_LEAST_ROWS, room))
        parts.append(_table(picture, shown, width, tails))
        if left_out:
            counts = Counter(row.report.state for row in left_out)
            states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
            more = f"  … and {len(left_out)} more subtasks: {states}"
            parts.append(Text(more, "dim", no_wrap=True))
    if picture.tail:
        parts.append(Text("  ✎ " + _tail(picture.tail, width - 6), style="italic", no_wrap=True))
    return Group(*parts, *_footer(picture, waits, width, hint))


def _table(picture: Picture, shown: list[TreeRow], width: int, tails: int) -> Table:
    """Returns the table of subtasks, with at most `tails` texts that are being written."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.width = width
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(14, width // 4))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(10, width // 7))
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for row in shown:
        report = row.report
        agent = picture.agents.get(report.workflow_id or "")
        is_told = report.state in ("running", "failed")
        table.add_row(
            _name_cell(row),
            Text(safe_line(report.role, 40)),
            Text(_progress(report, agent), style="dim"),
            Text(_elapsed(report), style="dim"),
            Text(_description(row), style="" if is_told else "dim"),
        )
        if agent and agent.tail and report.state == "running" and tails > 0:
            tails -= 1
            tail = _tail(agent.tail, max(20, width // 2))
            table.add_row("", "", "", "", Text(tail, style="italic dim"))
    return table


def _name_cell(row: TreeRow) -> Text:
    """Returns the sign and the path of a subtask, indented by its depth."""
    sign, style, _ = _STATES[row.report.state]
    if _is_partial(row.report):
        sign, style = _PARTIAL
    branch = "└ " if row.depth else " "
    name = Text("  " * min(row.depth, _DEEPEST) + branch, style="dim")
    name.append(f"{sign} {safe_line(row.path, 60)}", style=f"not dim {style}")
    return name


def _progress(report: SubtaskReport, agent: LiveAgent | None) -> str:
    """Returns the progress of a subtask: its items, or its agent's turns."""
    if report.reused:
        return "found before"
    if report.counts:
        return report.counts.items_line
    turn = max(report.turns, agent.turn if agent else 0)
    return f"turn {turn}" if turn else ""


def _is_partial(report: SubtaskReport) -> bool:
    return report.state == "completed" and not is_whole(report)


def _description(row: TreeRow) -> str:
    report = row.report
    parts = []
    if report.attempts > 1:
        parts.append(f"attempt {report.attempts}")
    dependencies = folded(report.depends_on)
    if len(dependencies) > 1:  # the tree shows only the last
        parts.append(f"after {', '.join(dependencies)}")
    error = report.error
    parts.append(f"{error.type}: {error.message}" if error else report.description)
    return safe_line(" · ".join(parts), LINE_CHARS)


def _tail(tail: str, width: int) -> str:
    text = safe_line(tail, limits.HEARTBEAT_TAIL_CHARS)
    return text if len(text) < width else "…" + text[-(width - 1) :]


def _status_words(picture: Picture, status: Status) -> list[str]:
    """Returns the conditions, counts and cost of a run."""
    words = [_FLAGS[name] for name, value in status.flags.model_dump().items() if value]
    counts, usage = status.counts, status.usage
    if counts.total:
        running = "" if picture.closed else f", {counts.running} running"
        words.append(f"{counts.completed}/{counts.total} done{running}")

    single = [report for report in picture.reports.values() if report.counts is None]
    lost = {
        "partial": sum(map(_is_partial, single)),
        "failed": counts.failed,
        "skipped": counts.skipped,
        "cancelled": counts.cancelled,
    }
    words += [f"{count} {state}" for state, count in lost.items() if count]

    cached = f", {usage.cached_share:.0%} cached" if usage.cache_read_tokens else ""
    words.append(f"{usage.tokens:,} tokens{cached}")
    words.append(money(usage.usd))
    return words + to_go_words(picture)


def _footer(picture: Picture, waits: list[Text], width: int, hint: str) -> list[Text]:
    status = picture.status
    words = [picture.phase]
    if status:
        words += _status_words(picture, status)
    if picture.started:
        end = picture.closed or datetime.now(UTC)
        words.append(duration((end - picture.started).total_seconds()))
    rows = [*wrapped(" · ".join(words), width, "bold"), *waits]
    if picture.notice:
        rows += wrapped(picture.notice, width, "yellow")
    if status and status.model_notice:
        rows += wrapped(status.model_notice, width, "magenta")
    if picture.web:
        rows.append(Text(picture.web, style="dim"))
    if hint:
        rows += wrapped(hint, width, "dim")
    return rows


def to_go_words(picture: Picture) -> list[str]:
    """Returns the estimated remaining time and cost of a run; empty without an estimate.

    There is none while a run waits, for how long is unknown.
    """
    status = picture.status
    if status is None or picture.closed or status.phase != "executing" or picture.standstills:
        return []
    guess = rest_of_plan(picture.reports.values(), datetime.now(UTC), status.limits.max_parallel)
    if guess is None:
        return []
    cost = f" and {money(guess.usd)}" if guess.usd else ""
    return [f"about {roughly(guess.seconds)}{cost} to go"]


def _waits(picture: Picture, width: int, height: int) -> list[Text]:
    """Returns rows with the causes of a standstill, on at most a third of the screen."""
    screen = Console(width=width)
    rows: list[Text] = []
    for cause in picture.standstills:
        for row in wrapped(f"⏸ {cause.line}", width, "yellow"):
            rows += row.wrap(screen, width)
    most = max(_LEAST_ROWS, height // 3)
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], Text(" …", style="yellow")]


def _elapsed(report: SubtaskReport) -> str:
    if report.started_at is None:
        return ""
    started = datetime.fromisoformat(report.started_at)
    ended = datetime.now(UTC)
    if report.finished_at:
        ended = datetime.fromisoformat(report.finished_at)
    return duration((ended - started).total_seconds())


class Screen:
    """Shows a followed run for the time of a `with` block.

    On a terminal the plan and a footer are redrawn below the events. Otherwise each event, and each
    new notice, warning and wait, gets a line.
    """

    def __init__(self, console: Console, hint: str = "") -> None:
        self._console = console
        self._hint = hint
        self._picture: Picture | None = None
        self._said: set[str] = set()
        self._live: Live | None = None

    def __enter__(self) -> "Screen":
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._draw,
                auto_refresh=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the last picture on the screen, without the hint."""
        self._hint = ""
        if self._live is not None:
            self._live.refresh()
            self._live.stop()

    @contextlib.contextmanager
    def cleared(self) -> Iterator[None]:
        """Removes the live part from the terminal and draws it again after the block.

        It is not drawn again after an error.
        """
        if self._live is not None:
            self._live.transient = True
            self._live.stop()
        yield
        self.__enter__()

    def log(self, line: Line, limit: int = LINE_CHARS) -> None:
        """Writes the line."""
        shown = log_line(line, limit)
        if self._live is None:
            self._console.file.write(shown.plain + "\n")
            self._console.file.flush()
            return
        # the options of a text are lost when the console joins texts
        self._console.print(shown, no_wrap=shown.no_wrap, overflow=shown.overflow)

    def update(self, picture: Picture) -> None:
        """Draws the picture, or writes its news as lines."""
        self._picture = picture
        if self._live is not None:
            self._live.refresh()
            return
        status = picture.status
        notices = [picture.notice]
        if status:
            notices += [status.model_notice, *status.warnings]
        lines = {text: now_line(text) for text in notices if text}
        for cause in picture.standstills:
            # its words change with every attempt, and one line is enough
            lines.setdefault(cause.waits_for + cause.helps, now_line(cause.line, "bad"))
        for name, line in lines.items():
            if name not in self._said:
                self.log(line, limits.ERROR_BYTES)
        self._said = set(lines)

    def _draw(self) -> RenderableType:
        if self._picture is None:
            return ""
        return draw(self._picture, self._console.width, self._console.height, self._hint)


class QuietScreen(Screen):
    """Writes only the causes of a followed run's standstills to standard error, once each."""

    def __enter__(self) -> "QuietScreen":
        return self

    def log(self, line: Line, limit: int = LINE_CHARS) -> None:
        """Writes only bad news: waits and notices."""
        if line.mood == "bad":
            print_err(log_line(line, limit).plain)
