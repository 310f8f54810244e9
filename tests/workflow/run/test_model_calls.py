"""Model calls of whole runs: what the provider's cache is asked for, long silence, and what failed attempts cost."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client

from runtime.settings import Settings
from standin.server.api_reply import ApiReply, text_block, tool_block
from standin.server.app import BrainServer
from standin.server.call_log import CallLog
from standin.server.faults import FaultScript, parse_config
from standin.server.serving import serving as served
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, text
from tests.serving import own_server, settings_for
from tests.workflow.runs import run
from worker_main import serving

Json = dict[str, Any]
PROMPT = "Count every pear of the garden twice, and say where you stood. " * 130  # 2,000 tokens
TEAM: Json = {
    "name": "counters",
    "generalist": "counter",
    "roles": [{"name": "counter", "description": "Counts.", "system_prompt": PROMPT, "tools": ["lookup"]}],
}


class Billed(ScriptedModel):
    """A scripted model whose calls are billed by the stand-in's cache, and whose calls may meet faults."""

    def __init__(self) -> None:
        super().__init__()
        self.log = CallLog(listener=self.hear)
        self.faults = FaultScript()

    def fault(self, **rule: Any) -> None:
        """Sets the one fault that calls meet."""
        self.faults.replace(parse_config(json.dumps({"rules": [rule]})))

    def usages(self, kind: str) -> list[Json]:
        """Returns the usage of the calls of a kind that were answered, in order."""
        done = [entry for entry in self.log.entries() if entry["event"] == "answered"]
        return [entry["usage"] for entry in done if f"/{kind}." in entry["call"]]


def billed(*blocks: Json, stop_reason: str = "end_turn") -> Reply:
    """A reply whose tokens the server counts."""

    async def reply() -> ApiReply:
        return ApiReply(list(blocks), stop_reason)

    return reply


def read_share(usages: list[Json]) -> float:
    """Returns which part of all input was read from the cache."""
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sums = {part: sum(usage[part] for usage in usages) for part in parts}
    return float(sums["cache_read_input_tokens"] / sum(sums.values()))


@pytest.fixture
async def billing() -> AsyncIterator[Billed]:
    """A billed model that serves."""
    model = Billed()
    async with served(BrainServer(model.think, model.log, model.faults)) as model.url:
        yield model


@pytest.fixture
async def lone(tmp_path: Any, billing: Billed) -> AsyncIterator[Client]:
    """A client of a server whose Worker asks the billed model."""
    async with own_server() as client, serving(client, settings_for(billing.url, tmp_path)):
        yield client


@pytest.fixture
async def impatient(tmp_path: Any, billing: Billed) -> AsyncIterator[Client]:
    """The same, whose Worker takes two seconds of silence for death."""
    settings: Settings = settings_for(billing.url, tmp_path, model_idle_seconds=2.0)
    async with own_server() as client, serving(client, settings):
        yield client


async def test_worker_agents_of_a_role_share_its_prefix(lone: Client, billing: Billed, run_id: str) -> None:
    """Those that begin together each write it, as no call waits for another one's answer."""
    ids = [f"t{n}" for n in range(40)]
    turns = {id_: lambda step: billed(text_block(f"found {step.subtask_id}")) for id_ in ids}
    subtasks = [{"id": id_, "role": "counter"} for id_ in ids]
    billing.play(run_id, script(plan(*subtasks), turns))
    await run(lone, run_id, TEAM, max_subtasks=40, max_parallel=4)
    usages = billing.usages("turn")
    assert len(usages) == 40
    assert sum(usage["cache_read_input_tokens"] == 0 for usage in usages) <= 4
    assert read_share(usages) >= 0.7


async def test_a_conversation_of_many_tool_calls_is_read_from_the_cache(
    lone: Client, billing: Billed, run_id: str
) -> None:
    def looks(step: Step) -> Reply:
        calls = [tool_block("lookup", {"query": f"pears of row {step.number}.{n}"}) for n in range(12)]
        return billed(*calls, stop_reason="tool_use") if step.number <= 10 else billed(text_block("found"))

    billing.play(run_id, script(plan({"id": "t1", "role": "counter"}), {"t1": looks}))
    await run(lone, run_id, TEAM, max_turns=15)
    usages = billing.usages("turn")
    assert len(usages) == 11
    assert read_share(usages[2:]) >= 0.85


async def test_a_model_that_is_silent_for_long_is_asked_once(impatient: Client, billing: Billed, run_id: str) -> None:
    """It thinks, or writes a tool call."""
    thinks = billed({"type": "thinking", "thinking": "", "signature": "c2ln"}, text_block("found"))
    looks = billed(tool_block("lookup", {"query": "pears"}), stop_reason="tool_use")

    def turn(step: Step) -> Reply:
        if step.number > 1:
            return text("found")
        return thinks if step.subtask_id == "t1" else looks

    billing.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turn, "t2": turn}))
    # After message_start, ping and the beginning of the block: nearly three times the limit, as 4 minutes to 90 s.
    billing.fault(call="*/turn.1", stall_after=3, stall_ms=5400, pings=True)
    result = await run(impatient, run_id, "lab")
    assert result.status == "completed"
    assert [billing.steps(run_id).count(f"{subtask_id}/1/turn.1") for subtask_id in ("t1", "t2")] == [1, 1]


async def test_a_dead_stream_is_ended_and_what_it_cost_is_counted(
    impatient: Client, billing: Billed, run_id: str
) -> None:
    long = billed(text_block("word " * 400))
    billing.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: long}))
    whole = await run(impatient, run_id, "lab")
    again = f"{run_id}-again"
    billing.play(again, script(plan({"id": "t1"}), {"t1": lambda step: long}))
    billing.fault(call="*/turn.1", times=1, stall_after=30)
    result = await run(impatient, again, "lab")
    assert billing.steps(again).count("t1/1/turn.1") == 2
    assert result.usage.model_calls == whole.usage.model_calls
    dead = _tokens(result) - _tokens(whole)
    assert dead > 100, "a prompt of a hundred tokens and more, and the words that came"
    assert (result.usage.usd or 0) > (whole.usage.usd or 0)


def _tokens(result: RunResult) -> int:
    usage = result.usage
    return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
