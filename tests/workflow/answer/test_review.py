"""Findings held against the goal, done again where they fall short, judged where they disagree or compete."""

from typing import Any

from tests.scripted_model import Reply, Step, as_json, script, text, tools
from tests.workflow import runs
from tests.workflow.runs import Lab
from tests.workflow.scripts import Turns, item, reviewed, subtasks, verdicts
from workflows.answer.review_rounds import WARM_REVIEWS
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "house"}


def said(step: Step) -> Reply:
    """A turn whose finding names its attempt."""
    return text(f"finding of {step.subtask_id}, attempt {step.attempt}\n\nConfidence: 0.8")


HAIKU, OPUS = "claude-haiku-5-5", "claude-opus-5-5"
PAIR = subtasks(item("t1"), item("t2"))


async def test_only_what_a_review_flags_runs_again_with_the_feedback_and_its_old_finding(lab: Lab) -> None:
    turns: Turns = {subtask_id: said for subtask_id in ("t1", "t2")}
    lab.play(reviewed(PAIR, verdicts(t2="the unit is missing"), verdicts(), turns=turns))
    handle = await lab.start(max_reviews=3)
    result = await handle.result()
    assert lab.steps[3:] == ["review.1", "t2/2/turn.1", "review.2", "synthesis.1"]
    again = lab.prompt("t2/2/turn.1")
    assert again.startswith("<feedback>\nthe unit is missing\n</feedback>")
    spoken = lab.call("t2/2/turn.1").step.body["messages"]
    assert [message["role"] for message in spoken] == ["user", "assistant", "user"]
    assert "finding of t2, attempt 1" in str(spoken[1]["content"])
    assert "finding of t2, attempt 2" in lab.prompt("review.2")
    assert {r.id: r.attempts for r in result.subtasks} == {"t1": 1, "t2": 2}
    assert (result.status, result.gaps) == ("completed", [])
    assert result.subtasks[1].finding is not None
    assert result.subtasks[1].finding.summary == "finding of t2, attempt 2"
    assert await lab.started_children() == [f"{lab.run_id}/t1/1", f"{lab.run_id}/t2/1", f"{lab.run_id}/t2/2"]
    trace = (await handle.query(SupervisorWorkflow.trace)).events
    assert [e.data["flagged"] for e in trace if e.type == "reviewed"] == [["t2"], []]


def spoken(lab: Lab, step: str) -> list[str]:
    """Who spoke in the conversation of a turn, up to what is asked now."""
    return [message["role"] for message in lab.call(step).step.body["messages"]]


async def test_a_third_correction_begins_a_conversation_of_its_own(lab: Lab) -> None:
    rounds = [verdicts(t1=f"the unit is missing ({n})") for n in range(WARM_REVIEWS + 1)]
    lab.play(reviewed(subtasks(item("t1")), *rounds, verdicts(), turns={"t1": said}))
    result = await lab.run(max_reviews=WARM_REVIEWS + 1)
    assert result.subtasks[0].attempts == WARM_REVIEWS + 2
    turns = [spoken(lab, f"t1/{n}/turn.1") for n in range(1, WARM_REVIEWS + 3)]
    assert [len(turn) for turn in turns] == [1, 3, 5, 1]
    cold = lab.prompt(f"t1/{WARM_REVIEWS + 2}/turn.1")
    assert "Find out about part t1" in cold
    assert "<previous_finding>\nfinding of t1, attempt 3" in cold
    assert "the unit is missing (2)" in cold


async def test_what_rests_on_a_corrected_finding_is_done_again(lab: Lab) -> None:
    chain = subtasks(item("t1"), item("t2", depends_on=["t1"]), item("t3"))
    turns: Turns = {subtask_id: said for subtask_id in ("t1", "t2", "t3")}
    lab.play(reviewed(chain, verdicts(t1="name the unit"), verdicts(), turns=turns))
    result = await lab.run(max_reviews=1)
    assert {r.id: (r.attempts, r.stale) for r in result.subtasks} == {
        "t1": (2, False),
        "t2": (2, False),
        "t3": (1, False),
    }
    again = lab.prompt("t2/2/turn.1")
    assert "finding of t1, attempt 2" in again
    assert "changed after it: t1" in again
    assert result.gaps == []


async def test_no_worker_agent_is_sent_the_goal(lab: Lab) -> None:
    chain = subtasks(item("t1"), item("t2", depends_on=["t1"]))
    turns: Turns = {"t1": said, "t2": lambda step: said(step) if step.attempt > 1 else tools(("nothing", {}))}
    lab.play(reviewed(chain, verdicts(t1="name the unit"), verdicts(), turns=turns))
    await lab.run(max_reviews=1, max_turns=1)
    bodies = {call.step.call: str(call.step.body) for call in lab.calls}
    sent = {step for step, body in bodies.items() if runs.GOAL in body}
    assert {step.rpartition("/")[2].partition(".")[0] for step in sent} == {"plan", "refine", "review", "synthesis"}


async def test_conflicting_findings_go_to_a_judge_and_stay_in_the_result(lab: Lab) -> None:
    conflict = {"subtask_ids": ["t1", "t2"], "description": "44 or 45 pears"}
    judge = as_json({"prefer": "t2", "resolution": "t2 counted later"})
    again = verdicts([conflict], t1="count again")
    lab.play(reviewed(PAIR, again, verdicts([conflict]), judge=judge))
    result = await lab.run(max_reviews=3)
    assert [s for s in lab.steps if s.startswith("judge")] == ["judge.1"]
    assert "44 or 45 pears" in lab.prompt("judge.1")
    assert [(c.subtask_ids, c.description, c.resolution) for c in result.contradictions] == [
        (["t1", "t2"], "44 or 45 pears", "t2 counts: t2 counted later")
    ]
    assert "t2 counted later" in lab.calls[-1].step.prompt


# --- candidates -----------------------------------------------------------------------------------------


async def test_candidates_are_several_children_of_which_the_judge_picks_one(lab: Lab) -> None:
    shape = subtasks(item("t1", candidates=3), item("t2", depends_on=["t1"]))

    def turns(step: Step) -> Reply:
        return text(f"candidate-{step.call.split('/')[2]}")

    usual = script(shape, {"t1": turns})
    best = as_json({"choice": 3, "reason": "it has figures"})
    lab.play(lambda step: best if step.kind == "judge" else usual(step))
    handle = await lab.start()
    result = await handle.result()
    children = [f"{lab.run_id}/t1/1.1", f"{lab.run_id}/t1/1.2", f"{lab.run_id}/t1/1.3", f"{lab.run_id}/t2/1"]
    assert await lab.started_children() == children
    asked = lab.prompt("judge.1")
    assert all(f"candidate-1.{k}" in asked for k in (1, 2, 3))
    chosen = asked[: asked.index('number="3"')].count("candidate-1.") and asked.split('number="3"')[1].split("1.")[1][0]
    first = result.subtasks[0]
    assert (first.state, first.attempts, first.turns, first.usage.model_calls) == ("completed", 1, 3, 3)
    assert first.finding is not None
    assert first.finding.summary == f"candidate-1.{chosen}"
    assert first.workflow_id == f"{lab.run_id}/t1/1.{chosen}"
    assert result.usage.model_calls == 7
    assert (await handle.query(SupervisorWorkflow.status)).counts.total == 2


RIVALS: dict[str, Any] = {
    "name": "rivals",
    "generalist": "quick",
    "roles": [
        {"name": "quick", "description": "Looks.", "system_prompt": "You are quick.", "effort": "low"},
        {"name": "deep", "description": "Thinks.", "system_prompt": "You are deep.", "model": OPUS, "effort": "high"},
    ],
}


async def test_candidates_differ_in_role_model_and_effort(lab: Lab) -> None:
    shape = subtasks(item("t1", "quick", candidates=3, candidate_roles=["deep"]))
    usual = script(shape, {"t1": lambda step: text(f"found by {step.body['model']}")})
    best = as_json({"choice": 2, "reason": "it is deep"})
    lab.play(lambda step: best if step.kind == "judge" else usual(step))
    result = await lab.run(team=RIVALS, models={"workers": HAIKU})
    bodies = [lab.call(f"t1/1.{k}/turn.1").step.body for k in (1, 2, 3)]
    assert [body["model"] for body in bodies] == [HAIKU, OPUS, HAIKU]
    assert ["You are deep." in str(body["system"]) for body in bodies] == [False, True, False]
    assert bodies[1]["output_config"]["effort"] == "high"
    first = result.subtasks[0]
    assert first.finding is not None
    chosen = lab.prompt("judge.1").split('number="2"')[1].split("found by ")[1].split()[0]
    assert (first.finding.summary, first.role) == (f"found by {chosen}", "deep" if chosen == OPUS else "quick")
    assert {row.role for row in result.spend} == {"supervisor", "quick", "deep"}
