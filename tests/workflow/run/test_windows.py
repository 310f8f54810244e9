"""Conversations longer than their model's window: what is sent, what it costs, and what happens when it is refused."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client

from standin.server.api_reply import text_block
from standin.server.app import BrainServer
from standin.server.faults import parse_config
from standin.server.serving import serving as served
from tests.scripted_model import Reply, Script, Step, answer, plan, script, status, text, tools
from tests.serving import own_server, settings_for
from tests.workflow.run.test_history import history_bytes
from tests.workflow.run.test_model_calls import PROMPT, Billed, billed, read_share
from tests.workflow.runs import Lab, run
from worker_main import serving

WINDOW = 100_000
TURNS = 48
TEAM: dict[str, Any] = {
    "name": "counters",
    "generalist": "counter",
    "roles": [{"name": "counter", "description": "Counts.", "system_prompt": PROMPT, "tools": ["lookup"]}],
}
_CUT = re.compile(r'\n\[cut: (\d+) of \d+ characters are shown\. read_output with output "(\d+-1)" and offset \1 ')
TOO_LONG = "prompt is too long: 120000 tokens > 100000 maximum"


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


@pytest.fixture
async def narrow(tmp_path: Any) -> AsyncIterator[tuple[Client, Billed]]:
    """A client of a server whose Worker asks a billed model with a window of 100k tokens."""
    model = Billed()
    model.faults.replace(parse_config(json.dumps({"windows": {"*": WINDOW}, "delta_chars": 1 << 20})))
    async with served(BrainServer(model.think, model.log, model.faults)) as model.url:
        settings = settings_for(model.url, tmp_path, model_window={"*": WINDOW})
        async with own_server() as client, serving(client, settings):
            yield client, model


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
        bytes_of[turns] = await history_bytes(client, f"{workflow_id}/t1/1")
    assert bytes_of[TURNS] <= 4.5 * bytes_of[TURNS // 4], "history grows with the turns, not with their square"
    failed = [entry for entry in model.log.entries() if entry["event"] == "failed"]
    assert not failed, "no prompt was refused, and no conversation changed but by previews"
    usages = model.usages("turn")[-TURNS:]
    assert read_share(usages) >= 0.85
    rewritten = [u for u in usages[1:] if u["cache_read_input_tokens"] < u["cache_creation_input_tokens"]]
    assert 2 <= len(rewritten) <= 8, "clearings are few"
    assert len(looks.read_again) >= 6
    for name, whole in looks.read_again.items():
        assert whole == output(int(name.partition("-")[0])), name


@pytest.mark.parametrize("refused", [1, 2])
async def test_a_refused_prompt_is_shortened_once_and_then_fails_its_attempt_alone(lab: Lab, refused: int) -> None:
    def turn(step: Step) -> Reply:
        if step.number < 3:
            return tools(("lookup", {"query": f"row {step.number} of the pears", "size": 2000}))
        again = [step for step in lab.steps if step == "t1/1/turn.3"]
        if step.attempt == 1 and len(again) <= refused:
            return status(400, "invalid_request_error", TOO_LONG)
        return text("found")

    lab.play(script(plan({"id": "t1"}), {"t1": turn}))
    result = await lab.run(models={"workers": f"model-of-{lab.run_id}"})
    assert result.status == "completed"
    assert result.subtasks[0].attempts == refused
    assert lab.steps.count("t1/1/turn.3") == 2
    first, second = [c.step for c in lab.calls if c.step.call.endswith("/t1/1/turn.3")]
    assert [len(block["content"]) for block in blocks(first, "tool_result")] == [20_000, 20_000]
    assert len(blocks(second, "tool_result")[0]["content"]) < 1000
    if refused == 2:
        assert "ContextOverflow" in str(lab.call("refine.t1.2").step.body)


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
