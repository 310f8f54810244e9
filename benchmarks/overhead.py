"""The cost of a supervisor beside one agent alone: calls, tokens and seconds of the same work.

The work is a number of looks at pages of five kilobytes. The project plans it, delegates it, has it
reviewed and writes an answer; the bare loop is one conversation with the same tool, without any
framework, that asks for one page after the other, or for all of them at once. Both talk to the same
model server, which counts tokens and prompt caching as the Messages API does and takes the same
time for each call.
"""

import argparse
import asyncio
import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import bench_brain
from benchmarks.scene import LONG, BenchModel, Row, System, scene
from benchmarks.team.bench.tools import Lookup, lookup_long
from temporal_supervisor.console.base.command import DONE, Access, perform
from temporal_supervisor.runtime.process import exit_now, write_stderr
from temporal_supervisor.standin.server.api_reply import ApiReply, text_reply, tool_block
from temporal_supervisor.standin.server.api_request import ApiRequest

_LATENCY = 0.5  # seconds for each call
_WIDE = "[[wide "  # in a goal of the loop that asks for all pages at once
_LOOP_SYSTEM = "You look things up and report what you found."
_LOOP_TOOL = {
    "name": LONG,
    "description": "Look something up at length.",
    "input_schema": Lookup.model_json_schema(),
}
_COLUMNS = ("work", "by", "calls", "tokens read", "of them cached", "tokens written", "seconds")


@dataclass(frozen=True)
class Cost:
    """What was paid for some work."""

    calls: int
    read: int
    cached: int
    written: int
    seconds: float

    def cells(self) -> list[str]:
        """The numbers as a table has them."""
        return [
            f"{self.calls}",
            f"{self.read:,}",
            f"{self.cached:,}",
            f"{self.written:,}",
            f"{self.seconds:.1f}",
        ]


def think(request: ApiRequest) -> ApiReply:
    """Returns the reply of the bench's model, whose tokens the server counts.

    A wide goal is answered in two calls.
    """
    if _WIDE not in request.prompt:
        return replace(bench_brain.think(request), usage={})
    if request.turns:
        return text_reply("All pages are read, and none has it.")
    count = int(request.prompt.partition(_WIDE)[2].partition("]")[0])
    calls = [tool_block(LONG, {"query": f"q{number}"}) for number in range(count)]
    return ApiReply(
        [{**call, "id": f"{call['id']}_{number}"} for number, call in enumerate(calls)], "tool_use"
    )


def cost_of(log: list[dict[str, Any]], seconds: float) -> Cost:
    """Returns the sum of all answered calls in the model server's log."""
    usages = [entry["usage"] for entry in log if entry["event"] == "answered"]
    cached = sum(usage.get("cache_read_input_tokens", 0) for usage in usages)
    fresh = sum(
        usage["input_tokens"] + usage.get("cache_creation_input_tokens", 0) for usage in usages
    )
    written = sum(usage["output_tokens"] for usage in usages)
    return Cost(len(usages), cached + fresh, cached, written, seconds)


async def bare_loop(url: str, goal: str) -> int:
    """Carries out a goal in one conversation, each turn cached. Returns the number of its calls."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": goal}]}]
    calls = 0
    while True:
        reply = await asyncio.to_thread(_post, url, messages)
        calls += 1
        uses = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not uses:
            return calls
        messages += [
            {"role": "assistant", "content": reply["content"]},
            {"role": "user", "content": await _read(uses)},
        ]


async def _read(uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the results of the tool calls of one turn, which run in parallel."""
    context: Any = None  # the bench's tool needs none
    outputs = await asyncio.gather(*(lookup_long(Lookup(**use["input"]), context) for use in uses))
    return [
        {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": [{"type": "text", "text": output.text}],
        }
        for use, output in zip(uses, outputs, strict=True)
    ]


def _post(url: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    last = messages[-1]["content"]
    marked = [*last[:-1], {**last[-1], "cache_control": {"type": "ephemeral"}}]
    body = {
        "model": "claude-haiku-5-5",
        "max_tokens": 4096,
        "system": _LOOP_SYSTEM,
        "tools": [_LOOP_TOOL],
        "messages": [*messages[:-1], {**messages[-1], "content": marked}],
    }
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


WORKS = (
    Row("one fact", 1, 1, _LATENCY, tool=LONG),
    Row("a plan of ten", 10, 2, _LATENCY, tool=LONG),
)


async def measured() -> Iterator[list[str]]:
    """Returns the rows of the table."""
    rows: list[list[str]] = []
    async with scene(think) as place:
        system = await place.project()
        await place.stack.enter_async_context(system.worker)
        place.model.prepare(0.0)
        await system.run(replace(WORKS[0], name="warm-up"), "warm")
        for work in WORKS:
            pages = work.agents * work.tool_turns
            one_by_one = f"[[task i=1 n=1 t={pages} run=loop tool={LONG}]]"
            rows.append(
                [
                    work.name,
                    "temporal-supervisor",
                    *(await _by_project(place.model, system, work)).cells(),
                ]
            )
            rows.append(
                [
                    work.name,
                    "bare loop, a page a turn",
                    *(await _by_loop(place.model, one_by_one)).cells(),
                ]
            )
            if pages > 1:
                at_once = await _by_loop(place.model, f"{_WIDE}{pages}]]")
                rows.append([work.name, "bare loop, all pages in one turn", *at_once.cells()])
            write_stderr(f"{work.name}: measured")
    return iter(rows)


async def _by_project(model: BenchModel, system: System, work: Row) -> Cost:
    model.prepare(work.latency)
    began = time.monotonic()
    await (await system.start(work, f"overhead-{work.agents}", max_reviews=3)).result()
    return await _counted(model, time.monotonic() - began)


async def _by_loop(model: BenchModel, goal: str) -> Cost:
    model.prepare(_LATENCY)
    began = time.monotonic()
    await bare_loop(model.url, goal)
    return await _counted(model, time.monotonic() - began)


async def _counted(model: BenchModel, seconds: float) -> Cost:
    await asyncio.sleep(
        _LATENCY
    )  # the server writes a call into its log after it has sent the reply
    return cost_of(model.log, seconds)


def table(rows: Iterator[list[str]]) -> str:
    """Returns the rows as Markdown."""
    lines = [list(_COLUMNS), ["---"] * len(_COLUMNS), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


async def _run() -> int:
    sys.stdout.write(table(await measured()))
    return DONE


def main() -> None:
    """Prints the table of docs/one-agent.md."""
    argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__).parse_args()
    exit_now(perform(Access(), _run))


if __name__ == "__main__":
    main()
