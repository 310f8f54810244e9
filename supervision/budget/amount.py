"""Amounts of tokens and dollars, and what a worker agent may do within its grant: an amount for one subtask attempt."""

import math
from enum import Enum, auto

from supervision.base import limits
from supervision.contract.base import Model
from supervision.contract.usage import Usage

USUAL_REPLY_TOKENS = 1500  # for estimates: most plans, turns and answers are shorter


class Amount(Model):
    """Tokens and US dollars; None is no limit of that kind."""

    tokens: int | None = None
    usd: float | None = None


class NextCall(Enum):
    """What a worker agent does next within its grant."""

    CALL = auto()
    CONCLUDE = auto()  # one more call, in which it must conclude
    STOP = auto()  # no call: the supervisor may have more for it


def next_call(grant: Amount, used: Usage, estimate: int, *, last_grant: bool) -> NextCall:
    """Returns what comes after `used`, when the next call takes about `estimate` tokens.

    With a grant that may be followed by more, a worker agent stops one call early: were it to spend the rest, a
    `last_grant` of nothing would leave it no call to conclude in.
    """
    after = used + Usage(model_calls=1, input_tokens=estimate, usd=estimate * token_price(used))
    closing = not may_call(grant, after, estimate)  # after it another of its size would not fit
    if closing and not last_grant and used.model_calls > 0:
        return NextCall.STOP
    if not may_call(grant, used, estimate):
        return NextCall.STOP
    return NextCall.CONCLUDE if closing and last_grant else NextCall.CALL


def may_call(grant: Amount, used: Usage, next_estimate: int) -> bool:
    """True if a worker agent that has `used` so much may make a call of about `next_estimate` tokens.

    The first call is always allowed: a grant too small for a large context would otherwise buy nothing at all.
    """
    if used.model_calls == 0:
        return True
    if grant.tokens is not None and used.tokens + next_estimate > grant.tokens:
        return False
    return grant.usd is None or used.usd is None or used.usd + next_estimate * token_price(used) <= grant.usd


def call_estimate(prompt_bytes: int) -> int:
    """Returns the tokens of a call with a prompt of that size and a reply of the usual length."""
    return math.ceil(prompt_bytes / limits.CHARS_PER_TOKEN) + USUAL_REPLY_TOKENS


def token_price(usage: Usage) -> float:
    """Returns the mean price of a token in US dollars; 0 when nothing is known."""
    return (usage.usd or 0.0) / usage.tokens if usage.tokens else 0.0
