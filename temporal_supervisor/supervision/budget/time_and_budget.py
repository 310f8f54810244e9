"""The remaining time and budget of a run, both of which can be extended."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.budget.ledger import Amount, Ledger
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.request import Budget, RunRequest
from temporal_supervisor.supervision.contract.status import RunLimits
from temporal_supervisor.supervision.contract.updates import NewBudget
from temporal_supervisor.supervision.contract.usage import Usage

_ROOT = "root"  # holds a nested run's clock


class TimeAndBudget:
    """The deadline and budget of one supervisor, by the run's clock `now`.

    The budget of a nested supervisor is its `grant`. `stopped_because` is the reason why no more
    work may begin, even if time is left. `own_seconds` is the time of the supervisor's own work.
    While the clock is held, the deadline moves with it.
    """

    def __init__(
        self,
        request: RunRequest,
        now: Callable[[], datetime],
        started_at: datetime,
        grant: Amount | None = None,
    ) -> None:
        self._now = now
        self._started_at = started_at
        self.deadline = request.deadline
        self.budget = request.budget
        if grant is not None:
            self.budget = Budget.model_construct(tokens=grant.tokens, usd=grant.usd)
        self.ledger = Ledger(self.budget.tokens, self.budget.usd)
        self._ceilings = Ceilings()
        self._agents_waiting: Counter[str] = Counter()
        self.stopped_because = ""
        self.own_seconds = 0.0
        self._held_by: set[str] = set()
        self._held_since = started_at
        # In the holds that have ended: each wait looks at the deadline at each event.
        self._held_before = timedelta()
        self._holds: list[tuple[datetime, datetime]] = []  # that have ended

    @property
    def deadline_at(self) -> datetime:
        """The end of the run's time; it moves while the clock is held."""
        return self._started_at + self.deadline + self._held

    @property
    def latest_deadline_at(self) -> datetime:
        """The latest deadline that `extend_limits` can set."""
        return self._started_at + limits.MAX_DEADLINE + self._held

    @property
    def _held(self) -> timedelta:
        return self._held_before + (self._now() - self._held_since if self.held else timedelta())

    @property
    def held(self) -> bool:
        """True while the clock is held."""
        return bool(self._held_by)

    def hold(self, why: str, wanted: bool = True) -> bool:
        """Holds the clock for the reason `why` or, if not `wanted`, releases that reason.

        Returns True if the clock was stopped or started by this call.
        """
        was_held = self.held
        if wanted:
            self._held_by.add(why)
        else:
            self._held_by.discard(why)
        if self.held == was_held:
            return False

        if self.held:
            self._held_since = self._now()
        else:
            self._held_before += self._now() - self._held_since
            self._holds.append((self._held_since, self._now()))
        return True

    def held_time(self, begin: datetime, end: datetime) -> timedelta:
        """Returns the time for which the clock was held between two moments."""
        holds = [*self._holds, (self._held_since, self._now())] if self.held else self._holds
        parts = (min(end, until) - max(begin, since) for since, until in holds)
        return sum((max(timedelta(), part) for part in parts), timedelta())

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """Counts the time of a `with` block, without pauses, as the supervisor's own work.

        A block that raises is not counted.
        """
        began = self._now()
        yield
        now = self._now()
        held = self.held_time(began, now)
        self.own_seconds += (now - began - held).total_seconds()

    @property
    def work_until(self) -> datetime:
        """The end of the time for subtasks, which leaves time for the synthesis."""
        return self.deadline_at - self._for_synthesis

    @property
    def _for_synthesis(self) -> timedelta:
        return min(limits.SYNTHESIS_RESERVE, self.deadline * limits.SYNTHESIS_RESERVE_SHARE)

    @property
    def elapsed(self) -> timedelta:
        """The time since the start of the run, without the time for which the clock was held."""
        return self._now() - self._started_at - self._held

    def nested_deadline(self, began: timedelta, own: timedelta | None) -> datetime:
        """Returns the deadline of a nested run that began at the `elapsed` time `began`.

        It gets a share of the time that was left then, and at most its subtask's `own` time.
        """
        left = (self.deadline - self._for_synthesis - began) * limits.NESTED_DEADLINE_SHARE
        if own is not None:
            left = min(left, own)
        return self._started_at + self._held + began + max(left, limits.MIN_DEADLINE)

    def ends_at(self, *, last: bool = False) -> datetime:
        """Returns the end of the time for work or for the `last` call, which writes the answer.

        Both change when the limits change.
        """
        return self.deadline_at if last else self.work_until

    def follow_root(self, deadline_at: datetime | None) -> None:
        """Sets the deadline of a nested supervisor; None while the root's clock is held."""
        self.hold(_ROOT, deadline_at is None)
        if deadline_at is not None:
            self.deadline = deadline_at - self._started_at - self._held

    @property
    def closing_time(self) -> timedelta:
        """The time that children have for stopping; the rest is kept for the answer."""
        left = (self.deadline_at - self._now()) * limits.CHILD_CLOSE_SHARE
        return max(min(limits.CHILD_CLOSE_WAIT, left), limits.LEAST_CALL_TIME)

    @property
    def time_left(self) -> bool:
        """True if work on subtasks may still begin."""
        return not self.stopped_because and self._now() < self.work_until

    def stop_work(self, why: str) -> None:
        """Prevents all further work, even if time is left."""
        self.stopped_because = why

    @property
    def agents_waiting(self) -> set[str]:
        """The subtasks whose worker agents wait for budget that others may return."""
        return set(self._agents_waiting)

    def agent_waits(self, subtask_id: str) -> None:
        """Notes that a worker agent begins to wait for budget."""
        self._agents_waiting[subtask_id] += 1

    def agent_waits_no_longer(self, subtask_id: str) -> None:
        """Notes that a worker agent has ended its wait for budget."""
        self._agents_waiting[subtask_id] -= 1
        if not self._agents_waiting[subtask_id]:
            del self._agents_waiting[subtask_id]

    def affordable(self, tokens: int, ended: Sequence[Usage]) -> int | None:
        """Returns the number of subtasks that the free budget pays for; None if unknown.

        Each takes `tokens` or, without that, the mean of the `ended` ones.
        """
        free, count = self.ledger.free, max(1, len(ended))
        mean_usd = sum(usage.usd or 0.0 for usage in ended) / count
        pairs = (
            (free.tokens, tokens or sum(usage.tokens for usage in ended) / count),
            (free.usd, mean_usd),
        )
        return min(
            (int(have / each) for have, each in pairs if have is not None and each), default=None
        )

    def shares(self, agents: int) -> int:
        """Returns the number of slices of the free budget.

        The supervisor gets one, and so does each of the `agents` without a grant.
        """
        return 1 + max(1, agents - self.ledger.open_grants)

    def spent_line(self) -> str:
        """Returns one line on the spent and the total budget."""
        used, limit, free = self.ledger.spent, self.budget, self.ledger.free.tokens
        most = "any number of" if limit.tokens is None else f"{limit.tokens:,}"
        line = f"{used.tokens:,} of {most} tokens spent"
        if (
            limit.tokens is not None
            and free is not None
            and (held := limit.tokens - used.tokens - free) > 0
        ):
            line += f", {held:,} set aside for the answer and work at hand"
        if used.usd is not None and limit.usd is not None:
            line += f", {money(used.usd)} of {money(limit.usd)}"
        return line

    def check(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Raises ValueError if the totals cannot be changed to these."""
        if budget is None and deadline is None:
            raise ValueError("nothing to change: give a budget, a deadline, or both")
        if deadline is not None and self._started_at + deadline + self._held <= self._now():
            raise ValueError(
                "the new deadline has passed already: "
                "it counts from the run's start, or its last reset"
            )
        if budget is not None:
            self._ceilings.check_totals(budget.tokens, budget.usd)
            new = self._ceilings.lowered_budget(budget.applied_to(self.budget))
            self.ledger.check(new.tokens, new.usd)

    def extend(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Sets new totals; raises ValueError like `check`."""
        if budget is not None:
            self.budget = self._ceilings.lowered_budget(budget.applied_to(self.budget))
            self.ledger.extend(self.budget.tokens, self.budget.usd)
        if deadline is not None:
            self.deadline = deadline

    def restart_clock(self) -> None:
        """Starts the whole deadline again after the run was reset."""
        if self.held:
            self._holds.append((self._held_since, self._now()))
        self._started_at = self._held_since = self._now()
        self._held_before = timedelta()

    def keep_within(self, ceilings: Ceilings) -> None:
        """Lowers the limits to the operator's ceilings, now and in later updates."""
        self._ceilings = ceilings
        self.budget = ceilings.lowered_budget(self.budget)
        self.ledger.extend(self.budget.tokens, self.budget.usd)

    def card(self, request: RunRequest) -> RunLimits:
        """Returns the limits in force for `status`, with the request's lowered to the ceilings."""
        return RunLimits(
            max_subtasks=request.max_subtasks,
            max_parallel=request.max_parallel,
            max_turns=request.max_turns,
            deadline_seconds=self.deadline.total_seconds(),
            budget_tokens=self.budget.tokens,
            budget_usd=self.budget.usd,
        )
