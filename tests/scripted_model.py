"""A model that answers by a script for each run, over real HTTP, and remembers its calls.

A script is a function of a `Step` (which call of which run this is) that returns a `Reply`; replies are made by
`text`, `as_json`, `tools`, `message`, `status`, `stop`, `hang` and `when`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporal_supervisor.standin.server.api_reply import ApiReply, ErrorReply, text_block
from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.standin.server.app import BrainServer, Entry, serving
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig
from temporal_supervisor.supervision.base.json_object import JsonObject

Reply = Callable[[], Awaitable[ApiReply]]


@dataclass(frozen=True)
class Step:
    """One model call: `kind` is plan, turn or synthesis, `number` the last part of its step."""

    run_id: str
    subtask_id: str | None
    attempt: int
    kind: str
    number: int
    call: str
    body: JsonObject = field(repr=False)
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
    """A call as the server saw it; `answered_at` is None while it is open or if it was not answered."""

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
        self._open: dict[int, Call] = {}

    def play(self, run_id: str, script: Script) -> None:
        """Sets the script that answers the calls of a run, or with "*" of those that have none."""
        self._scripts[run_id] = script

    def of(self, run_id: str) -> list[Call]:
        """Returns the calls of a run."""
        return [call for call in self.calls if call.step.run_id == run_id]

    def steps(self, run_id: str) -> list[str]:
        """Returns the calls of a run, without its id."""
        return [call.step.call.removeprefix(f"{run_id}/") for call in self.of(run_id)]

    async def think(self, request: ApiRequest) -> ApiReply:
        """The brain: the reply of the run's script."""
        call = self._open[request.number] = Call(step_of(request.call, request.body, request.headers), time.time())
        return await self.reply_to(call)

    async def reply_to(self, call: Call) -> ApiReply:
        """Adds a call to the list and returns the reply of its run's script."""
        self.calls.append(call)
        script = self._scripts.get(call.step.run_id) or self._scripts["*"]
        return await script(call.step)()

    def hear(self, entry: Entry) -> None:
        """Takes the end of a call from the server's call log; an error reply is an answer, too."""
        if entry["event"] != "received" and (call := self._open.pop(entry["n"], None)):
            if entry["event"] == "aborted":
                call.aborted_at = entry["at"]
            else:
                call.answered_at = entry["at"]


@asynccontextmanager
async def scripted_model() -> AsyncIterator[ScriptedModel]:
    """Gives a ScriptedModel that serves."""
    model = ScriptedModel()
    script = FaultScript(ServerConfig(delta_chars=1 << 20))
    async with serving(BrainServer(model.think, model.hear, script)) as model.url:
        yield model


def step_of(call: str, body: JsonObject, headers: dict[str, str]) -> Step:
    """Returns the step that a call header names."""
    workflow_id, _, step = call.rpartition("/")
    run_id, *rest = workflow_id.split("/")
    if run_id.startswith("eval-") and rest:  # the runs of an eval are <eval>/<question>
        run_id, rest = f"{run_id}/{rest[0]}", rest[1:]
    kind, *numbers = step.split(".")
    return Step(
        run_id=run_id,
        subtask_id=rest[0] if rest else None,
        attempt=int(rest[1].split(".")[0]) if len(rest) > 1 else 1,
        kind=kind,
        number=int(numbers[-1]),
        call=call,
        body=body,
        headers=headers,
    )


def text(words: str, **more: Any) -> Reply:
    """A final message of that text."""
    return message([text_block(words)], **more)


def as_json(value: Any) -> Reply:
    """A final message of that value as JSON."""
    return text(json.dumps(value))


def tools(*uses: tuple[str, JsonObject]) -> Reply:
    """A message that asks for tool calls."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{i}_{name}", "name": name, "input": arguments}
        for i, (name, arguments) in enumerate(uses)
    ]
    return message(blocks, "tool_use")


def stop(reason: str, words: str = "", details: JsonObject | None = None) -> Reply:
    """A message that ends for another reason."""
    return message([text_block(words)] if words else [], reason, details)


def message(
    blocks: list[JsonObject], stop_reason: str = "end_turn", details: JsonObject | None = None, tokens: int = 10
) -> Reply:
    """A message of those blocks."""

    async def reply() -> ApiReply:
        return ApiReply(blocks, stop_reason, details, {"input_tokens": tokens, "output_tokens": tokens})

    return reply


def status(code: int, error_type: str, message: str = "no", **headers: str) -> Reply:
    """An error response."""

    async def reply() -> ApiReply:
        raise ErrorReply(code, message, error_type, {name.replace("_", "-"): value for name, value in headers.items()})

    return reply


def hang() -> Reply:
    """Never answers."""
    return when(asyncio.Event(), text(""))


def when(event: asyncio.Event, then: Reply) -> Reply:
    """Answers once `event` is set."""

    async def reply() -> ApiReply:
        await event.wait()
        return await then()

    return reply


def plan(*subtasks: JsonObject, answer: str | None = None) -> Reply:
    """A plan; subtasks are given by id, after and what differs from the defaults."""
    full = [
        {
            "id": item["id"],
            "description": item.get("description", f"Find out about part {item['id']} of garden 1"),
            "role": item.get("role", "finder"),
            "depends_on": item.get("after", []),
            "importance": item.get("importance", "required"),
            "attachments": item.get("attachments", []),
        }
        for item in subtasks
    ]
    return as_json({"direct_answer": answer, "subtasks": full, "final_instruction": ""})


def answer(words: str = "the answer", cites: list[str] | None = None, **more: Any) -> Reply:
    """A synthesis; `cites` adds a statement with a mark for each of these subtasks."""
    marked = "".join(f" About {subtask_id} [{subtask_id}]." for subtask_id in cites or [])
    return as_json({"answer": words + marked, "confidence": 0.9, "contradictions": [], **more})


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
