"""One request of the Messages API, reduced to what brains look at; what the real API refuses with 400 is refused."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

Json = dict[str, Any]


class BadRequest(Exception):
    """A request that the real API would refuse with 400."""


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
    max_tokens: int
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
        """Returns how many earlier turns called tools."""
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


class _Message(BaseModel):
    role: Literal["user", "assistant"]
    content: Annotated[
        list[Json], BeforeValidator(lambda it: [{"type": "text", "text": it}] if isinstance(it, str) else it)
    ]


class _Body(BaseModel):
    model: str = Field(min_length=1)
    messages: list[_Message] = Field(min_length=1)
    max_tokens: int = Field(ge=0)


def parse(body: Any) -> ApiRequest:
    """Returns the request in `body`. Raises BadRequest if the real API would refuse it."""
    try:
        checked = _Body.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequest(f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from error
    messages = [message.model_dump() for message in checked.messages]
    if problem := _pairs(messages):
        raise BadRequest(problem)
    may_call = (body.get("tool_choice") or {}).get("type") != "none"
    offered = (body.get("tools") or []) if may_call else []
    tools = [tool for tool in offered if "input_schema" in tool]
    provided = [tool["name"] for tool in offered if "input_schema" not in tool]
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    system = _text(body.get("system") or "")
    return ApiRequest(checked.model, system, messages, checked.max_tokens, tools, provided, schema, body=body)


def _pairs(messages: list[Json]) -> str | None:
    for at, message in enumerate(messages[:-1]):
        called = {b["id"] for b in message["content"] if message["role"] == "assistant" and b.get("type") == "tool_use"}
        given = {b.get("tool_use_id") for b in messages[at + 1]["content"] if b.get("type") == "tool_result"}
        if missing := ", ".join(sorted(called - given)):
            return f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
    return None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(b.get("text", "") for b in content if isinstance(b, dict) and b.get("type") == "text")
