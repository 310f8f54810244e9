"""Inputs and replies of a worker agent's turns: model calls and tool calls.

History: see `run_contracts`.
"""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from activities.contracts.run_contracts import CallTerms, FindingRefs, RunRef, SubtaskBrief
from temporal_supervisor.supervision.agent.empty_words import Emptiness
from temporal_supervisor.supervision.contract.base import ErrorText, Model
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding, Labels, Read, Readings
from temporal_supervisor.supervision.contract.model_choice import Effort
from temporal_supervisor.supervision.contract.usage import Usage


def arguments_sha256(arguments: object) -> str:
    """Returns the hash that approvals are bound to: of sorted-key compact UTF-8 JSON."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class PoolQuestion(Model):
    """Asks for the time that work has waited in the queue of a pool."""

    run: RunRef
    queue: str


class ToolResultRef(Model):
    """The outcome of one tool call by reference, or as `text` if no tool ran.

    The sources and artifacts it names. `readings` say how the columns behind it were read.
    """

    call_id: str
    ref: str = ""
    text: str | None = None
    is_error: bool = False
    sources: list[str] = []
    artifacts: list[ArtifactRef] = []
    readings: Readings = []


class OtherQuery(Model):
    """Another query that a small model wrote for its subtask, with the result of its run.

    It is the call in the reply at `head`, in a conversation of its own. One `is_in_vain` if it
    failed or found no row.
    """

    head: str
    result: ToolResultRef
    is_in_vain: bool = False


class TurnInput(Model):
    """One model call of a worker agent: the brief on the first turn, later the head and the new messages.

    With both it continues an earlier attempt's conversation: only the brief's feedback is new. A
    conversation that begins anew lists the tool outputs of the one at `anew_from`. One that
    asks for `another_query`, by its number from 1, asks for nothing else; the calls after it have
    these as `others`.
    """

    run: RunRef
    team_ref: str
    role: str
    model: str
    effort: Effort | None = None
    step: str
    brief: SubtaskBrief | None = None
    head: str | None = None
    anew_from: Annotated[str, Field(exclude_if=lambda head: not head)] = ""
    results: list[ToolResultRef] = []
    note: str | None = None
    last: bool = False
    another_query: Annotated[int, Field(exclude_if=lambda number: not number)] = 0
    others: Annotated[list[OtherQuery], Field(exclude_if=lambda others: not others)] = []
    max_turns: int = 10
    max_tokens: int

    @property
    def terms(self) -> CallTerms:
        """The terms of the call."""
        words = f"{self.role}, {self.step.replace('.', ' ')}"
        return CallTerms(self.step, words, words, self.max_tokens)


class FailedCall(Model):
    """The record of failed attempts at a model call: their number by kind of failure, their cost.

    The last of them was the provider's `request_id`; seconds are `remaining` until it may be asked
    again.
    """

    failures: dict[str, int] = {}
    spent: Usage = Usage()
    request_id: str | None = None
    remaining: float = 0.0


class ToolCallRef(Model):
    """A tool call that the model asks for; its arguments stay in the conversation.

    `index` is its place among the calls of the reply: that is how it is found again. One that
    `waits_for` a person has the hash of its tool's definition, and all that the person is `asked`,
    unless that is long; it comes `after` some untrusted text was read. A call whose tool `asks`
    something under that key waits for it; made again, it has all `replies`, as stored, with their
    keys: one that does not fit is asked for again under its key.
    """

    index: int = 0
    call_id: str
    name: str
    arguments_sha256: str
    preview: str = ""
    waits_for: Literal["question", "tool", "reply"] | None = None
    definition_sha256: Annotated[str, Field(exclude_if=lambda sha256: not sha256)] = ""
    asked: str | None = None
    asked_ref: str = ""
    choices: list[str] = []
    after: Annotated[str, Field(exclude_if=lambda after: not after)] = ""
    asks: Annotated[str, Field(exclude_if=lambda asks: not asks)] = ""
    replies: Annotated[list[tuple[str, str]], Field(exclude_if=lambda replies: not replies)] = []

    def without_result(self, why: str) -> ToolResultRef:
        """Returns the answer to this call if it gave no result."""
        return ToolResultRef(call_id=self.call_id, text=why, is_error=True)


class TurnReply(Model):
    """A model's reply: `preview` is at most 2 KB of its text, `stop_detail` explains a refusal.

    A conclusion is a `finding`, or says that the subtask is `impossible`; an `unclear` one may mean
    it. `misfit` says what keeps its output from the form of its role. An `ungrounded` one had to
    rest on data, and rests on nothing; an `empty` one is no finding at all. A last turn without a
    text has the last text before it as `earlier`. One that `repeats` says the same as the reply
    before it, or would be followed by the same. `fullest`: no more room would make a cut reply
    longer. `others_due`: other queries are to be written beside
    its own.
    """

    head: str
    stop_reason: str
    stop_detail: ErrorText | None = None
    model: str = ""
    preview: str = ""
    calls: list[ToolCallRef] = []
    finding: Finding | None = None
    impossible: bool = False
    unclear: bool = False
    misfit: list[str] = []
    ungrounded: bool = False
    empty: Emptiness | None = None
    finish_call_id: str | None = None
    earlier: Finding | None = None
    repeats: bool = False
    fullest: bool = False
    others_due: Annotated[bool, Field(exclude_if=lambda due: not due)] = False
    withheld: Annotated[list[str], Field(exclude_if=lambda names: not names)] = []
    labels: Read = Labels()
    usage: Usage


class ToolInput(Model):
    """One tool call of the reply at `head`; it may read `findings`.

    One that waited for a person was approved.
    """

    run: RunRef
    team_ref: str
    role: str
    head: str
    call: ToolCallRef
    attachments: list[ArtifactRef] = []
    findings: FindingRefs = []


class ToolReply(Model):
    """The outcome of a tool call.

    `preview` is at most 512 bytes of the output, or of what it `asks` a person. `effect` says in
    one line what was done, if the tool has effects.
    """

    result: ToolResultRef
    preview: str = ""
    effect: Annotated[str, Field(exclude_if=lambda effect: not effect)] = ""
    asks: Annotated[str, Field(exclude_if=lambda asks: not asks)] = ""
    choices: Annotated[list[str], Field(exclude_if=lambda choices: not choices)] = []
