"""Writing the answer: from many findings, from drafts, as JSON, and with citations that hold."""

import asyncio
from typing import Any

import pytest

from supervision.base import limits
from tests.scripted_model import Reply, Step, answer, as_json, plan, script, text, when
from tests.waiting import until
from tests.workflow.runs import Lab
from tests.workflow.scripts import Turns, item, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "house"}


PAIR = subtasks(item("t1"), item("t2"))
SCHEMA = {
    "type": "object",
    "properties": {"pears": {"type": "integer", "minimum": 10}},
    "required": ["pears"],
    "additionalProperties": False,
}


def kinds(lab: Lab) -> list[str]:
    """The supervisor's own calls, in order."""
    return [step for step in lab.steps if "/" not in step]


def modes(lab: Lab) -> list[str]:
    """What each synthesis was for."""
    words = {"Condense these": "digest", "Write a short draft": "draft", "Write the answer": "final"}
    prompts = [call.step.prompt for call in lab.calls if call.step.kind == "synthesis"]
    return [next(mode for said, mode in words.items() if said in shown) for shown in prompts]


async def test_contradictions_that_the_synthesis_finds_are_in_the_result(lab: Lab) -> None:
    found = [{"subtask_ids": ["t1", "t2"], "description": "44 or 45", "resolution": "45"}]
    strange = [{"subtask_ids": ["t7"], "description": "nobody", "resolution": ""}]
    words = {"answer": "45", "confidence": 1, "citations": [], "contradictions": [*found, *strange]}
    lab.play(script(PAIR, None, as_json(words)))
    result = await lab.run()
    assert [c.model_dump() for c in result.contradictions] == found


# --- more findings than a prompt holds ------------------------------------------------------------------


async def test_findings_beyond_the_context_are_condensed_first_and_still_cited(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONTEXT_TOKENS", 5_715)
    items = [item(f"t{n}") for n in range(12)]

    def play(step: Step) -> Reply:
        if step.kind == "synthesis" and "Condense these" in step.prompt:
            return text(f"condensed by {step.call.rpartition('/')[2]}: pears [t1]")
        return usual(step)

    turns: Turns = {f"t{n}": lambda step: text(f"part {step.subtask_id} " + "pears " * 800) for n in range(12)}
    usual = script(subtasks(*items), turns, answer("all", ["t0", "t11"]))
    lab.play(play)
    result = await lab.run(goal="g" * 2000)
    assert modes(lab) == ["digest", "digest", "digest", "final"]
    last = lab.calls[-1].step.prompt
    assert "condensed by synthesis.1" in last
    assert "condensed by synthesis.3" in last
    assert [c.subtask_ids for c in result.citations] == [["t0"], ["t11"]]
    assert result.status == "completed"


@pytest.mark.parametrize(("aggregation", "written"), [("reduce", ["digest", "final"]), ("merge", ["final"])])
async def test_a_plan_that_asks_for_reduction_has_findings_condensed_before_they_must_be(
    lab: Lab, aggregation: str, written: list[str]
) -> None:
    """Three findings of 15 KB: more than REDUCE_BYTES, and far less than a prompt holds."""

    def play(step: Step) -> Reply:
        condensed = step.kind == "synthesis" and "Condense these" in step.prompt
        return text("few words on pears [t1] [t2]") if condensed else usual(step)

    turns: Turns = {f"t{n}": lambda step: text(f"crop of {step.subtask_id}: " + "pears " * 2500) for n in (1, 2, 3)}
    shape = subtasks(item("t1"), item("t2"), item("t3"), aggregation=aggregation)
    usual = script(shape, turns, answer("all", ["t1", "t3"]))
    lab.play(play)
    result = await lab.run()
    assert (result.status, modes(lab)) == ("completed", written)
    last = lab.calls[-1].step.prompt
    crops = [name for name in ("t1", "t2", "t3") if f"crop of {name}" in last]
    assert crops == (["t3"] if aggregation == "reduce" else ["t1", "t2", "t3"])
    assert ("few words on pears" in last) == (aggregation == "reduce")
    assert [c.subtask_ids for c in result.citations] == [["t1"], ["t3"]]


# --- drafts ---------------------------------------------------------------------------------------------


async def test_drafts_begin_with_the_kth_finding_and_the_answer_starts_from_the_last(lab: Lab) -> None:
    gates = {name: asyncio.Event() for name in ("draft", "t3", "t4", "t5")}
    drafts = 0

    def play(step: Step) -> Reply:
        nonlocal drafts
        if step.kind == "synthesis" and "short draft" in step.prompt:
            drafts += 1
            words = answer(f"draft number {drafts}")
            return when(gates["draft"], words) if drafts == 1 else words
        return usual(step)

    turns: Turns = {f"t{n}": lambda step: text(f"[{step.subtask_id}] has pears") for n in (1, 2)}
    turns |= {
        subtask_id: lambda step: when(gates[step.subtask_id or ""], text("late pears"))
        for subtask_id in ("t3", "t4", "t5")
    }
    usual = script(subtasks(*[item(f"t{n}") for n in range(1, 6)]), turns, answer("all", ["t1", "t5"]))
    lab.play(play)
    handle = await lab.start(incremental_synthesis=2)

    async def completed(count: int) -> bool:
        return (await handle.query(SupervisorWorkflow.status)).counts.completed >= count

    await until(lambda: modes(lab) == ["draft"])
    gates["t3"].set()
    gates["t4"].set()
    await until(lambda: completed(4))
    assert modes(lab) == ["draft"]
    gates["draft"].set()
    await until(lambda: modes(lab) == ["draft", "draft"])
    second = lab.prompt("synthesis.2")
    assert "draft number 1" in second
    assert "[t1] has pears" not in second
    assert second.count("late pears") == 2
    await until(lambda: drafted(handle, 4))
    gates["t5"].set()
    result = await handle.result()
    assert modes(lab) == ["draft", "draft", "final"]
    final = lab.prompt("synthesis.3")
    assert "draft number 2" in final
    assert final.count("late pears") == 1
    assert result.answer.startswith("all")
    assert [c.subtask_ids for c in result.citations] == [["t1"], ["t5"]]
    assert result.usage.model_calls == 9


async def drafted(handle: Any, findings: int) -> bool:
    """True if a draft holds so many findings."""
    events = (await handle.query(SupervisorWorkflow.trace)).events
    return any(e.type == "draft_written" and e.data["findings"] == findings for e in events)


# --- structured answers ---------------------------------------------------------------------------------


async def test_a_structured_answer_is_repaired_once(lab: Lab) -> None:
    good = script(PAIR, None, answer("44 pears", answer_json={"pears": 44}))
    bad = answer("4 pears", answer_json={"pears": 4})
    lab.play(lambda step: bad if step.call.endswith("synthesis.1") else good(step))
    result = await lab.run(answer_schema=SCHEMA)
    assert (result.answer, result.answer_json) == ("44 pears", {"pears": 44})
    assert "4 is less than the minimum of 10" in lab.prompt("synthesis.2")


async def test_a_written_answer_survives_its_json_that_never_fits(lab: Lab) -> None:
    lab.play(script(PAIR, None, answer("4 pears", answer_json={"pears": 4})))
    result = await lab.run(answer_schema=SCHEMA)
    assert (result.status, result.answer_json) == ("partial", None)
    assert result.answer.startswith("4 pears")
    assert [(gap.subtask_id, "minimum of 10" in gap.reason) for gap in result.gaps] == [("answer_json", True)]
    assert kinds(lab) == ["plan.1.1", "synthesis.1", "synthesis.2"]


async def test_a_direct_answer_is_given_its_structure(lab: Lab) -> None:
    lab.play(script(plan(answer="44 pears"), None, answer("44 pears", answer_json={"pears": 44})))
    result = await lab.run(answer_schema=SCHEMA)
    assert (result.answer_json, result.status) == ({"pears": 44}, "completed")
    assert "44 pears" in lab.prompt("synthesis.1")
