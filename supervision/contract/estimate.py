"""What a plan is likely to take, by what earlier runs of the team took."""

from supervision.contract.base import Model


class Range(Model):
    """A range that should hold 90 % of the cases."""

    low: float
    high: float


class Shares(Model):
    """What one part of a run takes. `tokens` are all of them, cached ones included; `usd` None is an unknown price.

    `id` is the subtask's, `supervisor` for its own calls (planning, reviews, refinements, the answer), or `total`.
    """

    id: str
    calls: Range
    tokens: Range
    usd: Range | None = None
    seconds: Range


class Estimate(Model):
    """The ranges of a plan: of the first 100 subtasks and the supervisor's own work, and of the whole run in `total`.

    The total is narrower than the sum of its parts; its seconds are those of the longest chain of subtasks. `samples`
    counts the earlier runs that it is made from: without any, the ranges are the limits of the request. Of the last
    `of` estimates of the team, `held` held the calls and the tokens of their runs.
    """

    parts: list[Shares] = []
    total: Shares
    samples: int = 0
    held: int = 0
    of: int = 0
