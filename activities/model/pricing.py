"""Prices and windows of the provider's models, from the offline list of genai-prices."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from activities.model.port import ModelUsage, Window
from temporal_supervisor.supervision.base import limits

# A model of the same name elsewhere has another price: better unknown than wrong.
_PROVIDER = "anthropic"
# Gateways and clouds put more around the same name: `anthropic/claude-...`,
# `us.anthropic.claude-...-v1:0`, `claude-...@20250929`. They sell at the provider's prices, or near
# them.
_NAME = re.compile(r"(?:^|[/.])(?P<name>claude-[a-z0-9.-]+?)(?:-v\d+(?::\d+)?|[@:].*)?$")
# Above 100,000 tokens each costs five times.
_LONG_CONTEXT: Mapping[str, int] = {"*claude-haiku-5-5*": 95_000}


@lru_cache(limits.KNOWN_MODELS)  # each call is priced two or three times, at 0.1 ms
def price(model: str, usage: ModelUsage) -> float | None:
    """Returns the cost of one call in dollars, cache reads and writes included.

    None if the price is unknown.
    """
    # the price list counts cached tokens as part of the input, the provider's usage does not
    priced = {**usage.model_dump(), "input_tokens": usage.prompt_tokens}
    entry = _list_entry(model, PricedUsage(**priced))
    return None if entry is None else float(entry.total_price)


def window_of(model: str, settings: Mapping[str, int]) -> Window:
    """Returns the window of a model, by the first matching one of `settings`, else by the list.

    `settings` maps names or patterns to tokens.
    """
    tokens = set_window(model, settings) or _listed_window(model) or limits.UNKNOWN_WINDOW_TOKENS
    return Window(tokens, long_context_threshold=_first_match(_LONG_CONTEXT, model))


def set_window(model: str, settings: Mapping[str, int]) -> int | None:
    """Returns the tokens of the first of `settings` that matches a model; None if none does."""
    return _first_match(settings, model)


@lru_cache(limits.KNOWN_MODELS)
def _listed_window(model: str) -> int | None:
    entry = _list_entry(model, PricedUsage())
    return None if entry is None else entry.model.context_window


def _list_entry(model: str, usage: PricedUsage) -> PriceCalculation | None:
    """Returns the entry of a model in the list, by its own name or by the provider's."""
    match = _NAME.search(model)
    own = re.sub(r"(?<=\d)\.(?=\d)", "-", match["name"]) if match else model
    for name in dict.fromkeys((model, own)):
        try:
            return calc_price(usage, name, provider_id=_PROVIDER)
        except LookupError:
            continue
    return None


def _first_match(table: Mapping[str, int], model: str) -> int | None:
    return next((tokens for name, tokens in table.items() if fnmatchcase(model, name)), None)
