"""Arguments for a tool's schema, from the subtask and from what earlier tools showed."""

import re
from dataclasses import dataclass
from typing import Any

from standin.extract import prompt_parts
from standin.extract.example_queries import Example, parse_examples, write_queries
from standin.extract.findings_text import joined, sections, title
from standin.extract.schema_fill import Filler
from standin.extract.text.figures import expressions
from standin.extract.text.tables import Grid, Table, parse_grids, parse_tables
from standin.extract.text.words import key_words, shared, words
from standin.server.api_request import ApiRequest, Json
from supervision import prompt_marks as marks

_MARKED = re.compile(r"^\s*(?:[-*]|\d+[.)])?\s*\[([^\]\s]{1,120})\]", re.MULTILINE)
_NAMED = re.compile(r"\"?\b(?:\w+_)?id\"?\s*[:=]\s*\"?([\w./:-]{1,120}?)\"?(?=[\s,;})\]]|$)", re.IGNORECASE | re.M)
_LISTED = re.compile(r"(?:known|available|valid|documents?|ids?|names?|one of)[^:\n]*:\s*(.+)", re.IGNORECASE)
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
    findings: list[prompt_parts.FindingText]
    attachments: list[str]
    outputs: list[str]
    tables: list[Table]
    examples: list[Example]
    grids: list[Grid]

    @property
    def keys(self) -> list[str]:
        """Returns the key words of the subtask."""
        return [word for word in key_words(self.focus) if not word.isdigit()][:_KEYS] or words(self.focus)[:_KEYS]


def know(request: ApiRequest) -> Known:
    """Returns what the request shows: its subtask, goal, findings, attachments and tool results."""
    goal = prompt_parts.block(request.prompt, marks.GOAL) or ""
    outputs = [call.output for call in request.calls() if not call.is_error]
    return Known(
        focus=prompt_parts.focus(prompt_parts.block(request.prompt, marks.SUBTASK) or goal or request.user_text),
        context=prompt_parts.focus(goal),
        findings=prompt_parts.findings(request.prompt),
        attachments=prompt_parts.attachments(request.prompt),
        outputs=outputs,
        tables=[table for output in outputs for table in parse_tables(output)],
        examples=[example for output in outputs for example in parse_examples(output)],
        grids=[grid for output in outputs for grid in parse_grids(output)],
    )


def properties(tool: Json) -> Json:
    """Returns the properties of the tool's arguments."""
    return Filler(tool["input_schema"], lambda *_: None).properties()


def composes(tool: Json) -> bool:
    """True if the tool takes a whole text to put into shape."""
    return any(kind_of(name, spec, tool) in ("sections", "body") for name, spec in properties(tool).items())


def kind_of(name: str, spec: Json, tool: Json) -> str:
    """Returns the kind of an argument, by its name, then by the descriptions; else its JSON type."""
    low = name.lower()
    about = f"{tool.get('name', '')} {tool.get('description', '')} {spec.get('description', '')}".lower()
    if "enum" in spec or spec.get("type") in ("integer", "number", "boolean"):
        return "plain"
    if re.search(r"\b(sql|select statement)\b", about) and re.search(r"sql|query|statement", low):
        return "sql"
    if low == "name" and "attach" not in about:
        return "entity"
    return next((kind for kind, pattern in _KINDS if pattern.search(low)), "entity")


def choices(tool: Json, known: Known) -> list[Json]:
    """Returns the argument sets worth calling the tool with now; none if something it needs is not known yet."""
    required = tool["input_schema"].get("required") or []
    values = {name: _values(name, spec, tool, known) for name, spec in properties(tool).items() if name in required}
    if not all(values.values()):
        return []
    most = max(map(len, values.values()), default=1)  # the others keep to their first value
    return [{n: v[at] if len(v) == most else v[0] for n, v in values.items()} for at in range(min(most, _SETS))]


def ids_in(text: str) -> list[str]:
    """Returns identifiers in a tool's output: in brackets at the start of a line, as `id: x`, or listed."""
    ids = [*_MARKED.findall(text), *_NAMED.findall(text)]
    if not ids:
        ids = [part.strip(" .`'\"") for line in _LISTED.findall(text) for part in line.split(",")]
    return list(dict.fromkeys(filter(None, ids)))


def _values(name: str, spec: Json, tool: Json, known: Known) -> list[Any]:
    kind = kind_of(name, spec, tool)
    if kind == "plain":
        return [_plain(spec, known)]
    if kind == "sections":
        return [_sections(tool, spec, known)]
    values = _texts(kind, known)
    return [values] if spec.get("type") == "array" and values else values


def _texts(kind: str, known: Known) -> list[str]:
    shown = "\n".join([known.focus, known.context, *known.outputs])
    makers: dict[str, Any] = {
        "sql": lambda: write_queries(known.tables, known.examples, known.focus, known.context),
        "expression": lambda: expressions(known.grids) or _ARITHMETIC.findall(known.focus),
        "url": lambda: list(dict.fromkeys(_URL.findall(shown)))[:_IDS],
        "attachment": lambda: known.attachments[:4],
        "query": lambda: [" ".join(known.keys)],
        "id": lambda: _ids(known),
        "title": lambda: [title(known.context or known.focus)],
        "body": lambda: [joined(sections(known.findings, known.focus))],
        "question": lambda: [known.focus],
        "entity": lambda: _entities(known),
    }
    return list(makers[kind]())


def _ids(known: Known) -> list[str]:
    """The first identifiers shown; those whose line shares most words with the subtask first."""
    keys = [word.lower() for word in known.keys]
    lines = {id: next((line for line in output.splitlines() if id in line), "")
             for output in reversed(known.outputs) for id in reversed(ids_in(output))}  # fmt: skip
    return sorted(reversed(lines), key=lambda id: -len(shared(keys, lines[id])))[:_IDS]


def _sections(tool: Json, spec: Json, known: Known) -> Any:
    filler = Filler(tool["input_schema"], lambda *_: None)
    names = [*filler.properties(spec.get("items") or {}), "heading", "body"][:2]
    made = sections(known.findings, known.focus)
    return filler.fit(spec, [dict(zip(names, section.values(), strict=True)) for section in made])


def _entities(known: Known) -> list[str]:
    """Names in the subtask, known by their capitals, else its key words."""
    names = _PROPER.findall(known.focus) or _PROPER.findall(known.context)
    return list(dict.fromkeys(names))[:_IDS] or [" ".join(known.keys)]


def _plain(spec: Json, known: Known) -> Any:
    """A number of the subtask, the option that it names, or the least valid value."""
    number = re.search(r"\b\d+(?:\.\d+)?\b", known.focus)
    wanted: Any = float(number[0]) if number else None
    if "enum" in spec:
        wanted = next((option for option in spec["enum"] if str(option).lower() in known.focus.lower()), None)
    return Filler(spec, lambda *_: None).fill(False if spec.get("type") == "boolean" else wanted)
