"""Model calls of whole runs: what caches give, what windows hold, and how little all of it leaves in history."""

import functools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.standin.server.api_reply import ApiReply, text_block
from temporal_supervisor.standin.server.app import BrainServer, Entry
from temporal_supervisor.standin.server.app import serving as served
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.scripted_model import (
    Reply,
    Script,
    ScriptedModel,
    Step,
    answer,
    as_json,
    hang,
    plan,
    script,
    status,
    text,
    tools,
)
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab, closed, found, run
from tests.workflow.scripts import reviewed, verdicts
from worker_main import serving
from workflows.subtasks.child_runs import STARTS_AT_ONCE

WINDOW = 100_000
PROMPT = "Count every pear of the garden twice, and say where you stood. " * 130  # 2,000 tokens
TEAM: JsonObject = {
    "name": "counters",
    "generalist": "counter",
    "roles": [{"name": "counter", "description": "Counts.", "system_prompt": PROMPT, "tools": ["lab/lookup"]}],
}


class Billed(ScriptedModel):
    """A scripted model whose calls are billed by the stand-in's cache."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Entry] = []
        self.faults = FaultScript()

    def hear(self, entry: Entry) -> None:
        self.log.append(entry)
        super().hear(entry)

    def usages(self, kind: str) -> list[JsonObject]:
        """Returns the usage of the calls of a kind that were answered, in order."""
        done = [entry for entry in self.log if entry["event"] == "answered"]
        return [entry["usage"] for entry in done if f"/{kind}." in entry["call"]]


def billed(*blocks: JsonObject, stop_reason: str = "end_turn") -> Reply:
    """A reply whose tokens the server counts."""

    async def reply() -> ApiReply:
        return ApiReply(list(blocks), stop_reason)

    return reply


def read_share(usages: list[JsonObject]) -> float:
    """Returns which part of all input was read from the cache."""
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sums = {part: sum(usage[part] for usage in usages) for part in parts}
    return float(sums["cache_read_input_tokens"] / sum(sums.values()))


@pytest.fixture
async def narrow(tmp_path: Any) -> AsyncIterator[tuple[Client, Billed]]:
    """A client of a server whose Worker asks a billed model with a window of 100k tokens."""
    model = Billed()
    model.faults.replace(ServerConfig(window=WINDOW, delta_chars=1 << 20))
    async with served(BrainServer(model.think, model.hear, model.faults)) as model.url:
        settings = settings_for(model.url, tmp_path, model_window={"*": WINDOW})
        async with own_server() as client, serving(client, settings):
            yield client, model


# --- history -----------------------------------------------------------------------------------------


def turns_of(count: int, size: int = 500) -> Any:
    def turns(step: Step) -> Reply:
        return (
            tools(("lookup", {"query": f"part {step.number}", "size": size})) if step.number < count else text("swans")
        )

    return turns


async def test_large_texts_everywhere_stay_out_of_history(lab: Lab) -> None:
    words = "swans " * 15_000
    subtasks = [{"id": f"t{i}", "description": f"Find part {i}: " + "about " * 500} for i in range(5)]
    shape = plan(*subtasks, {"id": "last", "after": [item["id"] for item in subtasks]})
    answer = {"answer": words, "confidence": 1, "citations": [], "contradictions": []}
    turns = {item["id"]: lambda step: text(words) for item in subtasks}
    lab.play(script(shape, turns, as_json(answer)))
    result = await lab.run(max_parallel=6, max_subtasks=6, goal="g" * 40_000)
    assert result.truncated
    assert len(result.answer) < len(words)
    workflows = [lab.client.get_workflow_handle(f"{lab.run_id}{below}") for below in ("", "/t0/1", "/last/1")]
    sizes = [event.ByteSize() for workflow in workflows async for event in workflow.fetch_history_events()]
    assert max(sizes) < limits.PAYLOAD_HARD_BYTES
    assert sorted(sizes)[-2] < limits.PAYLOAD_AIM_BYTES * 1.2


@pytest.fixture(scope="module")
async def small_histories(settings: Settings) -> AsyncIterator[Client]:
    """A client of a server that suggests to continue as new after a few turns, and that Workers serve."""
    async with own_server({"limit.historyCount.suggestContinueAsNew": 20}) as client, serving(client, settings):
        yield client


async def continued(client: Client, workflow_id: str) -> bool:
    """True if an execution continued an earlier one."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    assert len(history.events) < 60
    return bool(history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id)


async def test_a_finding_is_corrected_in_a_conversation_that_continued_as_new_at_the_servers_suggestion(
    small_histories: Client, lab: Lab
) -> None:
    usual = turns_of(12, 5)

    def turns(step: Step) -> Reply:
        return usual(step) if step.attempt == 1 else text("corrected pears")

    lab.play(reviewed(plan({"id": "t1"}), verdicts(t1="name the garden"), verdicts(), turns={"t1": turns}))
    result = await runs.run(small_histories, lab.run_id, "lab", max_turns=30, max_reviews=1)
    assert await continued(small_histories, f"{lab.run_id}/t1/1")
    assert (result.status, result.subtasks[0].turns, result.usage.tool_calls) == ("completed", 13, 11)
    assert (result.subtasks[0].attempts, found(result).summary) == (2, "corrected pears")
    asked = lab.call("t1/2/turn.1").step.body["messages"]
    assert sum(message["role"] == "assistant" for message in asked) == 12
    assert "name the garden" in str(asked[-1])
    assert len(lab.steps) == len(set(lab.steps))


async def test_a_worker_agent_that_continued_as_new_can_be_cancelled(small_histories: Client, lab: Lab) -> None:
    usual = turns_of(30, 5)
    turns = {"t1": lambda step: hang() if step.number == 10 else usual(step)}
    lab.play(script(plan({"id": "t1"}), turns))
    handle = await runs.start(small_histories, lab.run_id, team="lab", max_turns=30)
    await until(lab.sent("t1/1/turn.10"), 30)
    await handle.cancel()
    await until(functools.partial(closed, handle))
    child = await small_histories.get_workflow_handle(f"{lab.run_id}/t1/1").describe()
    assert child.status is WorkflowExecutionStatus.COMPLETED
    assert await continued(small_histories, child.id)
    await until(lambda: lab.calls[-1].aborted_at is not None)


async def test_many_subtasks_that_are_ready_together_start_in_portions_and_leave_a_small_history(lab: Lab) -> None:
    """A portion is what one message to the server and one workflow task can take."""
    lab.play(script(plan(*[{"id": f"t{i}"} for i in range(36)])))
    result = await lab.run(max_subtasks=36, max_parallel=36)
    assert (result.status, len(result.subtasks)) == ("completed", 36)
    started = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_task_completed_event_id
        for event in await lab.scheduled("child")
    ]
    assert len(started) == 36
    assert max(Counter(started).values()) <= STARTS_AT_ONCE < 36
    described = await lab.client.get_workflow_handle(lab.run_id).describe()
    info = described.raw_description.workflow_execution_info
    assert info.history_length < 600
    assert info.history_size_bytes < 600_000
    assert len(await lab.scheduled("timer")) == 1


# --- windows -----------------------------------------------------------------------------------------


TURNS = 48
_CUT = re.compile(r'\n\[cut: (\d+) of \d+ characters are shown\. read_output with output "(\d+-1)" and offset \1 ')


def output(turn: int) -> str:
    """What the tool returns in that turn: 20,000 characters."""
    return (f"found row {turn} of the pears " * 2000)[:20_000]


def blocks(step: Step, kind: str) -> list[dict[str, Any]]:
    """The blocks of a kind in a request."""
    messages = step.body["messages"]
    return [b for m in messages if isinstance(m["content"], list) for b in m["content"] if b["type"] == kind]


class Looking:
    """A worker agent that looks something up in each turn, and in some of them reads an old output again."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.read_again: dict[str, str] = {}
        self._begun: dict[str, str] = {}

    def __call__(self, step: Step) -> Reply:
        results = blocks(step, "tool_result")
        for block in results:
            if (name := self._begun.pop(block["tool_use_id"], None)) is not None:
                self.read_again[name] += block["content"]
        if step.number == self.turns:
            return billed(text_block("found\n\nConfidence: 0.8\nLimitations: none"))
        uses: list[tuple[str, dict[str, Any]]] = [
            ("lookup", {"query": f"row {step.number} of the pears", "size": 2000})
        ]
        cut = [match for block in results if (match := _CUT.search(block["content"])) is not None]
        fresh = [match for match in cut if match[2] not in self.read_again]
        if step.number % 5 == 0 and fresh:
            uses.append(("read_output", {"output": fresh[-1][2], "offset": int(fresh[-1][1])}))
        made = [
            {"type": "tool_use", "id": f"t{step.number}_{n}", "name": name, "input": arguments}
            for n, (name, arguments) in enumerate(uses)
        ]
        if len(made) > 1:
            self._begun[f"t{step.number}_1"] = fresh[-1][2]
            self.read_again[fresh[-1][2]] = fresh[-1].string[: int(fresh[-1][1])]
        thought = {"type": "thinking", "thinking": f"turn {step.number}", "signature": "c2ln"}
        return billed(thought, *made, stop_reason="tool_use")


async def test_many_turns_with_long_outputs_fit_into_a_window_of_100k_tokens(
    narrow: tuple[Client, Billed], run_id: str
) -> None:
    client, model = narrow
    bytes_of, looks = {}, Looking(TURNS)
    for turns in (TURNS // 4, TURNS):
        workflow_id, looks = f"{run_id}-{turns}", Looking(turns)
        model.play(workflow_id, script(plan({"id": "t1", "role": "counter"}), {"t1": looks}))
        budget = {"tokens": 40_000_000, "usd": 90.0}
        result = await run(client, workflow_id, TEAM, max_turns=TURNS + 2, budget=budget)
        assert (result.status, result.subtasks[0].attempts, result.subtasks[0].turns) == ("completed", 1, turns)
        described = await client.get_workflow_handle(f"{workflow_id}/t1/1").describe()
        bytes_of[turns] = described.raw_description.workflow_execution_info.history_size_bytes
    assert bytes_of[TURNS] <= 4.5 * bytes_of[TURNS // 4], "history grows with the turns, not with their square"
    failed = [entry for entry in model.log if entry["event"] == "failed"]
    assert not failed, "no prompt was refused, and no conversation changed but by previews"
    usages = model.usages("turn")[-TURNS:]
    assert read_share(usages) >= 0.85
    rewritten = [u for u in usages[1:] if u["cache_read_input_tokens"] < u["cache_creation_input_tokens"]]
    assert 2 <= len(rewritten) <= 8, "clearings are few"
    assert len(looks.read_again) >= 6
    for name, whole in looks.read_again.items():
        assert whole == output(int(name.partition("-")[0])), name


def narrowed(windows: dict[str, int], play: Script) -> Script:
    """A script whose models refuse prompts that are longer than their windows, in tokens of four characters."""

    def reply(step: Step) -> Reply:
        model = step.body["model"].partition("-of-")[0]
        tokens = len(json.dumps(step.body)) // 4
        if tokens > windows.get(model, 10**9):
            return status(
                400, "invalid_request_error", f"prompt is too long: {tokens} tokens > {windows[model]} maximum"
            )
        return play(step)

    return reply


async def test_reviews_and_answers_by_a_schema_are_shortened_to_a_small_window(lab: Lab) -> None:
    wordy = [
        {"id": f"t{number}", "description": f"Weigh the pears of tree {number}. " + "Look at each pear. " * 180}
        for number in range(1, 9)
    ]
    schema = {"type": "object", "properties": {"pears": {"type": "integer"}}, "required": ["pears"]}
    fruit = script(
        plan(*wordy),
        {item["id"]: lambda _: text("many pears, and " * 200) for item in wordy},
        answer("few", cites=["t1"], answer_json={"pears": 12}),
    )
    lab.play(narrowed({"small": 7000}, fruit))
    result = await lab.run(models={"supervisor": [f"small-of-{lab.run_id}"]}, answer_schema=schema, max_reviews=1)
    assert (result.status, result.answer_json) == ("completed", {"pears": 12})
    assert not [warning for warning in result.warnings if "review" in warning]
