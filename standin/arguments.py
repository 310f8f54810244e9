"""Arguments for a tool's schema, from the subtask and from what earlier tools showed."""

import re
from dataclasses import dataclass, field
from typing import Any

from standin import prompt
from standin.compose import sections, title
from standin.figures import expressions
from standin.request import Json, Request
from standin.schema_fill import Filler
from standin.sql_writer import write_queries
from standin.tables import Grid, Table, parse_grids, parse_tables
from standin.words import key_words, overlap, words

_MARKED = re.compile(r"^\s*(?:[-*]|\d+[.)])?\s*\[([^\]\s]{1,120})\]", re.MULTILINE)
_NAMED = re.compile(
    r"\"?\b(?:\w+_)?id\"?\s*[:=]\s*\"?([\w./:-]{1,120}?)\"?(?=[\s,;})\]]|$)", re.IGNORECASE | re.MULTILINE
)
_LISTED = re.compile(r"(?:known|available|existing|valid|documents?|ids?|names?|one of)[^:\n]*:\s*(.+)", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\"')\]]+")
_ARITHMETIC = re.compile(r"\d[\d.]*(?:\s*[-+*/]\s*\(?\d[\d.]*\)?)+")
_PROPER = re.compile(r"(?<![.?!]\s)(?<!^)\b[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)*")
_IDS = 2  # documents read
_SETS = 8  # calls of one tool
_KEYS = 10  # words of a search

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("sql", re.compile(r"^sql|_sql$|sql_query|statement")),
    ("expression", re.compile(r"expression|formula|calculation|equation")),
    ("url", re.compile(r"^ur[il]s?$|_url$|^link$")),
    ("attachment", re.compile(r"attachment|^name$|^file_?name$")),
    ("query", re.compile(r"query|search|keyword|^q$|^terms?$")),
    ("id", re.compile(r"(^|_)(id|ids|key|slug|ref|reference|path|doc|document)$")),
    ("title", re.compile(r"title|heading|subject|headline")),
    ("sections", re.compile(r"sections|chapters|paragraphs")),
    ("body", re.compile(r"body|content|text|markdown|draft|message|report|summary|notes?$")),
    ("question", re.compile(r"question|prompt|instruction|task|goal|request|topic|description")),
)


@dataclass
class Known:
    """What a worker agent's conversation has shown so far."""

    focus: str
    context: str
    findings: list[prompt.FindingText]
    attachments: list[str]
    outputs: list[str]
    tables: list[Table]
    grids: list[Grid]
    turns_of: dict[str, int] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The key words of the subtask."""
        return key_words(self.focus)[:_KEYS] or words(self.focus)[:_KEYS]


def know(request: Request) -> Known:
    """What the request shows: its subtask, goal, findings, attachments and tool results."""
    goal = prompt.block(request.prompt, "goal") or ""
    subtask = prompt.block(request.prompt, "subtask") or goal or request.user_text
    good = [call.output for call in request.calls() if not call.is_error]
    turns: dict[str, int] = {}
    for message in request.messages:
        for name in {block["name"] for block in message["content"] if block.get("type") == "tool_use"}:
            turns[name] = turns.get(name, 0) + 1
    return Known(
        focus=prompt.focus(subtask),
        context=prompt.focus(goal),
        findings=prompt.findings(request.prompt),
        attachments=prompt.attachments(request.prompt),
        outputs=good,
        tables=[table for output in good for table in parse_tables(output)],
        grids=[grid for output in good for grid in parse_grids(output)],
        turns_of=turns,
    )


def properties(tool: Json) -> Json:
    """The properties of the tool's arguments."""
    return Filler(tool["input_schema"], lambda *_: None).properties()


def composes(tool: Json) -> bool:
    """Whether the tool takes a whole text to put into shape."""
    kinds = {kind_of(name, spec, tool) for name, spec in properties(tool).items()}
    return bool(kinds & {"sections", "body"})


def kind_of(name: str, spec: Json, tool: Json) -> str:
    """What an argument wants, by its name, then by its description; else its JSON type."""
    low = name.lower()
    about = f"{tool.get('name', '')} {tool.get('description', '')} {spec.get('description', '')}".lower()
    if "enum" in spec or spec.get("type") in ("integer", "number", "boolean"):
        return str(spec.get("type", "enum"))
    if re.search(r"\b(sql|select statement)\b", about) and re.search(r"sql|query|statement", low):
        return "sql"
    if low == "name" and "attach" not in about:
        return "entity"
    return next((kind for kind, pattern in _KINDS if pattern.search(low)), "entity")


def choices(tool: Json, known: Known) -> list[Json]:
    """The argument sets worth calling the tool with now; empty when something it needs is not known yet."""
    required = tool["input_schema"].get("required") or []
    wanted = [(name, spec) for name, spec in properties(tool).items() if name in required]
    values = {name: _values(name, spec, tool, known) for name, spec in wanted}
    if not all(values.values()):
        return []
    most = max((len(options) for options in values.values()), default=1)  # the others keep to their first value
    return [{n: v[at] if len(v) == most else v[0] for n, v in values.items()} for at in range(min(most, _SETS))]


def complete(tool: Json, known: Known, names: set[str]) -> Json | None:
    """One argument set with the named optional ones as well; None when a value is missing."""
    required = {*(tool["input_schema"].get("required") or []), *names}
    values = {n: _values(n, spec, tool, known) for n, spec in properties(tool).items() if n in required}
    return {name: found[0] for name, found in values.items()} if all(values.values()) else None


def ids_in(text: str) -> list[str]:
    """Identifiers that a tool's output shows, in order: in brackets at the start of a line, as `id: x`, or listed."""
    found = [*_MARKED.findall(text), *_NAMED.findall(text)]
    if not found:
        found = [part.strip(" .`'\"") for line in _LISTED.findall(text) for part in line.split(",")]
    return list(dict.fromkeys(one for one in found if one))


def _values(name: str, spec: Json, tool: Json, known: Known) -> list[Any]:
    kind = kind_of(name, spec, tool)
    if spec.get("type") == "array" and kind != "sections":
        single = _values(name, {"type": "string"}, tool, known)
        return [single] if single else []
    makers: dict[str, Any] = {
        "sql": lambda: write_queries(known.tables, known.focus, known.context),
        "expression": lambda: expressions(known.grids) or _ARITHMETIC.findall(known.focus),
        "url": lambda: list(dict.fromkeys(_URL.findall("\n".join([known.focus, known.context, *known.outputs]))))[
            :_IDS
        ],
        "attachment": lambda: known.attachments[:4],
        "query": lambda: [" ".join(known.keys)],
        "id": lambda: _ids(known),
        "title": lambda: [title(known.context or known.focus)],
        "sections": lambda: [_sections(tool, spec, known)],
        "body": lambda: [
            "\n\n".join(f"## {s['heading']}\n\n{s['body']}" for s in sections(known.findings, known.focus))
        ],
        "question": lambda: [known.focus],
        "entity": lambda: _entities(known),
    }
    maker = makers.get(kind)
    return list(maker()) if maker else _plain(spec, known)


def _ids(known: Known) -> list[str]:
    """The first identifiers shown; those whose line shares most words with the subtask first."""
    scored: dict[str, int] = {}
    for output in known.outputs:
        for one in ids_in(output):
            line = next((line for line in output.splitlines() if one in line), "")
            scored.setdefault(one, overlap([word.lower() for word in known.keys], line))
    return sorted(scored, key=lambda one: -scored[one])[:_IDS]


def _sections(tool: Json, spec: Json, known: Known) -> list[Any]:
    made = sections(known.findings, known.focus)
    filler = Filler(tool["input_schema"], lambda *_: None)
    item = filler.properties(spec.get("items") or {"type": "string"})
    if not item:
        return [f"## {one['heading']}\n\n{one['body']}" for one in made]
    names = list(item)
    heading = next((name for name in names if re.search(r"head|title|name", name)), names[0])
    body = next((name for name in names if name != heading), names[-1])
    return list(filler.fit(spec, [{heading: one["heading"], body: one["body"]} for one in made]))


def _entities(known: Known) -> list[str]:
    """What the subtask names in capitals, else its key words."""
    found = _PROPER.findall(known.focus) or _PROPER.findall(known.context)
    return list(dict.fromkeys(found))[:_IDS] or [" ".join(known.keys)]


def _plain(spec: Json, known: Known) -> list[Any]:
    """A number of the subtask, the enum value that it mentions, or the least valid value."""
    numbers = [float(one) if "." in one else int(one) for one in re.findall(r"\b\d+(?:\.\d+)?\b", known.focus)]
    low = known.focus.lower()
    wanted: Any = numbers[0] if numbers else None
    if "enum" in spec:
        wanted = next((option for option in spec["enum"] if str(option).lower() in low), None)
    if spec.get("type") == "boolean":
        wanted = False
    return [Filler(spec, lambda *_: None).fill(wanted)]
