"""Requests and plans that can't be: each ends typed, before a child or a call too many; and the models of a run."""

import asyncio
from typing import Any

from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.result import Problem, RunResult
from tests.scripted_model import Reply, Step, answer, as_json, status, stop, text
from tests.workflow.runs import Lab, details, events, failure
from tests.workflow.scripts import item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew"}

ROLE = {"name": "reader", "description": "Reads.", "system_prompt": "You read.", "tools": ["hammer"]}


async def test_an_inline_team_has_only_what_the_operator_registered(lab: Lab) -> None:
    reason = "team.roles.reader.tools: team 'general' offers no tool 'hammer'"
    handle = await lab.start(team={"name": "own", "generalist": "reader", "roles": [ROLE]})
    error = await failure(handle)
    assert (error.type, error.message.startswith(reason), lab.calls) == ("InvalidRequest", True, [])
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.error) == ("failed", Problem(type=ErrorKind.INVALID_REQUEST, message=error.message))
    assert reason in await details(handle)


MENDED = "no plan that can run after 3 tries: "
NOBODY = "subtask 't1' needs the capabilities levitation, and no role has all of them"
REFUSES = stop("refusal", details={"category": "cyber", "explanation": "This is not for me."})
BAD_PLANS: list[tuple[Reply, str, str, int]] = [
    (
        subtasks(item("t1", depends_on=["t1"])),
        "InvalidPlan",
        f"{MENDED}these subtasks depend on each other in a circle: t1 -> t1",
        3,
    ),
    (stop("max_tokens", '{"subtasks": ['), "InvalidPlan", f"{MENDED}the plan was cut off: make it shorter", 3),
    (subtasks(item("t1", "auto", capabilities=["levitation"])), "NoCapableWorker", f"{MENDED}{NOBODY}", 3),
    (REFUSES, "InvalidPlan", "the planner refused the goal: This is not for me.", 1),
]


async def test_plans_that_can_not_run_fail_with_their_reason_before_any_child(lab: Lab) -> None:
    async def fails(number: int, bad: Reply, kind: str, reason: str, tries: int) -> None:
        own = lab.named(f"{lab.run_id}-{number}")
        own.play(plans(bad))
        handle = await own.start()
        error = await failure(handle)
        assert (error.type, error.message[: len(reason)]) == (kind, reason)
        assert own.steps == [f"plan.1.{attempt}" for attempt in range(1, tries + 1)]
        if reason.startswith(MENDED):
            assert reason.removeprefix(MENDED) in own.prompt("plan.1.2")
        assert await own.started_children() == []
        assert (await events(handle)).count("plan_rejected") == (tries if reason.startswith(MENDED) else 0)
        assert RunResult.model_validate(error.details[0]).usage.model_calls == tries

    await asyncio.gather(*(fails(number, *case) for number, case in enumerate(BAD_PLANS)))


async def test_a_plan_that_has_no_room_to_be_sent_back_fails_with_what_is_wrong_with_it(lab: Lab) -> None:
    no_room = status(400, "invalid_request_error", "prompt is too long: 8100 tokens > 8000 maximum")
    lab.play(plans(subtasks(item("t1", depends_on=["t1"])), no_room))
    error = await lab.failure()
    assert (error.type, lab.steps) == ("InvalidPlan", ["plan.1.1", "plan.1.2"])
    assert "the prompt does not fit into the window" in error.message
    assert error.message.endswith(": these subtasks depend on each other in a circle: t1 -> t1")


# --- which models a run works with -------------------------------------------------------------------


LARGE, SPARE, SMALL, LAST = "claude-opus-5-5", "claude-opus-5", "claude-haiku-5-5", "claude-haiku-4-5"
MODELS = {"supervisor": [LARGE, SPARE], "workers": [SMALL, LAST]}
EFFORTS = {"first": "low", "later": "high"}
GONE = status(404, "not_found_error", "model not found")


def _asked(lab: Lab) -> list[tuple[str, str]]:
    return [(call.step.kind, call.step.body["model"]) for call in lab.calls]


def _usual(step: Step) -> Reply:
    if step.kind == "plan":
        return subtasks(item("t1"))
    return answer() if step.kind == "synthesis" else text(f"found by {step.body['model']}")


async def test_the_next_model_takes_over_where_one_is_not_served(lab: Lab) -> None:
    gone = {LARGE, SMALL}
    lab.play(lambda step: GONE if step.body["model"] in gone else _usual(step))
    handle = await lab.start(models=MODELS)
    result = await handle.result()
    assert (result.status, result.answer_model, result.subtasks[0].model) == ("completed", SPARE, LAST)
    # Each is tried once in the run: what is not served stays left out.
    assert _asked(lab) == [
        ("plan", LARGE), ("plan", SPARE), ("turn", SMALL), ("turn", LAST), ("synthesis", SPARE),
    ]  # fmt: skip
    assert [(row.role, row.model) for row in result.spend] == [("supervisor", SPARE), ("hand", LAST)]
    assert sum(row.usage.tokens for row in result.spend) == result.usage.tokens
    events = (await handle.query(SupervisorWorkflow.trace)).events
    replaced = [event.data for event in events if event.type == "model_replaced"]
    assert [(data["model"], data["by"], data["why"]) for data in replaced] == [
        (LARGE, SPARE, "ModelNotServed"),
        (SMALL, LAST, "ModelNotServed"),
    ]


async def test_what_one_model_refuses_another_is_asked(lab: Lab) -> None:
    def reply(step: Step) -> Reply:
        return stop("refusal") if step.body["model"] in (LARGE, SMALL) else _usual(step)

    lab.play(reply)
    result = await lab.run(models=MODELS)
    assert (result.status, result.answer_model) == ("completed", SPARE)
    assert (result.subtasks[0].model, result.subtasks[0].attempts) == (LAST, 1)
    assert [(kind, name) for kind, name in _asked(lab) if kind in ("turn", "refine")] == [
        ("turn", SMALL),
        ("turn", LAST),
    ]


async def test_effort_is_the_requests_or_the_roles_by_attempt(lab: Lab) -> None:
    team = {
        "name": "orchard",
        "generalist": "hand",
        "roles": [
            {"name": "hand", "description": "Works.", "system_prompt": "Work.", "effort": EFFORTS},
            {"name": "eye", "description": "Looks.", "system_prompt": "Look."},
        ],
    }

    def reply(step: Step) -> Reply:
        if step.kind == "plan":
            return subtasks(item("t1"), item("t2", "eye"))
        if step.kind == "turn" and step.subtask_id == "t1" and step.attempt == 1:
            return stop("refusal")
        return as_json({"description": "Look up part 1 in another way"}) if step.kind == "refine" else _usual(step)

    lab.play(reply)
    await lab.run(team=team, effort="medium", models={"workers": LARGE})
    sent: dict[str, Any] = {
        call.step.call.removeprefix(f"{lab.run_id}/"): call.step.body.get("output_config", {}).get("effort")
        for call in lab.calls
    }
    assert sent["plan.1.1"] == "medium"
    assert (sent["t1/1/turn.1"], sent["t1/2/turn.1"], sent["t2/1/turn.1"]) == ("low", "high", "medium")
