"""A model that answers by a script for each run, over real HTTP, and remembers what it was asked.

A script is a function of a `Step` (which call of which run this is) that returns a `Reply`; replies are made by
`text`, `as_json`, `tools`, `status`, `stop`, `hang` and `later`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.activity.model.http_fixture import Exchange, Json, model_server

Reply = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """One model call: `kind` is plan, turn or synthesis, `number` the last part of its step."""

    run_id: str
    subtask_id: str | None
    attempt: int
    kind: str
    number: int
    call: str
    body: Json = field(repr=False)
    headers: dict[str, str] = field(repr=False)

    @property
    def prompt(self) -> str:
        """All text of the last message."""
        content = self.body["messages"][-1]["content"]
        return (
            content if isinstance(content, str) else "\n".join(str(b.get("text") or b.get("content")) for b in content)
        )


Script = Callable[[Step], Reply]


@dataclass
class Call:
    """A call as the server saw it; `answered_at` is None while it is open or when it was not answered."""

    step: Step
    at: float
    answered_at: float | None = None
    aborted_at: float | None = None


class ScriptedModel:
    """The scripts of the runs, and all calls in the order they came."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[Call] = []
        self._scripts: dict[str, Script] = {}

    def play(self, run_id: str, script: Script) -> None:
        """The script that answers the calls of a run."""
        self._scripts[run_id] = script

    def of(self, run_id: str) -> list[Call]:
        """The calls of a run."""
        return [call for call in self.calls if call.step.run_id == run_id]

    def steps(self, run_id: str) -> list[str]:
        """The calls of a run, without its id."""
        return [call.step.call.removeprefix(f"{run_id}/") for call in self.of(run_id)]

    async def reply(self, exchange: Exchange) -> None:
        step = _step(exchange)
        call = Call(step, time.time())
        self.calls.append(call)
        answer = asyncio.ensure_future(self._scripts[step.run_id](step)(exchange))
        gone = asyncio.ensure_future(_client_gone(exchange))
        try:
            await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                answer.result()
                call.answered_at = time.time()
            else:
                call.aborted_at = time.time()
                exchange.writer.close()
        finally:
            answer.cancel()
            gone.cancel()


@asynccontextmanager
async def scripted_model() -> AsyncIterator[ScriptedModel]:
    """A ScriptedModel that serves."""
    model = ScriptedModel()
    async with model_server(model.reply) as served:
        model.url = served.url
        yield model


async def _client_gone(exchange: Exchange) -> None:
    """Looks, and does not read: the bytes of the connection's next request are not ours."""
    while not exchange.reader.at_eof():
        await asyncio.sleep(0.02)


def _step(exchange: Exchange) -> Step:
    call = unquote(exchange.headers["x-supervisor-call"])
    workflow_id, _, step = call.rpartition("/")
    run_id, *rest = workflow_id.split("/")
    kind, *numbers = step.split(".")
    return Step(
        run_id=run_id,
        subtask_id=rest[0] if rest else None,
        attempt=int(rest[1].split(".")[0]) if len(rest) > 1 else 1,
        kind=kind,
        number=int(numbers[-1]),
        call=call,
        body=exchange.body,
        headers=exchange.headers,
    )


def text(words: str, **more: Any) -> Reply:
    """A final message of that text."""
    return message([{"type": "text", "text": words}], **more)


def as_json(value: Any) -> Reply:
    """A final message of that value as JSON."""
    return text(json.dumps(value))


def tools(*uses: tuple[str, Json]) -> Reply:
    """A message that asks for tool calls."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{i}_{name}", "name": name, "input": arguments}
        for i, (name, arguments) in enumerate(uses)
    ]
    return message(blocks, "tool_use")


def stop(reason: str, words: str = "", details: Json | None = None) -> Reply:
    """A message that ends for another reason."""
    return message([{"type": "text", "text": words}] if words else [], reason, details)


def message(blocks: list[Json], stop_reason: str = "end_turn", details: Json | None = None, tokens: int = 10) -> Reply:
    """A streamed message of those blocks."""

    async def reply(exchange: Exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        for event in _events(blocks, stop_reason, details, tokens, exchange.body.get("model", "")):
            await exchange.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await exchange.chunk(b"")

    return reply


def status(code: int, type: str, message: str = "no", **headers: str) -> Reply:
    """An error response."""

    async def reply(exchange: Exchange) -> None:
        body = json.dumps({"type": "error", "error": {"type": type, "message": message}}).encode()
        await exchange.head(code, Content_Type="application/json", Content_Length=str(len(body)), **headers)
        await exchange.send(body)

    return reply


def hang() -> Reply:
    """Never answers."""

    async def reply(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    return reply


def when(event: asyncio.Event, then: Reply) -> Reply:
    """Answers once `event` is set."""

    async def reply(exchange: Exchange) -> None:
        await event.wait()
        await then(exchange)

    return reply


def _events(blocks: list[Json], stop_reason: str, details: Json | None, tokens: int, model: str) -> list[Json]:
    head: Json = {
        "id": f"msg_{time.time_ns()}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 1},
    }
    events: list[Json] = [{"type": "message_start", "message": head}]
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            start, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        else:
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ended: Json = {"stop_reason": stop_reason, "stop_sequence": None}
    if details:
        ended["stop_details"] = details
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": tokens}})
    events.append({"type": "message_stop"})
    return events


def plan(*subtasks: Json, answer: str | None = None) -> Reply:
    """A plan; subtasks are given by id, after and what differs from the defaults."""
    full = [
        {
            "id": item["id"],
            "description": item.get("description", f"Find out about part {item['id']}"),
            "role": item.get("role", "finder"),
            "depends_on": item.get("after", []),
            "importance": item.get("importance", "required"),
            "attachments": item.get("attachments", []),
        }
        for item in subtasks
    ]
    return as_json({"direct_answer": answer, "subtasks": full, "final_instruction": ""})


def answer(words: str = "the answer", cites: list[str] | None = None, **more: Any) -> Reply:
    """A synthesis."""
    cited = [{"claim": f"about {id}", "subtask_ids": [id]} for id in cites or []]
    return as_json({"answer": words, "confidence": 0.9, "citations": cited, "contradictions": [], **more})


OTHERS: dict[str, Callable[[Step], Reply]] = {
    "review": lambda step: as_json({"verdicts": [], "conflicts": []}),
    "refine": lambda step: as_json({"description": f"Find it out in another way (attempt {step.number})"}),
    "judge": lambda step: as_json({"choice": 1, "reason": "it is better"}),
}
"""What is answered to calls that a script says nothing of."""


def script(
    plan_reply: Reply, turns: dict[str, Callable[[Step], Reply]] | None = None, answer_reply: Reply | None = None
) -> Script:
    """A run: its plan, the turns of subtasks by id (a plain finding by default), its answer."""

    def reply(step: Step) -> Reply:
        if step.kind == "plan":
            return plan_reply
        if step.kind in OTHERS:
            return OTHERS[step.kind](step)
        if step.kind == "synthesis":
            return answer_reply or answer()
        play = (turns or {}).get(step.subtask_id or "")
        return play(step) if play else text(f"finding of {step.subtask_id}\n\nConfidence: 0.8\nLimitations: none")

    return reply
