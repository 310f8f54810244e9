"""The inputs and replies of a run's updates."""

from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from supervision.base import limits
from supervision.contract.base import Duration, Model, StrictModel
from supervision.contract.progress import Phase
from supervision.contract.request import Budget, describe_errors


class Resume(StrictModel):
    """Ends waits for the provider, once the account is fixed. The same `request_id` counts once."""

    request_id: str | None = None


class NewBudget(StrictModel):
    """New totals of a budget; None leaves one as it is. Those in `unlimited` have the operator's ceiling alone."""

    tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] | None = None
    usd: Annotated[float, Field(gt=0, le=limits.MAX_BUDGET_USD, allow_inf_nan=False)] | None = None
    unlimited: list[Literal["tokens", "usd"]] = []

    def over(self, budget: Budget) -> Budget:
        """Returns `budget` with the new totals."""
        new = self.model_dump(exclude_none=True, exclude={"unlimited"})
        return budget.model_copy(update=new | dict.fromkeys(self.unlimited))


class ExtendLimits(StrictModel):
    """New totals: the deadline counts from the run's start, or its last reset. None leaves a limit as it is."""

    budget: NewBudget | None = None
    deadline: Annotated[Duration, Field(le=limits.MAX_DEADLINE)] | None = None
    request_id: str | None = None


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
