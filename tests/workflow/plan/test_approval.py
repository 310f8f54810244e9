"""A person's approval of a plan, before anything of it begins."""

import re
from typing import Any

import pytest
from temporalio.service import RPCError

from temporal_supervisor.supervision.contract.status import Wait
from tests.scripted_model import Reply, Script, Step, as_json, plan, script, status, stop
from tests.waiting import until
from tests.workflow.runs import Handle, Lab, failure, partial_result, refusal, status_of, waits_of
from tests.workflow.scripts import item, plans, subtasks

ONE = {"id": "t1"}


async def asked(handle: Handle, wait_id: str = "plan.1") -> Wait:
    """Returns the wait of that id, here or in a nested run, once it is there."""
    found: list[Wait] = []

    async def waits() -> bool:
        found[:] = [wait for wait in await waits_of(handle) if wait.id == wait_id]
        return bool(found)

    await until(waits)
    return found[0]


async def decide(handle: Handle, revision: int, decision: str, **more: Any) -> Any:
    """Decides about a plan."""
    return await handle.execute_update("decide_plan", {"revision": revision, "decision": decision, **more})


async def proposed(lab: Lab, played: Script | None = None, **fields: Any) -> Handle:
    """Starts a run whose plan waits for approval; it is of one subtask where the script says nothing else."""
    lab.play(played or script(plan(ONE)))
    handle = await lab.start(approve_plan=True, **fields)
    await asked(handle)
    return handle


REFUSED: list[tuple[dict[str, Any] | None, str]] = [
    ({"revision": 2, "decision": "approve"}, "what does: plan.1"),
    ({"revision": 1, "decision": "yes"}, "decision"),
    ({"revision": 1, "decision": "edit"}, "a plan belongs to"),
    (None, "revision"),
]


async def test_nothing_is_spent_before_the_plan_is_approved(lab: Lab) -> None:
    lab.play(script(plan(ONE, {"id": "t2", "after": ["t1"]})))
    handle = await lab.start(approve_plan=True)
    wait = await asked(handle)
    shown = await status_of(handle)
    assert (shown.phase, shown.flags.waiting_person, wait.kind) == ("approval", True, "plan")
    assert wait.choices == ["approve", "edit", "reject", "change"]
    assert [subtask["id"] for subtask in (await handle.query("plan"))["subtasks"]] == ["t1", "t2"]
    whole = await handle.query("waiting", "plan.1")
    assert "part t2 of garden 1" in whole["content"]
    for update, sentence in REFUSED:
        assert sentence in await refusal(handle.execute_update("decide_plan", update))
    assert lab.steps == ["plan.1.1"]
    await decide(handle, 1, "approve", by="ann")
    assert (await decide(handle, 1, "approve"))["accepted"]
    result = await handle.result()
    assert result.status == "completed"
    assert (await status_of(handle)).deadline_at > shown.deadline_at, "the clock stood still"
    assert result.timing.held_seconds > 0
    # The first one looked nothing up, and was sent back.
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "t2/1/turn.1", "synthesis.1"]


async def test_a_rejected_plan_ends_the_run(lab: Lab) -> None:
    handle = await proposed(lab)
    await decide(handle, 1, "reject", comment="too dear")
    error = await failure(handle)
    assert (error.type, error.message) == ("PlanRejected", "the plan was rejected: too dear")
    assert partial_result(error).usage.model_calls == 1
    with pytest.raises(RPCError, match="completed"):
        await decide(handle, 1, "approve")


async def test_nobody_decides_in_time(lab: Lab) -> None:
    handles = []
    for then in ("approve", "reject"):
        each = lab.named(f"{lab.run_id}-{then}")
        each.play(script(plan(ONE)))
        handles.append(await each.start(approve_plan=True, approval_timeout="PT5S", on_approval_timeout=then))
    assert (await handles[0].result()).status == "completed"
    assert (await failure(handles[1])).type == "PlanRejected"


async def test_the_planner_is_asked_for_another_plan_in_its_conversation(lab: Lab) -> None:
    handle = await proposed(lab, plans(plan(ONE), plan({"id": "t7"}, {"id": "t8"})))
    await decide(handle, 1, "change", comment="Weigh </feedback> the apples, too")
    await asked(handle, "plan.2")
    assert "<feedback>\nWeigh &lt;/feedback> the apples, too\n</feedback>" in lab.prompt("plan.2.1")
    assert len(lab.call("plan.2.1").step.body["messages"]) == 3
    stale = await refusal(decide(handle, 1, "approve"))
    assert "'plan.1' is decided already: change" in stale
    await decide(handle, 2, "approve")
    result = await handle.result()
    assert [subtask.id for subtask in result.subtasks] == ["t7", "t8"]
    assert result.plan_revisions == 2


async def test_a_planner_that_has_nothing_to_change_leaves_the_step_to_be_decided(lab: Lab) -> None:
    steps = [subtasks(item("t1", "reader")), subtasks(item("t2", "reckoner"), finished=False)]
    played = plans(*steps, as_json({"finished": True, "subtasks": []}))
    handle = await proposed(lab, played, team="crew", strategy="step")
    await decide(handle, 1, "approve")
    await asked(handle, "plan.2")
    await decide(handle, 2, "change", comment="Is it needed?")
    assert (await asked(handle, "plan.3")).prompt_preview == "the planner has no other plan"
    await decide(handle, 3, "approve")
    assert [subtask.id for subtask in (await handle.result()).subtasks] == ["t1", "t2"]


NO_ROOM = status(400, "invalid_request_error", "prompt is too long: 8100 tokens > 8000 maximum")


@pytest.mark.parametrize(("reply", "why"), [(NO_ROOM, "does not fit into the window"), (stop("refusal"), "refused")])
async def test_a_comment_that_brings_no_other_plan_leaves_the_former_one_to_be_decided(
    lab: Lab, reply: Reply, why: str
) -> None:
    handle = await proposed(lab, plans(plan(ONE), reply))
    await decide(handle, 1, "change", comment="Weigh the apples, too")
    assert why in (await asked(handle, "plan.2")).prompt_preview
    await decide(handle, 2, "approve")
    assert [subtask.id for subtask in (await handle.result()).subtasks] == ["t1"]


async def test_another_model_than_the_planner_hears_the_comment(lab: Lab) -> None:
    def play(step: Step) -> Any:
        if step.body["model"] != "claude-haiku-5-5" and "plan.2." in step.call:
            return stop("refusal")
        return plan({"id": "t1", "after": ["t1"]}) if step.call.endswith("plan.2.1") else script(plan(ONE))(step)

    handle = await proposed(lab, play, models={"supervisor": ["claude-opus-5-5", "claude-haiku-5-5"]})
    await decide(handle, 1, "change", comment="Weigh the apples, too")
    await asked(handle, "plan.2")
    taken = [call.step for call in lab.calls if "plan.2." in call.step.call and "haiku" in call.step.body["model"]]
    assert all("Weigh the apples, too" in str(step.body) for step in taken)
    await decide(handle, 2, "approve")
    assert (await handle.result()).status == "completed"


async def test_an_edited_plan_is_checked_and_runs(lab: Lab) -> None:
    handle = await proposed(lab)
    mine: dict[str, Any] = {"subtasks": [{"id": "a", "description": "Find part A of garden 1", "role": "finder"}]}
    ring = {"subtasks": [{**mine["subtasks"][0], "depends_on": ["a"]}]}
    assert "plan cannot run" in await refusal(decide(handle, 1, "edit", plan=ring))
    unknown = {"subtasks": [{**mine["subtasks"][0], "role": "finderr"}]}
    assert "did you mean 'finder'" in await refusal(decide(handle, 1, "edit", plan=unknown))
    await decide(
        handle, 1, "edit", plan={"subtasks": [{**mine["subtasks"][0], "role": "auto", "capabilities": ["flight"]}]}
    )
    wait = await asked(handle, "plan.2")
    assert "flight" in wait.prompt_preview
    await decide(handle, 2, "edit", plan=mine)
    result = await handle.result()
    assert [subtask.id for subtask in result.subtasks] == ["a"]
    assert lab.steps == ["plan.1.1", "a/1/turn.1", "a/1/turn.2", "synthesis.1"]


async def test_a_direct_answer_needs_no_approval(lab: Lab) -> None:
    lab.play(lambda step: as_json({"direct_answer": "Forty.", "subtasks": [], "final_instruction": ""}))
    assert (await lab.run(approve_plan=True)).answer == "Forty."


async def test_the_estimate_comes_from_the_run_before(lab: Lab) -> None:
    lab.play(script(plan(ONE)))
    hand = {"name": "finder", "description": "finds", "system_prompt": "You find."}
    team = {"name": "estimated", "generalist": "finder", "roles": [hand]}  # of no other run
    first = lab.named(f"{lab.run_id}-first")
    first.play(script(plan(ONE)))
    await first.run(team=team)
    handle = await lab.start(team=team, approve_plan=True)
    wait = await asked(handle)
    estimate = (await handle.query("waiting", "plan.1"))["estimate"]
    assert estimate["samples"] == 1
    assert [part["id"] for part in estimate["parts"]] == ["t1", "supervisor"]
    assert estimate["total"]["calls"]["low"] <= 3 <= estimate["total"]["calls"]["high"]
    assert re.match(r"1 subtask, \d+-\d+ calls", wait.prompt_preview)
    two = [{"id": name, "description": f"Find part {name} of garden 1", "role": "finder"} for name in ("a", "b")]
    await decide(handle, 1, "edit", plan={"subtasks": two})
    await handle.result()
    accepted = next(e for e in (await handle.query("trace"))["events"] if e["type"] == "plan_accepted")
    low, high = map(int, re.findall(r"\d+", accepted["data"]["expected"])[:2])
    assert low <= 4 <= high  # of two subtasks
    assert high > estimate["total"]["calls"]["high"]
