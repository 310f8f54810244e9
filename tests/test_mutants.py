"""The explanations of mutants fit the code: `make mutants` makes the changes themselves."""

import ast

import pytest

from tests.mutants import RULES, changes, explanations


@pytest.mark.parametrize("module", explanations())
def test_an_explained_change_is_one_of_its_module(module: str) -> None:
    tree = ast.parse((RULES / module).read_text(encoding="utf-8"))
    possible = {change.name for change in changes(tree)}
    assert sorted(explanations()[module].keys() - possible) == []
