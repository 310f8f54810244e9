"""What passes between a supervisor and its worker agents. These models are history: only add fields with defaults."""

from datetime import datetime

from activities.contracts import RunRef, SubtaskBrief, ToolResultRef
from supervision.base import Model
from supervision.finding import ArtifactRef, Finding
from supervision.team import RoleCard
from supervision.usage import Usage


class Progress(Model):
    """Where a tool loop stands; carried over when a worker agent continues as new."""

    head: str | None = None
    results: list[ToolResultRef] = []
    turn: int = 0
    pauses: int = 0
    usage: Usage = Usage()
    last_preview: str = ""
    last_text_ref: str | None = None
    sources: list[str] = []
    artifacts: list[ArtifactRef] = []
    trace_seq: int = 0


class WorkerAgentInput(Model):
    """One attempt of one subtask. `expires_at` is the run's deadline: no call is retried beyond it."""

    run: RunRef
    team_ref: str
    role: RoleCard
    subtask_id: str
    attempt: int
    brief: SubtaskBrief
    max_turns: int
    tools_queue: str
    expires_at: datetime
    timeout_seconds: float | None = None
    progress: Progress = Progress()


class WorkerAgentResult(Model):
    """What an attempt came to; `stopped` when it was cancelled, with whatever finding it had.

    The same value is in the details of a failed attempt's error, so that what it consumed is counted.
    """

    finding: Finding | None = None
    stopped: bool = False
    turns: int = 0
    usage: Usage = Usage()
