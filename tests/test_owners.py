"""The state of a run has owners: a part of it changes by its own methods alone.

So whoever asks where a field changes finds the answer in the module that has it.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.test_architecture import ABOVE, MODULES, Module

# the names under which a run's state, its parts and the surroundings of its work go in workflow
# code
PARTS = frozenset(
    {
        *("state", "context", "board", "time_and_budget", "budget", "ledger", "spending", "models", "outage", "nested"),
        *("waits", "shares", "update_replies", "trace", "decisions", "steering", "slots", "answer", "report"),
        *("work", "assignment", "progress"),
    }
)
CHANGES = frozenset({"append", "add", "discard", "remove", "pop", "popitem", "clear", "update", "extend", "setdefault"})
RUN_STATE = f"{ABOVE}/supervision/run/run_state.py"
HELD_TO_IT = [
    *MODULES["workflows"],
    *(module for module in MODULES["supervision"] if module.name == RUN_STATE),
]


def path_of(node: ast.expr) -> list[str]:
    """Returns the names on the way to a value: `self._state.held` gives self, state, held."""
    names: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            names.append(node.attr.strip("_"))
        node = node.value
    if isinstance(node, ast.Name):
        names.append(node.id)
    return names[::-1]


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """Yields what a statement assigns to or deletes, or the collection that a call changes."""
    if isinstance(node, ast.Assign | ast.Delete):
        for target in node.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        yield node.target


def is_foreign(target: ast.expr) -> bool:
    """True if an assignment changes a field of a part, from outside of it."""
    owners = path_of(target)[:-1] if isinstance(target, ast.Attribute) else path_of(target)
    return not isinstance(target, ast.Name) and not PARTS.isdisjoint(owners)


def is_foreign_call(node: ast.AST) -> bool:
    """True if a call changes a collection in a part: `state.refused.add(...)`.

    Methods of a part itself are no breach: `board.extend(...)`.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in CHANGES:
        return False
    owners = path_of(node.func.value)
    return bool(owners) and owners[-1] not in PARTS and not PARTS.isdisjoint(owners[:-1])


def breaches(module: Module) -> Iterator[str]:
    """Yields where a module changes a part of a run that is not its own."""
    for node in ast.walk(module.tree):
        if is_foreign_call(node) or any(map(is_foreign, targets(node))):
            yield f"{module.name}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}"


@pytest.mark.parametrize("module", HELD_TO_IT, ids=lambda module: module.name)
def test_parts_of_a_run_change_by_their_own_methods(module: Module) -> None:
    assert list(breaches(module)) == []


def test_a_plan_is_adopted_by_the_plan_in_force_alone() -> None:
    adopting = {module.name for module in MODULES["workflows"] if "state.adopt(" in ast.unparse(module.tree)}
    assert adopting == {"workflows/run/plan_in_force.py"}


@pytest.mark.parametrize(
    ("code", "is_breach"),
    [
        ("self._state.slots.held = 3", True),
        ("slots.held, other = 3, 1", True),
        ("context.state.answer = answer", True),
        ("state.requests['a'] = 'b'", True),
        ("del state.requests['a']", True),
        ("state.refused.add('t1')", True),
        ("budget.stopped_because += 'x'", True),
        ("self._state = state", False),
        ("state = context.state", False),
        ("state.board.extend(plan)", False),
        ("mailbox.workflow_id = child_id", False),
        ("progress.results.append(result)", True),
        ("replies.append(result)", False),
    ],
)
def test_the_rule_tells_a_change_from_outside(code: str, is_breach: bool) -> None:
    module = Module(MODULES["workflows"][0].path, code)
    assert bool(list(breaches(module))) == is_breach
