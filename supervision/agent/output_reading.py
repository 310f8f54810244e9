"""The tool `read_output`: what it takes, the texts that refer to it, and the pages that it shows.

An output is named by the call that brought it: `3-1` is the first tool call of a conversation's third reply.
"""

import re
from functools import cache
from typing import Annotated, Any

from pydantic import Field, ValidationError

from supervision.base import limits
from supervision.base.prompt_marks import READ_OUTPUT_TOOL
from supervision.contract.base import Model

_MARK_CHARS = 150  # the last line of a shortened output, with the largest numbers
_NAME = re.compile(r"[1-9]\d{0,5}-[1-9]\d{0,5}")


class ReadOutputCall(Model):
    """The arguments of `read_output` as the model writes them."""

    output: Annotated[
        str,
        Field(description='The name that the last line of a shortened output gives, such as "3-1", or a subtask_id.'),
    ]
    offset: Annotated[int, Field(ge=0, description="The number of the character to start at. 0 is the beginning.")] = 0

    @property
    def place(self) -> tuple[int, int] | None:
        """The number of the reply and that of its tool call, both from 1; None if this names no output."""
        if not _NAME.fullmatch(self.output):
            return None
        reply, _, call = self.output.partition("-")
        return int(reply), int(call)


def read_output_tool() -> dict[str, Any]:
    """Returns the definition of `read_output` for the model."""
    description = (
        "Shows more of a tool output whose last line says that it was cut, or the whole text of a finding in your "
        "brief that is shown as a summary."
    )
    return {"name": READ_OUTPUT_TOOL, "description": description, "input_schema": _schema()}


@cache
def _schema() -> dict[str, Any]:
    return {**ReadOutputCall.model_json_schema(), "additionalProperties": False}


def read_call(arguments: object) -> ReadOutputCall:
    """Returns the arguments of a call. Raises ValueError with words for the model."""
    try:
        return ReadOutputCall.model_validate(arguments)
    except ValidationError:
        raise ValueError(
            'The arguments are wrong: output is a name such as "3-1" or a subtask_id, offset a number of characters.'
        ) from None


def output_name(reply: int, call: int) -> str:
    """Returns the name of an output: by the number of the reply that asked for it and that of the call, from 1."""
    return f"{reply}-{call}"


def beginning(text: str, name: str, limit: int) -> str:
    """Returns an output in at most `limit` characters; one that was cut says how the rest is read."""
    if len(text) <= limit:
        return text
    end = limit - _MARK_CHARS
    return (
        f'{text[:end]}\n[cut: {end} of {len(text)} characters are shown. {READ_OUTPUT_TOOL} with output "{name}" '
        f"and offset {end} shows more.]"
    )


def page(text: str, call: ReadOutputCall, most: int) -> str:
    """Returns the page of an output that a call asks for. Raises ValueError with words for the model."""
    if call.offset and call.offset >= len(text):
        raise ValueError(f"The output has only {len(text)} characters.")
    end = call.offset + most
    shown = text[call.offset : end]
    if end >= len(text):
        return shown
    return f"{shown}\n[These are the characters {call.offset} to {end} of {len(text)}. Continue with offset {end}.]"


def page_chars(window: int) -> int:
    """Returns how many characters a page has for a model with that window, in tokens: a small part of it."""
    return min(limits.TOOL_OUTPUT_CHARS - _MARK_CHARS, window // 2)
