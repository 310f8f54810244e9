"""Requests and plans that can't be: each ends typed, with the exact reason, before a child or a model call too many."""

import asyncio
from typing import Any

from temporalio.exceptions import ApplicationError

from supervision.base.errors import ErrorKind
from supervision.contract.result import Problem, RunResult
from tests.scripted_model import Reply, as_json, stop
from tests.workflow.runs import Handle, Lab, details, events, failure
from tests.workflow.scripts import item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew"}

ROLE = {"name": "reader", "description": "Reads.", "system_prompt": "You read."}


def inline(**changes: Any) -> dict[str, Any]:
    return {"team": {"name": "own", "generalist": "reader", "roles": [ROLE], **changes}}


async def send(lab: Lab, **fields: Any) -> Handle:
    """Starts a run as the `temporal` CLI does: nothing is checked on the way."""
    request = {"goal": "Weigh the pears", "team": "crew", **fields}
    return await lab.client.start_workflow(
        "SupervisorWorkflow", request, id=lab.run_id, task_queue="supervisor", result_type=RunResult
    )


FRACTION = 'success: must be "any", "all", or a fraction above 0 and at most 1 such as "2/3" or 0.5'


async def refused(handle: Handle, lab: Lab, reason: str) -> ApplicationError:
    """Returns the error of a run that ended for that reason before any model call."""
    error = await failure(handle)
    assert error.type == "InvalidRequest"
    assert error.message.startswith(reason)
    assert lab.calls == []
    return error


OUT_OF_BOUNDS: list[tuple[dict[str, Any], str]] = [
    ({"success": "3/2"}, FRACTION),
    ({"strategy": "swarm"}, "strategy: Input should be 'auto', 'plan', 'route' or 'step'"),
    ({"deadline": "PT1S"}, "deadline: must be from PT5S (5 seconds) to P30D (30 days)"),
    ({"budget": {"tokens": 0}}, "budget.tokens: Input should be greater than or equal to 1"),
    ({"models": {"supervisor": ["a", "a"]}}, "models.supervisor: the models must differ"),
    (inline(roles=[]), "team.roles: List should have at least 1 item after validation, not 0"),
    (inline(toolbox=["hammer"]), "team.toolbox: no team file has a tool 'hammer'"),
    (inline(tools=[{"name": "x", "uses": "sql"}]), "team.tools: an inline team has no tools section"),
]


async def test_requests_out_of_bounds_fail_at_once_naming_the_field(lab: Lab) -> None:
    async def fails(number: int, fields: dict[str, Any], reason: str) -> None:
        own = lab.named(f"{lab.run_id}-{number}")
        await refused(await send(own, **fields), own, reason)

    await asyncio.gather(*(fails(number, *case) for number, case in enumerate(OUT_OF_BOUNDS)))


async def test_an_inline_team_has_only_what_the_operator_registered(lab: Lab) -> None:
    reason = "team.roles.reader.tools: no team file has a tool 'hammer'"
    handle = await send(lab, **inline(roles=[{**ROLE, "tools": ["hammer"]}]))
    error = await refused(handle, lab, reason)
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.error) == ("failed", Problem(type=ErrorKind.INVALID_REQUEST, message=error.message))
    assert reason in await details(handle)


BAD_PLANS: list[tuple[Reply, str]] = [
    (subtasks(item("t1", depends_on=["t1"])), "subtask 't1' depends on itself"),
    (subtasks(item("t1", attachments=["map"])), "subtask 't1' lists the attachment 'map', which does not exist"),
    (subtasks(*(item(f"t{n}") for n in range(500))), "the plan has 500 subtasks, at most 12 are allowed"),
    (as_json({"subtasks": [{"id": "t1"}]}), "the reply is not the JSON asked for: subtasks.0.description: "),
    (stop("max_tokens", '{"subtasks": ['), "the plan was cut off: make it shorter"),
]


async def test_plans_that_can_not_run_fail_with_their_reason_before_any_child(lab: Lab) -> None:
    async def fails(number: int, bad: Reply, reason: str) -> None:
        own = lab.named(f"{lab.run_id}-{number}")
        own.play(plans(bad))
        handle = await own.start()
        error = await failure(handle)
        assert error.type == "InvalidPlan"
        assert error.message.startswith(f"no plan that can run after 3 tries: {reason}")
        assert reason in own.prompt("plan.1.2")
        assert own.steps == ["plan.1.1", "plan.1.2", "plan.1.3"]
        assert await own.started_children() == []
        assert (await events(handle)).count("plan_rejected") == 3
        assert RunResult.model_validate(error.details[0]).usage.model_calls == 3

    await asyncio.gather(*(fails(number, *case) for number, case in enumerate(BAD_PLANS)))


async def test_a_refused_goal_is_asked_for_once(lab: Lab) -> None:
    lab.play(plans(stop("refusal", details={"category": "cyber", "explanation": "This is not for me."})))
    handle = await lab.start()
    error = await failure(handle)
    assert (error.type, error.message) == ("InvalidPlan", "the planner refused the goal: This is not for me.")
    assert lab.steps == ["plan.1.1"]
    assert (await handle.query(SupervisorWorkflow.status)).phase == "failed"
