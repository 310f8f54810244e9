"""Inputs and replies of a worker agent's turns: model calls and tool calls.

They are history: see `run_contracts`.
"""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from activities.contracts.run_contracts import CallTerms, FindingRefs, RunRef, SubtaskBrief
from temporal_supervisor.supervision.agent.empty_words import Emptiness
from temporal_supervisor.supervision.contract.base import ErrorText, Model
from temporal_supervisor.supervision.contract.finding import (
    ArtifactRef,
    Finding,
    Labels,
    OptionalFacts,
    Read,
    Readings,
)
from temporal_supervisor.supervision.contract.model_choice import Effort
from temporal_supervisor.supervision.contract.usage import Usage


def arguments_sha256(arguments: object) -> str:
    """Returns the hash to which an approval is bound, of compact UTF-8 JSON with sorted keys."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class BacklogInput(Model):
    """The queue of a pool, for the age of its oldest work."""

    run: RunRef
    queue: str


class ToolResultRef(Model):
    """The outcome of one tool call by reference, or as `text` if no tool ran.

    It includes the named sources and artifacts. `readings` describe the columns behind the output,
    `facts` the result of a query.
    """

    call_id: str
    ref: str = ""
    text: str | None = None
    is_error: bool = False
    sources: list[str] = []
    artifacts: list[ArtifactRef] = []
    readings: Readings = []
    facts: OptionalFacts = None


class OtherQuery(Model):
    """Another query that a small model wrote for its subtask, with the result of its run.

    It is the call in the reply at `head`, in a conversation of its own.
    """

    head: str
    result: ToolResultRef


class TurnInput(Model):
    """One model call of a worker agent.

    The first turn has the brief, later turns the head and the new messages. With both, the call
    continues an earlier attempt's conversation, and only the brief's feedback is new. A
    conversation that begins anew lists the tool outputs of the conversation at `anew_from`. A call
    for `another_query`, numbered from 1, asks for nothing else; later calls have these as `others`.
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
    """The record of failed attempts at a model call: their number by kind, and their cost.

    `request_id` is the provider's id of the last one. The provider may be called again after
    `remaining` seconds.
    """

    failures: dict[str, int] = {}
    spent: Usage = Usage()
    request_id: str | None = None
    remaining: float = 0.0


class ToolCallRef(Model):
    """A tool call that the model asks for; its arguments stay in the conversation.

    `index` is its place among the calls of the reply. If it `waits_for` a person, it has the hash
    of its tool's definition and the complete text that the person is `asked`, unless that is long;
    `after` names the untrusted text that was read before. If the tool itself asks a person, `asks`
    is the key of that question; a repeated call has all stored `replies` with their keys. A reply
    that does not fit is asked for again under the same key.
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
        """Returns the answer to this call if it gave no result, with the reason `why`."""
        return ToolResultRef(call_id=self.call_id, text=why, is_error=True)


class TurnReply(Model):
    """A model's reply; `preview` is at most 2 KB of its text, `stop_detail` explains a refusal.

    A conclusion has a `finding`, or is `impossible`; if it is `unclear` it may mean that. `misfit`
    lists faults of its output by the role's schema. `ungrounded` is True if it had to rest on data
    and does not, `empty` if it is no finding at all. A last turn without text has the previous text
    as `earlier`. `repeats` is True if it equals the previous reply, or would be followed by the
    same one. `fullest` is True if more room would not make a cut reply longer. `others_due` is True
    if other queries should be written next to its own.
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

    A call that waited for a person has been approved.
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

    `preview` is at most 512 bytes of the output, or of the question that it `asks` a person.
    `effect` describes the effect in one line, if there was one.
    """

    result: ToolResultRef
    preview: str = ""
    effect: Annotated[str, Field(exclude_if=lambda effect: not effect)] = ""
    asks: Annotated[str, Field(exclude_if=lambda asks: not asks)] = ""
    choices: Annotated[list[str], Field(exclude_if=lambda choices: not choices)] = []
