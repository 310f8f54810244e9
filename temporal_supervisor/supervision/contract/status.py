"""The replies to the queries `status` and `trace`."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from temporal_supervisor.supervision.contract.base import Model, Paragraph
from temporal_supervisor.supervision.contract.plan import Estimate
from temporal_supervisor.supervision.contract.progress import Counts, Phase
from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Spend, Usage

WaitKind = Literal["provider", "resume", "store", "plan", "question", "tool", "finding"]
_SHOWN = (
    "id",
    "kind",
    "workflow_id",
    "prompt_preview",
    "arguments_sha256",
    "choices",
    "content_ref",
    "after",
)


class Flags(Model):
    """Conditions of a run apart from its phase.

    A wait for `resume` counts as a wait for the provider and for a person.
    """

    paused: bool = False
    waiting_provider: bool = False
    waiting_person: bool = False
    waiting_store: bool = False

    def __or__(self, other: "Flags") -> "Flags":
        """Returns the conditions that hold in either."""
        return Flags(**{name: value or getattr(other, name) for name, value in self})

    @property
    def most_urgent(self) -> str | None:
        """The condition that is shown in lists of runs."""
        conditions = {
            "person": self.waiting_person,
            "store": self.waiting_store,
            "provider": self.waiting_provider,
            "paused": self.paused,
        }
        return next((name for name, holds in conditions.items() if holds), None)


class Wait(Model):
    """A wait for the provider of `model`, for the artifact store, or for a person.

    `id` is the place, for people to type, as a path from the root with the attempt on every level:
    `plan.2`, `t3/1` for the first attempt of t3, `t3/1:4.0` for the first call of that attempt's
    fourth turn, `t3/1/t2/1:4.0` for one in the nested run of t3. The supervisor's own work has its
    name as id. `sha256` is the hash of what is shown and of where it came from: a decision holds
    for that alone. `subtask_id` is a path from the run that shows the wait. `workflow_id` is the
    supervisor whose work waits, and in whose run the wait is decided. `content_ref` is where all of
    what is asked is stored. At `expires_at` the wait ends by itself. `after` says which untrusted
    text was read before the call.
    """

    id: str
    sha256: str = ""
    kind: WaitKind
    workflow_id: str
    subtask_id: str | None = None
    prompt_preview: Paragraph = ""
    arguments_sha256: str | None = None
    choices: list[str] = []
    content_ref: str = ""
    after: str = ""
    since: str
    expires_at: str | None = None
    model: str = ""

    @property
    def subject(self) -> str:
        """The waiting subtask, or the name of the supervisor's own step."""
        return self.subtask_id or self.id

    @property
    def for_person(self) -> bool:
        """True if a person can end it; waits for a provider or the store end by retries."""
        return self.kind not in ("provider", "store")

    @property
    def for_decision(self) -> bool:
        """True if it needs what only a person can say.

        The run's clock runs in the waits for a provider.
        """
        return self.kind not in ("provider", "resume", "store")

    def as_nested_in(self, subtask_id: str) -> "Wait":
        """Returns the wait as the parent run shows it, where this run works on that subtask."""
        path = f"{subtask_id}/{self.subtask_id}" if self.subtask_id else subtask_id
        return self.model_copy(update={"subtask_id": path})

    def bound_to(self, *source: str | None) -> "Wait":
        """Returns the wait with the hash of its content and of the content's `source`.

        Details that differ when work is repeated (times, the deadline) are not hashed, so that a
        wait for the same content has the same hash after a reset.
        """
        shown = self.model_dump(mode="json", include={*_SHOWN})
        content = [shown, *source]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self.model_copy(update={"sha256": sha256})


class Asked(Model):
    """The reply to the query `waiting`: a wait with its whole content.

    If the content is too long, only `content_ref` leads to it. A plan comes with its `estimate`.
    """

    wait: Wait
    content: str | None = None
    estimate: Estimate | None = None


class RunLimits(Model):
    """The limits in force, as `status` shows them."""

    max_subtasks: int
    max_parallel: int
    max_turns: int
    deadline_seconds: float
    budget_tokens: int | None = None
    budget_usd: float | None = None


class Status(Model):
    """The state of a run, with subtasks in pages of 100; `next_cursor` leads to the next page.

    If `since` is the `version` of an earlier status, only subtasks that changed after it are
    listed, and the reply repeats `since`. Without it, after a reset or with another revision of the
    plan, all are listed. `updates` counts the accepted updates: the server allows 2,000. `saved` is
    the usage that findings of the runs in `reuse_from` saved.
    """

    goal: str
    team: str
    phase: Phase
    flags: Flags = Flags()
    revision: int = 0
    counts: Counts = Counts()
    subtasks: list[SubtaskReport] = []
    next_cursor: int | None = None
    version: str = ""
    since: str = ""
    waiting: list[Wait] = []
    breakers: list[JsonValue] = []
    review: str = "off"
    usage: Usage = Usage()
    spend: list[Spend] = []
    limits: RunLimits
    deadline_at: str
    updates: int = 0
    warnings: list[str] = []
    reuse_from: list[str] = []
    saved: Annotated[Usage | None, Field(exclude_if=lambda saved: saved is None)] = None
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
    """Events after a cursor, oldest first; older ones than the workflow keeps are missing."""

    events: list[TraceEvent] = []
    next_cursor: int = 0
