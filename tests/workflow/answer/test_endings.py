"""Whatever goes wrong while the answer is written, reviewed or stored: no finding and no answer is lost."""

import asyncio

import pytest
from temporalio.exceptions import ApplicationError

from activities.store.artifacts import ArtifactStore
from supervision.base.store_keys import is_ended, run_prefix
from tests.scripted_model import Reply, Step, answer, script, text, when
from tests.scripted_model import status as http_error
from tests.workflow.runs import Lab
from tests.workflow.scripts import FOUND, in_order, item, subtasks, verdicts, with_replies

USUAL = {"team": "house"}


PAIR = subtasks(item("t1"), item("t2"))
PEARS = {"t1": lambda step: text("44 pears")}
PACED = http_error(429, "rate_limit_error", retry_after="120")
FAILS = {"Overloaded": http_error(529, "overloaded_error"), "RateLimited": PACED}


@pytest.fixture
def own_model(run_id: str) -> dict[str, str]:
    """A supervisor's model of this test's own: breaker and pacing belong to a model and outlive the run."""
    return {"supervisor": f"{run_id}-supervisor"}


# --- the provider -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(FAILS))
async def test_a_provider_that_fails_at_the_answer_leaves_the_findings_as_they_came(
    lab: Lab, own_model: dict[str, str], kind: str
) -> None:
    lab.play(script(PAIR, PEARS, FAILS[kind]))
    result = await lab.run(models=own_model, deadline="PT5S")
    assert (result.status, [r.state for r in result.subtasks]) == ("partial", ["completed"] * 2)
    assert "44 pears" in result.answer
    assert [gap.subtask_id for gap in result.gaps] == ["answer"]
    assert kind in result.gaps[0].reason
    assert kind in result.warnings[-1]


@pytest.mark.parametrize("stage", ["review", "draft"])
async def test_a_provider_that_paces_any_judgement_leaves_the_findings_as_they_came(
    lab: Lab, own_model: dict[str, str], stage: str
) -> None:
    slow = asyncio.Event()
    usual = script(PAIR, {**PEARS, "t2": lambda step: when(slow, FOUND) if stage == "draft" else FOUND})

    def play(step: Step) -> Reply:
        if step.kind == {"draft": "synthesis"}.get(stage, stage):
            slow.set()
            return PACED
        return verdicts() if step.kind == "review" else usual(step)

    lab.play(play)
    result = await lab.run(models=own_model, deadline="PT8S", max_reviews=1, incremental_synthesis=1)
    assert [r.state for r in result.subtasks] == ["completed"] * 2
    assert (result.status, "44 pears" in result.answer) == ("partial", True)


# --- the answer itself ------------------------------------------------------------------------------


async def test_an_empty_answer_is_asked_for_once_more_then_the_findings_stand(lab: Lab) -> None:
    lab.play(with_replies(script(PAIR, PEARS), synthesis=in_order(text(""), answer(" \n"))))
    result = await lab.run()
    assert [step for step in lab.steps if step.startswith("synth")] == ["synthesis.1", "synthesis.2"]
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
        if is_ended(key) and key.startswith(run_prefix(lab.run_id)):
            raise ApplicationError("the store is gone", type="ArtifactUnavailable", non_retryable=True)
        return await create(store, key, data)

    monkeypatch.setattr(ArtifactStore, "create", fails)
    lab.play(script(PAIR, None, answer("many pears [t1]")))
    result = await lab.run()
    assert (result.status, result.answer, result.result_ref) == ("completed", "many pears [t1]", None)
    assert "could not be stored" in result.warnings[-1]
    assert "the store is gone" in result.warnings[-1]
