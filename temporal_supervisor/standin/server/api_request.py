"""One request of the Messages API, reduced to what brains look at; what the real API refuses with 400 is refused."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class PastCall:
    """A tool call of an earlier turn with its result."""

    name: str
    arguments: Json
    output: str = ""
    is_error: bool = False


@dataclass(frozen=True)
class ApiRequest:
    """A valid request. `schema` is the JSON schema the reply must fit.

    `provided` are the tools that the server itself runs. `number` counts requests, `call` is the decoded call header.
    """

    model: str
    system: str
    messages: list[Json]
    tools: list[Json] = field(default_factory=list)
    provided: list[str] = field(default_factory=list)
    schema: Json | None = None
    number: int = 0
    call: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: Json = field(default_factory=dict, repr=False)

    @property
    def user_text(self) -> str:
        """Returns all text that the model was given, tool results left out."""
        return "\n".join(_text(message["content"]) for message in self.messages if message["role"] != "assistant")

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
        return sum(any(b.get("type") == "tool_use" for b in m["content"]) for m in self.messages)

    @cached_property
    def calls(self) -> list[PastCall]:
        """Returns the tool calls so far, oldest first; of those that the server ran, what was cited."""
        every = [(message["content"], block) for message in self.messages for block in message["content"]]
        results = {block["tool_use_id"]: block for _, block in every if block.get("type") == "tool_result"}
        made = list[PastCall]()
        for beside, block in every:
            if block.get("type") == "server_tool_use":
                cited = _text([one for one in beside if one.get("citations")])
                made.append(PastCall(block["name"], block["input"], cited))
            elif block.get("type") == "tool_use" and (result := results.get(block["id"])) is not None:
                output, failed = _text(result.get("content", "")), bool(result.get("is_error"))
                made.append(PastCall(block["name"], block.get("input") or {}, output, failed))
        return made


def parse(body: Any) -> ApiRequest:
    """Returns the request in `body`. Raises ValueError for a call without its result, as the real API refuses it."""
    messages: list[Json] = [{"role": said["role"], "content": blocks_of(said["content"])} for said in body["messages"]]
    _check_pairs(messages)
    may_call = (body.get("tool_choice") or {}).get("type") != "none"
    offered = (body.get("tools") or []) if may_call else []
    tools = [tool for tool in offered if "input_schema" in tool]
    provided = [tool["name"] for tool in offered if "input_schema" not in tool]
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    system = _text(body.get("system") or "")
    return ApiRequest(body["model"], system, messages, tools, provided, schema, body=body)


def _check_pairs(messages: list[Json]) -> None:
    for at, message in enumerate(messages[:-1]):
        called = {b["id"] for b in message["content"] if message["role"] == "assistant" and b.get("type") == "tool_use"}
        given = {b.get("tool_use_id") for b in messages[at + 1]["content"] if b.get("type") == "tool_result"}
        if missing := ", ".join(sorted(called - given)):
            problem = "`tool_use` ids were found without `tool_result` blocks immediately after"
            raise ValueError(f"messages.{at}: {problem}: {missing}")


def blocks_of(content: Any) -> list[Json]:
    """Returns content as blocks, be it a plain text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: object) -> str:
    if not isinstance(content, str | list):
        return ""
    return "\n".join(b.get("text", "") for b in blocks_of(content) if isinstance(b, dict) and b.get("type") == "text")
