"""Messages between a supervisor and its worker agents.

These models are history: only add fields with defaults.
"""

from typing import Annotated, Literal

from activities.contracts.run_contracts import RunRef, SubtaskBrief
from activities.contracts.turn_contracts import (
    OtherQuery,
    ToolCallRef,
    ToolResultRef,
    TurnReply,
)
from pydantic import AwareDatetime, Field
from temporal_supervisor.supervision.base.queues import MODEL_QUEUE, OUTWARD_QUEUE
from temporal_supervisor.supervision.budget.ledger import Amount
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import Finding, Labels, Read
from temporal_supervisor.supervision.contract.model_choice import Effort
from temporal_supervisor.supervision.contract.progress import NestedRun
from temporal_supervisor.supervision.contract.result import Gap, Problem, RunResult
from temporal_supervisor.supervision.contract.team import RoleCard
from temporal_supervisor.supervision.contract.usage import Spend, Usage
from temporal_supervisor.supervision.run.decisions import Instructions
from temporal_supervisor.supervision.run.nested_runs import NestedGrant


class LoopProgress(Model):
    """The state of a tool loop.

    Carried over when a worker agent continues as new, and after a wait.

    Turns of the attempt that other models took are the `earlier_turns`: its own are numbered on
    from them. Of its own turns `turns_booked`, and the usage and `effects` before, are in the
    supervisor's books already. `effects` are the calls with effects that were made.
    `worked_seconds` is the time that the attempt took so far, without its waits. `objected` is True
    once a conclusion went back to its author, `returned` that conclusion as a finding,
    `empty_replies` how many were none and went back; `feedback_due` is True until a review's
    feedback was given in the conversation at `head`. Of the last turn's calls `pending` ones wait
    for a person, and `approved` ones are to be run; the `results` are those of the others. With
    `anew_from` the next turn begins a conversation anew after that one, which repeated itself.
    `others` are other queries for the subtask. `note` is the system's word for the next turn;
    of people's words the first `heard` are in the conversation. `labels` are those of the
    conversation.
    """

    head: str | None = None
    results: list[ToolResultRef] = []
    turn: int = 0
    earlier_turns: Annotated[int, Field(exclude_if=lambda turns: not turns)] = 0
    turns_booked: int = 0
    pauses: int = 0
    usage: Usage = Usage()
    last_tokens: int = 0
    last_finding: Finding | None = None
    trace_seq: int = 0
    worked_seconds: float = 0.0
    objected: bool = False
    anew_from: Annotated[str, Field(exclude_if=lambda head: not head)] = ""
    returned: Annotated[Finding | None, Field(exclude_if=lambda finding: finding is None)] = None
    empty_replies: Annotated[int, Field(exclude_if=lambda count: not count)] = 0
    feedback_due: bool = False
    others: Annotated[list[OtherQuery], Field(exclude_if=lambda others: not others)] = []
    pending: list[ToolCallRef] = []
    approved: list[ToolCallRef] = []
    note: str | None = None
    heard: int = 0
    effects: Annotated[list[str], Field(exclude_if=lambda effects: not effects)] = []
    labels: Read = Labels()

    @property
    def number(self) -> int:
        """The number of the latest turn, over all models that worked in the attempt."""
        return self.earlier_turns + self.turn

    def go_on_from(self, reply: TurnReply, heard: int) -> None:
        """Makes a reply the head of the conversation: what was due before it is in it now."""
        self.head = reply.head
        self.results = []
        self.note = None
        self.anew_from = ""
        self.feedback_due = False
        self.heard = heard

    def begin_anew(self, head: str) -> None:
        """Leaves the conversation at `head` for a new one, which has yet to hear all words."""
        self.head = None
        self.results = []
        self.heard = 0
        self.anew_from = head

    def booked(self) -> "LoopProgress":
        """Returns this progress once the supervisor has booked what it took."""
        return self.model_copy(update={"usage": Usage(), "turns_booked": self.turn, "effects": []})

    def continued(self, turns: int) -> "LoopProgress":
        """Returns this progress, its next turn numbered on from all `turns` of the attempt."""
        return self.model_copy(update={"earlier_turns": turns - self.turn})


class WorkerAgentInput(Model):
    """One attempt of one subtask.

    `expires_at` ends the retries of calls; it is later than any deadline, which the supervisor
    keeps. With its `last_grant` a worker agent concludes; any other may be followed by more. One
    that `goes_first` after an outage returns its progress after one turn, so that others can
    follow.
    """

    run: RunRef
    team_ref: str
    role: RoleCard
    subtask_id: str
    brief: SubtaskBrief
    max_turns: int
    tools_queue: str
    expires_at: AwareDatetime
    timeout_seconds: float | None = None
    effort: Effort | None = None
    outward_queue: str = OUTWARD_QUEUE
    model_queue: str = MODEL_QUEUE
    grant: Amount = Amount()
    last_grant: bool = False
    goes_first: bool = False
    progress: LoopProgress = LoopProgress()
    instructions: Instructions = Instructions()


class WorkerAgentResult(Model):
    """The result of one execution of a worker agent, or of a nested supervisor.

    `stopped`: it was cancelled before it had finished. `finding` is what it had, also then, and
    with a `problem`; the supervisor adds that from the error, which carries the rest in its
    details, and the `model`. `progress` is what a next try can resume from, `retry_after` the
    seconds that a provider's breaker stays open, `spend` that of a nested run. `head` is its
    conversation's, with `heard` of people's words in it; `finish_call_id` names the call in it that
    gave the finding, if one did; it `repeats` if its last two replies are the same. `effects` are
    the calls with effects that were made, and it `was_denied` if a person has refused a call in a
    nested run. `labels` are those of all that its work has read.
    """

    finding: Finding | None = None
    problem: Problem | None = None
    model: str = ""
    stopped: bool = False
    turns: int = 0
    usage: Usage = Usage()
    progress: LoopProgress | None = None
    head: str | None = None
    finish_call_id: str | None = None
    repeats: Annotated[bool, Field(exclude_if=lambda repeats: not repeats)] = False
    heard: int = 0
    retry_after: float = 0.0
    nested: NestedRun | None = None
    gaps: list[Gap] = []
    spend: list[Spend] = []
    effects: Annotated[list[str], Field(exclude_if=lambda effects: not effects)] = []
    was_denied: Annotated[bool, Field(exclude_if=lambda denied: not denied)] = False
    labels: Read = Labels()

    @property
    def succeeded(self) -> bool:
        """True if its finding is the subtask's, not what it had when it was stopped or failed."""
        return self.finding is not None and self.problem is None and not self.stopped

    @property
    def refs(self) -> dict[str, str]:
        """References for the trace: of its conversation, or of the trace of a nested run."""
        refs = {"head": self.head, "trace_ref": self.nested.trace_ref if self.nested else None}
        return {name: ref for name, ref in refs.items() if ref}

    def when_stopped(self) -> "WorkerAgentResult":
        """Returns a copy that is marked as stopped by the run."""
        return self.model_copy(update={"stopped": True, "problem": None})


class NestedInput(Model):
    """The input of a nested supervisor beside its request; only a parent workflow may give it.

    `run` is the root's, with the rights of the supervisor above; `grant` is what the nested run may
    use until its end. `has_finding`: there was a finding above when it began.
    """

    run: RunRef
    depth: int
    brief: SubtaskBrief
    grant: NestedGrant
    has_finding: bool = False
    instructions: Instructions = Instructions()


class BareInput(Model):
    """The mark of a root that is to be one worker agent alone; only a parent workflow gives it.

    Its one attempt is not tried again, described better or sent back.
    """

    bare: Literal[True]


class PartInput(Model):
    """The mark of a root that does a part of its work alone; only an eval gives it.

    It ends with its plan, or it makes its answer of the findings that the eval left in it.
    """

    part: Literal["plan", "answer"]


class NestedReport(Model):
    """The report of a nested supervisor at work, of all levels from it on.

    `waits` is how many of its waits need people; `waits_for_people` is True while nothing else
    could continue. `spent` is what it has used of its grant.
    """

    workflow_id: str
    waits: int = 0
    waits_for_people: bool = False
    spent: Usage = Usage()


class NestedResult(RunResult):
    """The result of a nested supervisor, which it returns, or leaves in the details of its error.

    The supervisor above reads it as a WorkerAgentResult. `finding` is its answer, or what it had
    when it had to end: then it is `partial`.
    """

    finding: Finding | None = None
    nested: NestedRun
    stopped: bool = False
    turns: int = 0
    effects: Annotated[list[str], Field(exclude_if=lambda effects: not effects)] = []
    was_denied: Annotated[bool, Field(exclude_if=lambda denied: not denied)] = False
    labels: Read = Labels()
