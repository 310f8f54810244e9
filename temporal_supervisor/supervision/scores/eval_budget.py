"""The budget of an eval: the next run's share, and the likely use of the rest."""

from typing import Annotated, NamedTuple

from pydantic import Field

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.usage import Usage

_LEAST_TOKENS = 20_000  # of a run: its plan, some turns and its answer set them aside
_ROOM = 2  # times the tokens of runs so far: with less, a longer one would be cut short


class EvalBudget(Model):
    """Totals for all runs of an eval; None means no limit other than each run's own."""

    tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] | None = 20_000_000
    usd: Annotated[float, Field(gt=0, le=limits.MAX_BUDGET_USD, allow_inf_nan=False)] | None = None


class RunBudget(NamedTuple):
    """The budget of one run of an eval; None means the limit of its own request."""

    tokens: int | None = None
    usd: float | None = None


class Spent(NamedTuple):
    """The usage of `ended` runs, and the grants of runs under way."""

    usage: Usage
    ended: int
    under_way: tuple[RunBudget, ...] = ()


def next_grant(budget: EvalBudget, own: RunBudget, spent: Spent, slots: int) -> RunBudget | None:
    """Returns the grant of the next run, if `slots` more may start; None if there is no room.

    Runs under way may return some of theirs, so a later call may succeed.
    """
    tokens = _share(
        budget.tokens,
        own.tokens,
        spent.usage.tokens,
        [grant.tokens or 0 for grant in spent.under_way],
        slots,
        max(_LEAST_TOKENS, _ROOM * _mean(spent.usage.tokens, spent.ended)),
    )
    usd = _share(
        budget.usd,
        own.usd,
        spent.usage.usd or 0.0,
        [grant.usd or 0.0 for grant in spent.under_way],
        slots,
        _ROOM * _mean(spent.usage.usd or 0.0, spent.ended),
    )
    if tokens == 0 or usd == 0:
        return None
    return RunBudget(None if tokens is None else int(tokens), usd)


def _share(
    total: float | None,
    own: float | None,
    spent: float,
    granted: list[float],
    slots: int,
    least: float,
) -> float | None:
    """Returns a run's share of the free amount, at least `least`; 0 if that is not free."""
    if total is None:
        return own
    free = total - spent - sum(granted)
    if free <= 0 or free < least:
        return 0.0
    share = max(free / max(1, slots), least)
    return share if own is None else min(own, share)


def _mean(total: float, ended: int) -> float:
    return total / ended if ended else 0.0


class ToGo(NamedTuple):
    """The likely remaining time and cost of an eval; None if unknown."""

    seconds: float | None
    usd: float | None


def to_go(left: int, ended: int, elapsed: float, usd: float | None) -> ToGo:
    """Returns the likely seconds and dollars for the runs that are `left`."""
    if not ended:
        return ToGo(None, None)
    return ToGo(elapsed / ended * left, None if usd is None else usd / ended * left)
