"""The ledger: the money and tokens of a supervisor, spent, promised, reserved and free.

    total = spent + promised to worker agents + reserved for own calls + held back for the synthesis
            + free

The root has one ledger, and each nested supervisor has one over its own grant. A promise fits the
total when it is made, so spending exceeds the total only if calls under way use more than
estimated: at most one call of each running worker agent, and the supervisor's own.
"""

import math
from enum import Enum, auto

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.usage import Spend, Usage

# Of the budget: an answer costs about a tenth of a run of a dozen subtasks.
SYNTHESIS_HOLDBACK_SHARE = 0.1
SYNTHESIS_HOLDBACK_TOKENS = 20_000  # the findings of a dozen subtasks and an answer
USUAL_REPLY_TOKENS = 1500  # for estimates: most plans, turns and answers are shorter


class Amount(Model):
    """Tokens and US dollars; None means no limit of that kind."""

    tokens: int | None = None
    usd: float | None = None


class NextCall(Enum):
    """The next step of a worker agent within its grant."""

    CALL = auto()
    CONCLUDE = auto()  # one more call, in which it must conclude
    STOP = auto()  # no call: the supervisor may have more for it


def next_call(grant: Amount, used: Usage, estimate: int, *, last_grant: bool) -> NextCall:
    """Returns the step after `used`, if the next call takes about `estimate` tokens.

    If another grant may follow this one, a worker agent stops one call early. If it spent
    everything and the `last_grant` were empty, it would have no call left to conclude in.
    """
    if not may_call(grant, used, estimate):
        return NextCall.STOP
    after = used + Usage(model_calls=1, input_tokens=estimate, usd=estimate * token_price(used))
    if may_call(grant, after, estimate):  # another of its size would fit after it
        return NextCall.CALL
    if last_grant:
        return NextCall.CONCLUDE
    return NextCall.STOP if used.model_calls > 0 else NextCall.CALL


def may_call(grant: Amount, used: Usage, next_estimate: int) -> bool:
    """True if a worker agent that has `used` this much may make one more call.

    `next_estimate` is the call's estimate in tokens. The first call is always allowed: otherwise a
    grant that is too small for a large context would buy nothing.
    """
    if used.model_calls == 0:
        return True
    if grant.tokens is not None and used.tokens + next_estimate > grant.tokens:
        return False
    return (
        grant.usd is None
        or used.usd is None
        or used.usd + next_estimate * token_price(used) <= grant.usd
    )


def call_estimate(prompt_bytes: int) -> int:
    """Returns the estimated tokens of a call: its prompt, and a reply of the usual length."""
    return math.ceil(prompt_bytes / limits.CHARS_PER_TOKEN) + USUAL_REPLY_TOKENS


def token_price(usage: Usage) -> float:
    """Returns the mean price of a token in US dollars; 0 if no price is known."""
    return (usage.usd or 0.0) / usage.tokens if usage.tokens else 0.0


class Ledger:
    """An account of `tokens` and `usd`; None means no limit of that kind.

    After a call whose price is unknown (`Usage.usd` is None), only tokens are limited. The cost of
    a call in dollars is estimated from the mean price of a token so far.
    """

    def __init__(self, tokens: int | None, usd: float | None) -> None:
        self._total = Amount(tokens=tokens, usd=usd)
        self._spent = Usage()
        self._grants: dict[str, Amount] = {}
        # Sums of the grants, kept up to date: they are asked for after every event, and a large run
        # has hundreds.
        self._promised_tokens = 0
        self._promised_usd = 0.0
        self._reserved = 0  # tokens of own calls in flight

    @property
    def spent(self) -> Usage:
        """The usage of all settled calls and grants."""
        return self._spent

    @property
    def free(self) -> Amount:
        """The amount that may be promised now."""
        return self._free_beside(self._reserve())

    @property
    def for_synthesis(self) -> Amount:
        """The amount for the synthesis: everything free, and the reserve for it."""
        return self._free_beside(Amount(tokens=0, usd=0.0))

    @property
    def open_grants(self) -> int:
        """The number of grants that are not settled."""
        return len(self._grants)

    def has_grant(self, account: str | None) -> bool:
        """True if an account has a grant that is not settled."""
        return account in self._grants

    @property
    def exhausted(self) -> bool:
        """True if not even the smallest grant is free.

        Running worker agents may still return some budget.
        """
        return not self.has_room(limits.LEAST_GRANT_TOKENS)

    def reserve_call(self, estimate_tokens: int, *, synthesis: bool = False) -> bool:
        """Sets tokens aside for one own call; returns False if there is no room.

        The synthesis may also use the tokens that are held back for it.
        """
        fits = self.has_room(estimate_tokens, synthesis=synthesis)
        if fits:
            self._reserved += estimate_tokens
        return fits

    def settle_call(self, estimate_tokens: int, usage: Usage) -> None:
        """Ends a reservation made by `reserve_call` and books the usage of the call.

        A call that failed has used nothing.
        """
        self._reserved = max(0, self._reserved - estimate_tokens)
        self._spent += usage

    def has_room(self, tokens: int, *, synthesis: bool = False) -> bool:
        """True if that many tokens are free or, for the synthesis, held back."""
        available = self.for_synthesis if synthesis else self.free
        if available.tokens is not None and tokens > available.tokens:
            return False
        return available.usd is None or 0 < available.usd >= tokens * token_price(self._spent)

    def grant(self, subtask_id: str, share_of: float) -> Amount | None:
        """Grants a subtask one of `share_of` equal slices of the free budget.

        Returns None if not even the smallest grant is free. Raises ValueError if the subtask has a
        grant that is not settled.
        """
        if subtask_id in self._grants:
            raise ValueError(f"'{subtask_id}' has a grant that is not settled")
        if self.exhausted:
            return None

        free = self.free
        share = max(1, share_of)
        tokens = None
        if free.tokens is not None:
            tokens = min(free.tokens, max(int(free.tokens // share), limits.LEAST_GRANT_TOKENS))
        usd = None
        if free.usd is not None:
            least = limits.LEAST_GRANT_TOKENS * token_price(self._spent)
            usd = min(free.usd, max(free.usd / share, least))
        return self._promise(subtask_id, Amount(tokens=tokens, usd=usd))

    def last_grant(self, subtask_id: str) -> Amount:
        """Grants everything that is free, even nothing, for the call that concludes an attempt."""
        return self._promise(subtask_id, self.free)

    def settle(self, subtask_id: str, usage: Usage) -> None:
        """Ends a grant and books the usage of the attempt, which counts even without a grant."""
        self._take_back(subtask_id)
        self._spent += usage

    def _promise(self, subtask_id: str, grant: Amount) -> Amount:
        """Records the grant of a subtask and returns it."""
        self._take_back(subtask_id)
        self._grants[subtask_id] = grant
        self._promised_tokens += grant.tokens or 0
        self._promised_usd += grant.usd or 0.0
        return grant

    def _take_back(self, subtask_id: str) -> None:
        """Removes the grant of a subtask, if it has one."""
        grant = self._grants.pop(subtask_id, None)
        if grant is None:
            return
        self._promised_tokens -= grant.tokens or 0
        # Without any grant the sum is exactly nothing, whatever rounding has left of it.
        self._promised_usd = (
            max(0.0, self._promised_usd - (grant.usd or 0.0)) if self._grants else 0.0
        )

    def check(self, tokens: int | None, usd: float | None) -> None:
        """Raises ValueError if a new total is below the spent and promised amount."""
        tokens_gone, usd_gone = self._spent_and_promised()
        if tokens is not None and tokens < tokens_gone:
            raise ValueError(
                f"budget.tokens must be at least {tokens_gone}: so much is spent or promised"
            )
        if usd is not None and self._spent.usd is not None and usd < usd_gone:
            raise ValueError(
                f"budget.usd must be at least {usd_gone:.6f}: so much is spent or promised"
            )

    def extend(self, tokens: int | None, usd: float | None) -> None:
        """Sets new totals; raises ValueError like `check`."""
        self.check(tokens, usd)
        self._total = Amount(tokens=tokens, usd=usd)

    def _free_beside(self, reserve: Amount) -> Amount:
        tokens_gone, usd_gone = self._spent_and_promised()
        total = self._total
        no_usd = total.usd is None or self._spent.usd is None
        return Amount(
            tokens=None
            if total.tokens is None
            else max(0, total.tokens - tokens_gone - (reserve.tokens or 0)),
            usd=None if no_usd else max(0.0, (total.usd or 0.0) - usd_gone - (reserve.usd or 0.0)),
        )

    def _spent_and_promised(self) -> tuple[int, float]:
        """Returns the tokens and dollars that are spent or promised."""
        reserved_usd = self._reserved * token_price(self._spent)
        tokens = self._spent.tokens + self._reserved + self._promised_tokens
        return tokens, (self._spent.usd or 0.0) + reserved_usd + self._promised_usd

    def _reserve(self) -> Amount:
        share, total = SYNTHESIS_HOLDBACK_SHARE, self._total
        tokens = usd = None
        if total.tokens is not None:
            wanted = max(math.ceil(total.tokens * share), SYNTHESIS_HOLDBACK_TOKENS)
            # Of a small total more would leave nothing to write about.
            tokens = min(wanted, total.tokens // 2)
        if total.usd is not None and self._spent.usd is not None:
            usd = total.usd * share
        return Amount(tokens=tokens, usd=usd)


SUPERVISOR = "supervisor"
"""Stands for a role where the supervisor itself calls a model."""


class Spending:
    """Usage by role and model; members of a team are listed as `role/member`."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], Usage] = {}

    def add(self, role: str, model: str, usage: Usage) -> None:
        """Adds usage to a row; zero usage adds no row."""
        if usage != Usage():
            key = role, model
            self._sums[key] = self._sums.get(key, Usage()) + usage

    def add_team(self, role: str, rows: list[Spend], total: Usage) -> None:
        """Adds the rows of a nested run or, if there are none, its `total` as one row."""
        for row in rows:
            self.add(f"{role}/{row.role}", row.model, row.usage)
        if not rows:
            self.add(role, "", total)

    def rows(self) -> list[Spend]:
        """Returns the largest rows, the largest first, as many as a payload has room for."""
        rows = [
            Spend(role=role, model=model, usage=usage)
            for (role, model), usage in self._sums.items()
        ]
        return sorted(rows, key=lambda row: row.usage.tokens, reverse=True)[: limits.STATUS_PAGE]
