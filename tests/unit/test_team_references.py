"""References inside a team: what does not fit together is told, whatever else is wrong with the data."""

from typing import Any

import pytest

from supervision import limits
from supervision.team_references import names_of, reference_problems, role_problems, tables, texts

ANALYST: dict[str, Any] = {"name": "analyst", "system_prompt": "Count."}
WRITER: dict[str, Any] = {"name": "writer", "system_prompt": "Write."}


def problems(*roles: object, **fields: object) -> list[str]:
    return reference_problems({"generalist": "analyst", "roles": [*roles], **fields})


def test_a_team_that_fits_together_has_no_problem() -> None:
    route, tool = {"pattern": "refund", "role": "writer"}, {"name": "sql"}
    assert problems({**ANALYST, "fallback": "writer", "tools": ["sql"]}, WRITER, routes=[route], tools=[tool]) == []


@pytest.mark.parametrize(
    ("roles", "fields", "words"),
    [
        ([ANALYST, ANALYST, WRITER], {}, "role names must differ: analyst"),
        ([WRITER], {}, "generalist 'analyst' is not one of the roles: writer"),
        ([ANALYST, {**WRITER, "fallback": "analist"}], {}, "role 'writer': fallback 'analist' is not one of"),
        ([ANALYST, {**WRITER, "backup": "boss"}], {}, "role 'writer': backup 'boss' is not one of"),
        ([{**ANALYST, "fallback": "analyst"}], {}, "role 'analyst' is its own fallback"),
        ([ANALYST], {"routes": [{"role": "clerk"}]}, "routes: 'clerk' is not one of the roles"),
        ([ANALYST], {"tools": [{"name": "q"}, {"name": "q"}, {"name": "r"}]}, "tool names must differ: q"),
        ([{**ANALYST, "tools": ["q", "r"]}, {**WRITER, "tools": ["q"]}], {}, "roles share the tools q:"),
        ([{"name": "analyst"}], {}, "role 'analyst' needs a system_prompt"),
    ],
)
def test_what_does_not_fit_together_is_one_sentence(roles: list[object], fields: dict[str, object], words: str) -> None:
    (problem,) = problems(*roles, **fields)
    assert problem.startswith(words)


def test_a_name_close_to_a_role_is_told_with_it() -> None:
    (problem,) = problems(ANALYST, {**WRITER, "fallback": "analist"})
    assert "did you mean 'analyst'" in problem


def test_tools_may_be_shared_when_that_is_meant_and_one_role_may_name_one_twice() -> None:
    assert problems({**ANALYST, "tools": ["q"]}, {**WRITER, "tools": ["q"]}, share_tools=True) == []
    assert problems({**ANALYST, "tools": ["q", "q"]}) == []


@pytest.mark.parametrize("roles", [[{"system_prompt": "x"}, ANALYST], ["analyst"], []])
def test_where_a_role_has_no_name_no_other_name_is_called_unknown(roles: list[object]) -> None:
    assert problems(*roles, generalist="boss", routes=[{"role": "boss"}]) == []


def test_of_very_many_problems_the_first_are_told() -> None:
    many = [{"name": f"role{n}"} for n in range(limits.FIELD_COMPLAINTS + 1)]
    assert len(problems(*many)) == limits.FIELD_COMPLAINTS


@pytest.mark.parametrize(
    ("role", "count"),
    [
        (ANALYST, 0),
        ({"name": "a"}, 1),
        ({"name": "a", "system_prompt": " "}, 1),
        ({"name": "a", "system_prompt": 7}, 0),
        ({"name": "a", "team": "shop"}, 0),
        ({"name": "a", "team": "shop", "tools": []}, 0),
        ({"name": "a", "team": "shop", "tools": ["q"]}, 1),
        ({**ANALYST, "tools": ["q"]}, 0),
    ],
)
def test_a_role_has_a_prompt_or_is_a_team_with_tools_of_its_own(role: dict[str, object], count: int) -> None:
    assert len(list(role_problems(role))) == count


@pytest.mark.parametrize("value", [None, "a", 3, {"name": "a"}])
def test_what_is_no_list_has_no_items(value: object) -> None:
    assert (tables(value), texts(value)) == ([], [])


def test_of_a_list_only_what_is_of_the_kind_is_taken() -> None:
    assert tables([{"a": 1}, "b", 3]) == [{"a": 1}]
    assert texts([{"a": 1}, "b", 3]) == ["b"]
    assert names_of([{"name": "a"}, {}, {"name": 3}]) == ["a"]
