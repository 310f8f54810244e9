"""Who works at a time, who waits without a slot, and what a provider's refusal of one means for the others."""

import asyncio
import functools
from collections.abc import Callable

import pytest
from temporalio.client import Client

from supervision.contract.updates import Resume
from tests.scripted_model import Reply, ScriptedModel, Step, text, when
from tests.scripted_model import status as http_error
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import failure, partial_result, search_attribute, sent, states, waits_for_provider
from tests.workflow.scripts import FOUND, GIVES_UP, in_order, item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

start = functools.partial(runs.start, team="crew")

pytestmark = pytest.mark.usefixtures("worker", "short_rest")

NO_KEY = http_error(401, "authentication_error")
NO_CREDIT = http_error(402, "billing_error")
NO_MODEL = http_error(404, "not_found_error", "model: nobody")
REJECTED = http_error(400, "invalid_request_error", "messages.0: not like this")


def open_turns(model: ScriptedModel, run_id: str, prompt_of: str) -> int:
    """How many turns of a role are unanswered now."""
    turns = [call for call in model.of(run_id) if call.step.kind == "turn" and call.answered_at is None]
    return sum(prompt_of in str(call.step.body["system"]) for call in turns)


def counted(model: ScriptedModel, run_id: str, most: list[int]) -> Callable[[Step], Reply]:
    """A finding, noting how many turns of the role solo are open when it is asked for."""

    def reply(step: Step) -> Reply:
        most.append(open_turns(model, run_id, "You are the solo."))
        return text(f"found by {step.call}")

    return reply


async def test_a_fallback_role_works_on_no_more_than_it_may(client: Client, model: ScriptedModel, run_id: str) -> None:
    held = asyncio.Event()
    ids = [f"t{n}" for n in (1, 2, 3)]

    def turns(step: Step) -> Reply:
        return when(held, FOUND) if "You are the solo." in str(step.body["system"]) else GIVES_UP

    model.play(run_id, plans(subtasks(*[item(i, "pupil") for i in ids]), turns=dict.fromkeys(ids, turns)))
    handle = await start(client, run_id, max_turns=1)

    async def one_is_at_work() -> bool:
        at_work = open_turns(model, run_id, "You are the solo.")
        return at_work > 0 and sorted((await states(handle)).values()) == ["running", "waiting", "waiting"]

    await until(one_is_at_work)
    assert open_turns(model, run_id, "You are the solo.") == 1
    held.set()
    result = await handle.result()
    assert (result.status, {r.role for r in result.subtasks}) == ("completed", {"solo"})


async def test_candidates_are_worker_agents_of_their_role(client: Client, model: ScriptedModel, run_id: str) -> None:
    most: list[int] = []
    play = counted(model, run_id, most)
    model.play(run_id, plans(subtasks(item("t1", "solo", candidates=3)), turns={"t1": play}))
    result = await (await start(client, run_id)).result()
    assert (result.status, result.subtasks[0].turns) == ("completed", 3)
    assert most == [1, 1, 1]


async def test_while_a_subtask_waits_for_a_person_at_the_provider_no_other_begins_and_it_goes_first(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    turns = {"t2": in_order(NO_KEY, FOUND)}
    shape = subtasks(item("t1"), item("t2", depends_on=["t1"]), item("t3", depends_on=["t1"]))
    model.play(run_id, plans(shape, turns=turns))
    handle = await start(client, run_id, max_parallel=1)
    await until(lambda: waits_for_provider(handle))
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1", "t2/1/turn.1"]
    await handle.execute_update(SupervisorWorkflow.resume, Resume())
    result = await handle.result()
    assert (result.status, [r.attempts for r in result.subtasks]) == ("completed", [1, 1, 1])
    assert model.steps(run_id)[3:] == ["t2/1/turn.1", "t3/1/turn.1", "synthesis.1"]


async def test_a_rejected_request_fails_its_subtask_whoever_answers_first(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    later = asyncio.Event()
    turns = {"t1": lambda step: REJECTED, "t2": lambda step: when(later, FOUND)}
    model.play(run_id, plans(subtasks(item("t1"), item("t2")), turns=turns))
    handle = await start(client, run_id)

    async def failed() -> bool:
        return (await states(handle)).get("t1") == "failed"

    await until(failed)
    later.set()
    result = await handle.result()
    assert (result.status, [r.state for r in result.subtasks]) == ("partial", ["failed", "completed"])
    assert [r.attempts for r in result.subtasks] == [1, 1]
    assert result.subtasks[0].error is not None
    assert result.subtasks[0].error.type == "ProviderRejected"


@pytest.mark.parametrize("refusal", [NO_KEY, NO_MODEL], ids=["key", "model"])
async def test_a_refusal_waits_for_the_first_finding_of_those_at_work(
    client: Client, model: ScriptedModel, run_id: str, refusal: Reply
) -> None:
    later = asyncio.Event()
    turns = {"t1": in_order(refusal, FOUND), "t2": lambda step: when(later, FOUND)}
    model.play(run_id, plans(subtasks(item("t1"), item("t2"), item("t3")), turns=turns))
    handle = await start(client, run_id, max_parallel=2)
    await until(lambda: any(c.step.subtask_id == "t1" and c.answered_at for c in model.of(run_id)))
    later.set()
    await until(lambda: waits_for_provider(handle))
    await handle.execute_update(SupervisorWorkflow.resume, Resume())
    result = await handle.result()
    assert (result.status, [r.attempts for r in result.subtasks]) == ("completed", [1, 1, 1])


@pytest.mark.parametrize(
    ("refusal", "error_type"),
    [(NO_KEY, "ProviderAuthentication"), (NO_MODEL, "ProviderRejected"), (NO_CREDIT, "ProviderRejected")],
    ids=["key", "model", "credit"],
)
async def test_a_run_fails_when_nobody_at_work_brings_a_finding(
    client: Client, model: ScriptedModel, run_id: str, refusal: Reply, error_type: str
) -> None:
    later = asyncio.Event()
    turns = {"t1": lambda step: refusal, "t2": lambda step: when(later, refusal)}
    model.play(run_id, plans(subtasks(item("t1"), item("t2"), item("t3")), turns=turns))
    handle = await start(client, run_id, max_parallel=2)
    await until(sent(model, run_id, "t1/1/turn.1", "t2/1/turn.1"))
    later.set()
    error = await failure(handle)
    assert error.type == error_type
    assert not any(step.startswith(("t3/", "refine", "synthesis")) for step in model.steps(run_id))
    assert await search_attribute(handle, "SupervisorStatus") == "failed"
    assert {r.state for r in partial_result(error).subtasks} == {"cancelled"}
