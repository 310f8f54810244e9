"""The types that users and histories see: request, result, plan, status, updates, teams.

Python users import them from here; the project's own modules name the module.
"""

from supervision.contract.finding import ArtifactRef, Finding
from supervision.contract.plan import NewRole, Plan, Subtask
from supervision.contract.progress import Counts, NestedRun
from supervision.contract.request import Attachment, Budget, Models, RunRequest
from supervision.contract.result import Citation, Contradiction, Gap, Problem, RunResult, SubtaskReport, Timing
from supervision.contract.status import Flags, RunLimits, Status, TraceEvent, TracePage, Wait
from supervision.contract.team import Role, Team, ToolEntry
from supervision.contract.updates import ExtendLimits, NewBudget, Resume, UpdateReply
from supervision.contract.usage import Usage
