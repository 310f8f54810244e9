"""The types that users and histories see: request, result, plan, status, updates, teams.

Python users import them from here; the project's own modules name the module.

Each name is loaded on first use: a child process that needs one module loads that alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding
    from temporal_supervisor.supervision.contract.plan import NewRole, Plan, Subtask
    from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
    from temporal_supervisor.supervision.contract.request import (
        Attachment,
        Budget,
        Models,
        RunRequest,
    )
    from temporal_supervisor.supervision.contract.result import (
        Citation,
        Contradiction,
        Gap,
        Problem,
        RunResult,
        SubtaskReport,
        Timing,
    )
    from temporal_supervisor.supervision.contract.status import (
        Flags,
        RunLimits,
        Status,
        TraceEvent,
        TracePage,
        Wait,
    )
    from temporal_supervisor.supervision.contract.team import Role, Team, ToolEntry
    from temporal_supervisor.supervision.contract.updates import (
        ExtendLimits,
        NewBudget,
        Resume,
        UpdateReply,
    )
    from temporal_supervisor.supervision.contract.usage import Usage

_NAMES = {
    "finding": "ArtifactRef Finding",
    "plan": "NewRole Plan Subtask",
    "progress": "Counts NestedRun",
    "request": "Attachment Budget Models RunRequest",
    "result": "Citation Contradiction Gap Problem RunResult SubtaskReport Timing",
    "status": "Flags RunLimits Status TraceEvent TracePage Wait",
    "team": "Role Team ToolEntry",
    "updates": "ExtendLimits NewBudget Resume UpdateReply",
    "usage": "Usage",
}
_HOMES = {name: f"{__name__}.{home}" for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    value = getattr(import_module(home), name)
    globals()[name] = value  # the next time it is found without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
