"""The replies to the queries `status` and `trace`."""

from pydantic import JsonValue

from supervision.contract.base import Model
from supervision.contract.progress import Counts, Phase
from supervision.contract.result import Problem, SubtaskReport
from supervision.contract.usage import Spend, Usage


class Flags(Model):
    """Conditions beside the phase."""

    paused: bool = False
    waiting_provider: bool = False
    waiting_human: bool = False


class Waiting(Model):
    """Something that waits for a person."""

    id: str
    kind: str
    workflow_id: str
    prompt_preview: str = ""
    expires_at: str | None = None


class RunLimits(Model):
    """The limits in force, as `status` shows them."""

    max_subtasks: int
    max_parallel: int
    max_turns: int
    deadline_seconds: float
    budget_tokens: int | None = None
    budget_usd: float | None = None
    ledger: dict[str, JsonValue] = {}


class Status(Model):
    """The state of a run; subtasks in pages of 100, the next page with `cursor = next_cursor`."""

    goal: str
    team: str
    phase: Phase
    flags: Flags = Flags()
    revision: int = 0
    counts: Counts = Counts()
    subtasks: list[SubtaskReport] = []
    next_cursor: int | None = None
    waiting: list[Waiting] = []
    breakers: list[JsonValue] = []
    review: str = "off"
    usage: Usage = Usage()
    spend: list[Spend] = []
    limits: RunLimits
    deadline_at: str
    warnings: list[str] = []
    model_notice: str | None = None
    error: Problem | None = None


class TraceEvent(Model):
    """An event of a run; `seq` counts from 1 in each workflow, `at` is ISO 8601 in UTC."""

    seq: int
    at: str
    type: str
    subtask_id: str | None = None
    data: dict[str, JsonValue] = {}


class TracePage(Model):
    """Events after a cursor, oldest first; `dropped` counts older ones no longer kept by the workflow."""

    events: list[TraceEvent] = []
    next_cursor: int = 0
    dropped: int = 0
