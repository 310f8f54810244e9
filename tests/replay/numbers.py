"""The numbers that workflow code reads: a history is replayed with today's, so a change is a change of the code.

A recorded history shows only those changes whose branch it passes through, so each release's numbers are kept beside
its histories and compared.
"""

import ast
import json
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from supervision.base import limits

ROOT = Path(__file__).parents[2]
RECORDED = "numbers.json"
MAINS = ("workflows.supervisor", "workflows.worker_agent")
READ_IN_WORKFLOWS = ("workflows.", "supervision.", "activities.contracts.", "activities.prompts.")

ADVICE = """numbers that workflow code reads differ from those of release {release}:
{changes}
Runs that are open while Workers are replaced would go on with the new ones, and block where they lead to other steps.
Either keep the old value for them (`workflow.patched`, or the value as data of the run from its first activity), or
see that no step of a run depends on it. Then record the histories of the new version:
python -m tests.replay.record VERSION"""


def numbers() -> dict[str, float]:
    """Returns today's numbers, times in seconds: those in `limits` by name, a module's own as `module.NAME`."""
    values = {name: _value(name) for name in sorted(_names())}
    return {name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in values.items()}


def changes(recorded: dict[str, float]) -> list[str]:
    """Returns which of the recorded numbers are others today; what a version has added or dropped is not among them."""
    today = numbers()
    return [
        f"  {name}: {value} -> {today[name]}" for name, value in recorded.items() if today.get(name, value) != value
    ]


def record_numbers(folder: Path) -> None:
    """Writes today's numbers beside the histories of a release."""
    (folder / RECORDED).write_text(json.dumps(numbers(), indent=2) + "\n", encoding="utf-8")


def _value(name: str) -> float | timedelta:
    module, _, own = name.rpartition(".")
    value: float | timedelta = getattr(import_module(module or limits.__name__), own)
    return value


def _names() -> set[str]:
    """Returns the names in `limits`, and the numbers of their own, of all modules that the workflows import."""
    names: set[str] = set()
    seen: set[str] = {limits.__name__}
    waiting = list(MAINS)
    while waiting:
        module = waiting.pop()
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        if module in seen or not module.startswith(READ_IN_WORKFLOWS) or not path.is_file():
            continue
        seen.add(module)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
        names.update(f"{module}.{name}" for name in constants if _is_number(f"{module}.{name}"))
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(ast.Name("limits"), name):
                    names.add(name)
                case ast.ImportFrom(str(package), aliases):
                    waiting += [package, *(f"{package}.{alias.name}" for alias in aliases)]
    return names


def _is_number(name: str) -> bool:
    return isinstance(_value(name), (int, float, timedelta))
