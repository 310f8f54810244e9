"""The answer: findings are reviewed, judged and written up; whatever goes wrong meanwhile, none of them is lost."""

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import is_named
from tests.scripted_model import Reply, Step, answer, as_json, plan, script, text, when
from tests.scripted_model import status as http_error
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab, found
from tests.workflow.scripts import FOUND, IMPOSSIBLE, Turns, in_order, item, reviewed, subtasks, verdicts, with_replies
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


# --- more findings than a prompt holds ------------------------------------------------------------------


async def test_a_plan_that_asks_for_reduction_has_findings_condensed_before_they_must_be(lab: Lab) -> None:
    """Three findings of 15 KB: more than REDUCE_BYTES, and far less than a prompt holds."""

    def play(step: Step) -> Reply:
        condensed = step.kind == "synthesis" and "Condense these" in step.prompt
        return text("few words on pears [t1] [t2]") if condensed else usual(step)

    turns: Turns = {f"t{n}": lambda step: text(f"crop of {step.subtask_id}: " + "pears " * 2500) for n in (1, 2, 3)}
    shape = subtasks(item("t1"), item("t2"), item("t3"), aggregation="reduce")
    usual = script(shape, turns, answer("all", ["t1", "t3"]))
    lab.play(play)
    result = await lab.run()
    assert (result.status, modes(lab)) == ("completed", ["digest", "final"])
    last = lab.calls[-1].step.prompt
    crops = [name for name in ("t1", "t2", "t3") if f"crop of {name}" in last]
    assert crops == ["t3"]
    assert "few words on pears" in last
    assert [c.subtask_ids for c in result.citations] == [["t1"], ["t3"]]


# --- a finding that is the answer -----------------------------------------------------------------------


async def test_the_finding_that_the_plan_names_is_the_answer_and_of_a_failed_one_its_replacement(lab: Lab) -> None:
    plan_reply = subtasks(item("t1"), item("t2", depends_on=["t1"]), aggregation="finding", answer_from="t2")
    revised = subtasks(item("t3", depends_on=["t1"], replaces=["t2"]))
    turns: Turns = {"t2": lambda step: IMPOSSIBLE, "t3": lambda step: text("a text, to be used as it stands")}
    usual = script(plan_reply, turns)
    lab.play(lambda step: revised if step.call.endswith("/plan.2.1") else usual(step))
    result = await lab.run(max_replans=1)
    assert result.answer.startswith("a text, to be used as it stands")
    assert "synthesis.1" not in lab.steps


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
    so_far = await handle.query(SupervisorWorkflow.result)
    assert (so_far.status, so_far.answer, so_far.confidence) == ("running", "draft number 2", None)
    assert "**Draft of the answer, while subtasks still run**\n\ndraft number 2" in await runs.details(handle)
    said = [e for e in (await handle.query(SupervisorWorkflow.trace)).events if e.type == "draft_written"]
    assert [event.data["preview"] for event in said] == ["draft number 1", "draft number 2"]
    gates["t5"].set()
    result = await handle.result()
    assert modes(lab) == ["draft", "draft", "final"]
    final = lab.prompt("synthesis.3")
    assert "draft number 2" in final
    assert final.count("late pears") == 1
    assert result.answer.startswith("all")
    assert [c.subtask_ids for c in result.citations] == [["t1"], ["t5"]]
    assert result.usage.model_calls == 9


async def test_an_answer_takes_up_no_draft_once_a_finding_is_done_again(lab: Lab) -> None:
    late = asyncio.Event()
    turns: Turns = {"t1": in_order(text("5 pears"), text("7 pears")), "t2": lambda step: when(late, FOUND)}
    lab.play(reviewed(PAIR, verdicts(t1="Count the pears again"), verdicts(), turns=turns))
    handle = await lab.start(incremental_synthesis=1, max_reviews=1)
    await until(lambda: drafted(handle, 1))
    late.set()
    result = await handle.result()
    assert (result.status, modes(lab)) == ("completed", ["draft", "final"])
    final = lab.prompt("synthesis.2")
    assert ("7 pears" in final, "found it" in final, "5 pears" in final) == (True, True, False)


async def test_a_draft_that_waits_for_its_model_ends_with_its_run(lab: Lab) -> None:
    late = asyncio.Event()
    usual = script(PAIR, {"t2": lambda step: when(late, FOUND)})
    unpaid = http_error(401, "authentication_error")
    lab.play(lambda step: unpaid if step.kind in ("synthesis", "review") else usual(step))
    handle = await lab.start(max_reviews=1, incremental_synthesis=1)

    async def shown(phase: str) -> bool:
        status = await handle.query(SupervisorWorkflow.status)
        return status.phase == phase and bool(status.waiting)

    await until(lambda: shown("executing"))
    late.set()
    await until(lambda: shown("validating"))
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert not await shown("cancelled")


async def drafted(handle: Any, findings: int) -> bool:
    """True if a draft holds so many findings."""
    events = (await handle.query(SupervisorWorkflow.trace)).events
    return any(e.type == "draft_written" and e.data["findings"] == findings for e in events)


# --- structured answers ---------------------------------------------------------------------------------


async def test_a_direct_answer_is_given_its_structure_which_is_repaired_once(lab: Lab) -> None:
    good = script(plan(answer="44 pears"), None, answer("44 pears", answer_json={"pears": 44}))
    bad = answer("4 pears", answer_json={"pears": 4})
    lab.play(lambda step: bad if step.call.endswith("synthesis.1") else good(step))
    result = await lab.run(answer_schema=SCHEMA)
    assert (result.status, result.answer, result.answer_json) == ("completed", "44 pears", {"pears": 44})
    assert "44 pears" in lab.prompt("synthesis.1")
    assert "4 is less than the minimum of 10" in lab.prompt("synthesis.2")


async def test_a_written_answer_survives_its_json_that_never_fits(lab: Lab) -> None:
    lab.play(script(PAIR, None, answer("4 pears", answer_json={"pears": 4})))
    result = await lab.run(answer_schema=SCHEMA)
    assert (result.status, result.answer_json) == ("partial", None)
    assert result.answer.startswith("4 pears")
    assert [(gap.subtask_id, "minimum of 10" in gap.reason) for gap in result.gaps] == [("answer_json", True)]
    assert kinds(lab) == ["plan.1.1", "synthesis.1", "synthesis.2"]


# --- reviews and candidates --------------------------------------------------------------------------


def said(step: Step) -> Reply:
    """A turn whose finding names its attempt."""
    return text(f"finding of {step.subtask_id}, attempt {step.attempt}\n\nConfidence: 0.8")


HAIKU, OPUS = "claude-haiku-5-5", "claude-opus-5-5"


async def test_what_a_review_flags_and_what_rests_on_it_is_done_again_and_conflicts_are_judged(lab: Lab) -> None:
    conflict = {"subtask_ids": ["t1", "t3"], "description": "attempt 1 or another one. 44 or 45 pears"}
    judge = as_json({"choice": 2, "reason": "t3 counted later. It has 45 pears"})
    chain = subtasks(item("t1"), item("t2", depends_on=["t1"]), item("t3"))
    turns: Turns = {subtask_id: said for subtask_id in ("t1", "t2", "t3")}
    rounds = verdicts([conflict], t1="the unit is missing"), verdicts([conflict])
    lab.play(reviewed(chain, *rounds, turns=turns, judge=judge))
    handle = await lab.start(max_reviews=3)
    result = await handle.result()
    assert lab.steps[4:] == ["review.1", "judge.1", "t1/2/turn.1", "t2/2/turn.1", "review.2", "synthesis.1"]
    again = lab.prompt("t1/2/turn.1")
    assert again.startswith("<feedback>\nthe unit is missing\n</feedback>")
    assert spoken(lab, "t1/2/turn.1") == ["user", "assistant", "user"]
    assert "finding of t1, attempt 1" in str(lab.call("t1/2/turn.1").step.body["messages"][1]["content"])
    dependent = lab.prompt("t2/2/turn.1")
    assert "finding of t1, attempt 2" in dependent
    assert "changed after it: t1" in dependent
    assert "finding of t1, attempt 2" in lab.prompt("review.2")
    assert {r.id: (r.attempts, r.stale) for r in result.subtasks} == {
        "t1": (2, False), "t2": (2, False), "t3": (1, False),
    }  # fmt: skip
    assert (result.status, result.gaps, found(result).summary) == ("completed", [], "finding of t1, attempt 2")
    assert "<conflict>\nattempt 1 or another one.\n</conflict>" in lab.prompt("judge.1"), "no finding has 44 pears"
    assert [(c.subtask_ids, c.description, c.resolution) for c in result.contradictions] == [
        (["t1", "t3"], "attempt 1 or another one.", "t3 counts: t3 counted later.")
    ]
    assert "t3 counted later" in lab.prompt("synthesis.1")
    trace = (await handle.query(SupervisorWorkflow.trace)).events
    assert [e.data["flagged"] for e in trace if e.type == "reviewed"] == [["t1"], []]
    sent = {call.step.kind for call in lab.calls if runs.GOAL in str(call.step.body)}
    assert sent == {"plan", "review", "judge", "synthesis"}, "worker agents get their subtask alone"


def spoken(lab: Lab, step: str) -> list[str]:
    """Who spoke in the conversation of a turn, up to what is asked now."""
    return [message["role"] for message in lab.call(step).step.body["messages"]]


# --- candidates -----------------------------------------------------------------------------------------


RIVALS: dict[str, Any] = {
    "name": "rivals",
    "generalist": "quick",
    "roles": [
        {"name": "quick", "description": "Looks.", "system_prompt": "You are quick.", "effort": "low"},
        {"name": "deep", "description": "Thinks.", "system_prompt": "You are deep.", "model": OPUS, "effort": "high"},
    ],
}


async def test_candidates_are_several_children_of_different_roles_of_which_the_judge_picks_one(lab: Lab) -> None:
    shape = subtasks(
        item("t1", "quick", candidates=3, candidate_roles=["deep"]), item("t2", "quick", depends_on=["t1"])
    )

    def turns(step: Step) -> Reply:
        return text(f"candidate-{step.call.split('/')[2]} by {step.body['model']}")

    usual = script(shape, {"t1": turns})
    best = as_json({"choice": 2, "reason": "it is deep"})
    lab.play(lambda step: best if step.kind == "judge" else usual(step))
    handle = await lab.start(team=RIVALS, models={"workers": HAIKU})
    result = await handle.result()
    children = [f"{lab.run_id}/t1/1.1", f"{lab.run_id}/t1/1.2", f"{lab.run_id}/t1/1.3", f"{lab.run_id}/t2/1"]
    assert await lab.started_children() == children
    bodies = [lab.call(f"t1/1.{k}/turn.1").step.body for k in (1, 2, 3)]
    assert [body["model"] for body in bodies] == [HAIKU, OPUS, HAIKU]
    assert ["You are deep." in str(body["system"]) for body in bodies] == [False, True, False]
    assert bodies[1]["output_config"]["effort"] == "high"
    asked = lab.prompt("judge.1")
    assert all(f"candidate-1.{k}" in asked for k in (1, 2, 3))
    chosen = asked.split('number="2"')[1].split("candidate-1.")[1].split("\n")[0].rstrip()
    first = result.subtasks[0]
    assert (first.state, first.attempts, first.turns, first.usage.model_calls) == ("completed", 1, 3, 3)
    assert found(result).summary == f"candidate-1.{chosen}"
    assert (first.workflow_id, first.role) == (
        f"{lab.run_id}/t1/1.{chosen[0]}",
        "deep" if chosen[0] == "2" else "quick",
    )
    assert {row.role for row in result.spend} == {"supervisor", "quick", "deep"}
    assert result.usage.model_calls == 7
    assert (await handle.query(SupervisorWorkflow.status)).counts.total == 2


# --- what goes wrong at the end ----------------------------------------------------------------------


PEARS = {"t1": lambda step: text("44 pears")}
PACED = http_error(429, "rate_limit_error", retry_after="120")


async def test_a_provider_that_paces_draft_review_and_answer_leaves_the_findings_as_they_came(lab: Lab) -> None:
    drafting = asyncio.Event()
    usual = script(PAIR, {**PEARS, "t2": lambda step: when(drafting, FOUND)})

    def play(step: Step) -> Reply:
        if step.kind not in ("synthesis", "review"):
            return usual(step)
        drafting.set()
        return PACED

    lab.play(play)
    own_model = {"supervisor": f"{lab.run_id}-supervisor"}  # pacing belongs to a model and outlives the run
    result = await lab.run(models=own_model, deadline="PT8S", max_reviews=1, incremental_synthesis=1)
    assert (result.status, [r.state for r in result.subtasks]) == ("partial", ["completed"] * 2)
    assert "44 pears" in result.answer
    assert [(gap.subtask_id, "RateLimited" in gap.reason) for gap in result.gaps] == [("answer", True)]


# --- the answer itself ------------------------------------------------------------------------------


async def test_an_empty_answer_is_asked_for_again_then_the_findings_stand(lab: Lab) -> None:
    lab.play(with_replies(script(PAIR, PEARS), synthesis=in_order(text(""), answer(" \n"))))
    result = await lab.run()
    assert [step for step in lab.steps if step.startswith("synth")] == [f"synthesis.{n}" for n in (1, 2, 3)]
    assert (result.status, "44 pears" in result.answer) == ("partial", True)
    assert [(gap.subtask_id, "empty answer" in gap.reason) for gap in result.gaps] == [("answer", True)]


async def test_json_without_words_keeps_the_json_and_shows_the_findings(lab: Lab) -> None:
    schema = {"type": "object", "properties": {"pears": {"type": "integer"}}, "required": ["pears"]}
    lab.play(script(PAIR, PEARS, answer("", answer_json={"pears": 44})))
    result = await lab.run(answer_schema=schema)
    assert (result.status, result.answer_json, "44 pears" in result.answer) == ("partial", {"pears": 44}, True)


# --- the store --------------------------------------------------------------------------------------


async def test_an_answer_that_cannot_be_stored_is_returned(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    create = ArtifactStore.create

    async def fails(store: ArtifactStore, key: str, data: bytes) -> bool:
        if is_named("ended", key, lab.run_id):
            raise ApplicationError("the store is gone", type="ArtifactUnavailable", non_retryable=True)
        return await create(store, key, data)

    monkeypatch.setattr(ArtifactStore, "create", fails)
    lab.play(script(PAIR, None, answer("many pears [t1]")))
    result = await lab.run()
    assert (result.status, result.answer, result.result_ref) == ("completed", "many pears [t1]", None)
    assert "could not be stored" in result.warnings[-1]
    assert "the store is gone" in result.warnings[-1]
