"""The inputs and replies of a run's updates.

The docstring of an input is what the Web UI's form shows.
"""

import re
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError, model_validator

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import clean, size
from temporal_supervisor.supervision.contract.base import Duration, Model, StrictModel, matching
from temporal_supervisor.supervision.contract.plan import WrittenPlan
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.request import Budget, describe_errors
from temporal_supervisor.supervision.contract.status import WaitKind

# The type of the refusal of a decision that has to come as a signal.
UPDATES_USED_UP = "UpdatesUsedUp"
# Of one reply of a person: a longer text is an attachment of the next run.
REPLY_BYTES = 16 * limits.KIB
_COMMENT_BYTES = 4 * limits.KIB
_STEER_BYTES = 2 * limits.KIB  # it is part of several prompts


def _text(most: int) -> AfterValidator:
    def check(text: str) -> str:
        if size(text) > most:
            raise ValueError(f"has {size(text)} bytes, at most {most} are allowed")
        if not (text := clean(text)).strip():
            raise ValueError("is empty")
        return text

    return AfterValidator(check)


_Id = Annotated[str, Field(min_length=1, max_length=400)]
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA256_RULE = "64 lower-case hexadecimal digits, as `waiting` gives them"
_Sha256 = Annotated[str, matching(_SHA256, _SHA256_RULE)]
_PLAN_ID = re.compile(r"(?:\S*/)?plan\.(\d{1,9})")
_Comment = Annotated[str, _text(_COMMENT_BYTES)]


class Update(StrictModel):
    """The fields of all updates: a word on why, who says so (a claim), and an id.

    Updates with one id count once.
    """

    comment: _Comment | None = None
    by: Annotated[str, Field(max_length=200)] | None = None
    request_id: Annotated[str, Field(max_length=200)] | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the update: that of its type, in lower case with underscores."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class DecidePlan(Update):
    """Decides about a plan: {"revision": 1, "decision": "approve", "sha256": "..."}, or "reject".

    "change" has a "comment" for the planner, "edit" the "plan". The revision is the number in the
    id, the hash that of the wait, both as in the status.
    """

    waits: ClassVar[tuple[WaitKind, ...]] = ("plan",)
    revision: int
    decision: Literal["approve", "edit", "change", "reject"]
    plan: WrittenPlan | None = None
    sha256: _Sha256 | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_id(cls, value: object) -> object:
        """Takes the id of the wait, as in other decisions, in place of the revision."""
        if not isinstance(value, dict) or "revision" in value:
            return value
        number = _PLAN_ID.fullmatch(str(value.get("id", "")))
        rest = {name: part for name, part in value.items() if name != "id"}
        return {**rest, "revision": int(number[1])} if number else value

    @model_validator(mode="after")
    def _whole(self) -> "DecidePlan":
        if (self.decision == "edit") != (self.plan is not None):
            raise ValueError('a plan belongs to the decision "edit", and to no other')
        if self.decision == "change" and not self.comment:
            raise ValueError('"change" needs a comment that says what should be different')
        return self


class Reply(Update):
    """Replies to a question, or hands in a finding.

    {"id": "t3/1:4.0", "text": "...", "sha256": "..."}: id and hash are those in the status.
    """

    waits: ClassVar[tuple[WaitKind, ...]] = ("question", "finding")
    id: _Id
    text: Annotated[str, _text(REPLY_BYTES)]
    sha256: _Sha256 | None = None


class DecideToolCall(Update):
    """Decides about a tool call, with "approve" or "deny".

    {"id": "t3/1:4.0", "decision": "approve", "sha256": "..."}: id and hash are those in the status;
    in place of the hash of the wait that of the arguments alone will do: "arguments_sha256". The
    model reads the "comment".
    """

    waits: ClassVar[tuple[WaitKind, ...]] = ("tool",)
    id: _Id
    decision: Literal["approve", "deny"]
    arguments_sha256: _Sha256 | None = None
    sha256: _Sha256 | None = None

    @model_validator(mode="after")
    def _names_content(self) -> "DecideToolCall":
        if self.arguments_sha256 is None and self.sha256 is None:
            raise ValueError(
                "arguments_sha256 or sha256 says which call was seen: the status has both"
            )
        return self


Decided = DecidePlan | Reply | DecideToolCall


def _kind_of(value: object) -> str:
    """Returns the name of the update that a decision in a list would be by itself."""
    if isinstance(value, Update):
        return value.name()
    fields = value if isinstance(value, dict) else {}
    if "revision" in fields or _PLAN_ID.fullmatch(str(fields.get("id", ""))):
        return DecidePlan.name()
    return Reply.name() if "text" in fields else DecideToolCall.name()


_AnyDecision = Annotated[
    Annotated[DecidePlan, Tag("decide_plan")]
    | Annotated[Reply, Tag("reply")]
    | Annotated[DecideToolCall, Tag("decide_tool_call")],
    Discriminator(_kind_of),
]


class Decide(Update):
    """Decides about many things at once: {"decisions": [...]}.

    Each one is as for `decide_plan`, `reply` or `decide_tool_call`. What cannot be taken is named
    in the reply, the rest is taken.
    """

    decisions: Annotated[
        list[_AnyDecision], Field(min_length=1, max_length=limits.DECISIONS_AT_ONCE)
    ]


class Pause(Update):
    """Pauses the run: no work begins, worker agents stop after their turn.

    {} or {"now": true}, which stops their calls in flight: these may be paid again.
    """

    now: bool = False


class Resume(Update):
    """Resumes the run, {}: ends a pause, and the waits for the provider's account."""


class Steer(Update):
    """Says a word to the agents of a subtask, or to all and to later prompts.

    {"text": "...", "to": "t3"}: without "to", it is for all.
    """

    text: Annotated[str, _text(_STEER_BYTES)]
    to: _Id = "*"


class RetrySubtask(Update):
    """Has a subtask that has ended worked on again: {"subtask_id": "t3", "instruction": "..."}."""

    subtask_id: _Id
    instruction: _Comment | None = None


class SkipSubtask(Update):
    """Ends a subtask, with what it has: {"subtask_id": "t3", "comment": "why"}."""

    subtask_id: _Id


class NewBudget(StrictModel):
    """New totals of a budget; None keeps a total as it is."""

    tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] | None = None
    usd: Annotated[float, Field(gt=0, le=limits.MAX_BUDGET_USD, allow_inf_nan=False)] | None = None

    def applied_to(self, budget: Budget) -> Budget:
        """Returns `budget` with the new totals."""
        return budget.model_copy(update=self.model_dump(exclude_none=True))


class ExtendLimits(Update):
    """Gives the run new totals: {"deadline": "PT2H", "budget": {"usd": 10, "tokens": 2000000}}.

    They count from its start, or its last reset. What is left out stays as it is.
    """

    budget: NewBudget | None = None
    deadline: Annotated[Duration, Field(le=limits.MAX_DEADLINE)] | None = None


U = TypeVar("U", bound=StrictModel)


def read_update(kind: type[U], value: object) -> U:
    """Returns the update in a JSON value. Raises ValueError, whose message lists its problems."""
    try:
        return kind.model_validate({} if value is None else value)
    except ValidationError as error:
        # The SDK sends causes, too: one with a line for each of 20,000 fields makes the server end
        # the run.
        raise ValueError(describe_errors(error, root="update")) from None


class DecisionReply(Model):
    """The outcome of one decision of a list."""

    id: str
    accepted: bool
    message: str = ""


class UpdateReply(Model):
    """The answer to an update: if it was accepted, the run's phase, and a message for people.

    A list of decisions has one of the `results` for each.
    """

    accepted: bool
    phase: Phase
    message: str = ""
    results: Annotated[list[DecisionReply], Field(exclude_if=lambda results: not results)] = []
