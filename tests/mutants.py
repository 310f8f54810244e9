"""Mutation tests of `supervision/`: `make mutants`, for some rooms and modules `MODULES="run text.py"`.

One small change at a time is made in memory, and the unit tests of the module's room must fail. Kept here because
mutmut leaves decorated functions out, and half of the rules are properties and validators, while cosmic-ray writes
into the source tree and starts a pytest for each change.
"""

import ast
import copy
import gc
import itertools
import os
import pickle
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
RULES = ROOT / "temporal_supervisor" / "supervision"
UNIT = ROOT / "tests" / "unit"
EXPLAINED = Path(__file__).with_suffix(".toml")
DECLARATIONS = {"limits.py", "prompt_marks.py", "__init__.py"}  # nothing in them is computed

KILLED_SHARE = 0.95
UNSEEABLE = ("equivalent", "at import")  # reasons that no test can be blamed for
JOBS = 2
PATIENCE = 3  # times the CPU time of the unchanged code, then a change counts as an endless loop
MEMORY_BYTES = 2 << 30  # an endless loop may grow

_PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
LOGICAL = ast.Compare | ast.BoolOp


@dataclass(frozen=True)
class Mutant:
    """A changed function: its name, the name of the change, the code."""

    function: str
    name: str
    code: CodeType


@dataclass(frozen=True)
class Change:
    """A change of a function: its name, and the node of the tree that another one replaces."""

    function: str
    name: str
    node: ast.AST
    changed: ast.AST
    parent: ast.AST
    field: str
    index: int | None

    def make(self) -> None:
        """Puts the changed node into the tree."""
        _put(self.parent, self.field, self.index, ast.copy_location(self.changed, self.node))

    def undo(self) -> None:
        """Puts the node back."""
        _put(self.parent, self.field, self.index, self.node)


# --- changes --------------------------------------------------------------------------------------------


def changes(tree: ast.Module) -> Iterator[Change]:
    """Yields all changes of a module."""
    seen: Counter[str] = Counter()
    for function, parent, field, index, node in list(_sites(tree, "", False)):
        for changed in _changes(node):
            name = f"{function}: {_shown(node)} -> {_shown(changed)}"
            seen[name] += 1
            number = f" ({seen[name]})" if seen[name] > 1 else ""
            yield Change(function, name + number, node, changed, parent, field, index)


def mutants(path: Path) -> Iterator[Mutant]:
    """Yields a module with each of its changes, one at a time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for change in changes(tree):
        change.make()
        module = compile(ast.fix_missing_locations(tree), str(path), "exec")
        change.undo()
        yield Mutant(change.function, change.name, _code(module, change.function))


def _code(module: CodeType, function: str) -> CodeType:
    inner = [constant for constant in module.co_consts if isinstance(constant, CodeType)]
    exact = (code for code in inner if code.co_qualname == function)
    return next(exact, None) or next(
        _code(code, function) for code in inner if function.startswith(f"{code.co_qualname}.")
    )


def _sites(parent: ast.AST, scope: str, inside: bool) -> Iterator[tuple[str, ast.AST, str, int | None, ast.AST]]:
    """Returns every node in the body of a function with its place; functions in functions belong to the outer one."""
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(parent, ast.Call):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST):
                continue
            if inside:
                yield scope, parent, field, index, node
                yield from _sites(node, scope, True)
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _sites(node, f"{scope}.{node.name}".lstrip("."), not isinstance(node, ast.ClassDef))


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, ops, comparators):
            for index, op in enumerate(ops):
                yield ast.Compare(left, [*ops[:index], COMPARED[type(op)](), *ops[index + 1 :]], comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in COMPUTED:
            yield ast.BinOp(left, COMPUTED[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in COMPUTED:
            yield ast.AugAssign(target, COMPUTED[type(op)](), value)
        case ast.Call(ast.Name(name), args, keywords) if name in CALLED:
            yield ast.Call(ast.Name(CALLED[name], ast.Load()), args, keywords)
        case ast.Constant(value):
            yield from _constants(value)
        case ast.Return(value) if not isinstance(value, LOGICAL | ast.Constant | ast.UnaryOp | None):
            yield ast.Return(ast.Constant(None))
        case _:
            yield from _conditions(node)


def _constants(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    """Returns the node with conditions negated that hold no comparison: those are changed by themselves."""
    match node:
        case ast.If(test) | ast.While(test) | ast.IfExp(test) if _plain(test):
            changed = copy.copy(node)
            changed.test = _negated(test)
            yield changed
        case ast.comprehension(target, source, tests, is_async):
            for index, test in enumerate(tests):
                if _plain(test):
                    negated = [*tests[:index], _negated(test), *tests[index + 1 :]]
                    yield ast.comprehension(target, source, negated, is_async)


def _plain(test: ast.expr) -> bool:
    return not isinstance(test, LOGICAL | ast.UnaryOp | ast.Constant)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())


# --- trials ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """A test of the unchanged code: how long it takes, and which functions it calls."""

    seconds: float
    functions: frozenset[str]


class Trials:
    """A plugin of pytest that runs the collected tests once as they are, then with each change of each module.

    Every run has a forked process of its own, so tests are imported once and nothing of a run reaches another. A
    change is made by giving the function, wherever it is referred to, another code object.
    """

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self.outcomes: dict[Path, tuple[int, list[str]]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of pytest's own loop."""
        items = {item.nodeid: item for item in session.items}
        measured = _calibrated(session.items)
        if failed := items.keys() - measured.keys():
            pytest.exit(f"these tests fail without any change: {', '.join(sorted(failed))}", 1)
        by_time = sorted(items, key=lambda nodeid: measured[nodeid].seconds)
        for path in self._paths:
            waiting = list(mutants(path))
            count = len(waiting)
            under_way: dict[int, str] = {}
            alive: list[str] = []
            while waiting or under_way:
                while waiting and len(under_way) < JOBS:
                    mutant = waiting.pop(0)
                    called = f"{path}:{mutant.function}"
                    chosen = [nodeid for nodeid in by_time if called in measured[nodeid].functions]
                    seconds = sum(measured[nodeid].seconds for nodeid in chosen)
                    tests = [items[nodeid] for nodeid in chosen]
                    under_way[_started(mutant, tests, PATIENCE * seconds + 1)] = mutant.name
                pid, outcome = os.wait()
                name = under_way.pop(pid)
                if not outcome:
                    alive.append(name)
            self.outcomes[path] = (count, alive)
        return True


def _calibrated(items: list[pytest.Item]) -> dict[str, Calibration]:
    """Returns those tests that pass, by node id; they run in a process of their own, so that caches stay empty."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        _silence()
        passed = {item.nodeid: calibration for item in items if (calibration := _calibrate(item))}
        with os.fdopen(writing, "wb") as out:
            pickle.dump(passed, out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as result:
        calibrations: dict[str, Calibration] = pickle.load(result)
    os.wait()
    return calibrations


def _calibrate(item: pytest.Item) -> Calibration | None:
    began = time.process_time()
    if _fails(item):
        return None
    seconds = time.process_time() - began
    called = set()
    for cached in _caches():  # the test of a change begins with empty ones
        cached.cache_clear()
    rules = f"{RULES}{os.sep}"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(rules):
            function, _, _ = frame.f_code.co_qualname.partition(".<locals>")
            called.add(f"{frame.f_code.co_filename}:{function}")

    sys.setprofile(note)
    _fails(item)  # a test of the cost may fail under the profiler
    sys.setprofile(None)
    return Calibration(seconds, frozenset(called))


@cache
def _caches() -> list[Any]:
    """Returns the functions of the rules that remember what they returned."""
    wrappers = [each for each in gc.get_objects() if hasattr(type(each), "cache_clear")]
    return [each for each in wrappers if each.__module__.startswith("temporal_supervisor.supervision")]


def _started(mutant: Mutant, tests: list[pytest.Item], seconds: float) -> int:
    """Starts a process that ends with 0 if all tests pass, at most after so much CPU time; returns its id."""
    if pid := os.fork():
        return pid
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # it ends the process
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    _silence()
    changed = dict(_named(mutant.code))
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and (code := changed.get(_place(function.__code__))):
            with suppress(ValueError):  # what is left needs fewer variables of the outer function
                function.__code__ = code
    os._exit(any(_fails(test) for test in tests))


def _named(code: CodeType) -> Iterator[tuple[tuple[str, str, int], CodeType]]:
    """Yields the code of a function and of those in it, which may have been made before the change."""
    yield _place(code), code
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and not inner.co_name.startswith("<"):
            yield from _named(inner)


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _fails(item: pytest.Item) -> bool:
    try:
        return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
    except BaseException:
        return True


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


# --- the verdict ----------------------------------------------------------------------------------------


def explanations() -> dict[str, dict[str, str]]:
    """Returns the reasons why tests do not see a change, by module and change."""
    return tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))


def tried(room: Path, paths: list[Path]) -> dict[Path, tuple[int, list[str]]]:
    """Returns how many changes each module of a room has, and those that the room's unit tests do not see."""
    folder = UNIT / room.relative_to(RULES)
    files = sorted(str(file) for file in folder.glob("test_*.py"))
    trials = Trials(paths)
    quiet = ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=0"]
    pytest.main([*quiet, f"--confcutdir={UNIT}", "--hypothesis-profile=mutants", *files], plugins=[trials])
    return trials.outcomes


def verdict(path: Path, changes: int, alive: list[str], explained: dict[str, str]) -> bool:
    """Prints the outcome of a module; True if it is as it should be."""
    unseen = set(alive)
    equivalent = {name for name in unseen if explained.get(name, "").startswith(UNSEEABLE)}
    share = 1 - len(unseen - equivalent) / max(1, changes - len(equivalent))
    print(f"{_short(path)}: {changes} changes, {len(unseen)} alive, {len(equivalent)} equivalent, {share:.1%} killed")
    for name in sorted(unseen - explained.keys()):
        print(f"  alive: {name}")
    stale = sorted(explained.keys() - unseen)
    for name in stale:
        print(f"  explained in {EXPLAINED.name}, but gone or killed: {name}")
    sys.stdout.flush()
    return share >= KILLED_SHARE and unseen <= explained.keys() and not stale


def _short(path: Path) -> str:
    return str(path.relative_to(RULES))


def main(names: list[str]) -> None:
    """Tries those rooms and modules of `supervision/`, or all; exits 1 if tests do not see enough."""
    os.chdir(ROOT)
    explained = explanations()
    paths = [path for path in sorted(RULES.rglob("*.py")) if path.name not in DECLARATIONS]
    if names:
        paths = [path for path in paths if _short(path) in names or _short(path.parent) in names]
    good = True
    for room, grouped in itertools.groupby(paths, lambda path: path.parent):
        modules = list(grouped)
        outcomes = tried(room, modules)
        good &= len(outcomes) == len(modules)
        for path, (changes, alive) in outcomes.items():
            good &= verdict(path, changes, alive, explained.get(_short(path), {}))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
