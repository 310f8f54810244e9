"""The state of a run has owners: an object changes by its own methods alone.

So whoever asks where a field changes finds the answer in the class that has it.
"""

import ast
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.test_architecture import ABOVE, MODULES, Module

# the names under which a run's state, its parts and the surroundings of its work go in workflow
# code
PARTS = frozenset(
    {
        *("state", "context", "board", "time_and_budget", "budget", "ledger", "spending", "models", "outage", "nested"),
        *("waits", "shares", "update_replies", "trace", "decisions", "steering", "slots", "answer", "report"),
        *("work", "assignment", "progress", "published", "first_finding", "work_done"),
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
    """True if an assignment changes a field of another object, or what a part of a run holds."""
    if isinstance(target, ast.Subscript):
        return not PARTS.isdisjoint(path_of(target)) or is_foreign(target.value)
    if isinstance(target, ast.Attribute):
        return not (isinstance(target.value, ast.Name) and target.value.id == "self")
    return False


def is_foreign_call(node: ast.AST) -> bool:
    """True if a call sets a field by its name, or changes a collection in a part of a run.

    For example `state.refused.add(...)`; methods of a part itself are no breach:
    `board.extend(...)`.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("setattr", "delattr")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in CHANGES:
        return False
    owners = path_of(node.func.value)
    return bool(owners) and owners[-1] not in PARTS and not PARTS.isdisjoint(owners[:-1])


def breaches(module: Module) -> Iterator[str]:
    """Yields where a module changes an object from outside of it."""
    for node in ast.walk(module.tree):
        if is_foreign_call(node) or any(map(is_foreign, targets(node))):
            yield f"{module.name}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}"


@pytest.mark.parametrize("module", HELD_TO_IT, ids=lambda module: module.name)
def test_objects_change_by_their_own_methods(module: Module) -> None:
    assert list(breaches(module)) == []


def adopts(node: ast.AST) -> bool:
    """True if a run's state is given a plan, by a call or by a reference to its method."""
    return isinstance(node, ast.Attribute) and node.attr == "adopt" and path_of(node)[-2:-1] == ["state"]


def sets_plan(node: ast.AST) -> bool:
    """True if a statement assigns to a field `plan`."""
    assigned = [target for target in targets(node) if isinstance(target, ast.Attribute)]
    return any(target.attr == "plan" for target in assigned)


def places(rule: Callable[[ast.AST], bool], modules: Iterable[Module]) -> set[str]:
    """Returns the functions in which a rule holds for a statement or an expression."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        f"{module.name}: {function.name}"
        for module in modules
        for function in ast.walk(module.tree)
        if isinstance(function, functions) and any(map(rule, ast.walk(function)))
    }


def test_a_plan_is_adopted_by_the_plan_in_force_alone() -> None:
    assert places(adopts, MODULES["workflows"]) == {"workflows/run/plan_in_force.py: adopt"}


def test_a_run_gets_its_plan_where_it_adopts_one() -> None:
    run_state = [module for module in HELD_TO_IT if module.name == RUN_STATE]
    assert places(sets_plan, run_state) == {f"{RUN_STATE}: __init__", f"{RUN_STATE}: adopt"}


@pytest.mark.parametrize(
    ("code", "is_adopting"),
    [
        ("self._state.adopt(plan)", True),
        ("work.context.state.adopt(plan)", True),
        ("later = state.adopt", True),
        ("self._plan.adopt(plan, ref, labels)", False),
        ("say('state.adopt(plan)')", False),
    ],
)
def test_the_rule_tells_what_adopts_a_plan(code: str, is_adopting: bool) -> None:
    assert any(map(adopts, ast.walk(ast.parse(code)))) == is_adopting


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
        ("mailbox.workflow_id = child_id", True),
        ("rules.last = True", True),
        ("self._rules.turn += 1", True),
        ("self.ref: str = ref", False),
        ("self._reports[key].sent = report", True),
        ("self._reports[key] = report", False),
        ("call.problems = [problem]", True),
        ("replies[place] = reply", False),
        ("setattr(call, 'problems', [problem])", True),
        ("progress.results.append(result)", True),
        ("replies.append(result)", False),
    ],
)
def test_the_rule_tells_a_change_from_outside(code: str, is_breach: bool) -> None:
    module = Module(MODULES["workflows"][0].path, code)
    assert bool(list(breaches(module))) == is_breach
