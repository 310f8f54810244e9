"""The types that users and histories see: request, result, plan, status, updates, teams.

Python users import them from here; the project's own modules name the module.
"""

from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding
from temporal_supervisor.supervision.contract.plan import NewRole, Plan, Subtask
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
from temporal_supervisor.supervision.contract.request import Attachment, Budget, Models, RunRequest
from temporal_supervisor.supervision.contract.result import (
    Citation,
    Contradiction,
    Gap,
    Problem,
    RunResult,
    SubtaskReport,
    Timing,
)
from temporal_supervisor.supervision.contract.status import Flags, RunLimits, Status, TraceEvent, TracePage, Wait
from temporal_supervisor.supervision.contract.team import Role, Team, ToolEntry
from temporal_supervisor.supervision.contract.updates import ExtendLimits, NewBudget, Resume, UpdateReply
from temporal_supervisor.supervision.contract.usage import Usage
