"""The places of the source that suggest a command, found in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ["starter.py", "worker_main.py", *("console", "runtime", "supervision", "activities", "workflows", "standin")]
_MAKERS = {"hint", "plain_hint", "worker_hint", "make_command", "module_command"}
_MAKING = ("console/hints.py", "runtime/paths.py")
_IN_TEXT = re.compile(r"`((?:make|temporal|chmod|docker|export|python) [^`]*)`")
_PREFIXES = {"worker_hint": "worker", "make_command": "make", "module_command": "module"}
PLACEHOLDER = "PLACEHOLDER"


def made() -> set[str]:
    """Returns `module:function:word` of each call that makes a hint: its first word, after `worker` or `make`."""
    return {
        f"{name}:{function.name}:{_first_word(call)}"
        for name, tree in _trees()
        if name not in _MAKING
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _MAKERS
    }


def written() -> dict[str, str]:
    """Returns the commands in backticks of other programs that texts of the source hold, each with its module."""
    return {
        command: name
        for name, tree in _trees()
        if name not in _MAKING
        for text in _texts(tree)
        for command in _IN_TEXT.findall(text)
    }


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for source in SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


def _first_word(call: ast.Call) -> str:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    word = call.args[0] if call.args else None
    first = word.value if isinstance(word, ast.Constant) else ""
    return " ".join(filter(None, [_PREFIXES.get(name, ""), str(first)]))


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yields the strings that are no docstrings, with a word in place of each value that is filled in."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped | parts:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else PLACEHOLDER for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
