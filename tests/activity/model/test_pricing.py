"""Prices of model calls, from the list that ships with the package."""

import pytest

from activities.model.port import ModelUsage
from activities.model.pricing import price

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("claude-opus-5-5", ModelUsage(input_tokens=MILLION), 4.0),
        ("claude-opus-5-5", ModelUsage(output_tokens=MILLION), 20.0),
        ("claude-opus-5-5", ModelUsage(cache_read_tokens=MILLION), 4.0 * 0.05),
        ("claude-opus-5-5", ModelUsage(cache_write_tokens=MILLION), 4.0 * 1.25),
        ("claude-sonnet-5-5", ModelUsage(input_tokens=MILLION, output_tokens=MILLION), 12.0),
        ("claude-haiku-5-5", ModelUsage(input_tokens=10_000, output_tokens=1_000), 0.0010 + 0.0005),
        # five times as much for the whole request above 100,000 prompt tokens, cached ones included
        ("claude-haiku-5-5", ModelUsage(input_tokens=200_000, output_tokens=1_000), 0.1 + 0.0025),
        ("claude-haiku-5-5", ModelUsage(input_tokens=10_000, cache_read_tokens=100_000), 0.005 + 0.005),
        ("claude-haiku-5-5-20261001", ModelUsage(input_tokens=10_000), 0.001),
        ("claude-fable-5-2", ModelUsage(input_tokens=MILLION, output_tokens=MILLION), 48.0),
        ("claude-opus-5-5", ModelUsage(), 0.0),
    ],
)
def test_a_known_model_has_its_listed_price(model: str, usage: ModelUsage, usd: float) -> None:
    assert price(model, usage) == pytest.approx(usd)


@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-haiku-4-5",
        "anthropic/claude-haiku-4.5",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "claude-haiku-4-5@20251001",
        "vertex_ai/claude-haiku-4-5@20251001",
        "openrouter/anthropic/claude-haiku-4.5:beta",
    ],
)
def test_a_gateways_name_has_the_providers_price(name: str) -> None:
    usage = ModelUsage(input_tokens=1000, output_tokens=100)
    assert price(name, usage) == price("claude-haiku-4-5", usage) is not None


@pytest.mark.parametrize("name", ["my-claude-like", "claude-", "acme/unclaude-haiku-4-5", "llama/claude"])
def test_other_names_stay_unpriced(name: str) -> None:
    assert price(name, ModelUsage(input_tokens=1)) is None
