"""The places of the source that suggest a command, found in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ["starter.py", "worker_main.py", *("console", "runtime", "supervision", "activities", "workflows", "standin")]
_MAKERS = {"hint", "worker_hint", "make_command", "module_command"}
_MAKING = ("console/hints.py", "runtime/paths.py")
_IN_BACKTICKS = re.compile(r"`([^`]+)`")
_SPELLED_OUT = re.compile(r"(?:temporal-supervisor(?:-worker)?|starter\.py|worker_main\.py|python3? -m) [a-z-].*")
_PREFIXES = {"worker_hint": "worker", "make_command": "make", "module_command": "module"}
PLACEHOLDER = "PLACEHOLDER"
PROGRAMS = {"make", "temporal", "chmod", "docker", "export", "python", "kill", "bash"}


def made() -> set[str]:
    """Returns `module:function:words` of each call that makes a hint, after `worker` or `make`.

    Of its words those that are constant: two hints of one function are told apart by them.
    """
    return {
        f"{name}:{function.name}:{_words(call)}"
        for name, tree in _trees()
        if name not in _MAKING
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _MAKERS
    }


def hidden() -> list[str]:
    """Returns the places where a maker of hints is used in a way that `made` does not see."""
    places = []
    for name, tree in _trees():
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        known = {alias.name for node in imports for alias in node.names} & _MAKERS  # else it is another name
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        calls = [call for function in functions for call in ast.walk(function) if isinstance(call, ast.Call)]
        seen = {id(call.func) for call in calls}
        for node in ast.walk(tree):
            used = isinstance(node, ast.Name) and node.id in known and id(node) not in seen
            by_module = isinstance(node, ast.Attribute) and node.attr in _MAKERS
            renamed = isinstance(node, ast.alias) and node.asname is not None and node.name in _MAKERS
            if (used or by_module or renamed) and name not in _MAKING:
                places.append(f"{name}:{getattr(node, 'lineno', 0)}")
    return places


def in_backticks() -> dict[str, set[str]]:
    """Returns whatever texts of the source show in backticks, with its modules; patterns of `re` are left out."""
    found: dict[str, set[str]] = {}
    for name, tree in _trees():
        for text in _texts(tree):
            for piece in _IN_BACKTICKS.findall(text):
                if re.match(r"[\w./~-]+( |$)", piece):
                    found.setdefault(piece, set()).add(name)
    return found


def written() -> dict[str, str]:
    """Returns the commands of other programs among them, each with a module: several words, the first a program's."""
    return {
        command: min(names)
        for command, names in in_backticks().items()
        if command.split()[0] in PROGRAMS and not names & set(_MAKING)
    }


def spelled_out() -> list[str]:
    """Returns the places that spell out a command of ours instead of making it: it would not run everywhere."""
    texts = ((name, text) for name, tree in _trees() for text in _texts(tree))
    return [f"{name}: {match[0]}" for name, text in texts for match in _SPELLED_OUT.finditer(text)]


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for source in SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


def _words(call: ast.Call) -> str:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    words = [word.value for word in call.args if isinstance(word, ast.Constant)]
    return " ".join(filter(None, [_PREFIXES.get(name, ""), *map(str, words)]))


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
