"""What a run may still use: time until its deadline, and budget. Both can be extended while it runs."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.budget.ledger import Amount, Ledger
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.request import Budget, RunRequest
from temporal_supervisor.supervision.contract.status import RunLimits
from temporal_supervisor.supervision.contract.updates import NewBudget
from temporal_supervisor.supervision.contract.usage import Usage


class TimeAndBudget:
    """Deadline and budget of one supervisor. `now` is the run's clock; `grant` is a nested supervisor's slice.

    `agents_waiting` is how many worker agents wait for budget that others may return, `stopped_because` why no more
    work may begin, whatever time is left. While the clock is held, the deadline stays as far away as it was.
    """

    def __init__(
        self, request: RunRequest, now: Callable[[], datetime], started_at: datetime, grant: Amount | None = None
    ) -> None:
        self._now = now
        self._started_at = started_at
        self.deadline = request.deadline
        self.budget = Budget.model_construct(**grant.model_dump()) if grant else request.budget
        self.ledger = Ledger(self.budget.tokens, self.budget.usd)
        self._ceilings = Ceilings()
        self.agents_waiting = 0
        self.stopped_because = ""
        self._held_by: set[str] = set()
        self._held_since = started_at
        self._held_before = timedelta()  # in the holds that have ended: each wait looks at the deadline at each event
        self._holds: list[tuple[datetime, datetime]] = []  # that have ended

    @property
    def deadline_at(self) -> datetime:
        """When the run must have answered; it moves while the clock is held."""
        return self._started_at + self.deadline + self._held

    @property
    def latest_deadline_at(self) -> datetime:
        """Where `extend_limits` can move the deadline to at most."""
        return self._started_at + limits.MAX_DEADLINE + self._held

    @property
    def _held(self) -> timedelta:
        return self._held_before + (self._now() - self._held_since if self.held else timedelta())

    @property
    def held(self) -> bool:
        """True while the clock stands still."""
        return bool(self._held_by)

    def hold(self, why: str, wanted: bool = True) -> bool:
        """Holds the clock for a reason, or no longer for that one. Returns True if the deadline has moved."""
        was_held = self.held
        (self._held_by.add if wanted else self._held_by.discard)(why)
        if self.held and not was_held:
            self._held_since = self._now()
        has_moved = was_held and not self.held
        if has_moved:
            self._held_before += self._now() - self._held_since
            self._holds.append((self._held_since, self._now()))
        return has_moved

    def held_time(self, begin: datetime, end: datetime) -> timedelta:
        """Returns how long the clock stood still between two times."""
        holds = [*self._holds, (self._held_since, self._now())] if self.held else self._holds
        parts = (min(end, until) - max(begin, since) for since, until in holds)
        return sum((max(timedelta(), part) for part in parts), timedelta())

    @property
    def work_until(self) -> datetime:
        """When work on subtasks ends, so that there is time for the synthesis."""
        return self.deadline_at - min(limits.SYNTHESIS_RESERVE, self.deadline * limits.SYNTHESIS_RESERVE_SHARE)

    @property
    def closing_time(self) -> timedelta:
        """How long to wait for children that were asked to stop: the answer needs a part of what is left, too."""
        left = (self.deadline_at - self._now()) * limits.CHILD_CLOSE_SHARE
        return max(min(limits.CHILD_CLOSE_WAIT, left), limits.LEAST_CALL_TIME)

    @property
    def time_left(self) -> bool:
        """True if work on subtasks may still begin."""
        return not self.stopped_because and self._now() < self.work_until

    def stop_work(self, why: str) -> None:
        """Lets no more work begin, whatever time is left."""
        self.stopped_because = why

    def count_waiting_agents(self, more: int) -> None:
        """Counts worker agents that begin, or with a negative number end, to wait for budget."""
        self.agents_waiting += more

    def affordable(self, tokens: int, ended: Sequence[Usage]) -> int | None:
        """Returns how many subtasks of so many `tokens`, or of the mean of `ended` ones, are free; None if unknown."""
        free, count = self.ledger.free, max(1, len(ended))
        mean_usd = sum(usage.usd or 0.0 for usage in ended) / count
        pairs = ((free.tokens, tokens or sum(usage.tokens for usage in ended) / count), (free.usd, mean_usd))
        return min((int(have / each) for have, each in pairs if have is not None and each), default=None)

    def shares(self, agents: int) -> int:
        """Returns by how many the free budget is divided now: `agents` without a grant, and the supervisor itself."""
        return 1 + max(1, agents - self.ledger.open_grants)

    def spent_line(self) -> str:
        """Returns one line on the budget."""
        used, limit, free = self.ledger.spent, self.budget, self.ledger.free.tokens
        line = f"{used.tokens:,} of {'any number of' if limit.tokens is None else f'{limit.tokens:,}'} tokens spent"
        if limit.tokens is not None and free is not None and (held := limit.tokens - used.tokens - free) > 0:
            line += f", {held:,} set aside for the answer and work at hand"
        if used.usd is not None and limit.usd is not None:
            line += f", {money(used.usd)} of {money(limit.usd)}"
        return line

    def check(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Raises ValueError if these can't be the new totals."""
        if budget is None and deadline is None:
            raise ValueError("nothing to change: give a budget, a deadline, or both")
        if deadline is not None and self._started_at + deadline + self._held <= self._now():
            raise ValueError("the new deadline has passed already: it counts from the run's start, or its last reset")
        if budget is not None:
            self._ceilings.check_totals(budget.tokens, budget.usd)
            new = self._ceilings.lowered_budget(budget.over(self.budget))
            self.ledger.check(new.tokens, new.usd)

    def extend(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Sets new totals; raises ValueError as `check`."""
        if budget is not None:
            self.budget = self._ceilings.lowered_budget(budget.over(self.budget))
            self.ledger.extend(self.budget.tokens, self.budget.usd)
        if deadline is not None:
            self.deadline = deadline

    def set_slice(self, grant: Amount, deadline_at: datetime) -> None:
        """Sets the deadline of a nested supervisor, and raises its slice to `grant`."""
        self.budget = Budget.model_construct(**self.ledger.raise_to(grant).model_dump())
        self.deadline = deadline_at - self._started_at - self._held

    def restart_clock(self) -> None:
        """Begins the whole deadline again: the run was reset."""
        if self.held:
            self._holds.append((self._held_since, self._now()))
        self._started_at = self._held_since = self._now()
        self._held_before = timedelta()

    def keep_within(self, ceilings: Ceilings) -> None:
        """Lowers what is above the operator's ceilings, now and in later updates."""
        self._ceilings = ceilings
        self.budget = ceilings.lowered_budget(self.budget)
        self.ledger.extend(self.budget.tokens, self.budget.usd)

    def card(self, request: RunRequest) -> RunLimits:
        """Returns the limits in force, for `status`: with those of the request, lowered to the ceilings."""
        return RunLimits(
            max_subtasks=request.max_subtasks,
            max_parallel=request.max_parallel,
            max_turns=request.max_turns,
            deadline_seconds=self.deadline.total_seconds(),
            budget_tokens=self.budget.tokens,
            budget_usd=self.budget.usd,
        )
