"""A followed run: on a terminal its plan as a tree, redrawn in place, with events above; elsewhere lines."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from console.base.terminal import duration, safe_line, wrapped
from console.run.run_handle import NO_WORKER
from console.run.standstill import Standstill, grouped, stated
from console.view.event_lines import Line, now_line
from supervision.base import limits
from supervision.base.text import money
from supervision.contract.plan import folded
from supervision.contract.result import SubtaskReport
from supervision.contract.status import Status
from supervision.contract.usage import Spend
from supervision.results.success_rule import is_whole
from supervision.run.events import Mood

LINE_CHARS = 240  # one event on one line
_REDRAW = timedelta(milliseconds=250)  # clocks move, and no flicker
_GLYPHS = {"completed": "✔", "failed": "✘", "skipped": "–", "cancelled": "■", "running": "▶", "waiting": "·"}
_STATE_STYLES = {
    "completed": "green",
    "failed": "red",
    "skipped": "yellow",
    "cancelled": "yellow",
    "running": "bold cyan",
    "waiting": "dim",
}
_MOODS: dict[Mood, str] = {"plain": "", "good": "green", "bad": "red", "faint": "dim", "head": "bold"}
_DEEPEST = 6  # further levels are not indented any more
_FOOTER_ROWS = 9  # of footer and margin
_ROOMY = 24  # rows of a terminal with room for more than the plan
_LEAST_ROWS = 3
_LEAST_WIDTH = 20
_WAIT_ROWS = 3
_SPENDERS = 4  # named on one line
_REASON_INDENT = " " * 9  # below the text of an event, behind its time
ENDED_PHASES = ("done", "failed", "cancelled")
_RANK = {"running": 0, "waiting": 1, "failed": 2, "cancelled": 2, "skipped": 3, "completed": 4}


@dataclass
class LiveAgent:
    """One worker agent or nested supervisor, known by the workflow id of its attempt.

    `path` is its subtask's id, below those of the subtasks that it is nested in, as `t3/t1`. `moment` is its history
    when it was last asked: the execution, and how long it was. `tail` is the end of the text that it writes.
    """

    path: str = ""
    cursor: int = 0
    moment: tuple[str, int] | None = None
    turn: int = 0
    tokens: int = 0
    tail: str = ""
    ended: bool = False
    read_to_end: bool = False


@dataclass
class Picture:
    """Where a run stands, as far as it was seen. `notice` says why there is nothing newer.

    `reports` are its subtasks by id, `nested` those of the nested runs below it, by workflow id. `tail` is the end of
    the text that the supervisor itself writes.
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
        """The run's phase, or its state in Temporal where something else ended it."""
        phase = self.status.phase if self.status else ""
        return self.state or "starting" if not phase or (self.closed and phase not in ENDED_PHASES) else phase

    @property
    def standstills(self) -> list[Standstill]:
        """Returns what the run waits for, as it says itself and as the server knows."""
        said = stated(self.status, self.run_id) if self.status else []
        return grouped([*said, *self.observed])

    def agent(self, report: SubtaskReport) -> LiveAgent | None:
        """Returns the worker agent of a subtask's present attempt."""
        return self.agents.get(report.workflow_id or "")

    @property
    def tokens(self) -> int:
        """Tokens of ended subtasks and of the turns of running ones."""
        running = (self.agent(row.report) for row in self.tree() if row.report.state == "running")
        not_booked = sum(agent.tokens for agent in running if agent)
        return (self.status.usage.tokens if self.status else 0) + not_booked

    def tree(self) -> list["TreeRow"]:
        """Returns the subtasks of all levels."""
        return tree_rows(list(self.reports.values()), self.nested)


@dataclass(frozen=True)
class TreeRow:
    """One subtask at its depth; `after` are its dependencies, if it has several: the tree shows only the last.

    `path` is its id below those of the subtasks that it is nested in, as `t3/t1`.
    """

    report: SubtaskReport
    depth: int
    after: list[str]
    path: str


def tree_rows(
    reports: list[SubtaskReport],
    nested: Mapping[str, Mapping[str, SubtaskReport]] | None = None,
    above: str = "",
    depth: int = 0,
) -> list[TreeRow]:
    """Returns every subtask once, each under the last of its dependencies, siblings in the order of the plan.

    Items stand under their template, the subtasks of `nested` runs, by workflow id, under the one that theirs works on.
    """
    known = {report.id for report in reports}
    children: dict[str | None, list[SubtaskReport]] = {}
    for report in reports:
        above_it = [template] if (template := report.template) else folded(report.depends_on)
        dependencies = [d for d in above_it if d in known and d != report.id]
        children.setdefault(dependencies[-1] if dependencies else None, []).append(report)
    tree: list[TreeRow] = []
    pending = [(report, depth) for report in reversed(children.get(None, []))]
    while pending:
        report, level = pending.pop()
        path = f"{above}{report.id}"
        after = folded(report.depends_on)
        tree.append(TreeRow(report, level, after if len(after) > 1 else [], path))
        if nested and (below := nested.get(report.workflow_id or "")):
            tree += tree_rows(list(below.values()), nested, f"{path}/", level + 1)
        pending += [(child, level + 1) for child in reversed(children.pop(report.id, []))]
    return tree


def fitted(tree: list[TreeRow], height: int) -> tuple[list[TreeRow], int]:
    """Returns at most `height` rows in the tree's order, and how many were left out: ended ones first."""
    if len(tree) <= height:
        return tree, 0
    chosen = sorted(range(len(tree)), key=lambda i: (_RANK[tree[i].report.state], i))[: max(0, height)]
    return [tree[i] for i in sorted(chosen)], len(tree) - len(chosen)


def log_line(line: Line, limit: int = LINE_CHARS) -> Text:
    """Returns an event as one styled line."""
    subject = f"{safe_line(line.subject, 40)} " if line.subject else ""
    time, words = (f"{line.at.astimezone():%H:%M:%S} ", "dim"), (safe_line(line.text, limit), _MOODS[line.mood])
    return Text.assemble(time, (subject, "cyan"), words, no_wrap=True, overflow="ellipsis")


def story_rows(line: Line, width: int | None) -> list[Text]:
    """Returns an event with the reasons behind it, nothing cut; without a `width` a row for each."""
    reasons = [(safe_line(text, limits.ERROR_BYTES), "dim") for text in line.why]
    rows: list[Text] = []
    for text, style in ((log_line(line, limits.ERROR_BYTES).plain, _MOODS[line.mood]), *reasons):
        room = width and max(_LEAST_WIDTH, width - len(_REASON_INDENT))
        parts = [row.plain.rstrip() for row in Text(text).wrap(Console(width=width), room)] if room else [text]
        for part in parts:
            rows.append(Text((_REASON_INDENT if rows else "") + part, style=style))
    return rows


def draw(picture: Picture, width: int, height: int, hint: str = "") -> RenderableType:
    """Returns the picture for a terminal of that size; `hint` says which keys there are."""
    parts: list[RenderableType] = [Text("─" * width, style="dim")]
    tree = [row for row in picture.tree() if row.report.template is None]
    waits = _waits(picture, width, height)
    if tree:
        running = sum(1 for row in tree if row.report.state == "running")
        room = max(_LEAST_ROWS, height - _FOOTER_ROWS - len(waits) - min(running, height // 4))
        shown, left_out = fitted(tree, room)
        parts.append(_table(picture, shown, width, tails=height // 4))
        if left_out:
            parts.append(_faint(f"  … and {_states(tree, shown)}"))
    elif picture.tail:
        parts.append(_faint("  " + _tail(picture.tail, width - 4)))
    if tree and picture.tail:
        parts.append(Text("  ✎ " + _tail(picture.tail, width - 6), style="italic", no_wrap=True))
    return Group(*parts, *_footer(picture, waits, width, height, hint))


def _table(picture: Picture, shown: list[TreeRow], width: int, tails: int) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.width = width
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(14, width // 4))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(10, width // 7))
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for row in shown:
        report = row.report
        style = "yellow" if _is_partial(report) else _STATE_STYLES[report.state]
        glyph = "◐" if _is_partial(report) else _GLYPHS[report.state]
        name = Text("  " * min(row.depth, _DEEPEST) + ("└ " if row.depth else " "), style="dim")
        name.append(f"{glyph} {safe_line(row.path, 60)}", style=f"not dim {style}")
        agent = picture.agent(report)
        turn = max(report.turns, agent.turn if agent else 0)
        done = report.counts.items_line if report.counts else f"turn {turn}" * bool(turn)
        table.add_row(
            name,
            Text(safe_line(report.role, 40)),
            Text(done, style="dim"),
            Text(_elapsed(report), style="dim"),
            Text(_description(row), style="" if report.state in ("running", "failed") else "dim"),
        )
        if agent and agent.tail and report.state == "running" and tails > 0:
            tails -= 1
            table.add_row("", "", "", "", Text(_tail(agent.tail, max(20, width // 2)), style="italic dim"))
    return table


def _is_partial(report: SubtaskReport) -> bool:
    return report.state == "completed" and not is_whole(report)


def _description(row: TreeRow) -> str:
    report = row.report
    after = f"after {', '.join(row.after)} · " if row.after else ""
    attempt = f"attempt {report.attempts} · " if report.attempts > 1 else ""
    text = f"{report.error.type}: {report.error.message}" if report.error else report.description
    return safe_line(f"{attempt}{after}{text}", LINE_CHARS)


def _tail(tail: str, width: int) -> str:
    """Returns the end of a text being written, cut to `width`."""
    text = safe_line(tail, limits.HEARTBEAT_TAIL_CHARS)
    return text if len(text) < width else "…" + text[-(width - 1) :]


def _states(tree: list[TreeRow], shown: list[TreeRow]) -> str:
    """Returns how many subtasks are left out, by state."""
    visible = {row.path for row in shown}
    counts = Counter(row.report.state for row in tree if row.path not in visible)
    return f"{counts.total()} more subtasks: " + ", ".join(f"{count} {state}" for state, count in counts.most_common())


def _footer(picture: Picture, waits: list[Text], width: int, height: int, hint: str) -> list[Text]:
    status = picture.status
    words = [picture.phase]
    if status:
        words += [name.replace("_", " ") for name, value in status.flags.model_dump().items() if value]
        counts = status.counts
        if counts.total:
            running = "" if picture.closed else f", {counts.running} running"
            words.append(f"{counts.completed}/{counts.total} done{running}")
        partial = sum(_is_partial(report) for report in picture.reports.values() if report.counts is None)
        lost = {"partial": partial, "failed": counts.failed, "skipped": counts.skipped, "cancelled": counts.cancelled}
        words += [f"{count} {state}" for state, count in lost.items() if count]
        cached = f", {status.usage.cached_share:.0%} cached" if status.usage.cache_read_tokens else ""
        words.append(f"{picture.tokens:,} tokens{cached}")
        words.append(money(status.usage.usd))
    if picture.started:
        words.append(duration(((picture.closed or datetime.now(UTC)) - picture.started).total_seconds()))
    rows = [*wrapped(" · ".join(words), width, "bold"), *waits]
    if status and height >= _ROOMY and (spent := spend_line(status.spend)):
        rows.append(_faint(f" {safe_line(spent, width - 1)}"))
    known = [cause.text + NO_WORKER * (cause.waits_for == "worker") for cause in picture.standstills]
    if picture.notice and not any(picture.notice in text for text in known):
        rows += wrapped(picture.notice, width, "yellow")
    if status and status.model_notice:
        rows += wrapped(status.model_notice, width, "magenta")
    if picture.web:
        rows.append(Text(picture.web, style="dim"))
    if hint:
        rows += wrapped(hint, width, "dim")
    return rows


def _waits(picture: Picture, width: int, height: int) -> list[Text]:
    """Returns the rows that say what the run stands still for: at most a third of the screen."""
    causes = [row for cause in picture.standstills for row in wrapped(f"⏸ {cause.line}", width, "yellow")]
    rows = [part for row in causes for part in row.wrap(Console(width=width), width)]
    most = max(_WAIT_ROWS, height // 3)
    return rows if len(rows) <= most else [*rows[: most - 1], Text(" …", style="yellow")]


def _faint(text: str) -> Text:
    return Text(text, style="dim", no_wrap=True, overflow="ellipsis")


def _elapsed(report: SubtaskReport) -> str:
    if report.started_at is None:
        return ""
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else datetime.now(UTC)
    return duration((end - datetime.fromisoformat(report.started_at)).total_seconds())


def spend_line(spend: Sequence[Spend]) -> str:
    """Returns the largest consumers on one line; empty if there is nothing to tell apart."""
    if len(spend) < 2:
        return ""
    parts = [f"{item.role} {item.usage.tokens:,}" for item in spend[:_SPENDERS]]
    more = len(spend) - _SPENDERS
    return "tokens: " + " · ".join([*parts, *([f"{more} more"] if more > 0 else [])])


class Screen:
    """Shows a followed run: one line per event; a notice is a line when it changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: set[str] = set()
        self._notice: str | None = None
        self._waits: set[tuple[str, str]] = set()

    def log(self, line: Line, limit: int = LINE_CHARS) -> None:
        """Writes the line."""
        self._console.file.write(log_line(line, limit).plain + "\n")
        self._console.file.flush()

    def show(self, picture: Picture) -> None:
        """Writes notices and warnings that are new."""
        status = picture.status
        once = [text for text in [status.model_notice, *status.warnings] if text] if status else []
        for text in once:
            if text not in self._shown:
                self._shown.add(text)
                self.log(now_line(text))
        waits = {(cause.waits_for, cause.helps): cause for cause in picture.standstills}
        for key, cause in waits.items():
            if key not in self._waits:  # its words change with every attempt, and one line is enough
                self.log(now_line(cause.line, "bad"), limits.ERROR_BYTES)
        self._waits = set(waits)
        if picture.notice != self._notice:
            self._notice = picture.notice
            self.log(now_line(self._notice or "a worker answers again"))

    @contextlib.contextmanager
    def cleared(self) -> Iterator[None]:
        """Leaves the terminal to others for the time of the block."""
        yield


class _LiveScreen(Screen):
    """The plan and a footer, redrawn in place; events scroll above."""

    def __init__(self, console: Console, hint: str) -> None:
        super().__init__(console)
        self._hint = hint
        self._picture: Picture | None = None
        self._begin()

    def _begin(self) -> None:
        self.live = Live(console=self._console, get_renderable=self._draw, auto_refresh=False, redirect_stderr=False)
        self.live.start()

    @contextlib.contextmanager
    def cleared(self) -> Iterator[None]:
        """Takes the live part off the terminal; unless an error ends the block it is drawn again below."""
        self.live.transient = True
        self.live.stop()
        yield
        self._begin()

    def log(self, line: Line, limit: int = LINE_CHARS) -> None:
        """Prints the line above the live part."""
        is_own = line.mood == "head"  # nothing of the console's own lines is cut
        self._console.print(log_line(line, limit), no_wrap=not is_own, overflow="fold" if is_own else "ellipsis")

    def show(self, picture: Picture) -> None:
        """Draws the picture."""
        self._picture = picture
        self.live.refresh()

    def finish(self) -> None:
        """Draws the last frame, which stays on the screen, without the hint."""
        self._hint = ""
        self.live.refresh()
        self.live.stop()

    def _draw(self) -> RenderableType:
        if self._picture is None:
            return ""
        return draw(self._picture, self._console.width, self._console.height, self._hint)


@contextlib.asynccontextmanager
async def open_screen(console: Console, hint: str) -> AsyncIterator[Screen]:
    """Yields the screen that suits the console, for the time of the block."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield Screen(console)
        return
    screen = _LiveScreen(console, hint)

    async def redraw() -> None:
        while True:
            await asyncio.sleep(_REDRAW.total_seconds())
            if screen.live.is_started:
                screen.live.refresh()

    ticking = asyncio.create_task(redraw())
    try:
        yield screen
    finally:
        ticking.cancel()
        screen.finish()
