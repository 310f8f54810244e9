"""A grant: the slice of a budget that one subtask attempt may use, and when it is used up."""

import math

from supervision import limits
from supervision.contract.base import Model
from supervision.contract.usage import Usage


class Grant(Model):
    """An amount of tokens and US dollars; None is no limit of that kind."""

    tokens: int | None = None
    usd: float | None = None


def may_call(grant: Grant, used: Usage, next_estimate: int) -> bool:
    """Whether a worker agent that has `used` so much may make a call of about `next_estimate` tokens.

    The first call is always allowed: a grant too small for a large context would otherwise buy nothing at all.
    """
    if used.model_calls == 0:
        return True
    if grant.tokens is not None and used.tokens + next_estimate > grant.tokens:
        return False
    return grant.usd is None or used.usd is None or used.usd + next_estimate * token_price(used) <= grant.usd


def last_call(grant: Grant, used: Usage, next_estimate: int) -> bool:
    """Whether the next call should be the last one: after it another of its size would not fit."""
    after = used + Usage(model_calls=1, input_tokens=next_estimate, usd=next_estimate * token_price(used))
    return not may_call(grant, after, next_estimate)


def call_estimate(prompt_bytes: int) -> int:
    """Tokens of a call with a prompt of that size and a reply of the usual length."""
    return math.ceil(prompt_bytes / limits.CHARS_PER_TOKEN) + limits.USUAL_REPLY_TOKENS


def token_price(usage: Usage) -> float:
    """The mean price of a token in US dollars; 0 when nothing is known."""
    return (usage.usd or 0.0) / usage.tokens if usage.tokens else 0.0
