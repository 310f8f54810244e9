"""A model server that costs next to nothing and answers after a fixed time: what the bench measures against.

`python -m benchmarks.model_server --port 7480`. It knows only what the project sends (streamed Messages requests;
plan and answer as structured outputs) and does what markers in the texts say:

    goal      [[bench n=10 t=2 run=r1 tool=lookup]]    n worker agents, t tool turns each, the tool they call;
              roles=5: the plan defines five roles for them
    subtask   [[task i=3 n=10 t=2 run=r1 tool=...]]    written into the plan's descriptions
    finding   [[done i=3 n=10 run=r1]]                 written into the worker agents' last messages

POST /config {"latency_ms": 200}, POST /reset, GET /stats, GET /healthz.
"""

import argparse
import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Fields = dict[str, str]

_MARKER = re.compile(r"\[\[(bench|task|done)\s+([^\[\]]*)\]\]")
_BODY_BYTES = 64 << 20


class ModelServer:
    """The script and its statistics."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._ids = count(1)
        self._forget()

    def app(self) -> web.Application:
        """The HTTP application."""
        app = web.Application(client_max_size=_BODY_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/config", self._configure)
        app.router.add_post("/reset", self._reset)
        app.router.add_get("/stats", self._stats)
        app.router.add_get("/healthz", self._healthy)
        return app

    def _forget(self) -> None:
        self._first: dict[str, float] = {}
        self._answered: Counter[str] = Counter()
        self._in_flight = self._most_in_flight = 0

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        began = time.time()
        body = await request.json()
        key, run, blocks = script(body)
        self._first.setdefault(run, began)
        self._in_flight += 1
        self._most_in_flight = max(self._most_in_flight, self._in_flight)
        try:
            await asyncio.sleep(self._latency)
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            number = next(self._ids)
            await response.write("".join(stream(body, number, blocks)).encode())
            await response.write_eof()
        finally:
            self._in_flight -= 1
        self._answered[key] += 1
        return response

    async def _configure(self, request: web.Request) -> web.Response:
        self._latency = float((await request.json())["latency_ms"]) / 1000
        return web.json_response({})

    async def _reset(self, request: web.Request) -> web.Response:
        self._forget()
        return web.json_response({})

    async def _stats(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "total_completed": self._answered.total(),
                "repeated_completed": sum(times - 1 for times in self._answered.values()),
                "in_flight_max": self._most_in_flight,
                "runs": {run: {"first": first} for run, first in self._first.items()},
            }
        )

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")


def script(body: Json) -> tuple[str, str, list[Json]]:
    """What to answer: the call's own key, the run, the content blocks (a tool_use without its id)."""
    schema = body.get("output_config", {}).get("format", {}).get("schema", {})
    text = all_text(body)
    bench = next(markers(text, "bench"))
    run = bench["run"]
    if "subtasks" in schema.get("properties", {}):
        return f"{run}/plan", run, [_text(json.dumps(_plan(schema, bench)))]
    if schema:
        return f"{run}/synthesis", run, [_text(json.dumps(_filled(schema, {"answer": _answer(text, bench)})))]
    task = next(markers(text, "task"))
    turn = sum(1 for message in body["messages"] if message["role"] == "assistant")
    key = f"{run}/{task['i']}/{turn}"
    if turn < int(task["t"]):
        query = f"q{task['i']}.{turn}"
        return key, run, [{"type": "tool_use", "name": task.get("tool", "lookup"), "input": {"query": query}}]
    return key, run, [_text(f"Answer of part {task['i']}. [[done i={task['i']} n={task['n']} run={run}]]")]


def markers(text: str, kind: str) -> Iterator[Fields]:
    """The fields of all markers of that kind, in order."""
    for found, fields in _MARKER.findall(text):
        if found == kind:
            yield dict(field.split("=", 1) for field in fields.split())


def all_text(value: object) -> str:
    """All texts of a request: system, text blocks, tool results."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(all_text, value))
    if isinstance(value, dict):
        return "\n".join(all_text(value[key]) for key in ("system", "messages", "text", "content") if key in value)
    return ""


def _plan(schema: Json, bench: Fields) -> Json:
    item = _resolved(schema["properties"]["subtasks"]["items"], schema)
    fields = " ".join(f"{key}={value}" for key, value in bench.items())
    new_roles = [_new_role(number, bench.get("tool", "lookup")) for number in range(int(bench.get("roles", 0)))]
    subtasks = []
    for i in range(1, int(bench["n"]) + 1):
        known = {"id": f"t{i}", "description": f"Do part {i} of the job. [[task i={i} {fields}]]"}
        if new_roles:
            known["new_role"] = new_roles[i % len(new_roles)]["name"]
        subtasks.append(_filled(item, known, schema))
    return _filled(schema, {"subtasks": subtasks, "new_roles": new_roles})


def _new_role(number: int, tool: str) -> Json:
    words = {"description": "Looks things up.", "system_prompt": "You look things up and report what you found."}
    return {"name": f"own-{number}", **words, "tools": [tool]}


def _answer(text: str, bench: Fields) -> str:
    done = {fields["i"] for fields in markers(text, "done")}
    return f"Synthesis of {len(done)}/{bench['n']}: " + " ".join(f"part{i}" for i in sorted(done, key=int))


def _filled(schema: Json, known: Json, root: Json | None = None) -> Json:
    """`known` and the least that the schema wants besides."""
    root = root or schema
    return {name: known.get(name, _least(part, root)) for name, part in schema["properties"].items()}


def _least(schema: Json, root: Json) -> Any:
    schema = _resolved(schema, root)
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return choices[0]
    if any(option.get("type") == "null" for option in schema.get("anyOf", [])):
        return None
    least = {"array": [], "boolean": False, "integer": 1, "number": 1.0, "string": "-", "null": None}
    return _filled(schema, {}, root) if schema.get("type") == "object" else least.get(schema.get("type", "null"))


def _resolved(schema: Json, root: Json) -> Json:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def stream(body: Json, number: int, blocks: list[Json]) -> Iterator[str]:
    """The answer as server-sent events."""
    usage = {"input_tokens": 100, "output_tokens": 50}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "id": f"toolu_{number}_{index}", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=empty)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
    yield _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _event(type: str, **data: Any) -> str:
    return f"event: {type}\ndata: {json.dumps({'type': type, **data})}\n\n"


def main() -> None:
    """Serves on loopback until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, default=200)
    options = parser.parse_args()
    server = ModelServer(options.latency_ms / 1000)
    web.run_app(server.app(), host="127.0.0.1", port=options.port, access_log=None)


if __name__ == "__main__":
    main()
