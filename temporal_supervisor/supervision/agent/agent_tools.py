"""The project's own tools: `finish`, `read_output` and `ask_person`.

`finish` hands in a finding, which may also be a message without a call. `read_output` shows more of
an earlier output, by the name of its call: `3-1` is the first tool call of a conversation's third
reply.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, JsonValue, ValidationError

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import (
    ASK_TOOL,
    FINISH_TOOL,
    READ_OUTPUT_TOOL,
)
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.replies.echo import without_echo
from temporal_supervisor.supervision.replies.loose_form import read_form, says_nothing

Conclusive = Literal["done", "partial", "impossible"]

_MARKUP = str.maketrans("", "", "*_>#")
_CLOSING = re.compile(  # with what models make of these words in the language of the goal
    r"(?:(?P<confidence>confidence|konfidenz|confiance|confianza)|(?P<outcome>outcome)"
    r"|(?P<limitations>limitations?|einschränkungen|limites|limitaciones)) ?[:\uff1a]",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"(?:very |sehr )?(?:high|medium|low|hoch|mittel|niedrig|élevée|faible|alta|media|baja)\.?"
)
_ENDED = (
    "complete",
    "succe",
    "finished",
    "ok",
    "fertig",
    "erledigt",
    "abgeschlossen",
    "termin",
    "hecho",
    "完成",
)
_REFERS = re.compile(r"\W*(?:see|siehe|voir|véase)\b[^\n]{0,40}", re.IGNORECASE)  # see above
_DOUBTFUL = 0.1  # below this confidence a finding says that nothing was found
_BEGINNING_CHARS = 200  # where a finding without a confidence says so
_GAVE_UP = re.compile(
    r"\b(?:could(?: not|n['’]t)|can(?:not| not|['’]t)|unable to|not able to|not possible|impossible"
    r"|konnte nicht|kann nicht|nicht möglich|unmöglich|ne peux pas|n['’]ai pas pu)\b|无法|不能",
    re.IGNORECASE,
)
_MARK_CHARS = 150  # the last line of a shortened output, with the largest numbers
_NAME = re.compile(r"[1-9]\d{0,5}-[1-9]\d{0,5}")
_OUTPUT = (
    "The facts of the finding in this form. "
    "Take every value from your brief or from what your tools showed. "
    "Use null, where the form allows it, for a value that you did not find."
)
_FORCED = "written in the last turn, without a word on what is missing"


@dataclass(frozen=True)
class Conclusion:
    """A finding as its author concluded it.

    `confidence` is None if the author gave none. `unclear` is True if the text reads as if nothing
    was found, but the author did not state whether the subtask is impossible. `items` is None if
    none were listed. `output` is unchanged from the author's call.
    """

    text: str
    confidence: float | None
    limitations: list[str]
    outcome: Conclusive = "done"
    summary: str = ""
    unclear: bool = False
    items: Sequence[JsonValue] | None = None
    output: JsonValue = None


def conclude(message: str, forced: bool = False) -> Conclusion:
    """Returns the finding in a message, whose closing lines are read and taken off.

    Closing lines are `Confidence: 0.8` and `Limitations: ...; ...`. A line with more than that
    stays in the text. A message of nothing but closing lines stays whole. A finding is partial if
    it reads as if nothing was found, or if it was `forced` and has no closing line.
    """
    message = without_echo(message)
    lines = message.strip().splitlines(keepends=True)
    closing: dict[str, Any] = {}
    while lines:
        read = _closing_line(lines[-1])
        if read is not None:
            name, value = read
            closing[name] = value
        elif not lines[-1].isspace():
            break
        lines.pop()
    text = "".join(lines).strip() or message.strip()
    confidence: float | None = closing.get("confidence")
    limitations: list[str] = [*closing.get("limitations", [])]
    outcome: Conclusive | None = closing.get("outcome")
    unclear = outcome is None and _gave_up(text, confidence)
    cut_short = forced and not closing
    if cut_short:
        limitations.append(_FORCED)
    if outcome is None:
        outcome = "partial" if unclear or cut_short else "done"
    return Conclusion(text, confidence, limitations, outcome, unclear=unclear)


def _closing_line(line: str) -> tuple[str, Any] | None:
    """Returns the name and the value of a closing line; None for any other line."""
    plain = line.translate(_MARKUP).strip(" -\r\n")
    match = _CLOSING.match(plain)
    if match is None:
        return None
    kind, said = match.lastgroup, plain[match.end() :].strip()
    word = said.lower().rstrip(".")
    if kind == "confidence":
        share = _share(said)
        is_one = share is not None or _IN_WORDS.fullmatch(said.lower()) is not None
        return (kind, share) if is_one else None
    if kind == "limitations" and size(said) <= limits.SENTENCE_BYTES:
        return kind, _items(said.split(";"))
    if kind == "outcome" and word in get_args(Conclusive):
        return kind, word
    return None


def _gave_up(text: str, confidence: float | None) -> bool:
    """True if a finding reads as if nothing was found: by its confidence, else its beginning."""
    if confidence is not None:
        return confidence < _DOUBTFUL
    return _GAVE_UP.search(text[:_BEGINNING_CHARS]) is not None


def _share(said: str) -> float | None:
    try:
        value = float(said.rstrip(" .%").replace(",", "."))
    except ValueError:
        return None
    if not 0 <= value <= 100:
        return None
    return share_of(value / 100 if "%" in said else value)


def _items(said: list[str]) -> list[str]:
    lines = (line.strip(" -*•\t") for item in said for line in item.splitlines())
    return [line for line in lines if not says_nothing(line) and line.lower() != "no"]


class FinishCall(Model):
    """The arguments of `finish` as the model writes them: the work before the verdict on it."""

    finding: str = Field(
        description="The whole finding in Markdown. It has to be complete without your "
        "conversation: what was asked, the answer, each figure with its unit, period and source, "
        "and how a derived figure was computed."
    )
    limitations: list[str] = Field(
        description="What is missing, doubtful or older than asked, one sentence each. "
        "Empty if nothing is."
    )
    confidence: float | None = Field(
        description="0.95: each statement stands word for word in a source. "
        "0.8: one step of inference. 0.6: thin or old sources, or one of two that disagree. "
        "0.3: mostly inference."
    )
    outcome: Conclusive = Field(
        description="done: everything that was asked is answered. "
        "partial: some of it is, and limitations says what is not. "
        "impossible: nothing could be answered with these tools and sources; "
        "summary says why, and finding what was tried."
    )
    summary: str = Field(
        description="One to three sentences that can stand for the finding, with its figures."
    )


class _ReadFinish(Model):
    """The arguments of `finish` as they are read, with defaults for all that a model leaves out."""

    finding: str = ""
    limitations: list[str] = []
    confidence: float | None = None
    outcome: str = ""
    summary: str = ""
    items: list[JsonValue] | None = None
    output: JsonValue = None


class ShortFinishCall(Model):
    """The same for models with a small window, of which code fills in the rest."""

    finding: str = Field(
        description="The answer to the subtask, each figure with its unit, period and source."
    )
    outcome: Conclusive = Field(
        description="done: all that was asked is answered. partial: some of it is. "
        "impossible: no tool has it."
    )


_ITEMS = (
    "The items that your subtask asks for. "
    "Another agent, who does not see your finding, works on each one, "
    "so an item says all that is needed to work on it: a short text, or an object of a few fields."
)


class ItemsCall(FinishCall):
    """The arguments of `finish` where the finding names items; each gets a subtask of its own."""

    items: list[str | dict[str, JsonValue]] = Field(description=_ITEMS)


class ShortItemsCall(ShortFinishCall):
    """The same for models with a small window."""

    items: list[str | dict[str, JsonValue]] = Field(description=_ITEMS)


def finish_tool(
    names_items: bool = False, output_schema: dict[str, Any] | None = None, *, short: bool = False
) -> dict[str, Any]:
    """Returns the definition of `finish` for the model.

    With `names_items` the finding must list items, with an `output_schema` it must contain an
    output.
    """
    description = (
        "Hands in your finding and ends your work. Call it alone, once you have all results."
    )
    form: type[Model] = ItemsCall if names_items else FinishCall
    if short:
        form = ShortItemsCall if names_items else ShortFinishCall
    schema = _schema(form)
    if output_schema is not None:
        output = {"description": _OUTPUT, **output_schema}
        required = [*schema["required"], "output"]
        schema = {
            **schema,
            "properties": {**schema["properties"], "output": output},
            "required": required,
        }
    return {"name": FINISH_TOOL, "description": description, "input_schema": schema}


@cache
def _schema(form: type[Model]) -> dict[str, Any]:
    return {**form.model_json_schema(), "additionalProperties": False}


def read_finish(arguments: object, beside: str = "") -> Conclusion | None:
    """Returns the conclusion in a call of `finish`; None if nothing in it is usable.

    If a text `beside` the call is longer than the call's finding, it is the finding: models often
    write it there. Slight faults of form are corrected, because a model that has concluded is not
    asked again for a form.
    """
    try:
        call = read_form(_ReadFinish, arguments)
    except ValidationError:
        return None
    finding, summary = _usable(call.finding), _usable(call.summary)
    stated = finding or summary
    own = conclude(beside).text if beside else ""
    if len(own) > len(stated):
        rest = finding
        if not finding and points_back(arguments):
            rest = summary
        stated = own if rest in own else f"{own}\n\n{rest}"
    if not stated:
        return None
    confidence = share_of(call.confidence)
    said = _usable(call.outcome).strip(" *").lower()
    outcome = _outcome_in(said)
    unclear = outcome is None and (said != "" or _gave_up(stated, confidence))
    if outcome is None:
        outcome = "partial" if unclear else "done"
    return Conclusion(
        text=stated,
        confidence=confidence,
        limitations=_items(call.limitations),
        outcome=outcome,
        summary=summary or stated,
        unclear=unclear,
        items=None if call.items is None else [item for item in call.items if item],
        output=call.output,
    )


def _usable(text: str) -> str:
    """Returns the text of a field; empty if it has no content or only refers to another text."""
    if says_nothing(text) or _REFERS.fullmatch(text.strip()):
        return ""
    return without_echo(text).strip()


def _outcome_in(said: str) -> Conclusive | None:
    """Returns the outcome that a model's own word means; None if the word is unknown."""
    for outcome in get_args(Conclusive):
        if said.startswith(outcome):
            return cast("Conclusive", outcome)
    return "done" if said.startswith(_ENDED) else None


def points_back(arguments: object) -> bool:
    """True if the finding in a call of `finish` only refers back, as "See above." does."""
    finding = arguments.get("finding") if isinstance(arguments, dict) else None
    return isinstance(finding, str) and bool(_REFERS.fullmatch(finding.strip()))


def share_of(confidence: float | None) -> float | None:
    """Returns a confidence from 0 to 1; it may be given in percent, as `85` or `"85%"`."""
    if confidence is None:
        return None
    share = confidence / 100 if confidence > 1 else confidence
    return min(1.0, max(0.0, share))


def cells_of(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the plain values in an output as texts, each with the path of its field.

    Nulls are left out.
    """
    if value is None:
        return
    parts: Iterable[tuple[object, JsonValue]]
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value, 1)
    else:
        yield path, value.strip() if isinstance(value, str) else json.dumps(value)
        return
    for name, part in parts:
        yield from cells_of(part, f"{path}.{name}" if path else str(name))


# --- read_output ----------------------------------------------------------------------------------


class ReadOutputCall(Model):
    """The arguments of `read_output` as the model writes them."""

    output: Annotated[
        str,
        Field(
            description="The name that the last line of a shortened output gives, or a subtask_id."
        ),
    ]
    offset: Annotated[
        int, Field(ge=0, description="The number of the character to start at. 0 is the beginning.")
    ] = 0

    @property
    def place(self) -> tuple[int, int] | None:
        """The numbers of the reply and of its tool call, from 1; None if the name is malformed."""
        if not _NAME.fullmatch(self.output):
            return None
        reply, _, call = self.output.partition("-")
        return int(reply), int(call)


def read_output_tool() -> dict[str, Any]:
    """Returns the definition of `read_output` for the model."""
    description = (
        "Shows more of a tool output whose last line says that it was cut, "
        "or the whole text of a finding in your brief that is shown as a summary."
    )
    return {
        "name": READ_OUTPUT_TOOL,
        "description": description,
        "input_schema": _schema(ReadOutputCall),
    }


def read_call(arguments: object) -> ReadOutputCall:
    """Returns the arguments of a call of `read_output`.

    Raises ValueError with a message for the model.
    """
    try:
        call = read_form(ReadOutputCall, arguments)
        return call.model_copy(update={"output": call.output.strip(" \"'[]")})
    except ValidationError:
        raise ValueError(
            "The arguments are wrong: output is a subtask_id, "
            "or the name that the last line of a shortened output gives, "
            "and offset is a number of characters."
        ) from None


def output_name(reply: int, call: int) -> str:
    """Returns the name of an output: the numbers of its reply and call, such as `3-1`."""
    return f"{reply}-{call}"


def beginning(text: str, name: str, limit: int) -> str:
    """Returns an output cut to `limit` characters; a last line explains how to read the rest."""
    if len(text) <= limit:
        return text
    end = limit - _MARK_CHARS
    return (
        f"{text[:end]}\n[cut: {end} of {len(text)} characters are shown. "
        f'{READ_OUTPUT_TOOL} with output "{name}" and offset {end} shows more.]'
    )


def page(text: str, call: ReadOutputCall, most: int) -> str:
    """Returns the requested page of an output. Raises ValueError with a message for the model."""
    if call.offset and call.offset >= len(text):
        raise ValueError(f"The output has only {len(text)} characters.")
    end = call.offset + most
    shown = text[call.offset : end]
    if end >= len(text):
        return shown
    return (
        f"{shown}\n[These are the characters {call.offset} to {end} of {len(text)}. "
        f"Continue with offset {end}.]"
    )


def page_chars(window: int, shown: int = limits.TOOL_OUTPUT_CHARS) -> int:
    """Returns the size of a page in characters: a small part of the model's window.

    A page is no longer than the `shown` characters with which an output begins.
    """
    return min(shown - _MARK_CHARS, window // 2)


# --- ask_person -----------------------------------------------------------------------------------


class AskCall(Model):
    """The arguments of `ask_person` as the model writes them."""

    question: str = Field(
        description="One question that can be answered without your conversation: "
        "what you need to know, and why."
    )
    choices: list[str] = Field(
        default=[], description="The possible answers, if there are only a few."
    )


def ask_tool() -> dict[str, Any]:
    """Returns the definition of `ask_person` for the model."""
    description = (
        "Asks a person and returns the reply. It may take days. "
        "Ask only for what your subtask needs and no other tool can tell: "
        "a choice that is not yours, a fact that only people know."
    )
    return {"name": ASK_TOOL, "description": description, "input_schema": _schema(AskCall)}


def read_question(arguments: object) -> AskCall | None:
    """Returns the question in a call of `ask_person`; None if there is none."""
    try:
        call = read_form(AskCall, arguments)
    except ValidationError:
        return None
    if not call.question.strip():
        return None
    choices = [choice for choice in call.choices if choice.strip()]
    return call.model_copy(update={"choices": choices})
