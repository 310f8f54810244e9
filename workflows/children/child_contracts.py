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
    """The state of a tool loop, kept over a wait and when a worker agent continues as new.

    `turn` counts the turns of the current model; `earlier_turns` were taken by other models in the
    attempt, and the numbering continues from them. The supervisor has already booked `turns_booked`
    turns, and the `usage` and `effects` before them. `effects` are the calls with side effects.
    `worked_seconds` excludes waits. `objected` is True once a conclusion was sent back to its
    author, `returned` is that conclusion, and `empty_replies` counts the empty ones that were sent
    back. `feedback_due` is True until the conversation at `head` contains the review's feedback.
    `others` are other queries for the subtask. Of the last turn's calls, `pending` ones wait for a
    person, `approved` ones are to be run, and `results` answer the others. If `anew_from` is set,
    the next turn begins a new conversation, because the one with that head repeated itself. `note`
    is the system's message for the next turn. The conversation contains the first `heard` of
    people's words, and has these `labels`.
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
        """The number of the latest turn, counted over all models of the attempt."""
        return self.earlier_turns + self.turn

    def go_on_from(self, reply: TurnReply, heard: int) -> None:
        """Makes a reply the head of the conversation, which includes all that was due before."""
        self.head = reply.head
        self.results = []
        self.note = None
        self.anew_from = ""
        self.feedback_due = False
        self.heard = heard

    def count_turn(self, reply: TurnReply) -> None:
        """Counts a turn, with the tokens, the labels and the finding of its reply."""
        self.turn += 1
        self.last_tokens = reply.usage.tokens
        self.labels = reply.labels
        if not reply.empty:
            self.last_finding = reply.finding or reply.earlier or self.last_finding

    def count_pause(self) -> None:
        """Counts a reply with which the model paused."""
        self.pauses += 1

    def count_empty_reply(self) -> None:
        """Counts an empty conclusion that is sent back."""
        self.empty_replies += 1

    def add_usage(self, usage: Usage) -> None:
        """Adds the usage of a call."""
        self.usage += usage

    def add_other(self, other: OtherQuery) -> None:
        """Adds another query for the subtask."""
        self.others.append(other)

    def leave_note(self, note: str) -> None:
        """Leaves the system's message for the next turn."""
        self.note = note

    def send_back(self, note: str, results: list[ToolResultRef]) -> None:
        """Sends a conclusion back to its author, with a note and the answer to its call."""
        self.note = note
        self.results = results

    def mark_objected(self, returned: Finding | None) -> None:
        """Marks a conclusion as sent back; `returned` may take the place of a later one."""
        self.objected = True
        self.returned = returned

    def begin_calls(self, calls: list[ToolCallRef], results: list[ToolResultRef]) -> None:
        """Begins the calls of a turn; `results` answer the others, which are never run."""
        self.approved = [call for call in calls if not call.waits_for]
        self.pending = [call for call in calls if call.waits_for]
        self.results = results

    def take_approved(self) -> list[ToolCallRef]:
        """Takes the approved calls, which are run now, and returns them."""
        calls, self.approved = self.approved, []
        return calls

    def hold_call(self, call: ToolCallRef) -> None:
        """Holds a call until a person has answered it."""
        self.pending.append(call)

    def add_result(self, result: ToolResultRef, effect: str) -> None:
        """Adds the result of a call, and its side effect if there was one."""
        self.results.append(result)
        if effect:
            self.effects.append(effect)

    def answer_calls(self, results: list[ToolResultRef]) -> None:
        """Answers the calls of a turn, none of which is run."""
        self.results = results

    def stop_calls(self, running: list[ToolCallRef], words: str) -> None:
        """Answers the calls that were stopped, and those that wait for a person, with `words`."""
        for call in [*running, *self.pending]:
            self.results.append(call.without_result(words))
        self.pending = []

    def carry_over(self, trace_seq: int, worked_seconds: float) -> None:
        """Carries the trace's number and the time worked over to a successor."""
        self.trace_seq = trace_seq
        self.worked_seconds = worked_seconds

    def begin_anew(self, head: str) -> None:
        """Leaves the conversation at `head` for a new one, without people's words so far."""
        self.head = None
        self.results = []
        self.heard = 0
        self.anew_from = head

    def booked(self) -> "LoopProgress":
        """Returns a copy without the usage that the supervisor has booked."""
        return self.model_copy(update={"usage": Usage(), "turns_booked": self.turn, "effects": []})

    def continued(self, turns: int) -> "LoopProgress":
        """Returns a copy whose next turn is number `turns + 1` of the attempt."""
        return self.model_copy(update={"earlier_turns": turns - self.turn})


class WorkerAgentInput(Model):
    """The input of a worker agent: one attempt at one subtask.

    Retries of calls end at `expires_at`, which is later than any deadline: the supervisor enforces
    those. With its `last_grant` a worker agent concludes; other grants may be followed by more. An
    agent that `goes_first` after an outage returns its progress after one turn, so that others can
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

    def with_instructions(self, instructions: Instructions) -> "WorkerAgentInput":
        """Returns a copy with people's latest instructions."""
        return self.model_copy(update={"instructions": instructions})


class WorkerAgentResult(Model):
    """The result of one execution of a worker agent, or of a nested supervisor.

    `stopped` is True if it was cancelled before it finished. `finding` may be incomplete then, as
    it is with a `problem`. The child raises that problem as an error, whose details carry the other
    fields; the supervisor fills in `problem` and `model`. The next execution resumes from
    `progress`. `retry_after` is the number of seconds for which a provider's breaker stays open.
    `spend` is the spending of a nested run. `head` is the head of the conversation, which contains
    the first `heard` of people's words; the call `finish_call_id` in it gave the finding. `repeats`
    is True if its last two replies are identical. `effects` are the calls with side effects.
    `was_denied` is True if a person has refused a call in a nested run. `labels` cover everything
    that the work has read.
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
        """True if the finding is complete, rather than a remainder of stopped or failed work."""
        return self.finding is not None and self.problem is None and not self.stopped

    @property
    def refs(self) -> dict[str, str]:
        """The references for the trace: its conversation, or the trace of a nested run."""
        refs = {"head": self.head, "trace_ref": self.nested.trace_ref if self.nested else None}
        return {name: ref for name, ref in refs.items() if ref}

    def by_model(self, model: str) -> "WorkerAgentResult":
        """Returns a copy that names the model of the work; empty for a nested run."""
        return self.model_copy(update={"model": model})

    def concluded_by(self, reply: TurnReply) -> "WorkerAgentResult":
        """Returns a copy that refers to the call in a reply that gave the finding."""
        concluded = {"finish_call_id": reply.finish_call_id, "repeats": reply.repeats}
        return self.model_copy(update=concluded)

    def retried_after(self, seconds: float) -> "WorkerAgentResult":
        """Returns a copy for the details of an error after which a provider needs a rest."""
        return self.model_copy(update={"retry_after": seconds})

    def as_stopped(self) -> "WorkerAgentResult":
        """Returns a copy that is marked as stopped by the run."""
        return self.model_copy(update={"stopped": True, "problem": None})


class NestedInput(Model):
    """The input of a nested supervisor next to its request; only a parent workflow may give it.

    `run` is the root, with the grant of the supervisor above; `grant` is all that the nested run
    may use until its end. `has_finding` is True if the run above already had a finding.
    """

    run: RunRef
    depth: int
    brief: SubtaskBrief
    grant: NestedGrant
    has_finding: bool = False
    instructions: Instructions = Instructions()

    def with_instructions(self, instructions: Instructions) -> "NestedInput":
        """Returns a copy with people's latest instructions."""
        return self.model_copy(update={"instructions": instructions})


class BareInput(Model):
    """Marks a root that consists of one worker agent; only a parent workflow may give it.

    Its single attempt is not retried, refined or sent back.
    """

    bare: Literal[True]


class PartInput(Model):
    """Marks a root that does only one part of its work; only an eval may give it.

    With `plan` it ends with its plan; with `answer` it writes the answer from the eval's findings.
    """

    part: Literal["plan", "answer"]


class NestedReport(Model):
    """The report of a nested supervisor at work, which covers all levels below it.

    `waits` counts its waits for people; `waits_for_people` is True while nothing else could
    continue. `spent` is the used part of its grant.
    """

    workflow_id: str
    waits: int = 0
    waits_for_people: bool = False
    spent: Usage = Usage()


class NestedResult(RunResult):
    """The result of a nested supervisor: its return value, or the details of its error.

    The supervisor above reads it as a WorkerAgentResult. `finding` is the answer; it is `partial`
    if the run had to end early.
    """

    finding: Finding | None = None
    nested: NestedRun
    stopped: bool = False
    turns: int = 0
    effects: Annotated[list[str], Field(exclude_if=lambda effects: not effects)] = []
    was_denied: Annotated[bool, Field(exclude_if=lambda denied: not denied)] = False
    labels: Read = Labels()
