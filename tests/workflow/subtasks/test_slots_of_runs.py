"""Who works at a time, who waits without a slot, and what a provider's refusal of one means for the others."""

import asyncio

import pytest

from supervision.contract.updates import Resume
from tests.scripted_model import status as http_error
from tests.scripted_model import when
from tests.waiting import until
from tests.workflow.runs import Lab, failure, partial_result, search_attribute, waits_for_provider
from tests.workflow.scripts import FOUND, in_order, item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew"}

pytestmark = pytest.mark.usefixtures("short_rest")

NO_KEY = http_error(401, "authentication_error")


async def test_while_a_subtask_waits_for_a_person_at_the_provider_no_other_begins_and_it_goes_first(lab: Lab) -> None:
    turns = {"t2": in_order(NO_KEY, FOUND)}
    shape = subtasks(item("t1"), item("t2", depends_on=["t1"]), item("t3", depends_on=["t1"]))
    lab.play(plans(shape, turns=turns))
    handle = await lab.start(max_parallel=1)
    await until(lambda: waits_for_provider(handle))
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "t2/1/turn.1"]
    await handle.execute_update(SupervisorWorkflow.resume, Resume())
    result = await handle.result()
    assert (result.status, [r.attempts for r in result.subtasks]) == ("completed", [1, 1, 1])
    assert lab.steps[3:] == ["t2/1/turn.1", "t3/1/turn.1", "synthesis.1"]


async def test_a_run_fails_when_nobody_at_work_brings_a_finding(lab: Lab) -> None:
    later = asyncio.Event()
    turns = {"t1": lambda step: NO_KEY, "t2": lambda step: when(later, NO_KEY)}
    lab.play(plans(subtasks(item("t1"), item("t2"), item("t3")), turns=turns))
    handle = await lab.start(max_parallel=2)
    await until(lab.sent("t1/1/turn.1", "t2/1/turn.1"))
    later.set()
    error = await failure(handle)
    assert error.type == "ProviderAuthentication"
    assert not any(step.startswith(("t3/", "refine", "synthesis")) for step in lab.steps)
    assert await search_attribute(handle, "SupervisorStatus") == "failed"
    assert {r.state for r in partial_result(error).subtasks} == {"cancelled"}
