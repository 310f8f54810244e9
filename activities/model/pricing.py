"""The price of a model call, from the price list that ships with genai-prices (never updated over the network).

The list knows the windows of models as well.
"""

import re
from functools import lru_cache

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from activities.model.port import ModelUsage
from supervision.base import limits

_PROVIDER = "anthropic"  # a model of the same name elsewhere has another price: better unknown than wrong
# Gateways and clouds put more around the same name: `anthropic/claude-...`, `us.anthropic.claude-...-v1:0`,
# `claude-...@20250929`. They sell at the provider's prices, or near them.
_NAME = re.compile(r"(?:^|[/.])(?P<name>claude-[a-z0-9.-]+?)(?:-v\d+(?::\d+)?|[@:].*)?$")


def price(model: str, usage: ModelUsage) -> float | None:
    """Returns the USD of one call, cache reads and writes included; None if the price is unknown."""
    priced = PricedUsage(
        # the price list counts cached tokens as part of the input, the provider's usage does not
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.long_cache_tokens,
        output_tokens=usage.output_tokens,
    )
    entry = _listed(model, priced)
    return None if entry is None else float(entry.total_price)


@lru_cache(limits.KNOWN_MODELS)
def listed_window(model: str) -> int | None:
    """Returns the tokens that the model takes at once; None if the list does not know it."""
    entry = _listed(model, PricedUsage())
    return None if entry is None else entry.model.context_window


def provider_name(model: str) -> str:
    """Returns the provider's own name of a model that a gateway names in its way; other names as they are."""
    match = _NAME.search(model)
    return re.sub(r"(?<=\d)\.(?=\d)", "-", match["name"]) if match else model


def is_priced(model: str) -> bool:
    """True if calls of `model` have a known price."""
    return price(model, ModelUsage()) is not None


def _listed(model: str, usage: PricedUsage) -> PriceCalculation | None:
    """Returns what the list has on a model, by its own name or by the provider's."""
    for name in dict.fromkeys((model, provider_name(model))):
        try:
            return calc_price(usage, name, provider_id=_PROVIDER)
        except LookupError:
            continue
    return None
