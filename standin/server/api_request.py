"""One request of the Messages API, reduced to what brains look at."""

from dataclasses import dataclass, field
from typing import Any

from standin.server.api_rules import choice, refusal

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
    """A valid request. `schema` is the JSON schema the reply must fit, `submit` the tool that takes it, if any.

    `number` counts requests, `call` is the decoded call header, `body` the whole of it.
    """

    model: str
    system: str
    messages: list[Json]
    max_tokens: int
    tools: list[Json] = field(default_factory=list)
    schema: Json | None = None
    submit: str | None = None
    stream: bool = False
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

    def calls(self) -> list[PastCall]:
        """Returns the tool calls so far, oldest first."""
        results = {
            block["tool_use_id"]: block
            for message in self.messages
            for block in message["content"]
            if block.get("type") == "tool_result"
        }
        return [
            PastCall(
                block["name"], block.get("input") or {}, _text(result.get("content", "")), bool(result.get("is_error"))
            )
            for message in self.messages
            for block in message["content"]
            if block.get("type") == "tool_use" and (result := results.get(block["id"])) is not None
        ]


def parse(body: object) -> ApiRequest:
    """Returns the request in `body`. Raises BadRequest if the real API would refuse it."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise BadRequest("model: Field required")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: at least one message is required")
    max_tokens = body.get("max_tokens")
    if not isinstance(max_tokens, int) or max_tokens < 0:
        raise BadRequest("max_tokens: Field required")
    turns = [_message(message, at) for at, message in enumerate(messages)]
    if problem := refusal(model, body, turns):
        raise BadRequest(problem)
    tools = [] if choice(body) == "none" else [tool for tool in body.get("tools") or [] if "input_schema" in tool]
    schema, submit = _wanted_schema(body, tools)
    return ApiRequest(
        model=model,
        system=_text(body.get("system") or ""),
        messages=turns,
        max_tokens=max_tokens,
        tools=[] if submit else tools,
        schema=schema,
        submit=submit,
        stream=bool(body.get("stream")),
        body=body,
    )


def _wanted_schema(body: Json, tools: list[Json]) -> tuple[Json | None, str | None]:
    if schema := ((body.get("output_config") or {}).get("format") or {}).get("schema"):
        return schema, None
    forced = (body.get("tool_choice") or {}).get("name")
    for tool in tools:
        if tool["name"] == forced or (tools == [tool] and tool["name"].startswith("submit")):
            return tool["input_schema"], tool["name"]
    return None, None


def _message(message: object, at: int) -> Json:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
        raise BadRequest(f"messages.{at}: a role and content are required")
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise BadRequest(f"messages.{at}.content: a string or a list of blocks is required")
    return {"role": message["role"], "content": blocks}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(b.get("text", "") for b in content if isinstance(b, dict) and b.get("type") == "text")
