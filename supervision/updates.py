"""What the updates of a run take and return."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from supervision import limits
from supervision.base import Model, StrictModel
from supervision.request import Budget
from supervision.status import Phase


class Resume(StrictModel):
    """Go on after a wait for the provider, once the account is mended. The same `request_id` counts once."""

    request_id: str | None = None


class ExtendLimits(StrictModel):
    """New totals: the deadline counts from the run's start. None leaves a limit as it is."""

    budget: Budget | None = None
    deadline: Annotated[timedelta, Field(le=limits.MAX_DEADLINE)] | None = None
    request_id: str | None = None


class UpdateReply(Model):
    """Whether the update was taken, where the run stands, and what to know."""

    accepted: bool
    phase: Phase
    message: str = ""
