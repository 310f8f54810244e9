"""Assignment by capabilities: whoever is able, the least loaded; no single one, then as few as can be."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import RoleCard, TeamCard
from supervision.planning.capabilities import able, choose, cover, expand, missing, role_for, settled
from supervision.planning.plan_graph import plan_problems
from tests.unit.shapes import WORDS, acyclic_plans, plan, subtask

skills = st.sampled_from("abcdefg")
skill_sets = st.lists(skills, unique=True, max_size=5)


@st.composite
def teams(draw: st.DrawFn) -> TeamCard:
    roles = [role(f"r{n}", *draw(skill_sets)) for n in range(draw(st.integers(1, 6)))]
    return TeamCard(name="team", generalist=draw(st.sampled_from(roles)).name, roles=roles)


def role(name: str, *capabilities: str) -> RoleCard:
    return RoleCard(name=name, capabilities=list(capabilities), model="m")


def auto(subtask_id: str, *capabilities: str, after: tuple[str, ...] = ()) -> Subtask:
    return subtask(subtask_id, *after).model_copy(update={"capabilities": list(capabilities)})


SHOP = TeamCard(
    name="shop",
    generalist="helper",
    roles=[role("analyst", "sql", "charts"), role("writer", "prose"), role("clerk", "sql"), role("helper")],
)


@given(teams(), skill_sets)
def test_a_cover_is_the_smallest_there_is_and_the_first_of_its_size(team: TeamCard, wanted: list[str]) -> None:
    useful = [r for r in team.roles if {*r.capabilities} & {*wanted}]
    every = [
        list(combination)
        for count in range(len(useful) + 1)
        for combination in combinations(useful, count)
        if {*wanted} <= {c for r in combination for c in r.capabilities}
    ]
    assert cover(team.roles, wanted) == (every[0] if every else None)


def test_of_two_equally_small_covers_the_first_is_taken() -> None:
    roles = [role("r0", "b", "c"), role("r1", "a", "f"), role("r2", "a", "b", "c")]  # greedy begins with r2
    assert [r.name for r in cover(roles, "abcf") or []] == ["r0", "r1"]


def test_a_cover_of_many_roles_is_found_without_trying_all(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = [role(f"r{n}", f"c{n}", f"c{n + 1}") for n in range(40)]
    wanted = {f"c{n}" for n in range(41)}
    found = cover(roles, wanted)
    assert found is not None
    assert {c for r in found for c in r.capabilities} >= wanted
    pair = [role("left", "a", "b", "c"), role("right", "d", "e", "f"), role("greedy", "b", "c", "d", "e")]
    assert [r.name for r in cover(pair, set("abcdef")) or []] == ["left", "right"]
    monkeypatch.setattr(limits, "COVER_TRIES", 0)
    assert [r.name for r in cover(pair, set("abcdef")) or []] == ["left", "right", "greedy"]


@given(teams(), skill_sets, st.dictionaries(st.sampled_from(["r0", "r1", "r2"]), st.integers(0, 3)))
def test_the_least_loaded_of_the_able_takes_it(team: TeamCard, wanted: list[str], in_flight: dict[str, int]) -> None:
    candidates = able(team.roles, wanted)
    assert all({*wanted} <= {*r.capabilities} for r in candidates)
    if not candidates:
        assert role_for(auto("t1", *wanted), team, in_flight) == team.generalist
        return
    chosen = choose(candidates, in_flight)
    assert [r.name for r in candidates if in_flight.get(r.name, 0) < in_flight.get(chosen, 0)] == []
    if wanted:
        assert role_for(auto("t1", *wanted), team, in_flight) == chosen


def test_equal_loads_go_in_the_order_of_the_team() -> None:
    assert choose(able(SHOP.roles, {"sql"}), {}) == "analyst"
    assert choose(able(SHOP.roles, {"sql"}), {"analyst": 1}) == "clerk"
    assert choose(able(SHOP.roles, {"sql"}), {"analyst": 1, "clerk": 1}) == "analyst"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (subtask("t1").model_copy(update={"role": "writer", "capabilities": ["sql"]}), "writer"),
        (subtask("t1").model_copy(update={"role": "stranger", "capabilities": ["sql"]}), "helper"),
        (auto("t1"), "helper"),
        (auto("t1", "charts"), "analyst"),
        (auto("t1", "sql"), "auto"),
        (auto("t1", "magic"), "helper"),
    ],
)
def test_a_role_is_fixed_in_the_plan_unless_several_are_able(wanted: Subtask, expected: str) -> None:
    assert expand(plan(wanted), SHOP).subtasks[0].role == expected


def test_work_for_several_roles_becomes_parts_that_dependents_wait_for() -> None:
    before = plan(subtask("t0"), auto("t1", "sql", "prose", after=("t0",)), subtask("t1-2"), subtask("t3", "t1", "t0"))
    parts = expand(before, SHOP).subtasks
    assert [(s.id, s.role, s.capabilities) for s in parts[1:3]] == [
        ("t1", "analyst", ["sql"]),
        ("t1-3", "writer", ["prose"]),
    ]
    assert parts[1].description == f"{WORDS}\n\nYour part of this: sql. Leave the rest: t1-3 does prose."
    assert parts[2].description == f"{WORDS}\n\nYour part of this: prose. Leave the rest: t1 does sql."
    assert [s.depends_on for s in parts] == [[], ["t0"], ["t0"], [], ["t1", "t1-3", "t0"]]


def test_parts_take_the_place_of_what_the_whole_replaced_and_no_taken_id() -> None:
    before = plan(auto("t2", "sql", "prose").model_copy(update={"replaces": ["t1"]}))
    assert [(s.id, s.replaces) for s in expand(before, SHOP, ["t2-2"]).subtasks] == [("t2", ["t1"]), ("t2-3", ["t1"])]


def test_a_part_of_a_long_description_keeps_within_the_limit() -> None:
    long = auto("x" * 64, "sql", "prose").model_copy(update={"description": "a b" * (limits.DESCRIPTION_CHARS // 3)})
    parts = expand(plan(long), SHOP)
    assert plan_problems(parts, 9) == []
    assert "Your part of this: prose" in parts.subtasks[1].description


def test_a_capability_that_nobody_has_is_named_with_those_there_are() -> None:
    wanted = plan(auto("t1", "sql", "magic"), subtask("t2").model_copy(update={"role": "x", "capabilities": ["magic"]}))
    assert missing(wanted, SHOP) == [
        "subtask 't1' needs the capability 'magic', which no role has (known: sql, charts, prose)"
    ]
    nobody = TeamCard(name="t", generalist="a", roles=[role("a")])
    assert missing(plan(auto("t1", "sql")), nobody)[0].endswith("which no role has (known: none)")


@given(acyclic_plans(6), teams(), st.data())
def test_every_plan_stays_one_that_can_run_and_every_capability_is_covered(
    shape: Plan, team: TeamCard, data: st.DataObject
) -> None:
    before = plan(*(auto(s.id, *data.draw(skill_sets), after=tuple(s.depends_on)) for s in shape.subtasks))
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


def test_of_the_able_roles_a_free_one_goes_before_the_least_loaded() -> None:
    roles = [role("reader", "reading"), role("librarian", "reading")]
    team = TeamCard(name="crew", generalist="reader", roles=roles)
    busy = {"reader": 1, "librarian": 3}
    assert role_for(auto("t1", "reading"), team, busy) == "reader"
    assert role_for(auto("t1", "reading"), team, busy, lambda one: one.name == "librarian") == "librarian"
    assert role_for(auto("t1", "reading"), team, busy, lambda one: False) == "reader"


TEAM = TeamCard(
    name="shop",
    generalist="helper",
    roles=[
        RoleCard(name="analyst", capabilities=["sql", "charts"], model="m"),
        RoleCard(name="helper", capabilities=["sql"], model="m"),
    ],
)


@pytest.mark.parametrize(
    ("role", "capabilities", "expected"),
    [
        ("analyst", [], "analyst"),
        ("stranger", [], "helper"),
        ("auto", [], "helper"),
        ("auto", ["sql"], "auto"),
        ("auto", ["sql", "charts"], "analyst"),
        ("auto", ["poetry"], "helper"),
        ("auto", ["sql", "poetry"], "helper"),
    ],
)
def test_every_subtask_gets_a_role_of_the_team(role: str, capabilities: list[str], expected: str) -> None:
    wanted = subtask("t1").model_copy(update={"role": role, "capabilities": capabilities})
    assert settled(wanted, TEAM) == expected


def test_parts_get_ids_that_nobody_has_and_that_are_short_enough() -> None:
    long = "x" * 64
    first = expand(plan(auto(long, "sql", "prose")), SHOP)
    assert [each.id for each in first.subtasks] == [long, f"{long[:56]}-2"]
    again = expand(plan(auto("t1", "sql", "prose")), SHOP, taken=["t1-2"])
    assert [each.id for each in again.subtasks] == ["t1", "t1-3"]


def test_as_many_combinations_as_allowed_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = [role("left", "a", "b", "c"), role("right", "d", "e", "f"), role("greedy", "b", "c", "d", "e")]
    monkeypatch.setattr(limits, "COVER_TRIES", 3)  # combinations of two of them
    assert [r.name for r in cover(roles, set("abcdef")) or []] == ["left", "right"]
