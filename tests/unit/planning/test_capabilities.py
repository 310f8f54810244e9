"""Assignment by capabilities: the least loaded of the able roles, else several roles with a share each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import RoleCard, TeamCard, ToolCard
from supervision.planning.capabilities import able, expand, for_readers, missing, role_for, settled, shares, unreadable
from supervision.planning.plan_graph import plan_problems
from tests.unit.shapes import WORDS, acyclic_plans, plan, subtask

skill_sets = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)


@st.composite
def teams(draw: st.DrawFn) -> TeamCard:
    roles = [role(f"r{n}", *draw(skill_sets)) for n in range(draw(st.integers(1, 6)))]
    return TeamCard(name="team", generalist=draw(st.sampled_from(roles)).name, roles=roles)


def role(name: str, *capabilities: str, reads: bool = False) -> RoleCard:
    tools = [ToolCard(name="read_attachment", reads_attachments=True)] if reads else []
    return RoleCard(name=name, capabilities=list(capabilities), model="m", tools=tools)


def work(role_name: str, *capabilities: str, attachments: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> Subtask:
    changes = {"role": role_name, "capabilities": list(capabilities), "attachments": list(attachments)}
    return subtask("t1", *after).model_copy(update=changes)


SHOP = TeamCard(
    name="shop",
    generalist="helper",
    roles=[role("analyst", "sql", "charts"), role("writer", "prose"), role("clerk", "sql"), role("helper")],
)


@given(teams(), skill_sets)
def test_the_role_with_most_of_the_remaining_capabilities_takes_them(team: TeamCard, wanted: list[str]) -> None:
    split = shares(team.roles, wanted)
    remaining = {*wanted}
    for taker, share in split:
        gains = [len(remaining & {*r.capabilities}) for r in team.roles]
        assert (taker, len(share)) == (team.roles[gains.index(max(gains))], max(gains))
        assert {*share} <= remaining & {*taker.capabilities}
        remaining -= {*share}
    known = {c for r in team.roles for c in r.capabilities}
    assert bool(split) == (bool(wanted) and {*wanted} <= known)
    assert not (split and remaining)


@given(teams(), skill_sets, st.dictionaries(st.sampled_from(["r0", "r1", "r2"]), st.integers(0, 3)))
def test_the_least_loaded_of_the_able_takes_it(team: TeamCard, wanted: list[str], in_flight: dict[str, int]) -> None:
    candidates = able(team.roles, wanted)
    assert candidates == [r for r in team.roles if {*wanted} <= {*r.capabilities}]
    chosen = role_for(work("auto", *wanted), team, in_flight)
    if wanted and candidates:
        least = min(in_flight.get(r.name, 0) for r in candidates)
        assert chosen == next(r.name for r in candidates if in_flight.get(r.name, 0) == least)
    else:
        assert chosen == team.generalist


@pytest.mark.parametrize(
    ("in_flight", "free", "expected"),
    [
        ({}, ["analyst", "clerk"], "analyst"),
        ({"analyst": 1}, ["analyst", "clerk"], "clerk"),
        ({"analyst": 1, "clerk": 1}, ["analyst", "clerk"], "analyst"),
        ({"analyst": 1, "clerk": 3}, ["clerk"], "clerk"),
        ({"analyst": 1, "clerk": 3}, [], "analyst"),
    ],
)
def test_of_the_able_roles_a_free_one_goes_first_then_the_least_loaded_then_the_first(
    in_flight: dict[str, int], free: list[str], expected: str
) -> None:
    assert role_for(work("auto", "sql"), SHOP, in_flight, lambda one: one.name in free) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (work("writer", "sql"), "writer"),
        (work("stranger", "sql"), "helper"),
        (work("auto"), "helper"),
        (work("auto", "charts"), "analyst"),
        (work("auto", "sql"), "auto"),
        (work("auto", "magic"), "helper"),
        (work("auto", "sql", "magic"), "helper"),
    ],
)
def test_a_role_is_fixed_in_the_plan_unless_several_are_able(wanted: Subtask, expected: str) -> None:
    assert settled(wanted, SHOP) == expected
    assert expand(plan(wanted), SHOP).subtasks[0].role == expected


# --- splitting ----------------------------------------------------------------------------------------


def test_work_for_several_roles_becomes_parts_that_dependents_wait_for() -> None:
    both = work("auto", "sql", "prose", after=("t0",)).model_copy(update={"replaces": ["old"]})
    before = plan(subtask("t0"), both, subtask("t1-2"), subtask("t3", "t1", "t0"))
    parts = expand(before, SHOP).subtasks
    assert [(s.id, s.role, s.capabilities, s.replaces) for s in parts[1:3]] == [
        ("t1", "analyst", ["sql"], ["old"]),
        ("t1-3", "writer", ["prose"], ["old"]),
    ]
    assert parts[1].description == f"{WORDS}\n\nYour part of this: sql. Leave the rest: t1-3 does prose."
    assert parts[2].description == f"{WORDS}\n\nYour part of this: prose. Leave the rest: t1 does sql."
    assert [s.depends_on for s in parts] == [[], ["t0"], ["t0"], [], ["t1", "t1-3", "t0"]]
    assert [s.id for s in expand(before, SHOP, ["t1-3"]).subtasks][1:3] == ["t1", "t1-4"]


def test_a_part_of_a_long_description_keeps_within_the_limits() -> None:
    changes = {"id": "x" * 64, "description": "a b" * (limits.DESCRIPTION_CHARS // 3)}
    parts = expand(plan(work("auto", "sql", "prose").model_copy(update=changes)), SHOP)
    assert plan_problems(parts, 9) == []
    assert [part.id for part in parts.subtasks] == ["x" * 64, f"{'x' * 56}-2"]
    assert "Your part of this: prose" in parts.subtasks[1].description


def test_a_capability_that_no_role_has_is_named_with_those_there_are() -> None:
    wanted = plan(work("auto", "sql", "magic", "magic"), work("x", "magic"))
    assert missing(wanted, SHOP) == [
        "subtask 't1' needs the capability 'magic', which no role has (known: sql, charts, prose)"
    ]
    bare = TeamCard(name="t", generalist="a", roles=[role("a")])
    assert missing(plan(work("auto", "sql")), bare)[0].endswith("which no role has (known: none)")


@given(acyclic_plans(6), teams(), st.data())
def test_every_plan_stays_one_that_can_run_and_every_capability_is_covered(
    shape: Plan, team: TeamCard, data: st.DataObject
) -> None:
    before = plan(*(s.model_copy(update={"capabilities": data.draw(skill_sets)}) for s in shape.subtasks))
    after = expand(before, team)
    assert plan_problems(after, 99) == []
    assert expand(after, team) == after
    if missing(before, team):
        return
    for s in after.subtasks:
        if s.role == "auto":
            assert len(able(team.roles, s.capabilities)) > 1
        else:
            assert {*s.capabilities} <= {*team.role(s.role).capabilities}
    for s in before.subtasks:
        parts = [p for p in after.subtasks if p.id == s.id or p.id.startswith(f"{s.id}-")]
        assert sorted(c for p in parts for c in p.capabilities) == sorted(s.capabilities)


# --- attachments --------------------------------------------------------------------------------------

READERS = TeamCard(
    name="shop",
    generalist="helper",
    roles=[role("clerk", "sql"), role("reader", "sql", reads=True), role("helper"), role("poet", "prose")],
)
FILES = frozenset({"a.txt", "b.txt"})


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (work("auto", "sql", attachments=("a.txt",)), "reader"),
        (work("auto", "sql", attachments=("other.txt",)), "auto"),
        (work("auto", "sql"), "auto"),
        (work("auto", "prose", attachments=("a.txt",)), "auto"),
        (work("auto", attachments=("a.txt",)), "auto"),
        (work("clerk", "sql", attachments=("a.txt",)), "clerk"),
    ],
)
def test_of_the_able_roles_one_that_reads_gets_the_attachments(wanted: Subtask, expected: str) -> None:
    assert [item.role for item in for_readers(plan(wanted), READERS, FILES).subtasks] == [expected]


@pytest.mark.parametrize(
    ("wanted", "cannot_read"),
    [
        (work("clerk", attachments=("a.txt",)), "'clerk'"),
        (work("clerk", attachments=("other.txt", "a.txt")), "'clerk'"),
        (work("stranger", attachments=("a.txt",)), "'helper'"),
        (work("auto", "prose", attachments=("a.txt",)), "'poet'"),
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
    assert unreadable(plan(wanted), READERS, FILES) == ([problem] if cannot_read else [])


def test_a_team_without_a_reader_says_so() -> None:
    (problem,) = unreadable(plan(work("clerk", attachments=("a.txt",))), SHOP, FILES)
    assert problem.endswith(": none of this team")
