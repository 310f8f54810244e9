"""The inputs and replies of a run's updates. The docstring of an input is what the Web UI's form shows."""

import re
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from supervision.base import limits
from supervision.base.text import clean, size
from supervision.contract.base import Duration, Model, StrictModel
from supervision.contract.plan import WrittenPlan
from supervision.contract.progress import Phase
from supervision.contract.request import Budget, describe_errors
from supervision.contract.status import WaitKind

REPLY_BYTES = 16 * limits.KIB  # of one reply of a person: a longer text is an attachment of the next run
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
_Comment = Annotated[str, _text(_COMMENT_BYTES)]


class Update(StrictModel):
    """What all updates may have: a word on why, who says so (a claim), and an id with which the same counts once."""

    comment: _Comment | None = None
    by: Annotated[str, Field(max_length=200)] | None = None
    request_id: Annotated[str, Field(max_length=200)] | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the update: that of its type, in lower case with underscores."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class DecidePlan(Update):
    """Decides about a plan: {"revision": 1, "decision": "approve"}, or "reject".

    "change" has a "comment" for the planner, "edit" the "plan".
    """

    waits: ClassVar[tuple[WaitKind, ...]] = ("plan",)
    revision: int
    decision: Literal["approve", "edit", "change", "reject"]
    plan: WrittenPlan | None = None

    @model_validator(mode="after")
    def _whole(self) -> "DecidePlan":
        if (self.decision == "edit") != (self.plan is not None):
            raise ValueError('a plan belongs to the decision "edit", and to no other')
        if self.decision == "change" and not self.comment:
            raise ValueError('"change" needs a comment that says what should be different')
        return self


class Reply(Update):
    """Replies to a question, or hands in a person's finding: {"id": "t3/1:4.0", "text": "..."}, as in the status."""

    waits: ClassVar[tuple[WaitKind, ...]] = ("question", "finding")
    id: _Id
    text: Annotated[str, _text(REPLY_BYTES)]


class DecideToolCall(Update):
    """Decides about a tool call: {"id": "t3/1:4.0", "decision": "approve", "arguments_sha256": "..."}, or "deny".

    Id and hash are those in the status; the model reads the "comment".
    """

    waits: ClassVar[tuple[WaitKind, ...]] = ("tool",)
    id: _Id
    decision: Literal["approve", "deny"]
    arguments_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Pause(Update):
    """Pauses the run: no work begins, worker agents stop after their turn.

    {} or {"now": true}, which stops their calls in flight: these may be paid again.
    """

    now: bool = False


class Resume(Update):
    """Resumes the run, {}: ends a pause, and the waits for the provider's account."""


class Steer(Update):
    """Says a word to the agents of a subtask, or to all and to later prompts: {"text": "...", "to": "t3"}."""

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
    """New totals of a budget; None leaves one as it is."""

    tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] | None = None
    usd: Annotated[float, Field(gt=0, le=limits.MAX_BUDGET_USD, allow_inf_nan=False)] | None = None

    def over(self, budget: Budget) -> Budget:
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
    """Returns the update in any JSON value. Raises ValueError with its problems."""
    try:
        return kind.model_validate({} if value is None else value)
    except ValidationError as error:
        # The SDK sends causes, too: one with a line for each of 20,000 fields makes the server end the run.
        raise ValueError(describe_errors(error, root="update")) from None


class UpdateReply(Model):
    """The answer to an update: if it was accepted, the run's phase, and a message for people."""

    accepted: bool
    phase: Phase
    message: str = ""
