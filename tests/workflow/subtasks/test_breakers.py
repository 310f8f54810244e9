"""Breakers on the real server: of a role in a run, of a provider in the process, and what runs make of outages."""

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.updates import ExtendLimits, Resume
from tests.scripted_model import Reply, Step, plan, script, stop, text, tools, when
from tests.scripted_model import status as http_error
from tests.waiting import until
from tests.workflow.runs import (
    Handle,
    Lab,
    closed,
    details,
    events,
    failure,
    is_in,
    partial_result,
    search_attribute,
    status_of,
    waiting_status,
    waits_for_provider,
)
from tests.workflow.scripts import FOUND, GIVES_UP, Turns, in_order, item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "relay"}


LONG_OUTAGE = http_error(529, "overloaded_error", retry_after="2")
NO_KEY = http_error(401, "authentication_error")


@pytest.fixture
def long_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps a role's breaker open long enough for the test to look at it."""
    monkeypatch.setattr(limits, "ROLE_BREAKER_COOLDOWN", timedelta(seconds=4))


async def cards(handle: Handle) -> list[Any]:
    """The breakers that a run shows."""
    return [*(await status_of(handle)).breakers]


async def shows_open_breaker(handle: Handle) -> bool:
    """True if a run shows one breaker, and that it is open."""
    return [card["state"] for card in await cards(handle)] == ["open"]


# --- A role's breaker -----------------------------------------------------------------------------


async def test_after_three_failures_in_a_row_a_role_waits_until_one_probe_succeeds(lab: Lab, long_rest: None) -> None:
    opened, probing = asyncio.Event(), asyncio.Event()
    first = {f"t{n}": (lambda step: GIVES_UP if step.attempt == 1 else when(probing, FOUND)) for n in (1, 2, 3)}
    shape = plan(*[{"id": subtask_id, "role": "lone"} for subtask_id in first], {"id": "t4", "role": "scribe"})
    played = script(shape, first)
    lab.play(lambda step: when(opened, played(step)) if step.kind == "refine" else played(step))
    handle = await lab.start(max_turns=1, max_parallel=3)

    async def held() -> bool:
        return (await events(handle)).count("subtask_held") == 3

    await until(lambda: shows_open_breaker(handle))
    opened.set()
    await until(held)
    await until(lab.sent("t4/1/turn.1"))  # those that wait hold no slot
    shown = await status_of(handle)
    breaker = (await cards(handle))[0]
    assert (breaker["role"], breaker["state"], breaker["failures"]) == ("lone", "open", 3)
    assert breaker["retry_at"] is not None
    assert [s.state for s in shown.subtasks[:3]] == ["waiting"] * 3
    assert "role lone has an open breaker after 3 failed attempts in a row" in await details(handle)
    assert "t1/2/turn.1" not in lab.steps

    await until(lambda: any(step.endswith("/2/turn.1") for step in lab.steps))
    assert [card["state"] for card in await cards(handle)] == ["half_open"]
    probe = [c for c in lab.calls if c.step.kind == "turn" and c.step.attempt == 2]
    assert len(probe) == 1
    assert (await status_of(handle)).counts.running == 1

    probing.set()
    result = await handle.result()
    assert result.status == "completed"
    assert [s.attempts for s in result.subtasks] == [2, 2, 2, 1]
    assert (await status_of(handle)).breakers == []
    assert any(label.startswith("breaker probe") for label in await lab.labels("timer"))


async def test_while_a_role_waits_its_subtasks_go_to_the_fallback_with_all_their_attempts(lab: Lab) -> None:
    opened = asyncio.Event()
    fails = {f"t{n}": (lambda step: GIVES_UP if step.attempt == 1 else FOUND) for n in (1, 2, 3, 4)}
    played = script(plan(*[{"id": subtask_id, "role": "junior"} for subtask_id in fails]), fails)
    lab.play(lambda step: when(opened, played(step)) if step.kind == "refine" else played(step))
    handle = await lab.start(max_turns=1, max_parallel=3)
    await until(lambda: shows_open_breaker(handle))
    opened.set()
    result = await handle.result()
    assert result.status == "completed"
    assert [(s.role, s.attempts) for s in result.subtasks] == [("senior", 2)] * 4


async def test_what_is_done_again_by_a_role_that_fails_keeps_its_finding_and_says_why(
    lab: Lab, long_rest: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ROLE_REST_TOTAL", timedelta(seconds=1))
    opened, ids = asyncio.Event(), ["t1", "t2", "t3"]
    again: Turns = {each: lambda step: FOUND if step.attempt == 1 else GIVES_UP for each in ids}
    last: Turns = {"t4": lambda step: when(opened, FOUND)}
    played = script(plan(*[{"id": each, "role": "lone"} for each in ids], {"id": "t4", "role": "scribe"}), again | last)
    lab.play(lambda step: when(opened, played(step)) if step.kind == "refine" else played(step))
    handle = await lab.start(max_turns=1, max_parallel=4)
    for each in ids:
        await until(functools.partial(is_in, handle, "completed", each))
        await handle.execute_update("retry_subtask", {"subtask_id": each})
    await until(lambda: shows_open_breaker(handle))
    opened.set()
    result = await handle.result()
    why = "it could not be fixed (NoCapableWorker): the role 'lone' failed too often in a row"
    assert [(gap.subtask_id, gap.reason[: len(why)]) for gap in result.gaps] == [(each, why) for each in ids]
    assert [(report.state, report.attempts) for report in result.subtasks] == [
        *[("completed", 2)] * 3,
        ("completed", 1),
    ]


# --- A provider's breaker -------------------------------------------------------------------------


async def test_a_long_outage_shows_as_a_wait_and_the_worker_agent_goes_on_where_it_stood(
    lab: Lab, own_models: dict[str, str], short_outages: None
) -> None:
    over = asyncio.Event()

    def turns(step: Step) -> Reply:
        if step.number == 1:
            return tools(("lookup", {"query": "swans"}))
        return FOUND if over.is_set() else LONG_OUTAGE

    lab.play(script(plan({"id": "t1"}), {"t1": turns}))
    handle = await lab.start(team="lab", models=own_models)
    shown = await waiting_status(handle)
    card: Any = shown.breakers[0]
    assert (card["provider"], card["state"], card["waiting"]) == (own_models["workers"], "open", "t1")
    assert (shown.phase, shown.subtasks[0].state) == ("executing", "running")
    (wait,) = shown.waiting
    assert (wait.id, wait.subtask_id, wait.kind, wait.model) == ("t1/1", "t1", "provider", own_models["workers"])
    assert (wait.expires_at, wait.prompt_preview) == (card["retry_at"], card["why"])
    assert not shown.flags.waiting_person

    async def waits_for_all_to_see() -> bool:
        said, attribute = await details(handle), await search_attribute(handle, "SupervisorWaiting")
        return "(waiting_provider)" in said and "t1 waits for the provider" in said and attribute == "provider"

    await until(waits_for_all_to_see)
    over.set()
    result = await handle.result()
    assert (result.status, result.subtasks[0].turns, result.subtasks[0].attempts) == ("completed", 2, 1)
    turns_sent = [step for step in lab.steps if step.startswith("t1")]
    assert turns_sent[0] == "t1/1/turn.1"
    assert set(turns_sent[1:]) == {"t1/1/turn.2"}
    assert (result.usage.model_calls, result.usage.tool_calls) == (4, 1)
    assert "t1: wait for the model provider" in await lab.labels("timer")
    assert not (await status_of(handle)).flags.waiting_provider
    assert await search_attribute(handle, "SupervisorWaiting") is None
    assert not any(step.startswith("refine") for step in lab.steps)


@pytest.mark.usefixtures("short_deadlines")
async def test_an_outage_while_planning_is_waited_out_and_an_extended_deadline_counts(
    lab: Lab, own_models: dict[str, str], short_outages: None
) -> None:
    good = script(plan({"id": "t1", "role": "lone"}))
    outage = http_error(529, "overloaded_error", retry_after="2")
    lab.play(lambda step: outage if len(lab.calls) == 1 else good(step))
    handle = await lab.start(models=own_models, deadline="PT2S")
    shown = await waiting_status(handle)
    assert (shown.phase, shown.waiting[0].id, shown.waiting[0].subtask_id) == ("planning", "a plan", None)
    await handle.execute_update(SupervisorWorkflow.extend_limits, ExtendLimits(deadline=timedelta(minutes=5)))
    result = await handle.result()
    assert result.status == "completed"
    planned_at = datetime.fromtimestamp(lab.calls[1].at, UTC)
    assert planned_at > datetime.fromisoformat(shown.deadline_at)  # as the first deadline was


# --- Accounts -------------------------------------------------------------------------------------


async def test_an_account_that_is_refused_later_is_waited_for_until_a_person_says_resume(lab: Lab) -> None:
    answers = in_order(tools(("lookup", {"query": "swans"})), NO_KEY, NO_KEY, FOUND)
    lab.play(script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}), {"t2": answers}))
    handle = await lab.start(team="lab")

    def refused(times: int) -> Callable[[], Any]:
        async def waits() -> bool:
            return lab.steps.count("t2/1/turn.2") == times and await waits_for_provider(handle)

        return waits

    await until(refused(1))
    shown = await status_of(handle)
    asked = shown.waiting[0]
    assert (asked.id, asked.subtask_id, asked.kind, asked.workflow_id) == ("t2/1", "t2", "resume", lab.run_id)
    assert datetime.fromisoformat(asked.since) < datetime.now(UTC) < datetime.fromisoformat(str(asked.expires_at))
    assert "check ANTHROPIC_API_KEY" in asked.prompt_preview
    assert (shown.flags.waiting_provider, shown.flags.waiting_person) == (True, True)
    assert "t2 waits for resume" in await details(handle)
    assert await search_attribute(handle, "SupervisorWaiting") == "person"
    assert "t2: wait for resume" in await lab.labels("timer")

    reply = await handle.execute_update(SupervisorWorkflow.resume, Resume(request_id="once"))
    assert (reply.accepted, reply.phase) == (True, "executing")
    await until(refused(2))
    await handle.execute_update(SupervisorWorkflow.resume, Resume(request_id="once"))
    assert await waits_for_provider(handle)
    await handle.execute_update(SupervisorWorkflow.resume, Resume(request_id="again"))
    result = await handle.result()
    assert result.status == "completed"
    assert [s.turns for s in result.subtasks] == [2, 2]  # t1 looked nothing up, and was sent back
    assert [s.attempts for s in result.subtasks] == [1, 1]
    assert lab.steps.count("t2/1/turn.1") == 1
    assert result.usage.model_calls == 6


# --- outages -----------------------------------------------------------------------------------------


SUBTASKS, PARALLEL = 8, 3
AWAY = http_error(529, "overloaded_error", retry_after="0.6")
SHAPE = plan(*[{"id": f"t{number}"} for number in range(1, SUBTASKS + 1)])
ROUND_EVENTS = 20


def two_turns(step: Step) -> Reply:
    return tools(("lookup", {"query": "x"})) if step.number == 1 else text(f"found by {step.subtask_id}")


async def length(handle: Handle) -> int:
    return (await handle.describe()).history_length


async def test_an_outage_costs_one_wait_whatever_the_number_of_subtasks(
    lab: Lab, own_models: dict[str, str], short_outages: None
) -> None:
    away = {"on": True}

    def turns(step: Step) -> Reply:
        return AWAY if away["on"] else two_turns(step)

    lab.play(script(SHAPE, {f"t{number}": turns for number in range(1, SUBTASKS + 1)}))
    handle = await lab.start(team="lab", models=own_models, max_subtasks=SUBTASKS, max_parallel=PARALLEL)
    await until(functools.partial(waits_for_provider, handle))
    await until(lambda: len(lab.calls) > PARALLEL + 1)  # the first one that went first, in vain
    before, rounds = await length(handle), len(lab.calls)
    await until(lambda: len(lab.calls) >= rounds + 2, 60)
    assert await length(handle) - before <= 3 * ROUND_EVENTS
    assert len(set(await lab.started_children())) == PARALLEL
    await until(lambda: shows_open_breaker(handle))  # none while the call that goes first is under way
    away["on"] = False
    result = await handle.result()
    assert (result.status, len(result.subtasks)) == ("completed", SUBTASKS)
    assert {report.attempts for report in result.subtasks} == {1}
    assert all(lab.steps.count(f"t{n}/1/turn.2") == 1 for n in range(1, SUBTASKS + 1))
    assert all("wait for the model provider" in label for label in (await lab.labels("timer"))[1:])


async def test_an_outage_of_the_next_model_leads_back_to_none_that_refused(lab: Lab, short_outages: None) -> None:
    first, second = (f"{lab.run_id}-{name}" for name in ("first", "second"))
    replies = in_order(AWAY, FOUND)

    def turn(step: Step) -> Reply:
        return stop("refusal") if step.body["model"] == first else replies(step)

    lab.play(script(plan({"id": "t1", "role": "hand"}), {"t1": turn}))
    result = await lab.run(team="crew", models={"workers": [first, second]})
    assert (result.status, result.usage.model_calls) == ("completed", 4)
    asked = [call.step.body["model"] for call in lab.calls if call.step.subtask_id == "t1"]
    assert asked == [first, second, second]


async def test_a_history_that_is_nearly_full_ends_in_a_partial_answer(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HISTORY_EVENTS", 60)
    lab.play(script(SHAPE, {f"t{number}": two_turns for number in range(1, SUBTASKS + 1)}))
    handle = await lab.start(team="lab", max_subtasks=SUBTASKS, max_parallel=1)
    result = await handle.result()
    assert (result.status, result.answer.startswith("the answer")) == ("partial", True)
    done = [report for report in result.subtasks if report.state == "completed"]
    assert 0 < len(done) < SUBTASKS
    assert len(result.gaps) == SUBTASKS - len(done)
    assert all("the run's history is nearly as long as the server allows" in gap.reason for gap in result.gaps)
    assert not await lab.scheduled("timer") or await length(handle) < 150


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_rest")
async def test_a_run_fails_when_nobody_at_work_brings_a_finding(lab: Lab) -> None:
    later = asyncio.Event()
    turns = {"t1": lambda step: NO_KEY, "t2": lambda step: when(later, NO_KEY)}
    lab.play(plans(subtasks(item("t1"), item("t2"), item("t3")), turns=turns))
    handle = await lab.start(team="crew", max_parallel=2)
    await until(lab.sent("t1/1/turn.1", "t2/1/turn.1"))
    later.set()
    error = await failure(handle)
    assert error.type == "ProviderAuthentication"
    assert not any(step.startswith(("t3/", "refine", "synthesis")) for step in lab.steps)
    assert await search_attribute(handle, "SupervisorStatus") == "failed"
    assert {r.state for r in partial_result(error).subtasks} == {"failed", "cancelled"}


@pytest.mark.usefixtures("short_rest")
async def test_a_refused_subtask_waits_for_the_first_finding_of_the_work_under_way_then_for_a_resume(lab: Lab) -> None:
    later = asyncio.Event()
    turns = {"t1": in_order(NO_KEY, FOUND), "t2": lambda step: when(later, FOUND)}
    lab.play(plans(subtasks(item("t1"), item("t2"), item("t3")), turns=turns))
    handle = await lab.start(team="crew", max_parallel=2)
    await until(lab.sent("t1/1/turn.1", "t2/1/turn.1"))
    await until(functools.partial(closed, lab.client.get_workflow_handle(f"{lab.run_id}/t1/1")))
    later.set()
    await until(lambda: waits_for_provider(handle))
    await handle.execute_update(SupervisorWorkflow.resume, Resume())
    result = await handle.result()
    assert (result.status, [report.attempts for report in result.subtasks]) == ("completed", [1, 1, 1])
    assert [lab.steps.count(f"{each}/1/turn.1") for each in ("t1", "t2", "t3")] == [2, 1, 1]
