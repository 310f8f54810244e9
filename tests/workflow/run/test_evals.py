"""Evals: the agent alone beside the supervisor, one budget for all, cancelling, and beginning again."""

import asyncio

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError

from activities.contracts.eval_contracts import EvalProgress
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.scores.eval_budget import EvalBudget
from temporal_supervisor.supervision.scores.eval_plan import EvalVariant
from temporal_supervisor.supervision.scores.parts import question_for_part
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from tests.scripted_model import Reply, Script, Step, answer, as_json, hang, text, tools
from tests.waiting import until
from tests.workflow.evals import LAB, Says, asked, begun, number, saying, table_in
from tests.workflow.runs import Lab
from workflows.eval_workflow import SCORE
from workflows.outbox import STATUS

ALONE = {
    "name": "bare",
    "generalist": "alone",
    "roles": [{"name": "alone", "description": "All.", "system_prompt": "You work.", "tools": ["lab/lookup"]}],
}
BOTH = [EvalVariant(label="lab", request=LAB), EvalVariant(label="lab, bare", request={"team": ALONE}, bare=True)]


def finishing(value: int) -> Reply:
    fields = {"limitations": [], "confidence": 0.4, "outcome": "done", "summary": f"{value} pears"}
    given = {"output": {"value": value, "scale": ""}}
    return tools(("finish", {"finding": f"There are {value} pears, or 99", **given, **fields}))


def play(lab: Lab, eval_id: str, questions: list[EvalQuestion], script: Script) -> None:
    for question in questions:
        for case in (question.id, f"{question.id}~v2"):
            lab.model.play(f"{eval_id}/{case}", script)


async def test_a_bare_agent_has_the_whole_goal_and_its_answer_stays_as_it_wrote_it(
    lab: Lab, store: ArtifactStore
) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number("q1", 44)]
    usual = saying({"q1": Says(44)})
    play(lab, eval_id, questions, lambda step: finishing(45) if step.run_id.endswith("~v2") else usual(step))
    result = await (await begun(lab.client, store, eval_id, questions, variants=BOTH)).result()
    assert result.status == "completed"
    supervised, bare = (await table_in(store, eval_id)).scores
    assert (supervised.verdict, supervised.flags) == ("right", [])
    # What it says itself against its answer counts, not what code would have found: 99 is in no tool's output.
    assert (bare.verdict, bare.flags, bare.given) == ("wrong_flagged", ["confidence"], "45")
    assert lab.model.steps(f"{eval_id}/q1~v2") == ["t1/1/turn.1"]
    described = await lab.client.get_workflow_handle(eval_id).describe()
    shown = described.typed_search_attributes
    assert (shown.get(SCORE), shown.get(STATUS)) == (0.5, "completed")


async def test_a_bare_agent_that_gives_up_is_not_asked_again(lab: Lab, store: ArtifactStore) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number("q1", 44)]
    none = {"finding": "there is no data", "limitations": [], "confidence": 0, "outcome": "impossible", "summary": "no"}
    play(lab, eval_id, questions, lambda step: tools(("finish", none)))
    await (await begun(lab.client, store, eval_id, questions, variants=BOTH[1:])).result()
    (score,) = (await table_in(store, eval_id)).scores
    assert (score.verdict, score.usage.model_calls) == ("refused_wrongly", 1)


async def test_a_judge_has_opinions_of_answers_in_words_and_changes_no_verdict(lab: Lab, store: ArtifactStore) -> None:
    eval_id = f"eval-{lab.run_id}"
    questions = [asked("capital", "text", "Rome"), asked("river", "text", "Tiber"), number("many", 44)]
    said: dict[str, Says | None] = {
        "capital": Says(44, {"value": "the city of Rome"}),
        "river": Says(44, {"value": "Arno"}),
        "many": Says(44),
    }
    play(lab, eval_id, questions, saying(said))

    def opinion(step: Step) -> Reply:
        if step.number == 2:
            return text("I cannot tell")
        return as_json({"reason": "Both name the same city", "right": True})

    lab.model.play(eval_id, opinion)
    result = await (await begun(lab.client, store, eval_id, questions, judge="claude-opus-5-5")).result()
    table = await table_in(store, eval_id)
    assert [score.verdict for score in table.scores] == ["wrong_unflagged", "wrong_flagged", "right"]
    first, *others = [score.opinion for score in table.scores]
    assert first is not None
    assert (first.model, first.right, first.reason) == ("claude-opus-5-5", True, "Both name the same city")
    assert others == [None, None]
    assert sorted(lab.model.steps(eval_id)) == ["opinion.1", "opinion.2"]
    (prompt,) = [call.step.prompt for call in lab.model.of(eval_id) if call.step.number == 1]
    assert '"Rome"' in prompt
    assert "the city of Rome" in prompt
    assert table.no_opinion.startswith("the reply is not the JSON asked for")
    (row,) = table.rows
    assert row.right.value == pytest.approx(1 / 3)  # by code
    assert row.opinions is not None
    assert (row.opinions.n, row.opinions.right.value, row.opinions.agreed) == (1, 1.0, 0.0)
    paid = sum(score.usage.model_calls for score in table.scores)
    assert result.usage.model_calls == paid + 2


async def test_a_budget_that_is_used_up_ends_it_as_partial(lab: Lab, store: ArtifactStore) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number(f"q{n}", 44) for n in range(1, 7)]
    usual, dear = saying({question.id: Says(44) for question in questions}), text("There are 44 pears.", tokens=6000)
    play(lab, eval_id, questions, lambda step: dear if (step.kind, step.number) == ("turn", 2) else usual(step))
    budget = EvalBudget(tokens=60_000)
    result = await (await begun(lab.client, store, eval_id, questions, parallel=1, budget=budget)).result()
    assert (result.status, result.why) == ("partial", "its budget is used up")
    assert result.n == 3
    table = await table_in(store, eval_id)
    assert (table.status, table.planned, len(table.scores)) == ("partial", 6, 3)
    assert result.usage.tokens <= 60_000


async def test_a_team_that_is_not_there_ends_it_after_its_first_runs(lab: Lab, store: ArtifactStore) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number(f"q{n}", 44) for n in range(1, 7)]
    nowhere = [EvalVariant(label="x", request={"team": "nowhere"})]
    result = await (await begun(lab.client, store, eval_id, questions, parallel=1, variants=nowhere)).result()
    assert (result.status, result.n) == ("partial", 1)
    assert "there is no team 'nowhere'" in result.why


async def test_cancelling_it_cancels_its_runs_and_keeps_what_was_judged(lab: Lab, store: ArtifactStore) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number("q1", 44), number("q2", 44), number("q3", 44)]
    usual = saying({question.id: Says(44) for question in questions})
    play(lab, eval_id, questions, lambda step: usual(step) if step.run_id.endswith("q1") else hang())
    handle = await begun(lab.client, store, eval_id, questions, parallel=1)
    await until(lambda: bool(lab.model.of(f"{eval_id}/q2")), 30)
    progress = await handle.query("progress", result_type=EvalProgress)
    assert (progress.ended, progress.under_way, progress.counts) == (1, ["q2"], {"right": 1})
    assert progress.seconds_to_go is not None
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 60)
    described = await lab.client.get_workflow_handle(f"{eval_id}/q2").describe()
    assert described.status is WorkflowExecutionStatus.CANCELED
    table = await table_in(store, eval_id)
    assert (table.status, [score.verdict for score in table.scores]) == ("cancelled", ["right"])
    assert lab.model.of(f"{eval_id}/q3") == []


async def test_one_that_was_terminated_begins_again_and_takes_the_runs_that_there_are(
    lab: Lab, store: ArtifactStore
) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number("q1", 44), number("q2", 44)]
    released, usual = asyncio.Event(), saying({question.id: Says(44) for question in questions})

    def reply(step: Step) -> Reply:
        async def held() -> object:
            await released.wait()
            return await usual(step)()

        return held if step.run_id.endswith("q2") and step.kind == "plan" else usual(step)  # type: ignore[return-value]

    play(lab, eval_id, questions, reply)
    first = await begun(lab.client, store, eval_id, questions, parallel=1)
    await until(lambda: bool(lab.model.of(f"{eval_id}/q2")), 30)
    await first.terminate()
    again = await begun(lab.client, store, eval_id, questions, parallel=1)
    released.set()
    result = await asyncio.wait_for(again.result(), 60)
    assert (result.status, result.counts) == ("completed", {"right": 2})
    calls = [call.step.call for name in ("q1", "q2") for call in lab.model.of(f"{eval_id}/{name}")]
    assert len(calls) == len(set(calls)) == 8


async def test_a_long_eval_continues_as_new_and_loses_no_question(
    lab: Lab, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVAL_EVENTS", 40)
    eval_id, questions = f"eval-{lab.run_id}", [number(f"q{n}", 44) for n in range(1, 8)]
    play(lab, eval_id, questions, saying({question.id: Says(44) for question in questions}))
    first = await begun(lab.client, store, eval_id, questions, parallel=2)
    result = await asyncio.wait_for(first.result(), 60)
    assert (result.status, result.counts) == ("completed", {"right": 7})
    described = await lab.client.get_workflow_handle(eval_id).describe()
    assert described.run_id != first.first_execution_run_id
    assert [score.case for score in (await table_in(store, eval_id)).scores] == [q.id for q in questions]
    sent = [call.step.call for question in questions for call in lab.model.of(f"{eval_id}/{question.id}")]
    assert len(sent) == len(set(sent)) == 4 * len(questions)


async def test_a_plan_alone_costs_one_call_and_says_who_takes_a_question(lab: Lab, store: ArtifactStore) -> None:
    eval_id = f"eval-{lab.run_id}"
    asked = number("q1", 44).model_copy(update={"role": "finder"})
    expected = {"plan": [{"id": "look", "says": ["garden 1"]}, {"id": "sum", "says": ["sum"], "after": ["look"]}]}
    planned = EvalQuestion.model_validate({**number("q2", 44).model_dump(), **expected})
    questions = [question_for_part(question, "plan") for question in (asked, planned)]
    usual = saying({"q2": Says(44)})
    route = as_json({"role": "finder", "secondary_role": None, "description": "Count the pears of garden 1."})
    play(lab, eval_id, questions, lambda step: route if step.run_id.endswith("q1") else usual(step))
    variants = [EvalVariant(label="lab", request=LAB, part="plan")]
    result = await (await begun(lab.client, store, eval_id, questions, variants=variants)).result()
    assert result.counts == {"right": 1, "wrong_unflagged": 1}
    routed, fitted = (await table_in(store, eval_id)).scores
    assert (routed.verdict, routed.usage.model_calls) == ("right", 1)
    assert fitted.plan is not None
    assert (fitted.plan.coverage, fitted.plan.needless) == (0.5, [])
    assert len(lab.model.of(f"{eval_id}/q1")) == 1


async def test_an_agent_alone_has_its_role_and_the_checks(lab: Lab, store: ArtifactStore) -> None:
    eval_id, questions = f"eval-{lab.run_id}", [number("q1", 44), number("q2", 44)]
    questions = [question.model_copy(update={"role": "alone"}) for question in questions]
    sure = {"limitations": [], "confidence": 0.8, "outcome": "done", "summary": "pears"}

    def reply(step: Step) -> Reply:
        value = 44 if step.run_id.endswith("q1") else 45
        if step.number == 1:
            return tools(("lookup", {"query": "44 pears"}))
        given = {"finding": f"There are {value} pears", "output": {"value": value, "scale": ""}}
        return tools(("finish", {**given, **sure}))

    play(lab, eval_id, questions, reply)
    variants = [EvalVariant(label="lab", request={"team": ALONE}, part="agent")]
    await (await begun(lab.client, store, eval_id, questions, variants=variants)).result()
    right, wrong = (await table_in(store, eval_id)).scores
    assert (right.verdict, right.given, right.flags) == ("right", "44", [])
    # Unlike a bare agent it is checked: no tool output has 45.
    assert wrong.verdict == "wrong_flagged"
    assert "unsupported" in wrong.flags


async def test_an_answer_alone_is_made_of_given_findings(lab: Lab, store: ArtifactStore) -> None:
    eval_id = f"eval-{lab.run_id}"
    given = {"findings": [{"text": "There are 44 pears in garden 1"}, {"text": "There are 54 pears in garden 1"}]}
    asked = {**number("q1", 44).model_dump(), **given, "flag": "contradiction"}
    questions = [EvalQuestion.model_validate({**asked, "id": name}) for name in ("q1", "q2", "q3")]
    open_one = {"subtask_ids": ["t1", "t2"], "description": "44 or 54 pears", "resolution": ""}
    replies = {
        "q1": answer("There are 44 pears [t1].", answer_json={"value": 44, "scale": ""}, contradictions=[open_one]),
        "q2": answer("There are 44 pears [t1].", answer_json={"value": 44, "scale": ""}),
        "q3": answer("There are 47 pears [t1].", answer_json={"value": 47, "scale": ""}),
    }
    play(lab, eval_id, questions, lambda step: replies[step.run_id.rpartition("/")[2]])
    variants = [EvalVariant(label="lab", request=LAB, part="answer")]
    await (await begun(lab.client, store, eval_id, questions, variants=variants)).result()
    scores = (await table_in(store, eval_id)).scores
    assert [score.verdict for score in scores] == ["right", "right", "wrong_flagged"]
    assert [score.fault_shown for score in scores] == [True, False, False]
    assert lab.model.steps(f"{eval_id}/q1") == ["synthesis.1"]
    assert "54 pears" in lab.model.of(f"{eval_id}/q1")[0].step.prompt


async def test_two_evals_of_one_set_at_once_keep_to_themselves(lab: Lab, store: ArtifactStore) -> None:
    questions = [number(f"q{n}", 44) for n in range(1, 5)]
    names = [f"eval-{lab.run_id}-{which}" for which in ("one", "other")]
    usual = saying({question.id: Says(44) for question in questions})
    wrong = saying({question.id: Says(45) for question in questions})
    play(lab, names[0], questions, usual)
    play(lab, names[1], questions, wrong)
    handles = [await begun(lab.client, store, name, questions, parallel=2) for name in names]
    results = [await asyncio.wait_for(handle.result(), 60) for handle in handles]
    assert [result.counts for result in results] == [{"right": 4}, {"wrong_unflagged": 4}]
    for name in names:
        assert [score.run_id for score in (await table_in(store, name)).scores] == [f"{name}/{q.id}" for q in questions]
        sent = [call.step.call for question in questions for call in lab.model.of(f"{name}/{question.id}")]
        assert len(sent) == len(set(sent)) == 4 * len(questions)
