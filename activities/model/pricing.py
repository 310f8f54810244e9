"""The price of a model call, from the price list that ships with genai-prices (never updated over the network)."""

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from activities.model.port import ModelUsage

_PROVIDER = "anthropic"  # a model of the same name elsewhere has another price: better unknown than wrong


def price(model: str, usage: ModelUsage) -> float | None:
    """Returns the USD of one call, cache reads and writes included; None if the price is unknown."""
    priced = PricedUsage(
        # the price list counts cached tokens as part of the input, the provider's usage does not
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.long_cache_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(calc_price(priced, model, provider_id=_PROVIDER).total_price)
    except LookupError:
        return None


def is_priced(model: str) -> bool:
    """True if calls of `model` have a known price."""
    return price(model, ModelUsage()) is not None
