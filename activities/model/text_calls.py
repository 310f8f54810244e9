"""Tool calls that a model wrote as text, turned into blocks before the reply is stored.

This happens only if no call came as a block. Such a call has the rights of any call, or fewer: the
dispatcher refuses it if its tool has effects, because texts quote others' words.
`temporal_supervisor.supervision.replies` has the rules.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from activities.model.port import ModelMessage, ModelRequest
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import ASK_TOOL, FINISH_TOOL, QUERY_WANTED
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.replies.rules import SQL_RULE
from temporal_supervisor.supervision.replies.thinking import without_thinking
from temporal_supervisor.supervision.replies.written_calls import (
    Call,
    MadeCall,
    WrittenCall,
    first_call,
    goes_on_after,
    tool_named,
)

_ID = "written_"  # how the ids of such calls begin
PROGRAM_ID = "program_"  # how those of calls begin that the program made for the model
# Of a whole reply; one that was cut may hold half a call.
_WHOLE = ("end_turn", "stop_sequence", "tool_use", "stop")
_MAY_BEGIN = "{[<`("
_MAY_END = "})>`]"
# In a row: small models that have begun with them go on to the longest reply, for minutes.
_MOST_BLANKS = 1_000


def is_written(call_id: str) -> bool:
    """True if the call with that id was written as text."""
    return call_id.startswith(_ID)


def with_text_calls(message: ModelMessage, request: ModelRequest) -> ModelMessage:
    """Returns the message with the first call in its text as a block, if it has no other call.

    The text after the call is left out: the model made it up, because it had not seen the call's
    output. Misspelled names of offered tools are corrected.
    """
    if message.tool_uses():
        return _with_known_names(message, request)
    if message.stop_reason not in _WHOLE:
        return message
    text = message.text()
    written = _first_call(text, request)
    if written is None:
        return message
    call, before = written.call, written.before
    if call.name == ASK_TOOL and (before or goes_on_after(text, written)):
        return message  # a question to a person that stands among words may be a quotation
    if call.name != FINISH_TOOL:  # beside that it may be the finding
        before = cut(before, limits.PARAGRAPH_BYTES)  # models copy what they wrote before
    others = [block for block in message.content if block.get("type") != "text"]
    said = [{"type": "text", "text": before}] if before else []
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    use = {"type": "tool_use", "id": f"{_ID}{len(request.messages)}_{digest}", "name": call.name}
    content = [*others, *said, {**use, "input": call.arguments}]
    return message.model_copy(update={"content": content, "stop_reason": "tool_use"})


def is_made_by_program(call_id: str) -> bool:
    """True if the program made the call with that id in the model's place."""
    return call_id.startswith(PROGRAM_ID)


class TextWatch:
    """Watches the text of a streamed reply for a place after which the rest is worthless.

    That is the end of a call after which the model continues, or blanks without end. A text is
    parsed only if it has characters with which a call may begin and end.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._text = ""
        self._begun = False
        self._found = False
        self._blanks = 0
        self._has_native_call = False
        self._is_on = bool(request.tools) and not request.concludes

    def has_ended(self, event: Any) -> bool:
        """Reads an event of the stream.

        Returns True if the text has continued after a complete call, or with blanks alone.
        """
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            self._has_native_call = True
        piece = getattr(event.delta, "text", None) if event.type == "content_block_delta" else None
        if not piece or self._has_native_call:
            return False

        words = piece.rstrip()
        self._blanks = len(piece) - len(words) + (0 if words else self._blanks)
        if self._blanks > _MOST_BLANKS:
            return True
        if not self._is_on:
            return False

        self._text += piece
        self._begun = self._begun or any(sign in piece for sign in _MAY_BEGIN)
        if not self._begun or not (self._found or any(sign in piece for sign in _MAY_END)):
            return False
        text = without_thinking(self._text)
        written = _first_call(text, self._request)
        # A block of SQL may stand before the call that it is for.
        self._found = written is not None and written.rule != SQL_RULE
        return self._found and written is not None and goes_on_after(text, written)


def _first_call(text: str, request: ModelRequest) -> WrittenCall | None:
    offered = _offered(request)
    if not offered:
        return None

    made = _made_calls(request.messages)
    asked_for_sql = _is_asked_for_sql(request.messages)
    return first_call(text, offered, made, asked_for_sql=asked_for_sql)


def _is_asked_for_sql(messages: Sequence[JsonObject]) -> bool:
    """True if the last message asks for a query."""
    blocks = messages[-1]["content"] if messages else []
    return any(QUERY_WANTED in block.get("text", "") for block in blocks)


def _offered(request: ModelRequest) -> dict[str, JsonObject]:
    """Returns the schemas of the tools that the model may call, except the provider's."""
    if request.concludes:
        return {}
    own = [tool for tool in request.tools if "input_schema" in tool]
    return {str(tool["name"]): tool["input_schema"] for tool in own}


def _made_calls(messages: Sequence[JsonObject]) -> list[MadeCall]:
    """Returns the calls of a conversation, each with its outcome."""
    blocks = [block for message in messages for block in message["content"]]
    results = [block for block in blocks if block["type"] == "tool_result"]
    succeeded = {block["tool_use_id"]: not block.get("is_error") for block in results}
    made: list[MadeCall] = []
    for block in blocks:
        if block["type"] == "tool_use" and isinstance(block.get("input"), dict):
            call = Call(str(block["name"]), block["input"])
            made.append(MadeCall(call, succeeded.get(block["id"])))
    return made


def _with_known_names(message: ModelMessage, request: ModelRequest) -> ModelMessage:
    """Returns the message with the real names of offered tools where its calls misspell them."""
    offered = _offered(request)
    content = [_renamed(block, offered) for block in message.content]
    if content == message.content:
        return message
    return message.model_copy(update={"content": content})


def _renamed(block: JsonObject, offered: dict[str, JsonObject]) -> JsonObject:
    if block.get("type") != "tool_use":
        return block
    name = tool_named(str(block.get("name")), offered)
    return {**block, "name": name} if name else block
