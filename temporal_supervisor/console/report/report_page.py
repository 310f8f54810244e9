"""The report as one HTML page without scripts, external resources or unescaped text."""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import partial
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from temporal_supervisor.console.base.terminal import (
    counted,
    duration,
    look_alikes,
    revealed,
    safe_json,
)
from temporal_supervisor.console.report.charts import Chart, charts_of, markdown_rows, table_in
from temporal_supervisor.console.report.report_data import AnswerTable, ReportData, SubtaskPart
from temporal_supervisor.console.view.event_lines import event_line
from temporal_supervisor.console.view.saved_words import saved_words
from temporal_supervisor.supervision.agent.finding_budget import level
from temporal_supervisor.supervision.base.text import cut, money, size
from temporal_supervisor.supervision.contract.plan import folded
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.usage import Spend, Usage
from temporal_supervisor.supervision.grounding.citations import MARK
from temporal_supervisor.supervision.results.success_rule import is_whole
from temporal_supervisor.supervision.results.timing import longest_chain

_MOST_LINES = 800  # more of them show nothing
_IN_ROW = 5  # boxes, their width and height, and the gaps beside and below
_WIDTH, _HEIGHT, _BESIDE, _BELOW = 158, 58, 14, 46
_Span = tuple[str, float, float, float]


class PlanPicture(NamedTuple):
    """A plan as boxes in rows, each below its dependencies.

    `lines` are the first of `dependencies`.
    """

    width: int
    height: int
    boxes: list[tuple[SubtaskReport, int, int]]
    lines: list[tuple[int, int, int, int]]
    dependencies: int


def plan_picture(reports: Sequence[SubtaskReport]) -> PlanPicture:
    """Returns the picture of a plan; items of a template are drawn as one."""
    shown = {report.id: report for report in reports if report.template is None}
    depends_on: dict[str, list[str]] = {}
    for name, report in shown.items():
        depends_on[name] = [other for other in folded(report.depends_on) if other in shown]
    rows: list[list[str]] = []
    sorter = TopologicalSorter(depends_on)
    sorter.prepare()
    while sorter.is_active():
        ready = sorter.get_ready()
        names = sorted(ready, key=list(shown).index)
        rows += [names[at : at + _IN_ROW] for at in range(0, len(names), _IN_ROW)]
        sorter.done(*ready)

    width, height = _WIDTH + _BESIDE, _HEIGHT + _BELOW
    whole = max(map(len, rows), default=1) * width + _BESIDE
    places: dict[str, tuple[int, int]] = {}
    for number, row in enumerate(rows):
        left = (whole - len(row) * width + _BESIDE) // 2
        for at, name in enumerate(row):
            places[name] = (left + at * width, _BESIDE + number * height)
    lines: list[tuple[int, int, int, int]] = []
    for name, before in depends_on.items():
        below, top = places[name]
        for other in before:
            above, y = places[other]
            lines.append((above + _WIDTH // 2, y + _HEIGHT, below + _WIDTH // 2, top))
    boxes = [(shown[name], *place) for name, place in places.items()]
    tall = len(rows) * height - _BELOW + 2 * _BESIDE
    return PlanPicture(whole, tall, boxes, lines[:_MOST_LINES], len(lines))


def timeline(parts: Sequence[SubtaskPart], until: datetime) -> list[_Span]:
    """Returns the started subtasks by start time.

    Each has its start and length in percent of the whole time, and its seconds.
    """
    times = [(*_times(part.report, until), part.path) for part in parts if part.report.started_at]
    if not times:
        return []
    began = min(start for start, _, _ in times)
    ended = max(end for _, end, _ in times)
    whole = (ended - began).total_seconds() or 1

    def share(start: datetime, end: datetime) -> float:
        return round(100 * (end - start).total_seconds() / whole, 2)

    spans: list[_Span] = []
    for start, end, path in sorted(times, key=lambda span: span[:2]):
        seconds = (end - start).total_seconds()
        spans.append((path, share(began, start), share(start, end), seconds))
    return spans


def _times(report: SubtaskReport, until: datetime) -> tuple[datetime, datetime]:
    """Returns the start and end of a subtask; one that still runs ends now."""
    start = datetime.fromisoformat(report.started_at or "")
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else until
    return start, max(start, end)


PAGE_BYTES = 5_000_000
_TEXT_BYTES = 3_200_000  # of them for findings, calls and prompts, at first
_MOST_BYTES = 16 * 1024  # of one of these texts
_ANSWER_BYTES = 512 * 1024
_LINKS = 1000  # claims in the table
_OUTPUTS = 5  # of one claim
_ROWS = 5000  # of one kind, in all subtasks: tool calls, model calls, lines behind claims
_COURSE = 300  # events
_CHARTS = 4  # of results behind the answer
_FOLDER = Path(__file__).parent
_DECISIONS = (
    "decided",
    "paused",
    "resumed",
    "steered",
    "retry_asked",
    "skip_asked",
    "limits_extended",
)
_NOT_IN_COURSE = (*_DECISIONS, "turn", "tool", "note", "subtask_completed")
# spaces and joiners of ordinary writing stay
_visible = partial(revealed, kept="\t\u00a0\u2009\u202f\u200c\u200d\ufe0f")
_NOTHING = Markup()
_SCHEMES = ("http://", "https://", "mailto:")


def report_page(data: ReportData) -> str:
    """Returns the page in at most PAGE_BYTES, with its longest texts and lists cut."""
    return _fitted(data, "report.html.j2", "")


def report_body(data: ReportData, place: str, after_answer: Markup = _NOTHING) -> Markup:
    """Returns the page's body, for the program's own page of a run at the path `place`.

    `after_answer` is put between the answer and its evidence.
    """
    return Markup(_fitted(data, "report_body.html.j2", place, after_answer))  # all was escaped


def _fitted(data: ReportData, template: str, place: str, after_answer: Markup = _NOTHING) -> str:
    room = _TEXT_BYTES
    page = _Page(data, room, place, after_answer).html(template)
    while size(page) > PAGE_BYTES and room > 10_000:
        room //= 3
        page = _Page(data, room, place, after_answer).html(template)
    return page


class _Page:
    """One rendering, in which texts have `room` bytes, and lists are as short.

    `place` is the run's path in the program's own page, empty in a file.
    """

    def __init__(
        self,
        data: ReportData,
        room: int,
        place: str = "",
        after_answer: Markup = _NOTHING,
    ) -> None:
        self._data = data
        self._share = room / _TEXT_BYTES
        self.place = place
        self.after_answer = after_answer
        self._markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
        self._markdown.enable(["table", "strikethrough"])
        self._markdown.disable(["image", "reference"])  # a mark would be a reference
        self._markdown.validateLink = lambda url: url.lower().startswith(_SCHEMES)  # type: ignore[method-assign]
        self.places = {part.path: f"s{at}" for at, part in enumerate(data.subtasks, 1)}
        # Those in doubt first: a page has no room for thousands.
        links = sorted(data.evidence.links, key=lambda link: not link.problem)
        self.links = links[: self._most(_LINKS)]
        self._claims: dict[str, tuple[str, bool]] = {}
        for at, link in enumerate(self.links, 1):
            if link.kind != "citation":
                self._claims[_visible(link.text)] = (f"e{at}", bool(link.problem))
        unsupported = [item for item in data.result.unsupported if item.where not in self.places]
        self._of_answer = self._marks([item.text for item in unsupported])
        self.outputs: dict[str, str] = {}
        for part in data.subtasks:
            for at, call in enumerate(self.of_subtask(part.calls), 1):
                if call.output_ref:
                    self.outputs[call.output_ref] = f"{self.places[part.path]}c{at}"
        sizes = [min(size(text), _MOST_BYTES) for text in _texts_of(data)]
        self._longest = level(sizes, room)

    def html(self, template: str) -> str:
        """Renders a template: the page, or a part of it."""
        data, result = self._data, self._data.result
        course = [event_line(event) for event in data.events if event.type not in _NOT_IN_COURSE]
        agents = [part for part in data.subtasks if not part.report.counts]
        own = [report for report in result.subtasks if report.counts is None]
        found = [claim for part in data.subtasks[::-1] for claim in part.found.checked]
        sums = {"Role": _sums(result.spend, "role"), "Model": _sums(result.spend, "model")}
        as_json = None if result.answer_json is None else safe_json(result.answer_json)

        return _ENVIRONMENT.get_template(template).render(
            page=self,
            css=Markup(_CSS),
            data=data,
            result=result,
            state=data.outcome.state if data.outcome.error else result.status,
            all_links=data.evidence.links,
            doubted=sum(bool(link.problem) for link in data.evidence.links),
            recalled=sum(link.recalled for link in data.evidence.links),
            lines={claim.text: claim.line for claim in found if claim.ref},
            picture=plan_picture(result.subtasks),
            spans=timeline(agents, data.made_at),
            course=course[-_COURSE:],
            decisions=[event_line(event) for event in data.events if event.type in _DECISIONS],
            json=as_json,
            sums=sums,
            critical=longest_chain(own, data.made_at)[1],
            worked_on=[report for report in own if report.replaced_by is None],
            most_outputs=_OUTPUTS,
        )

    def table_charts(self, table: AnswerTable) -> list[Chart]:
        """Returns the charts of a table of the answer."""
        return charts_of(table.columns, table.rows, table.total)

    def behind_charts(self) -> list[tuple[str, str, Chart]]:
        """Returns the charts of query results behind the answer's claims.

        Each comes with the place of its output and the call.
        """
        outputs = chain.from_iterable(link.outputs for link in self.links)
        calls = chain.from_iterable(part.calls for part in self._data.subtasks)
        call_of = {call.output_ref: call for call in calls}
        charts: list[tuple[str, str, Chart]] = []
        for ref in dict.fromkeys(item.output_ref for item in outputs):
            call, place = call_of.get(ref), self.outputs.get(ref)
            if call is None or not place:
                continue
            found = table_in(call.output or "")
            if found:
                columns, rows = found
                for chart in charts_of(columns, rows, len(rows)):
                    charts.append((place, f"{call.name} {call.arguments}", chart))
        return charts[:_CHARTS]

    def output_rows(self, text: str | None) -> tuple[list[str], list[list[str]]] | None:
        """Returns columns and rows of an output that is one table; None in a file."""
        return markdown_rows(self.cut(text)) if self.place else None

    def _most(self, count: int) -> int:
        return int(count * self._share) + 1

    def of_subtask(self, items: Sequence[Any]) -> Sequence[Any]:
        """Returns the first items of a subtask's list: all subtasks together have _ROWS."""
        return items[: self._most(_ROWS // max(1, len(self._data.subtasks)))]

    def markdown(self, text: str, above: str = "", unsupported: Sequence[str] = ()) -> Markup:
        """Returns a foreign text as HTML, with links to subtasks and evidence.

        The subtasks are those of the run `above`. `unsupported` claims are marked, by default the
        answer's.
        """
        marks, pattern = self._marks(unsupported) if unsupported else self._of_answer
        env: dict[str, Any] = {
            "places": self.places,
            "above": above,
            "href": "",
            "marks": marks,
            "pattern": pattern,
        }
        return Markup(
            self._markdown.render(_visible(text), env)
        )  # made by markdown-it with HTML off

    def _marks(
        self,
        unsupported: Sequence[str],
    ) -> tuple[dict[str, tuple[str, bool]], re.Pattern[str]]:
        """Returns the marks in a text by their words, and the pattern that finds them.

        Each has its place and any doubt.
        """
        marks = dict(self._claims)
        for text in filter(None, map(_visible, unsupported)):
            place, _ = marks.get(text, ("unsupported", True))
            marks[text] = (place, True)
        claims = sorted(map(re.escape, marks), key=len, reverse=True)
        known = rf"|(?<!\w)(?:{'|'.join(claims)})(?!\w)" if claims else ""
        return marks, re.compile(f"{MARK.pattern}{known}")

    def words(self, text: str, most: int) -> str:
        """Returns a text of at most `most` characters, fewer if the page has no room."""
        return _short(text, max(40, int(most * self._share)))

    def answer(self) -> str:
        """Returns the answer, cut to the room of the page."""
        return cut(self._data.evidence.answer, int(_ANSWER_BYTES * self._share))

    def cut(self, text: str | None) -> str:
        """Returns a text, cut to the room of the page."""
        return cut(text or "", self._longest)


def _texts_of(data: ReportData) -> Iterator[str]:
    """Yields the texts that may be cut: calls, prompts and findings."""
    prompts = [*data.prompts]
    for part in data.subtasks:
        yield part.found.text
        prompts += part.prompts
        for call in part.calls:
            yield call.arguments
            yield call.output or ""
    for _, _, pieces in prompts:
        for _, text in pieces:
            yield text


def _sums(spend: Sequence[Spend], name: str) -> list[tuple[str, Usage]]:
    sums: dict[str, Usage] = {}
    for row in spend:
        key = getattr(row, name)
        sums[key] = sums.get(key, Usage()) + row.usage
    return sorted(sums.items(), key=lambda item: (-(item[1].usd or 0), -item[1].tokens))


def _printed(value: object) -> object:
    """Returns a template's output; outside our HTML, hidden characters are made visible."""
    return value if isinstance(value, Markup) else _visible(str(value))


def _short(text: str, limit: int) -> str:
    """Returns a text on one line of `limit` characters, with hidden characters visible."""
    line = _visible(" ".join(text[: 4 * limit].split()))  # more would be cut anyway
    if len(line) <= limit:
        return line
    return f"{line[: limit - 1].rstrip()}…"


def _moment(at: datetime | str | None) -> str:
    if not at:
        return ""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def templates_in(*folders: Path) -> Environment:
    """Returns the templates in some folders, which escape text and make all of it visible."""
    made = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        finalize=_printed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(moment=_moment, duration=partial(duration, digits=1), whole=is_whole)
    made.globals.update(money=money, counted=counted, short=_short, look_alikes=look_alikes)
    made.globals.update(saved_words=saved_words)
    made.globals.update(box_width=_WIDTH, box_height=_HEIGHT)
    return made


_ENVIRONMENT = templates_in(_FOLDER)
_CSS = (_FOLDER / "report.css").read_text(encoding="utf-8")


Env = MutableMapping[str, Any]
"""The state of a rendering: the arguments of `_annotated`, and the URL of an open link."""


class _Renderer(RendererHTML):
    """Renders links with their host; other texts get links to subtasks and evidence."""

    def link_open(self, tokens: Sequence[Token], idx: int, _: object, env: Env) -> str:
        """Begins a link; `[text]()` becomes text."""
        href = str(tokens[idx].attrs["href"])
        env["href"] = href
        return f'<a href="{escape(href)}" rel="noreferrer noopener">' if href else ""

    def link_close(self, _: Sequence[Token], __: int, ___: object, env: Env) -> str:
        """Ends a link and adds its host."""
        href = env["href"]
        env["href"] = ""
        return f'</a><span class="host"> ({escape(_host(href))})</span>' if href else ""

    def text(self, tokens: Sequence[Token], idx: int, _: object, env: Env) -> str:
        """Returns a text with its marks and claims as links."""
        text = _visible(tokens[idx].content)  # an entity may stand for what can't be seen
        if env["href"]:
            return escape(text)
        return "".join(_annotated(text, **env))


def _host(href: str) -> str:
    try:
        return urlsplit(href).hostname or href.partition("@")[2] or "?"
    except ValueError:
        return "?"


def _annotated(
    text: str,
    pattern: re.Pattern[str],
    marks: dict[str, tuple[str, bool]],
    places: dict[str, str],
    above: str,
    **_: Any,
) -> Iterator[str]:
    """Yields a text as HTML, with marks linked to subtasks and claims to evidence."""
    start = 0
    for found in pattern.finditer(text):
        yield escape(text[start : found.start()])
        start = found.end()
        if found[1]:
            yield _cited(found[0], found[1], places, above)
        else:
            place, in_doubt = marks[found[0]]
            yield _link(place, "doubt" if in_doubt else "claim", found[0])
    yield escape(text[start:])


def _cited(written: str, listed: str, places: dict[str, str], above: str) -> str:
    """Returns a mark with links to its subtasks; a mark without any is text."""
    linked: list[str] = []
    is_known = False
    for name in map(str.strip, listed.split(",")):
        place = places.get(f"{above}{name}")
        is_known = is_known or bool(place)
        linked.append(_link(place, "cite", name) if place else escape(name))
    if not is_known:
        return escape(written)
    begin = " " if written.startswith(" ") else ""
    return f"{begin}[{', '.join(linked)}]"


def _link(place: str, kind: str, text: str) -> str:
    return f'<a href="#{place}" class="{kind}">{escape(text)}</a>'
