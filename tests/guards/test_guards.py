"""The table of guards fits the code: `make guards` plays the cases without them."""

import ast
from itertools import chain

import pytest

from tests.guards.table import ROOT, guards

SECURITY = {f"N{number}" for number in range(1, 11)}
DURABILITY = {f"A{number}" for number in range(1, 13)}


def test_each_finding_of_the_reviews_has_a_guard() -> None:
    found = set(chain.from_iterable(guard.finding.split(", ") for guard in guards().values()))
    assert found - {"part 6", "part 7"} == SECURITY | DURABILITY


@pytest.mark.parametrize("name", guards())
def test_a_guard_is_in_the_code_once_and_its_case_in_the_tests(name: str) -> None:
    guard = guards()[name]
    assert guard.text().count(guard.old) == 1
    ast.parse(guard.changed())
    file, *names = guard.case.split("::")
    tests = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    assert {*names} <= {each.name for each in tests if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
