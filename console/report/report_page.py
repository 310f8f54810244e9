"""The report as one HTML page: no script, nothing loaded from elsewhere, all foreign text escaped."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup, escape

from console.base.terminal import counted, look_alikes, revealed, safe_json
from console.report.report_data import ANSWER_BYTES, CALL_BYTES, FINDING_BYTES, Excerpt, Proof, ReportData, SubtaskPart
from console.view.event_lines import line
from supervision.agent.finding_budget import level
from supervision.base.text import cut, money, size
from supervision.contract.plan import folded
from supervision.contract.result import SubtaskReport
from supervision.contract.status import TraceEvent
from supervision.contract.usage import Spend, Usage
from supervision.grounding.citations import MARK
from supervision.results.success_rule import is_whole
from supervision.run.run_state import longest_chain

_MOST_LINES = 800  # more of them show nothing
_MOST_BOXES = 40  # with words in them
_LEGIBLE = (5, 158, 58, 14, 46)  # boxes in a row, their width and height, the gaps beside and below
_SMALL = (13, 58, 22, 8, 30)
_ROW_GAP = 10  # between rows of one level
_ENDS = ("done", "failed", "cancelled")  # phases without a length


@dataclass(frozen=True)
class Box:
    """A subtask in the picture."""

    report: SubtaskReport
    x: int
    y: int


@dataclass(frozen=True)
class PlanPicture:
    """A plan as boxes in levels, each below all that it depends on; `lines` are the dependencies that are drawn."""

    width: int
    height: int
    box_width: int
    box_height: int
    is_small: bool
    boxes: list[Box]
    lines: list[tuple[int, int, int, int]]
    undrawn: int = 0


def plan_picture(reports: Sequence[SubtaskReport]) -> PlanPicture:
    """Returns the picture of a plan; the items of a template are drawn as one."""
    shown = {report.id: report for report in reports if report.template is None}
    depends_on = {name: [d for d in folded(report.depends_on) if d in shown] for name, report in shown.items()}
    level: dict[str, int] = {}
    for name in TopologicalSorter(depends_on).static_order():
        level[name] = 1 + max((level[before] for before in depends_on[name]), default=-1)
    is_small = len(shown) > _MOST_BOXES
    in_row, width, height, beside, below = _SMALL if is_small else _LEGIBLE
    boxes: dict[str, Box] = {}
    widest = max((min(in_row, [*level.values()].count(each)) for each in {*level.values()}), default=1)
    whole, y = widest * (width + beside) + beside, beside
    for each in range(max(level.values(), default=-1) + 1):
        names = [name for name in shown if level[name] == each]
        for first in range(0, len(names), in_row):
            row = names[first : first + in_row]
            left = (whole - len(row) * (width + beside) + beside) // 2
            boxes |= {name: Box(shown[name], left + at * (width + beside), y) for at, name in enumerate(row)}
            y += height + _ROW_GAP
        y += below - _ROW_GAP
    lines = [
        (boxes[d].x + width // 2, boxes[d].y + height, boxes[name].x + width // 2, boxes[name].y)
        for name, before in depends_on.items()
        for d in before
    ]
    undrawn = len(lines) if len(lines) > _MOST_LINES else 0
    total = max(y - below + beside, height)
    return PlanPicture(whole, total, width, height, is_small, [*boxes.values()], [] if undrawn else lines, undrawn)


@dataclass(frozen=True)
class Span:
    """A row of the timeline: from and for how many per cent of the run, and the seconds."""

    name: str
    is_phase: bool
    start: float
    length: float
    seconds: float


def timeline(parts: Sequence[SubtaskPart], events: Sequence[TraceEvent], until: datetime) -> list[Span]:
    """Returns the phases of the run, then its subtasks by their beginnings."""
    own = [event for event in events if event.type == "phase" and event.subtask_id is None]
    phases = [(str(event.data.get("phase")), datetime.fromisoformat(event.at)) for event in own]
    times = {part.path: times for part in parts if part.report.counts is None and (times := _times(part.report, until))}
    moments = [at for _, at in phases] + [at for both in times.values() for at in both]
    if not moments:
        return []
    if phases and phases[-1][0] not in _ENDS:
        moments.append(until)
    began, ended = min(moments), max(moments)
    whole = (ended - began).total_seconds() or 1

    def span(name: str, start: datetime, end: datetime, *, is_phase: bool) -> Span:
        at, lasted = (start - began).total_seconds(), (end - start).total_seconds()
        return Span(name, is_phase, round(100 * at / whole, 2), round(100 * lasted / whole, 2), lasted)

    spans = [span(name, start, end, is_phase=True) for (name, start), (_, end) in pairwise([*phases, ("", ended)])]
    by_start = sorted(times.items(), key=lambda item: item[1])
    return [item for item in spans if item.name not in _ENDS] + [
        span(path, *both, is_phase=False) for path, both in by_start
    ]


def _times(report: SubtaskReport, until: datetime) -> tuple[datetime, datetime] | None:
    if report.started_at is None:
        return None
    start = datetime.fromisoformat(report.started_at)
    return start, max(start, datetime.fromisoformat(report.finished_at) if report.finished_at else until)


PAGE_BYTES = 5_000_000
_TEXT_BYTES = 3_200_000  # of them for findings, calls and prompts, at first
_LINKS = 1000  # claims in the table
_OUTPUTS = 5  # of one claim
_PROOFS = 6000  # lines behind the claims of all findings
_CALLS = 5000  # of tools
_PROMPTS = 1000  # model calls
_COURSE = 300  # events
_HEADING_LEVELS = 2  # of the page above those in texts
_visible = partial(revealed, kept="\t\u00a0\u2009\u202f\u200c\u200d\ufe0f")  # spaces and joiners of ordinary writing
_SCHEMES = ("http://", "https://", "mailto:")


def report_page(data: ReportData) -> str:
    """Returns the page. Its longest texts are cut until it has at most PAGE_BYTES, and each says so."""
    room = _TEXT_BYTES
    while size(page := _Page(data, room).html()) > PAGE_BYTES and room > 10_000:
        room //= 3
    return page


class _Page:
    """One rendering, in which texts that can be cut have `room` bytes; long lists are shorter where that is less."""

    def __init__(self, data: ReportData, room: int) -> None:
        self._data = data
        self._share = room / _TEXT_BYTES
        self._markdown = _markdown()
        self._places = {part.path: f"s{at}" for at, part in enumerate(data.subtasks, 1)}
        # those in doubt first: a page has no room for thousands
        self._links = sorted(data.links, key=lambda link: not link.problem)[: int(_LINKS * self._share) + 1]
        claims = [(link, f"e{at}") for at, link in enumerate(self._links, 1) if link.kind != "citation"]
        self._claims = {_visible(link.text): (place, bool(link.problem)) for link, place in claims}
        self._of_answer = self._marks([item.text for item in data.result.unsupported if item.where not in self._places])
        calls = [call for part in data.subtasks for call in part.calls]
        cited = {item.output_ref for link in self._links for item in link.outputs[:_OUTPUTS]}
        calls = sorted(calls, key=lambda call: call.output.ref not in cited)[: int(_CALLS * self._share)]
        self._call_places = {id(call): f"c{at}" for at, call in enumerate(calls, 1)}
        self._output_places = {call.output.ref: self._call_places[id(call)] for call in reversed(calls)}
        prompts = [*data.prompts, *(prompt for part in data.subtasks for prompt in part.prompts)]
        prompts = prompts[: int(_PROMPTS * self._share)]
        self._prompts = {id(prompt) for prompt in prompts}
        texts = [text for call in calls for text in (call.arguments, call.output)]
        texts += [text for prompt in prompts for _, text in prompt.parts]
        self._most = {
            FINDING_BYTES: level([_weight(part.finding) for part in data.subtasks], room // 3),
            CALL_BYTES: level([_weight(text) for text in texts], room - room // 3),
        }

    def html(self) -> str:
        """Returns the page."""
        data, subtasks = self._data, self._data.result.subtasks
        proofs = [proof for part in reversed(data.subtasks) for proof in part.proofs]
        return _ENVIRONMENT.get_template("report.html.j2").render(
            page=self,
            data=data,
            result=data.result,
            links=self._links,
            doubted=sum(bool(link.problem) for link in data.links),
            lines={proof.claim.text: proof.claim for proof in sorted(proofs, key=lambda proof: bool(proof.ref))},
            places=self._places,
            call_places=self._call_places,
            output_places=self._output_places,
            prompts_shown=self._prompts,
            id=id,
            picture=plan_picture(subtasks),
            spans=timeline(data.subtasks, data.course, data.made_at),
            course=[line(event) for event in data.course if event.type != "phase"][-_COURSE:],
            decisions=[line(event) for event in data.decisions],
            json=None if data.result.answer_json is None else safe_json(data.result.answer_json),
            by_role=_sums(data.result.spend, "role"),
            by_model=_sums(data.result.spend, "model"),
            began=data.course[0].at if data.course else data.made_at,
            critical=longest_chain([r for r in subtasks if r.counts is None], data.made_at)[1],
            worked_on=[r for r in subtasks if r.replaced_by is None and r.counts is None],
            missing=_missing,
            money=money,
            counted=counted,
            short=_short,
            look_alikes=look_alikes,
            outputs_shown=_OUTPUTS,
        )

    def proofs_of(self, part: SubtaskPart) -> list[Proof]:
        """Returns where the claims of a finding stand, as many as the page has room for."""
        return part.proofs[: int(_PROOFS * self._share / len(self._data.subtasks)) + 1]

    def markdown(self, text: str, above: str = "", unsupported: Sequence[str] = ()) -> Markup:
        """Returns a foreign text as HTML: its marks lead to subtasks of the run `above`, its claims to evidence.

        What is `unsupported` is marked; without it, the unsupported claims of the answer.
        """
        marks, pattern = self._marks(unsupported) if unsupported else self._of_answer
        env = {"places": self._places, "above": above, "marks": marks, "pattern": pattern}
        return Markup(self._markdown.render(_visible(text), env))  # made by markdown-it with HTML off

    def _marks(self, unsupported: Sequence[str]) -> tuple[dict[str, tuple[str, bool]], re.Pattern[str]]:
        """Returns what is marked in a text, each with its place and if it is in doubt, and their pattern."""
        marks = dict(self._claims)
        for text in filter(None, map(_visible, unsupported)):
            marks[text] = (marks.get(text, ("unsupported", True))[0], True)
        claims = sorted(map(re.escape, marks), key=len, reverse=True)
        known = rf"|(?<!\w)(?:{'|'.join(claims)})(?!\w)" if claims else ""
        return marks, re.compile(f"{MARK.pattern}{known}")

    def excerpt(self, excerpt: Excerpt, kind: int = CALL_BYTES) -> str:
        """Returns as much of a text as the page has room for."""
        weight, most = _weight(excerpt), self._most[kind]
        return excerpt.text if weight <= most else cut(excerpt.text, most * size(excerpt.text) // weight)

    def words(self, text: str, most: int) -> str:
        """Returns a text of at most so many characters, fewer where the page has no room."""
        return _short(text, max(40, int(most * self._share)))

    def answer(self) -> str:
        """Returns the answer, or as much of it as the page has room for."""
        return cut(self._data.answer.text, int(ANSWER_BYTES * self._share))

    def finding(self, part: SubtaskPart) -> tuple[str, str]:
        """Returns the text of a finding, and the run that its marks are of."""
        above = part.path.rpartition("/")[0]
        summary = part.report.finding.summary if part.report.finding else ""
        return self.excerpt(part.finding, FINDING_BYTES) or summary, f"{above}/" if above else ""


def _missing(excerpt: Excerpt, shown: str) -> str:
    """Returns how much of a text is shown; empty for one that is whole."""
    bytes_shown = size(shown)
    return f"The first {bytes_shown:,} of {excerpt.bytes:,} bytes" if bytes_shown < excerpt.bytes else ""


def _weight(excerpt: Excerpt) -> int:
    """Returns the bytes of an excerpt on the page."""
    return size(escape(_visible(excerpt.text)))


def _sums(spend: Sequence[Spend], name: str) -> list[tuple[str, Usage]]:
    """Returns the usage by role or by model, the dearest first."""
    sums: dict[str, Usage] = {}
    for row in spend:
        key = getattr(row, name)
        sums[key] = sums.get(key, Usage()) + row.usage
    return sorted(sums.items(), key=lambda item: (-(item[1].usd or 0), -item[1].tokens))


def _printed(value: object) -> object:
    """Returns what the template prints: HTML of ours as it is, all else with what can't be seen made visible."""
    return value if isinstance(value, Markup) else _visible(str(value))


def _short(text: str, limit: int) -> str:
    """Returns a text on one line of at most so many characters, those that can't be seen made visible."""
    line = _visible(" ".join(text[: 4 * limit].split()))  # more would be cut anyway
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _moment(at: datetime | str | None) -> str:
    if at is None:
        return ""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.{1 if seconds >= 1 else 2}f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    finalize=_printed,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(moment=_moment, duration=_duration, whole=is_whole)
_ENVIRONMENT.tests["placed"] = lambda value, places: id(value) in places


def _markdown() -> MarkdownIt:
    """Returns a reader of Markdown without HTML, images and names for links, of which a mark would be one."""
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.disable(["image", "reference"])
    reader.validateLink = lambda url: url.lower().startswith(_SCHEMES)  # type: ignore[method-assign]
    reader.core.ruler.push("report", _with_places)
    return reader


def _with_places(state: StateCore) -> None:
    """Moves headings below those of the page, and adds links to subtasks and evidence."""
    for token in state.tokens:
        if token.type.startswith("heading"):
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADING_LEVELS)}"
        if token.children:
            token.children = list(_inline(token.children, state.env))


def _inline(tokens: list[Token], env: Mapping[str, Any]) -> Iterator[Token]:
    href = ""
    for token in tokens:
        if token.type == "link_open":
            href = str(token.attrs["href"])
            token.attrs["rel"] = "noreferrer noopener"
        if token.type.startswith("link_") and not href:  # `[text]()` is text
            continue
        if token.type == "text" and not href:
            yield from _annotated(token.content, env)
            continue
        yield token
        if token.type == "link_close":
            yield from _tagged("span", {"class": "host"}, f" ({_host(href)})")
            href = ""


def _host(href: str) -> str:
    try:
        return urlsplit(href).hostname or href.partition("@")[2] or "?"
    except ValueError:
        return "?"


def _annotated(text: str, env: Mapping[str, Any]) -> Iterator[Token]:
    """Yields a text with its marks as links to subtasks, and its claims as links to their evidence."""
    start = 0
    for found in env["pattern"].finditer(text):
        if (ids := found[1]) and not any(f"{env['above']}{name.strip()}" in env["places"] for name in ids.split(",")):
            continue
        yield _text(text[start : found.start()])
        start = found.end()
        if not ids:
            place, in_doubt = env["marks"][found[0]]
            yield from _tagged("a", {"href": f"#{place}", "class": "doubt" if in_doubt else "claim"}, found[0])
            continue
        yield _text(f"{' ' * found[0].startswith(' ')}[")
        for number, name in enumerate(ids.split(",")):
            place = env["places"].get(f"{env['above']}{name.strip()}")
            yield _text(", " if number else "")
            yield from _tagged("a", {"href": f"#{place}", "class": "cite"} if place else {}, name.strip())
        yield _text("]")
    yield _text(text[start:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _tagged(tag: str, attributes: dict[str, str | int | float], content: str) -> Iterator[Token]:
    yield Token(f"{tag}_open", tag, 1, attrs=attributes)
    yield _text(content)
    yield Token(f"{tag}_close", tag, -1)
