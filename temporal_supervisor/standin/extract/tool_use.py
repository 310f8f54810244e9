"""The tools to call next: each once, its arguments from the subtask and from earlier outputs."""

import base64
import json
import re
import secrets
from functools import cache
from itertools import chain
from typing import Any

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.standin.extract.answers import findings_text
from temporal_supervisor.standin.extract.part_answers import change_results, part_queries
from temporal_supervisor.standin.extract.prompt_parts import Parts, focus
from temporal_supervisor.standin.extract.question_parts import expressions_in
from temporal_supervisor.standin.extract.schema_fill import Filler
from temporal_supervisor.standin.lookup.tables import expressions
from temporal_supervisor.standin.lookup.word_forms import (
    clip,
    key_lines,
    key_stems,
    key_words,
    sentences,
    shared_stems,
    stem,
)
from temporal_supervisor.supervision.base import prompt_marks as marks
from temporal_supervisor.supervision.base.json_object import JsonObject

_FOLDER = BUILTIN_TEAMS / "almanac" / "documents"
_SITE = "https://pages.example/"  # a reserved name
_FOUND = 3
_CITED = 3  # sentences of a page


def looked_up(prompt: Parts) -> list[JsonObject]:
    """Returns the blocks of a search, or of a page fetched by its URL, with citations.

    Nothing the second time.
    """
    request, subtask = prompt.request, prompt.question
    blocks = chain.from_iterable(message["content"] for message in request.messages)
    has_begun = any(block.get("type") == "server_tool_use" for block in blocks)
    if has_begun or not request.provided:
        return []
    named = [url for url in _pages() if url in subtask][:1]
    content: JsonObject | list[JsonObject]
    if "web_fetch" in request.provided and named:
        tool, urls, arguments = "web_fetch", named, {"url": named[0]}
        content = _fetched(named[0])
    elif "web_search" in request.provided:
        wanted = key_stems(subtask)
        urls = sorted(_pages(), key=lambda url: -len(shared_stems(wanted, _pages()[url])))[:_FOUND]
        tool, arguments = "web_search", {"query": " ".join(_keys(subtask))}
        content = [_hit(url) for url in urls]
    else:
        return []
    number = f"srvtoolu_{secrets.token_hex(12)}"
    made: list[JsonObject] = [
        {"type": "server_tool_use", "id": number, "name": tool, "input": arguments},
        {"type": f"{tool}_tool_result", "tool_use_id": number, "content": content},
    ]
    for url in urls:
        lines = key_lines(_pages()[url], subtask, _CITED)
        made += [_cited(tool, url, line) for line in lines]
    return made


def _keys(text: str) -> list[str]:
    """Returns the words of a text to search by."""
    return [word for word in key_words(text) if not word.isdigit()][:_KEYS]


def _hit(url: str) -> JsonObject:
    text = base64.b64encode(_pages()[url].encode()).decode()
    return {
        "type": "web_search_result",
        "url": url,
        "title": _title(url),
        "page_age": None,
        "encrypted_content": text,
    }


def _cited(tool: str, url: str, line: str) -> JsonObject:
    """Returns a sentence of a page as text, with the citation of its tool."""
    citation: JsonObject = {
        "type": "web_search_result_location",
        "url": url,
        "title": _title(url),
        "encrypted_index": "0",
    }
    if tool == "web_fetch":
        at = max(0, _pages()[url].find(line))
        place = {"document_index": 0, "start_char_index": at, "end_char_index": at + len(line)}
        citation = {"type": "char_location", "document_title": _title(url), **place}
    return {"type": "text", "text": f"{line}\n", "citations": [citation | {"cited_text": line}]}


def _fetched(url: str) -> JsonObject:
    source = {"type": "text", "media_type": "text/plain", "data": _pages()[url]}
    document = {
        "type": "document",
        "title": _title(url),
        "source": source,
        "citations": {"enabled": True},
    }
    return {"type": "web_fetch_result", "url": url, "retrieved_at": None, "content": document}


def _title(url: str) -> str:
    return _pages()[url].partition("\n")[0].strip("# ")


@cache
def _pages() -> dict[str, str]:
    """The texts of the pages by their URLs."""
    return {
        _SITE + file.stem: file.read_text(encoding="utf-8") for file in sorted(_FOLDER.glob("*.md"))
    }


_TURNS = 5  # list, query or search, read, calculate, compose
_MOST_CALLS = 8  # of one turn
_DOCUMENTS = 2
_KEYS = 10  # words of a search
_TITLE_CHARS = 120
_NAME_CHARS = 200  # an argument that may be longer is a question or a text, no name to look up
_MOST_CHARS = re.compile(r"maxLength\W+(\d+)")  # a strict schema says it in the description
_NAME = re.compile(
    r"(?<=[a-z,;:] )(?!I\b)[A-Z][\w'-]+(?: [A-Z][\w'-]+)*"
)  # capitals that begin no sentence
# '[a-document p. 3] text', '- [b] text', '"id": "x7"'; not 'text [a]'. A page is no part of the id.
_ID = re.compile(
    r"^[^\S\n]*+(?:(?:[-*]|\d++[.)])[^\S\n]*+)?\[([^\]\n]{1,120}?)(?: p\. \d{1,5})?\]"
    r"|\bid\"?\s*[:=]\s*\"?([\w./:-]{1,120})",
    re.MULTILINE,
)
_FILE = re.compile(r"[^\n{}]{1,200}\.\w{1,7}")
_URL = re.compile(r"https?://[^\s<>\"')\]]+")
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("sql", re.compile(r"sql|statement")),
    ("expression", re.compile(r"expression|formula")),
    ("url", re.compile(r"^ur[il]s?$|_url$")),
    ("attachment", re.compile(r"attachment|^name$")),
    ("query", re.compile(r"query|search|keyword|^q$|^terms?$")),
    ("id", re.compile(r"(^|_)(ids?|key|slug|ref|path|document)$")),
    ("title", re.compile(r"title|heading|subject")),
    ("body", re.compile(r"body|content|text|markdown|draft|report")),
    ("question", re.compile(r"")),
)

NewCall = tuple[str, JsonObject]
"""A tool's name and its arguments."""


def next_calls(prompt: Parts) -> list[NewCall]:
    """Returns the calls of the next turn, several if they don't need each other.

    None if it is time to answer. A tool is used in one turn only. Tools that compose a text wait
    until no other tool has anything to do.
    """
    request = prompt.request
    if request.turns >= _TURNS or marks.LAST_TURN_MARK in request.last_text:
        return []
    used = {call.name for call in request.calls}
    used |= {marks.FINISH_TOOL, marks.READ_OUTPUT_TOOL}
    early: list[NewCall] = []
    late: list[NewCall] = []
    for tool in request.tools:
        if tool["name"] in used:
            continue
        calls = [(tool["name"], arguments) for arguments in _argument_sets(tool, prompt)]
        (late if composes(tool) else early).extend(calls)
    return (early or late)[:_MOST_CALLS]


def composes(tool: JsonObject) -> bool:
    """True if the tool takes a whole text to put into shape."""
    names = Filler(tool["input_schema"]).properties()
    return any(_kind_of(name) == "body" for name in names)


def _kind_of(name: str) -> str:
    return next(kind for kind, pattern in _KINDS if pattern.search(name.lower()))


def _argument_sets(tool: JsonObject, prompt: Parts) -> list[JsonObject]:
    """Returns the argument sets worth calling the tool with now.

    None if something it needs is not known yet.
    """
    required = tool["input_schema"].get("required") or []
    values = {name: _values(tool, name, prompt) for name in required}
    if not all(values.values()):
        return []
    most = max(map(len, values.values()), default=1)
    sets: list[JsonObject] = []
    for at in range(most):
        arguments: JsonObject = {}
        for name, known in values.items():
            # One with fewer values keeps to its first.
            arguments[name] = known[at] if len(known) == most else known[0]
        sets.append(arguments)
    return sets


def _values(tool: JsonObject, name: str, prompt: Parts) -> list[Any]:
    """Returns the values of an argument to call a tool with, one after another."""
    spec = Filler(tool["input_schema"]).properties()[name]
    kind = _kind_of(name)
    if "enum" in spec or spec.get("type") in ("integer", "number", "boolean"):
        return [Filler(spec, prompt.question).fill()]
    most_chars = _MOST_CHARS.search(json.dumps(spec))
    short = spec.get("type") == "string" and most_chars and int(most_chars[1]) <= _NAME_CHARS
    if kind in ("title", "question") and short and not composes(tool):
        words = [word for word in key_words(prompt.question) if not word.isdigit()]
        return [*_NAME.findall(prompt.question), *words, prompt.question][:1]
    values = _texts(kind, prompt)
    return [values] if spec.get("type") == "array" and values else values


def _texts(kind: str, prompt: Parts) -> list[str]:
    """Returns the texts of a kind that the prompt has."""
    subtask, goal = prompt.question, focus(prompt.goal)
    outputs = [call.output for call in prompt.request.calls if not call.is_error]
    shown = "\n".join([subtask, goal, *outputs])
    keys = _keys(subtask)
    if kind == "sql":
        return [query.sql for query in part_queries(prompt)]
    if kind == "expression":
        return expressions(change_results(prompt)) or expressions_in(subtask)
    if kind == "url":
        return list(dict.fromkeys(_URL.findall(shown)))[:_DOCUMENTS]
    if kind == "attachment":
        return prompt.attachments
    if kind == "id":
        found = _ids("\n".join(outputs), [stem(word) for word in keys])
        named = [name for name in found if prompt.item.startswith(name)]
        if named:
            return named
        return [prompt.item] if _FILE.fullmatch(prompt.item) else found[:_DOCUMENTS]
    if kind == "body":
        return [findings_text(prompt.findings)]
    if kind == "title":
        return [clip((sentences(goal) or [subtask])[0], _TITLE_CHARS).rstrip("?. ")]
    if kind == "query":
        return [" ".join(keys)] if keys else []
    return [subtask]


def _ids(text: str, keys: list[str]) -> list[str]:
    """Returns the identifiers, first those whose line shares most words with the subtask.

    They are in brackets at the start of a line, or as `id: x`.
    """
    lines: dict[str, str] = {}
    for marked, named in _ID.findall(text):
        name = marked or named
        lines[name] = next(line for line in text.splitlines() if name in line)
    return sorted(lines, key=lambda name: -len(shared_stems(keys, lines[name])))
