"""One request of the Messages API, reduced to the parts that brains look at.

Requests that the real API refuses with 400 are refused.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from temporal_supervisor.supervision.base.json_object import JsonObject


@dataclass(frozen=True)
class PastCall:
    """A tool call of an earlier turn with its result."""

    name: str
    arguments: JsonObject
    output: str = ""
    is_error: bool = False


@dataclass(frozen=True)
class ApiRequest:
    """A valid request. `schema` is the JSON schema the reply must fit.

    `provided` are the tools that the server itself runs. `number` counts requests, `call` is the
    decoded call header.
    """

    model: str
    system: str
    messages: list[JsonObject]
    tools: list[JsonObject] = field(default_factory=list)
    provided: list[str] = field(default_factory=list)
    schema: JsonObject | None = None
    number: int = 0
    call: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: JsonObject = field(default_factory=dict, repr=False)

    @property
    def user_text(self) -> str:
        """Returns all text that the model was given, tool results left out."""
        given = [message for message in self.messages if message["role"] != "assistant"]
        return "\n".join(_text(message["content"]) for message in given)

    @property
    def last_text(self) -> str:
        """Returns the last message's text beside tool results."""
        return _text(self.messages[-1]["content"])

    @property
    def prompt(self) -> str:
        """Returns system text and user text."""
        return f"{self.system}\n{self.user_text}"

    @property
    def turns(self) -> int:
        """Returns the number of earlier turns that called tools."""
        return sum(bool(_blocks(message, "tool_use")) for message in self.messages)

    @cached_property
    def calls(self) -> list[PastCall]:
        """Returns the tool calls so far, oldest first.

        The result of one that the server ran is the text with citations.
        """
        results: dict[str, JsonObject] = {}
        for message in self.messages:
            for block in _blocks(message, "tool_result"):
                results[block["tool_use_id"]] = block

        made: list[PastCall] = []
        for message in self.messages:
            cited = [block for block in message["content"] if block.get("citations")]
            for block in _blocks(message, "server_tool_use", "tool_use"):
                if block["type"] == "server_tool_use":
                    made.append(PastCall(block["name"], block["input"], _text(cited)))
                elif block["id"] in results:
                    made.append(_past_call(block, results[block["id"]]))
        return made


def _past_call(block: JsonObject, result: JsonObject) -> PastCall:
    """Returns a call with its result."""
    output = _text(result.get("content", ""))
    is_error = bool(result.get("is_error"))
    return PastCall(block["name"], block.get("input") or {}, output, is_error)


def _blocks(message: JsonObject, *types: str) -> list[JsonObject]:
    """Returns the blocks of a message that are of these types."""
    return [block for block in message["content"] if block.get("type") in types]


def parse(body: Any) -> ApiRequest:
    """Returns the request in `body`.

    Raises ValueError for a call without its result, as the real API refuses it.
    """
    messages: list[JsonObject] = []
    for said in body["messages"]:
        messages.append({"role": said["role"], "content": blocks_of(said["content"])})
    _check_pairs(messages)
    may_call = (body.get("tool_choice") or {}).get("type") != "none"
    offered = (body.get("tools") or []) if may_call else []
    tools = [tool for tool in offered if "input_schema" in tool]
    provided = [tool["name"] for tool in offered if "input_schema" not in tool]
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    system = _text(body.get("system") or "")
    return ApiRequest(body["model"], system, messages, tools, provided, schema, body=body)


def _check_pairs(messages: list[JsonObject]) -> None:
    """Raises ValueError if a call of the model has no result in the message after it."""
    for at, (message, following) in enumerate(pairwise(messages)):
        if message["role"] != "assistant":
            continue
        called = {block["id"] for block in _blocks(message, "tool_use")}
        given = {block.get("tool_use_id") for block in _blocks(following, "tool_result")}
        missing = ", ".join(sorted(called - given))
        if missing:
            problem = "`tool_use` ids were found without `tool_result` blocks immediately after"
            raise ValueError(f"messages.{at}: {problem}: {missing}")


def blocks_of(content: Any) -> list[JsonObject]:
    """Returns content as blocks, be it a plain text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: object) -> str:
    if not isinstance(content, str | list):
        return ""
    texts: list[str] = []
    for block in blocks_of(content):
        if isinstance(block, dict) and block.get("type") == "text":
            texts.append(block.get("text", ""))
    return "\n".join(texts)
