"""The numbers that workflow code reads: a history is replayed with today's, so a change is a change of the code.

A recorded history shows only those changes whose branch it passes through, so each release's numbers are kept beside
its histories and compared.
"""

import inspect
import json
import re
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType

from temporal_supervisor.supervision.base import limits

NUMBERS = "numbers.json"
MAINS = ("workflows.supervisor", "workflows.worker_agent")
READ_IN_WORKFLOWS = ("workflows.", "temporal_supervisor.supervision.", "activities.contracts.", "activities.prompts.")

ADVICE = """numbers that workflow code reads differ from those of release {release}:
{changes}
Runs that are open while Workers are replaced would go on with the new ones, and block where they lead to other steps.
Either keep the old value for them (`workflow.patched`, or the value as data of the run from its first activity), or
see that no step of a run depends on it. Then record the histories of the new version:
python -m tests.replay.record VERSION"""


def numbers() -> dict[str, float]:
    """Returns today's numbers, times in seconds: those in `limits` by name, a module's own as `module.NAME`."""
    values = {name: getattr(limits, name) for name in sorted(_named_limits())}
    for module in _modules():
        values |= {f"{module.__name__}.{name}": value for name, value in vars(module).items() if _is_number(value)}
    return {name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in values.items()}


def changes(recorded: dict[str, float]) -> list[str]:
    """Returns which of the recorded numbers are others today; what a version has added or dropped is not among them."""
    today = numbers()
    return [
        f"  {name}: {value} -> {today[name]}" for name, value in recorded.items() if today.get(name, value) != value
    ]


def record_numbers(folder: Path) -> None:
    """Writes today's numbers beside the histories of a release."""
    (folder / NUMBERS).write_text(json.dumps(numbers(), indent=2) + "\n", encoding="utf-8")


def _modules() -> list[ModuleType]:
    """Returns the modules of these packages that are loaded with the workflows; a few are read by activities alone."""
    for main in MAINS:
        import_module(main)
    loaded = [module for name, module in sorted(sys.modules.items()) if name.startswith(READ_IN_WORKFLOWS)]
    return [module for module in loaded if module is not limits]


def _named_limits() -> set[str]:
    sources = map(inspect.getsource, _modules())
    return {name for source in sources for name in re.findall(r"\blimits\.([A-Z_]+)\b", source)}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, timedelta))
