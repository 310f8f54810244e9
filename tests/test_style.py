"""The style of new code, as rules over the source; `tests/style/` lists older exceptions.

These lists only shrink. `python -m tests.test_style` takes out what they no longer need, and adds
nothing.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_architecture import ALL, Module

LISTS = Path(__file__).parent / "style"
COLUMNS = 100

# A docstring begins with a verb in the third person or with a noun: not with a clause or a word for
# another text. `True if ...` and `Returns when ...` are plain.
CLAUSE = "what|why|how|that of|those|which|where|whether|whose|who|the same"
ODD_START = re.compile(rf"(when|if|without|that|({CLAUSE}))\b|\w+ ({CLAUSE})\b", re.IGNORECASE)

# Words that tell too little as the whole name of a function: it says what it does to what.
VAGUE_WORDS = """
    ask asked asks get gets give given gives gone has have keep kept known knows look looked make
    made put said say says show shown take taken takes tell tells told what
"""
VAGUE_NAMES = frozenset(VAGUE_WORDS.split())

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def definitions(module: Module) -> Iterator[tuple[str, ast.AST]]:
    """Yields a module and all definitions in it, each with its place: `path Class.method`."""

    def below(node: ast.AST, path: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inner = f"{path}.{child.name}".strip(".") if isinstance(child, DEFINITIONS) else path
            if isinstance(child, DEFINITIONS):
                yield f"{module.name} {inner}", child
            yield from below(child, inner)

    yield module.name, module.tree
    yield from below(module.tree, "")


def is_odd(docstring: str) -> bool:
    """True if a docstring begins in an odd form."""
    return ODD_START.match(docstring) is not None


def odd_docstrings(module: Module) -> Iterator[str]:
    """Yields the places of docstrings that begin in an odd form."""
    documented = (ast.Module, *DEFINITIONS)
    for place, node in definitions(module):
        docstring = ast.get_docstring(node) if isinstance(node, documented) else None
        if docstring and is_odd(docstring):
            yield place


def is_vague(name: str) -> bool:
    """True if a name of a function is a single word that does not tell what it does to what."""
    return name.removeprefix("_") in VAGUE_NAMES


def vague_names(module: Module) -> Iterator[str]:
    """Yields the places of functions and methods with vague names.

    The list of exceptions has public names (`Run.asked`) and standard words (`get` of a store), too.
    """
    for place, node in definitions(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_vague(node.name):
            yield place


def own_nodes(definition: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a definition that are not in a definition below it."""
    for child in ast.iter_child_nodes(definition):
        if not isinstance(child, DEFINITIONS):
            yield child
            yield from own_nodes(child)


def holds(outer: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> bool:
    """True if there is a node of these kinds inside another one."""
    return any(isinstance(inner, kinds) and inner is not outer for inner in ast.walk(outer))


def is_dense(node: ast.AST) -> bool:
    """True for a conditional expression inside another, and a walrus in a comprehension."""
    if isinstance(node, ast.IfExp):
        return holds(node, ast.IfExp)
    return isinstance(node, COMPREHENSIONS) and holds(node, ast.NamedExpr)


def dense_expressions(module: Module) -> Iterator[str]:
    """Yields the places of expressions that one has to take apart to read them."""
    for place, node in definitions(module):
        if any(is_dense(inner) for inner in own_nodes(node)):
            yield place


RULES: dict[str, Callable[[Module], Iterator[str]]] = {
    "odd_docstrings": odd_docstrings,
    "dense_expressions": dense_expressions,
    "vague_names": vague_names,
}


@cache
def found(rule: str) -> set[str]:
    """Returns the places that break a rule."""
    return {place for module in ALL for place in RULES[rule](module)}


def listed(name: str) -> list[str]:
    """Returns the lines of a list."""
    return (LISTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def long_lines() -> Counter[str]:
    """Returns how many lines of each module are longer than they should be."""
    return Counter({module.name: sum(len(line) > COLUMNS for line in module.source.splitlines()) for module in ALL})


def ceilings() -> dict[str, int]:
    """Returns how many long lines a module may have."""
    pairs = (line.rsplit(" ", 1) for line in listed("long_lines"))
    return {name: int(count) for name, count in pairs}


@pytest.mark.parametrize("rule", RULES)
def test_what_is_new_keeps_the_style(rule: str) -> None:
    assert sorted(found(rule).difference(listed(rule))) == []


@pytest.mark.parametrize("rule", RULES)
def test_exceptions_are_still_needed(rule: str) -> None:
    """A list shrinks with the code: `python -m tests.test_style`."""
    assert sorted(set(listed(rule)) - found(rule)) == []


def test_modules_get_no_more_long_lines() -> None:
    allowed = ceilings()
    grown = {name: count for name, count in long_lines().items() if count > allowed.get(name, 0)}
    assert grown == {}, f"lines of more than {COLUMNS} columns, by module"


def test_ceilings_are_those_of_modules_that_exist() -> None:
    assert ceilings().keys() <= {module.name for module in ALL}


@pytest.mark.parametrize(
    ("docstring", "odd"),
    [
        ("Returns the upper bound of the confidence.", False),
        ("The slots of a run.", False),
        ("A run that waits.", False),
        ("True if what waits is decided.", False),
        ("What passes between two runs.", True),
        ("Returns what the answer says of itself.", True),
        ("Returns the same by key.", True),
        ("The same as above.", True),
        ("Where the run stands.", True),
        ("If there is one.", True),
    ],
)
def test_odd_forms_are_told_from_plain_ones(docstring: str, odd: bool) -> None:
    assert is_odd(docstring) == odd


@pytest.mark.parametrize(
    ("name", "vague"),
    [("take", True), ("_shown", True), ("take_over", False), ("__get__", False), ("cancel", False)],
)
def test_vague_names_are_told_from_others(name: str, vague: bool) -> None:
    assert is_vague(name) == vague


@pytest.mark.parametrize(
    ("code", "dense"),
    [
        ("a if b else c if d else e", True),
        ("[x if y else z for y in w]", False),
        ("[y for x in z if (y := x.y)]", True),
        ("f(y := 1)", False),
    ],
)
def test_dense_expressions_are_told_from_plain_ones(code: str, dense: bool) -> None:
    assert any(map(is_dense, ast.walk(ast.parse(code)))) == dense


def shrink() -> None:
    """Takes out of the lists what is no longer needed."""
    for rule in RULES:
        kept = sorted(found(rule).intersection(listed(rule)))
        write(rule, kept)
    now, before = long_lines(), ceilings()
    lower = {name: min(count, now[name]) for name, count in before.items() if now[name]}
    write("long_lines", [f"{name} {count}" for name, count in sorted(lower.items())])


def write(name: str, lines: list[str]) -> None:
    """Writes a list."""
    text = "".join(f"{line}\n" for line in lines)
    (LISTS / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    shrink()
