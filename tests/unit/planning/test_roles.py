"""Roles of a plan: assigned by capabilities and load, defined by the plan."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.plan import NewRole, Plan, Subtask
from temporal_supervisor.supervision.contract.team import Role, RoleCard, Team, TeamCard, ToolCard, is_name
from temporal_supervisor.supervision.planning.capabilities import (
    able_roles,
    attachment_problems,
    capability_problems,
    role_for,
    settled_role,
    teams_without_room,
    with_assigned_roles,
)
from temporal_supervisor.supervision.planning.new_roles import (
    new_role_problems,
    unknown_role_problems,
    unknown_roles,
    with_new_roles,
)
from temporal_supervisor.supervision.planning.plan_graph import plan_problems
from temporal_supervisor.supervision.planning.team_hints import HINT_ROLES, HINT_TOOLS, team_hints
from tests.unit.shapes import WORDS, acyclic_plans, plan, subtask

skill_sets = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)


@st.composite
def teams(draw: st.DrawFn) -> TeamCard:
    roles = [card(f"r{n}", *draw(skill_sets)) for n in range(draw(st.integers(1, 6)))]
    return TeamCard(name="team", generalist=draw(st.sampled_from(roles)).name, roles=roles)


def card(name: str, *capabilities: str, reads: bool = False) -> RoleCard:
    tools = [ToolCard(name="read_attachment", reads_attachments=True)] if reads else []
    return RoleCard(name=name, capabilities=list(capabilities), model="m", tools=tools)


def work(role_name: str, *capabilities: str, attachments: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> Subtask:
    changes = {"role": role_name, "capabilities": list(capabilities), "attachments": list(attachments)}
    return subtask("t1", *after).model_copy(update=changes)


SHOP = TeamCard(
    name="shop",
    generalist="helper",
    roles=[card("analyst", "sql", "charts"), card("writer", "prose"), card("clerk", "sql"), card("helper")],
)


@given(teams(), skill_sets, st.dictionaries(st.sampled_from(["r0", "r1", "r2"]), st.integers(0, 3)))
def test_the_least_loaded_of_the_able_takes_it(team: TeamCard, wanted: list[str], in_flight: dict[str, int]) -> None:
    candidates = able_roles(team.roles, wanted)
    assert candidates == [r for r in team.roles if {*wanted} <= {*r.capabilities}]
    chosen = role_for(work("auto", *wanted), team, in_flight, lambda _: True)
    if wanted and candidates:
        least = min(in_flight.get(r.name, 0) for r in candidates)
        assert chosen == next(r.name for r in candidates if in_flight.get(r.name, 0) == least)
    else:
        assert chosen == team.generalist


@pytest.mark.parametrize(
    ("wanted", "in_flight", "free", "expected"),
    [
        (work("writer", "sql"), {}, [], "writer"),
        (work("stranger", "sql"), {}, [], "helper"),
        (work("auto"), {}, [], "helper"),
        (work("auto", "charts"), {}, [], "analyst"),
        (work("auto", "magic"), {}, [], "helper"),
        (work("auto", "sql", "magic"), {}, [], "helper"),
        (work("auto", "sql"), {}, ["analyst", "clerk"], "analyst"),
        (work("auto", "sql"), {"analyst": 1}, ["analyst", "clerk"], "clerk"),
        (work("auto", "sql"), {"analyst": 1, "clerk": 1}, ["analyst", "clerk"], "analyst"),
        (work("auto", "sql"), {"analyst": 1, "clerk": 3}, ["clerk"], "clerk"),
        (work("auto", "sql"), {"analyst": 1, "clerk": 3}, [], "analyst"),
    ],
)
def test_a_role_is_fixed_in_the_plan_unless_several_are_able_of_which_a_free_and_idle_one_is_taken(
    wanted: Subtask, in_flight: dict[str, int], free: list[str], expected: str
) -> None:
    fixed = "auto" if wanted.capabilities == ["sql"] and wanted.role == "auto" else expected
    assert settled_role(wanted, SHOP) == with_assigned_roles(plan(wanted), SHOP).subtasks[0].role == fixed
    assert role_for(wanted, SHOP, in_flight, lambda one: one.name in free) == expected


def test_a_role_that_neither_team_nor_plan_has_is_named_with_the_one_meant() -> None:
    roles = {"t1": "auto", "t2": "analyst", "t3": "checker", "t4": "chekker"}
    named = plan(*(subtask(subtask_id, role=role) for subtask_id, role in roles.items()))
    named.new_roles = [NewRole(name="checker", description="d", system_prompt="s")]
    assert unknown_roles(named, SHOP) == {"t4": "chekker"}
    (problem,) = unknown_role_problems(named, SHOP)
    assert "'chekker' is not a role of the team, did you mean 'checker'?" in problem
    named = plan(subtask("t1", candidate_roles=["analyst", "analist"]))
    (problem,) = unknown_role_problems(named, SHOP)
    assert "'analist' is not a role of the team, did you mean 'analyst'?" in problem


def test_capabilities_that_no_role_has_are_named_with_those_there_are() -> None:
    wanted = plan(work("auto", "sql", "magic"), work("x", "magic"), work("auto", "sql", "prose"), work("auto"))
    assert capability_problems(wanted, SHOP) == [
        "subtask 't1' needs the capabilities sql, magic, and no role has all of them (analyst: sql, charts; "
        "writer: prose; clerk: sql; helper: none): name a role, or split the subtask"
    ]


@given(acyclic_plans(6), teams(), st.data())
def test_each_subtask_gets_a_role_that_has_its_capabilities_or_its_dispatch_decides(
    shape: Plan, team: TeamCard, data: st.DataObject
) -> None:
    before = plan(*(s.model_copy(update={"capabilities": data.draw(skill_sets)}) for s in shape.subtasks))
    after = with_assigned_roles(before, team)
    assert plan_problems(after, 99) == []
    assert with_assigned_roles(after, team) == after
    if capability_problems(before, team):
        return
    for s in before.subtasks:
        parts = [part for part in after.subtasks if part.id == s.id or part.id.startswith(f"{s.id}-")]
        assert sorted(each for part in parts for each in part.capabilities) == sorted(s.capabilities)
    for s in after.subtasks:
        if s.role == "auto":
            assert len(able_roles(team.roles, s.capabilities)) > 1
        else:
            assert {*s.capabilities} <= {*team.role(s.role).capabilities}


# --- work for several roles -----------------------------------------------------------------------------


def test_work_for_several_roles_becomes_parts_that_dependents_wait_for() -> None:
    both = work("auto", "sql", "prose", after=("t0",)).model_copy(update={"replaces": ["old"]})
    before = plan(subtask("t0"), both, subtask("t1-2"), subtask("t3", "t1", "t0"))
    parts = with_assigned_roles(before, SHOP).subtasks
    assert [(part.id, part.role, part.capabilities, part.replaces) for part in parts[1:3]] == [
        ("t1", "analyst", ["sql"], ["old"]),
        ("t1-3", "writer", ["prose"], ["old"]),
    ]
    assert parts[1].description == f"{WORDS}\n\nYour part of this: sql. Leave the rest: t1-3 does prose."
    assert [part.depends_on for part in parts] == [[], ["t0"], ["t0"], [], ["t1", "t1-3", "t0"]]
    assert [part.id for part in with_assigned_roles(before, SHOP, taken=["t1-3"]).subtasks][1:3] == ["t1", "t1-4"]
    charted = with_assigned_roles(plan(work("auto", "sql", "charts")), SHOP)
    assert [part.role for part in charted.subtasks] == ["analyst"]


def test_a_part_of_a_long_description_keeps_within_the_limits() -> None:
    changes = {"id": "x" * 64, "description": "a b" * (limits.DESCRIPTION_CHARS // 3)}
    parts = with_assigned_roles(plan(work("auto", "sql", "prose").model_copy(update=changes)), SHOP)
    assert plan_problems(parts, 9) == []
    assert [part.id for part in parts.subtasks] == ["x" * 64, f"{'x' * 56}-2"]
    assert "Your part of this: prose" in parts.subtasks[1].description


@pytest.mark.parametrize("changes", [{"for_each": "lines:a.txt"}, {"candidates": 2}])
def test_work_that_is_done_many_times_over_is_never_split(changes: dict[str, Any]) -> None:
    repeated = plan(work("auto", "sql", "prose").model_copy(update=changes))
    assert len(with_assigned_roles(repeated, SHOP).subtasks) == len(capability_problems(repeated, SHOP)) == 1


def test_attachments_go_to_the_parts_that_read_them() -> None:
    team = TeamCard(name="t", generalist="a", roles=[card("a", "sql"), card("b", "prose", reads=True)])
    parts = with_assigned_roles(
        plan(work("auto", "sql", "prose", attachments=("a.txt", "small"))), team, {"a.txt"}
    ).subtasks
    assert [part.attachments for part in parts] == [["small"], ["a.txt", "small"]]


# --- attachments --------------------------------------------------------------------------------------

READERS = TeamCard(
    name="shop",
    generalist="helper",
    roles=[card("clerk", "sql"), card("reader", "sql", reads=True), card("helper"), card("poet", "prose")],
)
FILES = frozenset({"a.txt", "b.txt"})


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (work("auto", "sql", attachments=("a.txt",)), "reader"),
        (work("auto", "sql", attachments=("other.txt",)), "auto"),
        (work("auto", "sql"), "auto"),
        (work("auto", "prose", attachments=("a.txt",)), "poet"),
        (work("auto", attachments=("a.txt",)), "helper"),
        (work("clerk", "sql", attachments=("a.txt",)), "clerk"),
    ],
)
def test_of_the_able_roles_one_that_reads_gets_the_attachments(wanted: Subtask, expected: str) -> None:
    assert [item.role for item in with_assigned_roles(plan(wanted), READERS, FILES).subtasks] == [expected]


@pytest.mark.parametrize(
    ("wanted", "cannot_read"),
    [
        (work("clerk", attachments=("a.txt",)), "'clerk'"),
        (work("clerk", attachments=("other.txt", "a.txt")), "'clerk'"),
        (work("stranger", attachments=("a.txt",)), "'helper'"),
        (work("poet", attachments=("a.txt",)), "'poet'"),
        (work("reader", attachments=("a.txt",)), None),
        (work("clerk"), None),
        (work("clerk", attachments=("other.txt",)), None),
    ],
)
def test_a_role_that_cannot_read_its_attachments_is_named_with_those_that_can(
    wanted: Subtask, cannot_read: str | None
) -> None:
    problem = (
        f"subtask 't1' lists 'a.txt', which the role {cannot_read} has no tool to read; roles that have one: reader"
    )
    assert attachment_problems(plan(wanted), READERS, FILES) == ([problem] if cannot_read else [])


def test_in_a_team_without_a_reader_the_first_of_the_able_is_named_as_unable_to() -> None:
    read = with_assigned_roles(plan(work("auto", "sql", attachments=("a.txt",))), SHOP, FILES)
    (problem,) = attachment_problems(read, SHOP, FILES)
    assert "which the role 'analyst' has no tool to read" in problem
    assert problem.endswith(": none of this team")


# --- roles that plans define -------------------------------------------------------------------------


def team(**changes: Any) -> Team:
    roles = [Role(name="reader", description="Reads.", system_prompt="Read.", tools=["search"])]
    return Team(**{"name": "shop", "generalist": "reader", "roles": roles, "toolbox": ["search", "count"], **changes})


def new(name: str = "counter", **changes: Any) -> NewRole:
    return NewRole(**{"name": name, "description": "Counts.", "system_prompt": "Count.", "tools": ["count"], **changes})


@pytest.mark.parametrize(("tools", "shared"), [(["search"], True), ([], False)])
def test_a_new_role_may_use_a_tool_of_the_toolbox_that_another_role_has(tools: list[str], shared: bool) -> None:
    roles = [new(tools=tools), new("checker", tools=[])]
    assert new_role_problems(team(), roles) == []
    grown = with_new_roles(team(), roles)
    assert ([role.name for role in grown.roles], grown.share_tools) == (["reader", "counter", "checker"], shared)
    assert (grown.role("counter").tools, grown.role("counter").system_prompt) == (tools, "Count.")


@pytest.mark.parametrize(
    ("role", "complaint"),
    [
        (new(tools=["shell"]), "new role 'counter' asks for the tool 'shell', which is not in the toolbox: search, co"),
        (new("reader"), "roles: role names must differ: reader"),
        (new("auto"), "no role can have the name 'auto'"),
        (new("Big Boss"), "roles.Big Boss.name: must be 1 to 48 lower-case letters"),
    ],
)
def test_a_role_that_may_not_join_is_told_why(role: NewRole, complaint: str) -> None:
    (found,) = new_role_problems(team(), [role, new("painter")])
    assert found.startswith(complaint)


def test_roles_are_taken_up_to_their_number_and_size() -> None:
    longest = {"description": "x" * limits.ROLE_DESCRIPTION_CHARS, "system_prompt": "x" * limits.ROLE_PROMPT_CHARS}
    assert new_role_problems(team(), [new(f"r{n}", **longest) for n in range(limits.NEW_ROLES)]) == []
    many = [new(f"r{n}") for n in range(limits.NEW_ROLES + 1)]
    assert new_role_problems(team(), many) == [
        f"the plan defines {len(many)} new roles, at most {limits.NEW_ROLES} are allowed"
    ]
    assert "differ: counter" in new_role_problems(team(), [new(), new()])[0]


NAMES = st.sampled_from(["counter", "reader", "auto", "Bad Name", "b", "c", ""])
TOOLS = st.lists(st.sampled_from(["search", "count", "shell"]), max_size=3)
ROLES = st.lists(
    st.builds(NewRole, name=NAMES, description=st.text(max_size=5), system_prompt=st.text(max_size=5), tools=TOOLS)
)


@given(ROLES)
def test_roles_without_problems_make_a_team_and_stay_within_the_toolbox(roles: list[NewRole]) -> None:
    if new_role_problems(team(), roles):
        return
    grown = with_new_roles(team(), roles)
    added = grown.roles[1:]
    assert [role.name for role in added] == [role.name for role in roles]
    assert {tool for role in added for tool in role.tools} <= set(team().toolbox)
    assert all(is_name(role.name) for role in added)


def described(name: str, description: str, **fields: Any) -> Role:
    return Role(name=name, description=description, system_prompt="You work.", **fields)


ALIKE = "alpha beta gamma delta epsilon"
SUMS: dict[str, Any] = {"capabilities": ["sums", "maps"]}
CHAIN = [described(f"r{number}", f"Field{number} nest{number} path{number}") for number in range(HINT_ROLES + 1)]


@pytest.mark.parametrize(
    ("roles", "hint"),
    [
        ([described("one", ALIKE), described("two", "epsilon delta gamma beta alpha")], "almost the same description"),
        ([described("one", ALIKE), described("two", "alpha beta zeta eta theta")], ""),
        ([described("one", f"{ALIKE} zeta"), described("two", f"{ALIKE} iota")], "almost the same description"),
        (
            [described("one", "Counts ripe pears", **SUMS), described("two", "Draws fine maps", **SUMS)],
            "the same capabilities",
        ),
        ([described("one", ALIKE, fallback="two"), described("two", ALIKE)], ""),  # meant to be alike
        ([described("one", "Helps with all kinds of questions.")], "vague description"),
        ([described("one", "Works.")], "vague description"),
        ([described("one", "Counts ripe pears.")], ""),
        ([described("busy", "Counts ripe pears.", tools=[f"tool{n}" for n in range(HINT_TOOLS)])], ""),
        ([described("busy", "Counts ripe pears.", tools=[f"tool{n}" for n in range(HINT_TOOLS + 1)])], "has 13 tools"),
        (CHAIN[:HINT_ROLES], ""),
        (CHAIN, "8 roles"),
    ],
)
def test_what_makes_it_hard_to_choose_is_a_hint(roles: list[Role], hint: str) -> None:
    found = team_hints(Team(name="crew", generalist=roles[0].name, roles=roles))
    assert [hint in each for each in found] == ([True] if hint else [])


@pytest.mark.parametrize("file", sorted(BUILTIN_TEAMS.glob("*/team.toml")), ids=lambda file: file.parent.name)
def test_no_bundled_team_gets_a_hint(file: Path) -> None:
    assert team_hints(Team.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("most", "states", "is_refused"),
    [
        (5, {}, True),  # two are named, and each of two teams needs two
        (6, {}, False),
        (4, {"t1": "completed"}, False),  # it has its part already
        (3, {"t1": "running"}, True),
    ],
)
def test_a_plan_leaves_each_team_two_subtasks_of_its_own(most: int, states: dict[str, str], is_refused: bool) -> None:
    team = TeamCard(name="x", generalist="hand", roles=[card("hand"), card("crew").model_copy(update={"team": "crew"})])
    shape = plan(subtask("t1", role="crew"), subtask("t2", role="crew"))
    problems = teams_without_room(shape, team, most, states)
    assert bool(problems) is is_refused
    if is_refused:
        assert problems[0].endswith(f"at most {most} are allowed")
