"""The compiled patterns of the packages, found by themselves, and texts made from a pattern that may make it slow."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as op  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

PACKAGES = ("temporal_supervisor", "activities", "workflows")
_ANYWHERE = ("search", "sub", "subn", "findall", "finditer", "split")
_FILLS = (" ", "a", "1", "\n", "-", ".", "/", "_", ",", "\t", "é", "A", "<", ":", "(", '"', "`", "\x1b")
_ENDS = ("!", "\x00")  # signs that no repeat takes, so that a match fails behind it
_BRANCHES = 3
_PREFIXES = 12
# the patterns of single nodes: a set of signs takes milliseconds to compile
_ALONE: dict[tuple[str, int], re.Pattern[str]] = {}


class Found(NamedTuple):
    """A pattern, where it was found, and the method with which it is used: `search` unless it is always anchored."""

    name: str
    pattern: re.Pattern[str]
    method: str

    def use(self, text: str) -> object:
        """Applies the pattern as its module does, and to the end of the text."""
        if self.method == "search":
            return sum(1 for _ in self.pattern.finditer(text))
        return getattr(self.pattern, self.method)(text)


def all_patterns() -> list[Found]:
    """Returns the patterns of all modules: globals, those in collections, literals in classes and functions."""
    found: dict[tuple[str, int, str], Found] = {}
    for module in _modules():
        tree = ast.parse(inspect.getsource(module))
        methods, held = _methods(tree), list[Found]()
        for name, value in list(vars(module).items()):
            held += _held(value, f"{module.__name__}.{name}", methods.get(name, "search"))
        known = {one.pattern.pattern for one in held}
        for one in [*held, *(one for one in _literals(tree, module) if one.pattern.pattern not in known)]:
            found.setdefault((one.pattern.pattern, one.pattern.flags, one.method), one)
    return list(found.values())


def _modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                yield importlib.import_module(module.name)


def _held(value: object, name: str, method: str = "search") -> Iterator[Found]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield Found(name, value, method)
    elif isinstance(value, (dict, list, tuple)) and not name.endswith("__"):
        for number, each in enumerate(value.values() if isinstance(value, dict) else value):
            yield from _held(each, f"{name}.{number}")


def _methods(tree: ast.Module) -> dict[str, str]:
    """Returns the method of each private global pattern that its module uses with `match` or `fullmatch` alone."""
    loads: dict[str, int] = {}
    used: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] = loads.get(node.id, 0) + 1
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, []).append(node.attr)
    alone = {name: set(methods) for name, methods in used.items() if name[0] == "_" and len(methods) == loads[name]}
    return {
        name: "match" if "match" in methods else "fullmatch"
        for name, methods in alone.items()
        if methods <= {"match", "fullmatch"}
    }


def _literals(tree: ast.Module, module: ModuleType) -> Iterator[Found]:
    """Yields the patterns that stand in calls of `re.sub` and the like; what only a call knows stands as a word."""
    for node in ast.walk(tree):
        call = node.func if isinstance(node, ast.Call) else None
        if not (isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "re"):
            continue
        assert isinstance(node, ast.Call)
        if call.attr not in (*_ANYWHERE, "match", "fullmatch", "compile") or not node.args:
            continue
        written = _written(node.args[0], module)
        flags = [_value(word.value, module) for word in node.keywords if word.arg == "flags"]
        flags += [flag for each in node.args[1:] if isinstance(flag := _value(each, module), re.RegexFlag)]
        if written is not None:
            method = "search" if call.attr in (*_ANYWHERE, "compile") else call.attr
            pattern = re.compile(written, flags[0] if flags else 0)
            yield Found(f"{module.__name__}:{node.lineno}", pattern, method)


def _written(node: ast.expr, module: ModuleType) -> str | None:
    value = _value(node, module)
    if value is None and isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else _value(part, module) for part in node.values]
        return "".join("word" if part is None else str(part) for part in parts)
    return value if isinstance(value, str) else None


def _value(node: ast.expr, module: ModuleType) -> Any:
    shown = ast.JoinedStr([node]) if isinstance(node, ast.FormattedValue) else node
    try:
        return eval(compile(ast.fix_missing_locations(ast.Expression(shown)), "pattern", "eval"), vars(module))
    except NameError:
        return None


def hard_texts(pattern: re.Pattern[str]) -> list[Callable[[int], str]]:
    """Returns functions that make a text of about so many characters, for each repeat without a low bound.

    Of signs that no part of the pattern tells apart one is enough: it stands for a quarter of them.
    """
    makers: dict[tuple[str, str, str], Callable[[int], str]] = {}
    parsed = _parser.parse(pattern.pattern, pattern.flags)
    fills = _told_apart(parsed, _FILLS, pattern.flags)
    ends = _told_apart(parsed, _ENDS, pattern.flags)
    few = _told_apart(parsed, " a1", pattern.flags)
    for before, body in _repeats(parsed, [""]):
        pumps = {"".join(_sample(body, fill)) for fill in fills} | {_sample(body, fill, branch=1) for fill in few}
        for prefix in before:
            for pump in pumps - {""}:
                for suffix in ("", *ends):
                    makers[prefix, pump, suffix] = _maker(prefix, pump, suffix)
                makers[prefix, prefix + pump, ""] = _maker(prefix, prefix + pump, "")
    return list(makers.values())


def _told_apart(parsed: Any, signs: Iterable[str], flags: int) -> list[str]:
    """Returns the first sign of each kind: signs of one kind are taken by the same nodes of a pattern."""
    nodes = list(_single_nodes(parsed))
    kinds: dict[tuple[bool, ...], str] = {}
    for sign in signs:
        taken = [_takes(code, argument, sign, flags) for code, argument in nodes]
        word = sign.isalnum() or sign == "_"  # boundaries of words tell these apart, too
        kinds.setdefault((sign == "\n", word, *taken), sign)
    return list(kinds.values())


def _single_nodes(nodes: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the nodes that take one character."""
    for code, argument in nodes:
        if code in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
            yield code, argument
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            yield from _single_nodes(argument[2])
        else:
            for inner in _parts(code, argument):
                yield from _single_nodes(inner)


def _maker(prefix: str, pump: str, suffix: str) -> Callable[[int], str]:
    return lambda size: prefix + pump * (size // len(pump)) + suffix


def _repeats(nodes: Any, before: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Yields each repeat that may be long, with texts that match what stands before it."""
    for code, argument in nodes:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _, most, body = argument
            if most is op.MAXREPEAT or most > 16:
                yield before, body
            yield from _repeats(body, before)
        else:
            for inner in _parts(code, argument):
                yield from _repeats(inner, before)
        if code not in (op.ASSERT_NOT, op.AT):
            after = {_sample([(code, argument)], fill, branch) for fill in " a1" for branch in range(_BRANCHES)}
            before = list(dict.fromkeys(text + more for text in before for more in sorted(after)))[:_PREFIXES]


def _parts(code: Any, argument: Any) -> list[Any]:
    if code is op.SUBPATTERN:
        return [argument[3]]
    if code is op.BRANCH:
        return list(argument[1])
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [argument[1]]
    if code is op.ATOMIC_GROUP:
        return [argument]
    if code is op.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part is not None]
    return []


def _sample(nodes: Any, fill: str, branch: int = 0) -> str:
    """Returns a text that the nodes match, of `fill` where they leave the choice."""
    text = ""
    for code, argument in nodes:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            text += _sample(argument[2], fill, branch) * max(argument[0], min(branch, argument[1]))
        elif code is op.BRANCH:
            text += _sample(argument[1][branch % len(argument[1])], fill, branch)
        elif code in (op.SUBPATTERN, op.ATOMIC_GROUP):
            text += _sample(_parts(code, argument)[0], fill, branch)
        elif code in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
            text += _char(code, argument, fill)
    return text


def _char(code: Any, argument: Any, fill: str) -> str:
    """Returns `fill` if the node takes it, else the first character that it does take."""
    if code is op.LITERAL:
        return chr(argument)
    own = [chr(value) for kind, value in argument if kind is op.LITERAL] if code is op.IN else []
    own += [chr(value[0]) for kind, value in argument if kind is op.RANGE] if code is op.IN else []
    return next((char for char in (fill, *own, *_FILLS) if _takes(code, argument, char)), "")


def _takes(code: Any, argument: Any, char: str, flags: int = 0) -> bool:
    """True if the node takes the character, as a pattern of its own."""
    node = (f"{code} {argument}", flags)
    if node not in _ALONE:
        alone = _parser.parse("")
        alone.data = [(code, argument)]
        _ALONE[node] = _compiler.compile(alone, flags)
    return _ALONE[node].fullmatch(char) is not None
