"""Planning by strategy: what the model is asked, what its reply becomes, and what sends it back."""

from typing import Any

import pytest

from activities.contracts.run_contracts import PlanInput, PlanReply, WorkNote
from activities.questions.planning import PLAN
from supervision.base import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import Role, Team
from tests.activity.supervising import MODEL, ROLE, Desk
from tests.scripted_model import Reply, as_json, stop, text

T1 = {"id": "t1", "description": "Count the pears of 1990", "role": "reader"}
T2 = {"id": "t2", "description": "Weigh the pears of 1990", "role": "counter", "depends_on": ["t1"]}
COOK = {"name": "cook", "description": "Cooks pears.", "system_prompt": "You cook.", "tools": ["calculate"]}


def team(*more: Role, **fields: Any) -> Team:
    roles = [
        Role(name="reader", capabilities=["reading", "maps"], **ROLE),
        Role(name="counter", capabilities=["counting", "maps"], **ROLE),
        *more,
    ]
    return Team(**{"name": "orchard", "generalist": "reader", "roles": roles, **fields})


async def plan(desk: Desk, *replies: Reply, of: str | Team | None = None, **fields: Any) -> PlanReply:
    """The reply to one call; a team reference given in `fields` is used as it is."""
    desk.say(*replies)
    goal_ref = await desk.put("goal", fields.pop("goal", "How large is the pear crop?"))
    team_ref = fields.pop("team_ref", None) or await desk.team(of or team())
    request = PlanInput(
        run=await desk.run_ref(), goal_ref=goal_ref, team_ref=team_ref, model=MODEL, **{"max_subtasks": 12, **fields}
    )
    return await desk.ask(PLAN, request)


def planned(reply: PlanReply) -> Plan:
    assert reply.plan is not None
    return reply.plan


def subtasks(*items: dict[str, Any], **more: Any) -> Reply:
    return as_json({"subtasks": list(items), "new_roles": [], "final_instruction": "Sum up.", **more})


def item_of(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema["properties"]["subtasks"]["items"]["$ref"].rsplit("/", 1)[1]
    fields: dict[str, Any] = schema["$defs"][reference]["properties"]
    return fields


async def test_auto_chooses_how_to_work_and_stores_the_plan(desk: Desk) -> None:
    reply = await plan(desk, subtasks(T1, T2, strategy="plan", direct_answer=None))
    assert (reply.strategy, reply.problems, reply.finished) == ("plan", [], False)
    stored = Plan.model_validate_json(await desk.read(reply.plan_ref))
    assert [(s.id, s.role, s.depends_on, s.candidates) for s in stored.subtasks] == [
        ("t1", "reader", [], 1),
        ("t2", "counter", ["t1"], 1),
    ]
    assert stored == reply.plan
    assert desk.steps == ["plan.1.1"]


async def test_the_schema_offers_the_roles_and_then_auto(desk: Desk) -> None:
    await plan(desk, subtasks(T1))
    assert list(desk.schema["properties"]) == [
        "reasoning", "direct_answer", "strategy", "subtasks", "aggregation", "final_instruction",
    ]  # fmt: skip
    assert desk.schema["properties"]["aggregation"]["enum"] == ["merge", "select", "reduce"]
    assert desk.schema["properties"]["strategy"]["enum"] == ["plan", "step"]
    fields = item_of(desk.schema)
    assert fields["role"]["enum"] == ["reader", "counter", "auto"]
    assert fields["capabilities"]["items"]["enum"] == ["counting", "maps", "reading"]
    assert "timeout_seconds" not in fields
    (form,) = desk.schema["$defs"].values()
    assert form["required"] == ["id", "description", "reasoning", "role", "depends_on"]
    assert "replaces" not in fields
    assert "capabilities: reading, maps" in desk.prompt


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (text("no plan today"), "the reply is not the JSON asked for: the text holds no JSON object"),
        (stop("max_tokens", '{"subtasks": ['), "the plan was cut off: make it shorter"),
        (
            subtasks({**T1, "candidates": 2, "candidate_roles": ["ghost"]}),
            "subtask 't1' names 'ghost' in candidate_roles",
        ),
    ],
)
async def test_a_plan_that_can_not_run_says_why(desk: Desk, reply: Reply, problem: str) -> None:
    got = await plan(desk, reply)
    assert got.plan_ref is None
    assert got.problems[0].startswith(problem)


async def test_problems_are_fed_back_into_the_same_conversation(desk: Desk) -> None:
    first = await plan(desk, subtasks({**T1, "depends_on": ["t9"]}))
    mended = await plan(desk, subtasks(T1), head=first.head, problems=first.problems, attempt=2)
    assert mended.plan_ref is not None
    assert desk.steps == ["plan.1.1", "plan.1.2"]
    assert "depends on 't9', which is not in the plan" in desk.asked[-1].step.prompt
    assert len(desk.asked[-1].step.body["messages"]) == 3


async def test_a_capability_nobody_has_makes_the_team_incapable(desk: Desk) -> None:
    reply = await plan(desk, subtasks({**T1, "role": "auto", "capabilities": ["flying"]}))
    assert reply.incapable
    assert "needs the capability 'flying', which no role has" in reply.problems[0]


# --- roles that plans define -----------------------------------------------------------------------


async def _write_workshop(desk: Desk, words: str = "") -> None:
    folder = desk.teams_folder / "workshop"
    folder.mkdir()
    (folder / "team.toml").write_text(
        'name = "workshop"\ngeneralist = "helper"\n[[roles]]\nname = "helper"\ndescription = "Helps."\n'
        'system_prompt = "You help."\n[[tools]]\nname = "calculate"\nuses = "calculator"\n'
        f"{words}"
    )


async def test_a_new_role_joins_no_tools_that_no_role_may_have(desk: Desk) -> None:
    await _write_workshop(desk, 'returns = "untrusted"\nreads = "private"\neffects = "write"\n')
    ref = await desk.team(team(toolbox=["workshop/calculate"]))
    reply = await plan(desk, subtasks({**T1, "new_role": "cook"}, new_roles=[COOK]), team_ref=ref)
    assert "cook.tools: calculate reads private data, calculate returns untrusted text" in reply.problems[0]


@pytest.mark.parametrize(
    ("new_roles", "problem"),
    [([COOK], "new role 'cook' asks for the tool 'calculate', which is not in the toolbox: none")],
)
async def test_a_new_role_that_may_not_join_sends_the_plan_back(
    desk: Desk, new_roles: list[dict[str, Any]], problem: str
) -> None:
    reply = await plan(desk, subtasks(T1, new_roles=new_roles))
    assert reply.problems[0].startswith(problem)
    assert (reply.team_ref, reply.team, reply.plan) == (None, None, None)


# --- teams as roles ----------------------------------------------------------------------------------


async def test_roles_that_are_teams_need_a_level_to_spare(desk: Desk) -> None:
    await _write_workshop(desk)
    nested = team(Role(name="crew", description="A crew.", team="workshop", capabilities=["building"]))
    refused = await plan(desk, subtasks({**T1, "role": "crew"}), of=nested)
    assert refused.problems == ["role 'crew' is a team and nesting is not possible here"]
    assert item_of(desk.schema)["role"]["enum"] == ["reader", "counter", "auto"]
    building = {**T1, "role": "auto", "capabilities": ["building"]}
    assert (await plan(desk, subtasks(building), of=nested)).incapable
    allowed = await plan(desk, subtasks(building), of=nested, nesting_left=1)
    assert planned(allowed).subtasks[0].role == "crew"
    assert item_of(desk.schema)["role"]["enum"] == ["reader", "counter", "crew", "auto"]


# --- route -------------------------------------------------------------------------------------------


async def route(desk: Desk, reply: Reply, **fields: Any) -> PlanReply:
    return await plan(desk, reply, strategy="route", **fields)


def choice(role: str, secondary: str | None = None, description: str = "Count all the pears") -> Reply:
    return as_json({"role": role, "secondary_role": secondary, "description": description})


@pytest.mark.parametrize("reply", [choice("pilot"), choice("auto", "counter")])
async def test_an_invalid_choice_goes_to_the_generalist_with_the_goal(desk: Desk, reply: Reply) -> None:
    got = await route(desk, reply)
    assert [(s.role, s.description) for s in planned(got).subtasks] == [("reader", "How large is the pear crop?")]


async def test_a_choice_nobody_can_read_is_asked_for_again_and_at_last_made_here(desk: Desk) -> None:
    first = await route(desk, text("counter, I think"))
    assert (first.plan, len(first.problems)) == (None, 1)
    last = await route(desk, text("as I said"), head=first.head, problems=first.problems, attempt=limits.PLAN_TRIES)
    assert last.problems == []
    assert planned(last).subtasks[0].role == "reader"


# --- step by step and revisions ------------------------------------------------------------------------


async def worked_on(desk: Desk, state: str = "completed") -> dict[str, Any]:
    ref = await desk.plan(Subtask(**T1), Subtask(**{**T2, "depends_on": []}))
    notes = [
        WorkNote(subtask_id="t1", role="reader", state=state, note="it found 44 pears"),
        WorkNote(subtask_id="t2", role="counter", state="failed", note="TurnLimit: ten turns"),
    ]
    return {"plan_ref": ref, "done": notes, "revision": 2}


@pytest.mark.parametrize(("change", "problem"), [({"id": "t1"}, "subtask id 't1' is in the plan already")])
async def test_a_revision_of_what_stands_is_sent_back(desk: Desk, change: dict[str, Any], problem: str) -> None:
    new = {"id": "t3", "description": "Weigh the pears by hand", "role": "counter", **change}
    reply = await plan(desk, subtasks(new), **await worked_on(desk))
    assert reply.problems[0].startswith(problem)


async def test_a_plan_that_no_history_takes_goes_back_with_its_size(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PLAN_REPLY_BYTES", 2000)
    first = [{**T1, "id": f"t{number}"} for number in range(20)]
    wide = [{**T2, "id": f"w{number}", "depends_on": [item["id"] for item in first]} for number in range(20)]
    reply = await plan(desk, subtasks(*first, *wide, strategy="plan", direct_answer=None), max_subtasks=1000)
    assert reply.plan is None
    assert "fewer dependencies" in " ".join(reply.problems)
    assert len(reply.model_dump_json()) < 2000
