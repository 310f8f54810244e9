"""The answers of tools to the parts of a question, and the parts without an answer."""

import re
from typing import NamedTuple

from temporal_supervisor.standin.extract.prompt_parts import Parts
from temporal_supervisor.standin.extract.question_parts import (
    Part,
    PartQuery,
    expressions_in,
    parts_of,
    query_of,
)
from temporal_supervisor.standin.lookup.passages import answering_sentences
from temporal_supervisor.standin.lookup.results_in_words import result_in_words
from temporal_supervisor.standin.lookup.tables import (
    Grid,
    grid_sentences,
    parse_grids,
    parse_tables,
    result_of,
)
from temporal_supervisor.standin.lookup.word_forms import clip
from temporal_supervisor.standin.server.api_request import PastCall
from temporal_supervisor.supervision.base import prompt_marks as marks

_SHOWN_ROWS = 15  # longer tables become sentences
_REPLY_CHARS = 1000  # of a person's, who seldom writes more
_SOURCE_CHARS = 60
_LOOKS_UP = re.compile(
    r"sql|statement|query|search|keyword|^q$|^terms?$|id$|key|slug|ref|path|document|url|attachment|^name$|"
    r"expression|formula|title|question|table|place"
)
# Arguments that open a document: "document_id", "url"; not "query".
_OPENS = re.compile(r"id$|key|slug|ref|path|document|url|attachment|^name$")
_SEARCHES = re.compile("query|search|keyword")
# "notes.md"; not "notes".
_IS_FILE = re.compile(r"\.\w{1,7}$")
_OUTPUT_CHARS = 600  # of a tool that does something: its whole output is what it did


class PartAnswers(NamedTuple):
    """The lines of a finding's text, and the parts that found nothing."""

    texts: list[str]
    open_parts: list[str]


def part_answers(prompt: Parts, calls: list[PastCall]) -> PartAnswers:
    """Returns the answers in these calls to the parts of the subtask's question."""
    calculated = _calculated(calls)
    texts: list[str] = []
    open_parts: list[str] = []
    for part in parts_of(prompt.question):
        found = (
            _by_query(part, prompt, calls, calculated)
            or _by_sentences(part, prompt, calls)
            or _by_arithmetic(part, calculated)
        )
        texts += found
        if not found:
            open_parts.append(part.text)

    done = _said_by_people(calls) + _effect_outputs(calls)
    if done:
        open_parts = []
    # A sentence that answers a part may be what a tool has done.
    more = [line for line in done if not any(line in text for text in texts)]
    return PartAnswers(list(dict.fromkeys([*texts, *more])), open_parts)


def part_queries(prompt: Parts) -> list[PartQuery]:
    """Returns the queries that answer parts of the question, by the listed tables."""
    shown = _listing_text(prompt)
    made = [query_of(part, shown, prompt.item) for part in parts_of(prompt.question)]
    return [query for query in made if query is not None]


def change_results(prompt: Parts) -> list[Grid]:
    """Returns the results in which figures change from one time to another."""
    grids: list[Grid] = []
    for query in part_queries(prompt):
        if query.answer is None or query.answer.kind == "change":
            grids += parse_grids(_output_of(query, _successful_calls(prompt)))
    return grids


def _successful_calls(prompt: Parts) -> list[PastCall]:
    return [call for call in prompt.request.calls if not call.is_error]


def _listing_text(prompt: Parts) -> str:
    """Returns the text with tables and examples: the brief, and outputs of tools."""
    outputs = [call.output for call in _successful_calls(prompt)]
    return "\n".join([prompt.request.user_text, *outputs])


def _output_of(query: PartQuery, calls: list[PastCall]) -> str:
    for call in calls:
        if query.sql in call.arguments.values():
            return call.output
    return ""


def _calculated(calls: list[PastCall]) -> dict[str, str]:
    """Returns the results of calculations by expression."""
    outputs: dict[str, str] = {}
    for call in calls:
        if result_of(call.output):
            outputs.update({str(value): call.output for value in call.arguments.values()})
    return outputs


def _by_query(
    part: Part, prompt: Parts, calls: list[PastCall], calculated: dict[str, str]
) -> list[str]:
    """Returns the result of a part's query in sentences, with its short tables."""
    query = query_of(part, _listing_text(prompt), prompt.item)
    if query is None:
        return []
    output = _output_of(query, calls)
    if not output:
        return []
    if query.answer is not None:
        return result_in_words(query.answer, output, calculated)

    grids = parse_grids(output)
    lines = [f"- {line}" for line in grid_sentences(grids, calculated)]
    tables = [grid.markdown() for grid in grids if len(grid.rows) <= _SHOWN_ROWS]
    return [*filter(None, ["\n".join(lines), *tables])]


def _by_sentences(part: Part, prompt: Parts, calls: list[PastCall]) -> list[str]:
    """Returns the sentences in outputs that have the words of a part, with their sources."""
    texts: list[str] = []
    for at, call in enumerate(calls):
        if not _is_text(call) or _is_opened_later(call, calls[at + 1 :]):
            continue
        source = clip(_source(call), _SOURCE_CHARS)
        found = answering_sentences(call.output, part.whole, _opened(call))
        texts += [f"- {line} [{source}]" for line in found]
    return ["\n".join(dict.fromkeys(texts))] if texts else []


def _by_arithmetic(part: Part, calculated: dict[str, str]) -> list[str]:
    """Returns the results of the expressions in a part."""
    wanted = expressions_in(part.text)
    outputs = [output for expression, output in calculated.items() if expression in wanted]
    return [f"- {output.strip()}" for output in outputs]


def _is_text(call: PastCall) -> bool:
    """True for an output that is no table, list of tables, calculation or person's reply."""
    if call.name == marks.ASK_TOOL:
        return False
    output = call.output
    return not (parse_grids(output) or parse_tables(output) or result_of(output))


def _is_opened_later(call: PastCall, later: list[PastCall]) -> bool:
    """True for a list of documents of which one was opened: its text is worth more."""
    opened: list[str] = []
    for other in later:
        opened += map(str, other.arguments.values())
    return any(f"[{value}]" in call.output for value in opened)


def _source(call: PastCall) -> str:
    """Returns the file, page or document that a call opened, else the tool.

    The words of a search are no source.
    """
    opened = _opened(call)
    if not opened:
        return call.name
    is_file = _IS_FILE.search(opened) is not None
    is_named = is_file or any(_OPENS.search(name.lower()) for name in call.arguments)
    return opened if is_named else call.name


def _opened(call: PastCall) -> str:
    """Returns the name of the document that a call opened; empty for a search."""
    if any(_SEARCHES.search(name.lower()) for name in call.arguments):
        return ""
    texts = (value for value in call.arguments.values() if isinstance(value, str))
    return next(texts, "")


def _said_by_people(calls: list[PastCall]) -> list[str]:
    replies = [call.output for call in calls if call.name == marks.ASK_TOOL]
    return [f"- A person said: {clip(reply, _REPLY_CHARS)}" for reply in replies]


def _effect_outputs(calls: list[PastCall]) -> list[str]:
    """Returns the outputs of tools with an effect, which are results by themselves."""
    return [f"- {clip(call.output, _OUTPUT_CHARS)}" for call in calls if _has_effect(call)]


def _has_effect(call: PastCall) -> bool:
    """True for a call that neither searches nor asks, by the names of its arguments."""
    if call.name == marks.ASK_TOOL or not call.arguments:
        return False
    return not any(_LOOKS_UP.search(name.lower()) for name in call.arguments)
