"""Tool calls that a model writes as text, in the formats of the common families.

Models on local servers write calls as text if their server has no parser for them, or if their chat
template lost its marks. A call counts if it is at the beginning of a line or after its family's
mark, and names an offered tool; the first of several counts. A text that merely quotes calls, JSON
or SQL is left alone: see `_is_citation`. Each candidate is read once, within the beginning of a
text, so that the time is linear.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.replies.loose_json import LooseReader, value_at
from temporal_supervisor.supervision.replies.rules import SQL_RULE

# Of a reply: a call is near its beginning, and a page of text before it is no call's.
READ_CHARS = 32_000
_CANDIDATES = 20  # places of one text that are looked at
_PROSE_CHARS = 40  # of text before a call that was made already: then the text is about it
_NAME = r"[A-Za-z][\w.:-]{0,80}"

_WRAPPERS = ("function", "tool_call", "function_call")
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "input", "args", "kwargs", "action_input")
_BESIDE = ("id", "type", "call_id", "tool_call_id", "thought", "reasoning")
"""Fields of a call: objects around it, its name, its arguments, and what may stand beside these."""

_PREFIXES = ("functions.", "function.", "tools.", "tool.", "default_api.")
_SUFFIXES = ("tool", "function", "call")
_COUNTED = re.compile(r":\d{1,3}\Z")  # Kimi counts its calls: query_data:0


class Call(NamedTuple):
    """A tool call: name and arguments."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True)
class MadeCall:
    """A call in the conversation; `succeeded` is None until its output has come."""

    call: Call
    succeeded: bool | None


@dataclass(frozen=True)
class WrittenCall:
    """A call in a text, with the text before it, its end, and the rule that read it."""

    call: Call
    before: str
    end: int
    rule: str


@dataclass(frozen=True)
class Shape:
    """A format of written calls: `begins` finds a beginning, `read` reads the call there.

    `read` gets the text and the match of `begins`. It returns the call and its end, or None if
    there is no call.
    """

    rule: str
    begins: re.Pattern[str]
    read: Callable[[str, re.Match[str]], tuple[Any, int] | None]


def tool_named(name: str, offered: Mapping[str, JsonObject]) -> str | None:
    """Returns the offered tool that a name means.

    Case, dashes, prefixes and suffixes are ignored if no tool has exactly that name.
    """
    if name in offered:
        return name
    meant = _plain_name(name)
    same = [tool for tool in offered if _plain_name(tool) == meant]
    return same[0] if len(same) == 1 else None


def first_call(
    text: str,
    offered: Mapping[str, JsonObject],
    made: Sequence[MadeCall] = (),
    *,
    asked_for_sql: bool = False,
) -> WrittenCall | None:
    """Returns the first call of an `offered` tool in a text; None without one.

    `offered` has the schemas of the tools' arguments by name, `made` the calls of the conversation
    so far. If a query was `asked_for_sql`, a new one is a call whatever follows it.
    """
    text = text[:READ_CHARS]
    passed = 0  # what a candidate has read is not read again
    for begin, shape, match in _candidates(text):
        if begin < passed:
            continue
        read = shape.read(text, match)
        if read is None:
            continue
        value, end = read
        passed = end
        call = _call_of(value, offered)
        if call is None:
            continue
        before = _without_fence(text[:begin])
        if _is_citation(call, before, made):
            continue
        closed = _CLOSING_MARKS.match(text, end)
        return WrittenCall(call, before, closed.end() if closed else end, shape.rule)
    return _block_of_sql(text, offered, made, is_asked=asked_for_sql)


def goes_on_after(text: str, written: WrittenCall) -> bool:
    """True if a model wrote more after its call.

    That text is made up, because the model has not seen the output.
    """
    return len(text[written.end :].strip()) > _WORDS_AFTER


def _without_fence(before: str) -> str:
    """Returns the text before a call without the line that opens the call's code block."""
    before = before.rstrip()
    text, _, last = before.rpartition("\n")
    return text.rstrip() if _FENCE_LINE.fullmatch(last) else before


def same_arguments(one: JsonObject, other: JsonObject) -> bool:
    """True if two calls have the same arguments, ignoring white space within texts."""
    return _canonical(one) == _canonical(other)


# --- Shapes ---------------------------------------------------------------------------------------

_WORDS_AFTER = 12  # signs after a call that are more than its closing marks
_FENCE_LINE = re.compile(r"[ \t]*+(?:`{3,}[\w-]*+|<\|?\w{1,30}\|?>)")
_CLOSING_MARKS = re.compile(r"(?:\s++|`{3,}|</?\|?[\w-]{1,30}\|?>|[\]})]|\[/TOOL_CALLS\])*+")
_JSON_BEGINS = r"(?=\{|\[\s*\{)"


def _json(text: str, match: re.Match[str]) -> tuple[Any, int] | None:
    """Reads the JSON at the end of the match.

    It is a call, or the arguments of the tool that the match captured as `name`.
    """
    try:
        value, end = value_at(text, match.end())
    except ValueError:
        return None

    name = match.groupdict().get("name")
    if name is None:
        return value, end
    return ({"name": name, "arguments": value}, end) if isinstance(value, dict) else None


def _function(text: str, match: re.Match[str]) -> tuple[Any, int] | None:
    """Reads the arguments of the tool in `<function=name>`: JSON, or parameters in tags."""
    return (
        _parameters(text, match)
        if text.startswith("<parameter", match.end())
        else _json(text, match)
    )


def _parameters(text: str, match: re.Match[str]) -> tuple[Any, int] | None:
    """Reads `<parameter=sql>...</parameter>` up to the end of the function."""
    arguments: JsonObject = {}
    at = match.end()
    while parameter := _PARAMETER.match(text, at):
        arguments[parameter["name"]] = _typed(parameter["value"].strip())
        at = parameter.end()
    if not arguments or text.startswith("<parameter", at):  # one that has not come to its end
        return None
    return {"name": match["name"], "arguments": arguments}, at


def _python(text: str, match: re.Match[str]) -> tuple[Any, int] | None:
    """Reads `(sql="...", table='...')` at the end of the match, whose `name` is the tool's."""
    reader = LooseReader(text, match.end())
    arguments: JsonObject = {}
    try:
        while not reader.accept(")"):
            reader.skip_blanks()
            name = _KEYWORD.match(text, reader.position)
            if name is None:
                return None
            reader.accept(name[0])
            arguments[name["name"]] = reader.value()
            if not reader.accept(",") and not reader.accept(")"):
                return None
            if text[reader.position - 1] == ")":
                break
    except ValueError:
        return None
    return {"name": match["name"], "arguments": arguments}, reader.position


_PARAMETER = re.compile(
    rf"\s*+<parameter=(?P<name>{_NAME})>(?P<value>(?:[^<]|<(?!/parameter>))*+)</parameter>\s*+"
)
_KEYWORD = re.compile(r"(?P<name>[A-Za-z_]\w{0,80})\s*=")

SHAPES = (
    Shape(
        "a call in tags",
        # Not after a back quote: there it is cited.
        re.compile(
            rf"(?<![`\w])<\|?(?:tool_call|tools|function_call|tool_call_start)\|?>\s*+{_JSON_BEGINS}"
        ),
        _json,
    ),
    Shape(
        "a call after [TOOL_CALLS]",
        re.compile(
            rf"(?<!`)\[TOOL_CALLS\]\s*+"
            rf"(?:{_JSON_BEGINS}|(?P<name>{_NAME})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*+(?=\{{))"
        ),
        _json,
    ),
    Shape(
        "a call after <|python_tag|>",
        re.compile(rf"<\|python_tag\|>\s*+{_JSON_BEGINS}"),
        _json,
    ),
    Shape(
        "a call in <function=name>",
        re.compile(rf"(?<!`)<function=(?P<name>{_NAME})>\s*+(?=\{{|<parameter=)"),
        _function,
    ),
    Shape(
        "a call in Python",
        re.compile(
            rf"^[ \t]*+`{{3,}}tool_(?:code|call)\s++(?:print\()?(?P<name>{_NAME})\(", re.MULTILINE
        ),
        _python,
    ),
    Shape(
        "a call in Python",
        re.compile(
            rf"(?:^|<\|python_tag\|>)[ \t]*+\[?(?P<name>{_NAME})\((?=\w+\s?=\s?[\"'\d\[{{])",
            re.MULTILINE,
        ),
        _python,
    ),
    Shape(
        "a call as JSON",
        re.compile(
            rf"^[ \t]*+(?:[-*]\s|\d{{1,2}}\.\s)?(?:`{{3,}}\w*+[ \t]*+)?{_JSON_BEGINS}", re.MULTILINE
        ),
        _json,
    ),
)
"""The ways of writing calls; `supervision.replies.rules` names their sources."""


def _candidates(text: str) -> Iterator[tuple[int, Shape, re.Match[str]]]:
    """Yields the first places at which a call may begin, in the order of the text."""
    found = [
        (match.start(), shape, match)
        for shape in SHAPES
        for _, match in zip(range(_CANDIDATES), shape.begins.finditer(text), strict=False)
    ]
    yield from sorted(found, key=lambda candidate: candidate[0])[:_CANDIDATES]


# --- Calls ----------------------------------------------------------------------------------------


def _call_of(value: Any, offered: Mapping[str, JsonObject]) -> Call | None:
    """Returns the call of an offered tool in a value; None for other values, such as rows."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("tool_calls"), list):
        return _call_of(value["tool_calls"], offered)
    for wrapper in _WRAPPERS:
        if isinstance(value.get(wrapper), dict):
            value = value[wrapper]
    return _by_name(value, offered) or _by_only_key(value, offered)


def _by_name(value: JsonObject, offered: Mapping[str, JsonObject]) -> Call | None:
    key = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    tool = tool_named(value[key], offered) if key else None
    if tool is None:
        return None
    others = {name: part for name, part in value.items() if name != key and name not in _BESIDE}
    given = [name for name in _ARGUMENTS if name in others]
    if len(given) == 1 and len(others) == 1:
        arguments = _arguments(others[given[0]], offered[tool])
        return None if arguments is None else Call(tool, arguments)
    # {"name": "query_data", "sql": "..."}: a row of data has other fields.
    known = offered[tool].get("properties", {})
    return (
        Call(tool, others)
        if _has_needed(others, offered[tool]) and others.keys() <= known.keys()
        else None
    )


def _by_only_key(value: JsonObject, offered: Mapping[str, JsonObject]) -> Call | None:
    """Reads {"query_data": {"sql": "..."}}."""
    if len(value) != 1:
        return None
    [(name, arguments)] = value.items()
    tool = tool_named(name, offered)
    if tool is None or not isinstance(arguments, dict) or not _has_needed(arguments, offered[tool]):
        return None
    return Call(tool, arguments)


def _arguments(given: Any, schema: JsonObject) -> JsonObject | None:
    """Returns arguments as an object: also from JSON text, or from the one needed value."""
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    if not isinstance(given, str):
        return None
    if given.lstrip().startswith("{"):
        try:
            value = value_at(given, given.index("{"))[0]
        except ValueError:
            return None
        return value if isinstance(value, dict) else None
    needed = schema.get("required") or [*schema.get("properties", {})]
    return {needed[0]: given} if len(needed) == 1 and given.strip() else None


def _has_needed(arguments: JsonObject, schema: JsonObject) -> bool:
    """True if no required argument is missing; for `finish` one text is enough."""
    needed = set(schema.get("required", []))
    if {"finding", "summary"} & needed:
        return bool({"finding", "summary"} & arguments.keys())
    return needed <= arguments.keys()


def _typed(written: str) -> Any:
    """Returns a parameter that was written without quotes, as JSON if it is valid, else as text."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def _plain_name(name: str) -> str:
    name = _COUNTED.sub("", name.strip().removesuffix("()").casefold())
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    letters = "".join(sign for sign in name if sign.isalnum())
    for suffix in _SUFFIXES:
        shorter = letters.removesuffix(suffix)
        letters = shorter or letters
    return letters


# --- Citations ------------------------------------------------------------------------------------

_SQL = re.compile(
    r"^[ \t]*+`{3,}[ \t]*(?:sql|duckdb|postgresql|postgres|sqlite)[ \t]*\n"
    r"(?P<sql>(?:[^`]|`(?!``))*+)(?:`{3,}|\Z)",
    re.MULTILINE | re.IGNORECASE,
)
_BARE_SQL = re.compile(
    r"\A\s*+(?P<sql>(?:SELECT|WITH)\b(?=[^;]*\bFROM\b)[^;`]*+)(?:;\s*+)?\Z", re.IGNORECASE
)
_SENTENCE_ENDS = (".", "!", "?", ":")  # a query ends with none of these
_DIGIT = re.compile(r"\d")


def _is_citation(call: Call, before: str, made: Sequence[MadeCall]) -> bool:
    """True if a text only reports a call: it follows words, and was made before."""
    return len(before) > _PROSE_CHARS and _was_made(call, made)


def _was_made(call: Call, made: Sequence[MadeCall]) -> bool:
    return any(
        each.call.name == call.name and same_arguments(each.call.arguments, call.arguments)
        for each in made
    )


def _block_of_sql(
    text: str,
    offered: Mapping[str, JsonObject],
    made: Sequence[MadeCall],
    *,
    is_asked: bool,
) -> WrittenCall | None:
    """Returns the query in a block of SQL, or in a text of nothing else; None without one.

    Findings quote queries that were made. So a block counts only until a query has succeeded. After
    that it must be a new query that ends the text, without a figure next to it, unless it
    `is_asked` for. Then a query that was made before is a call too, if the text has nothing else:
    its author gets a message about that.
    """
    tool = next(
        (name for name, schema in offered.items() if schema.get("required") == ["sql"]), None
    )
    block = _SQL.search(text) or _bare_query(text)
    if tool is None or block is None or not block["sql"].strip():
        return None
    call = Call(tool, {"sql": block["sql"].strip()})
    rest = text[: block.start()] + text[block.end() :]
    is_repeated = is_asked and not rest.strip()
    if _was_made(call, made) and not is_repeated:
        return None
    has_result = any(each.call.name == tool and each.succeeded for each in made)
    if has_result and not is_asked and (text[block.end() :].strip() or _DIGIT.search(rest)):
        return None
    return WrittenCall(call, text[: block.start()].strip(), block.end(), SQL_RULE)


def _bare_query(text: str) -> re.Match[str] | None:
    """Returns the match of a text that consists of one query; None for other texts."""
    return None if text.rstrip().endswith(_SENTENCE_ENDS) else _BARE_SQL.match(text)


def _canonical(arguments: JsonObject) -> str:
    plain = {
        name: _spaced(part) if isinstance(part, str) else part for name, part in arguments.items()
    }
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def _spaced(text: str) -> str:
    return " ".join(text.split()).rstrip("; ")
