"""Attachments go to roles that can read them, and a plan that sends them elsewhere is told."""

import pytest

from supervision.contract.plan import Subtask
from supervision.contract.team import RoleCard, TeamCard, ToolCard
from supervision.planning.capabilities import for_readers, unreadable
from tests.unit.shapes import plan, subtask


def role(name: str, *capabilities: str, reads: bool = False) -> RoleCard:
    tools = [ToolCard(name="read_attachment", reads_attachments=True)] if reads else []
    return RoleCard(name=name, model="m", capabilities=list(capabilities), tools=tools)


TEAM = TeamCard(
    name="shop",
    generalist="helper",
    roles=[role("clerk", "sql"), role("reader", "sql", reads=True), role("helper"), role("poet", "prose")],
)
FILES = frozenset({"a.txt", "b.txt"})


def given(name: str, *attachments: str, capabilities: tuple[str, ...] = ()) -> Subtask:
    changes = {"role": name, "attachments": list(attachments), "capabilities": list(capabilities)}
    return subtask("t1").model_copy(update=changes)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (given("auto", "a.txt", capabilities=("sql",)), "reader"),
        (given("auto", "other.txt", capabilities=("sql",)), "auto"),
        (given("auto", capabilities=("sql",)), "auto"),
        (given("auto", "a.txt", capabilities=("prose",)), "auto"),
        (given("auto", "a.txt"), "auto"),
        (given("clerk", "a.txt", capabilities=("sql",)), "clerk"),
    ],
)
def test_of_the_able_roles_one_that_reads_gets_the_attachments(wanted: Subtask, expected: str) -> None:
    assert [item.role for item in for_readers(plan(wanted), TEAM, FILES).subtasks] == [expected]


@pytest.mark.parametrize(
    ("wanted", "role_named"),
    [
        (given("clerk", "a.txt"), "clerk"),
        (given("stranger", "a.txt"), "helper"),
        (given("auto", "a.txt", capabilities=("prose",)), "poet"),
    ],
)
def test_a_role_that_cannot_read_what_it_is_given_is_named_with_those_that_can(
    wanted: Subtask, role_named: str
) -> None:
    (problem,) = unreadable(plan(wanted), TEAM, FILES)
    assert f"'{role_named}'" in problem
    assert "'a.txt'" in problem
    assert problem.endswith(": reader")


@pytest.mark.parametrize("wanted", [given("reader", "a.txt"), given("clerk"), given("clerk", "other.txt")])
def test_what_can_be_read_or_is_not_given_is_no_problem(wanted: Subtask) -> None:
    assert unreadable(plan(wanted), TEAM, FILES) == []


def test_only_what_cannot_be_read_is_named() -> None:
    (problem,) = unreadable(plan(given("clerk", "other.txt", "b.txt")), TEAM, FILES)
    assert "b.txt" in problem
    assert "other.txt" not in problem


def test_a_team_without_a_reader_says_so() -> None:
    nobody = TeamCard(name="shop", generalist="clerk", roles=[role("clerk")])
    (problem,) = unreadable(plan(given("clerk", "a.txt")), nobody, FILES)
    assert problem.endswith(": none of this team")
