"""The abilities of models, known by their names: thinking, notes by the system, output limits, caching.

From the provider's documentation (`docs/model-calls.md` says from where). A name that is unknown gets a plain request.
"""

import re
from dataclasses import dataclass

from supervision import limits

_NAME = re.compile(
    r"claude-(?:(?P<family>opus|sonnet|haiku|fable|mythos)-)?(?P<major>\d)(?:[-.](?P<minor>\d{1,2}))?(?!\d)"
)
_NOTES_SINCE = {"opus": (4, 8), "fable": (5, 1), "mythos": (5, 1)}  # no other family takes them
_ADAPTIVE_SINCE = (4, 6)
_STRICT_SINCE = (4, 5)
_OUTPUT_SINCE = (
    ((5, 0), 128_000),
    ((4, 5), 64_000),
    ((4, 0), 32_000),
    ((3, 7), 64_000),
    ((3, 5), 8_192),
    ((0, 0), 4_096),
)
_CACHED_SINCE = (((5, 0), 512), ((4, 8), 1_024), ((4, 7), 2_048), ((4, 6), 4_096), ((4, 5), 4_096), ((0, 0), 1_024))


@dataclass(frozen=True)
class ModelTraits:
    """What a model takes.

    `thinks` means adaptive thinking with a visible summary; `eager_tools` tool arguments that are streamed as they
    are written; `notes` system messages inside a conversation; `diagnostics` an explanation of cache misses;
    `effort` a level of effort; `strict_tools` tools whose arguments the API keeps to their schema.
    `most_output` is None where nobody knows it. `least_cached` is the shortest prefix that is cached, in tokens.
    """

    thinks: bool = False
    eager_tools: bool = False
    notes: bool = False
    diagnostics: bool = False
    effort: bool = False
    strict_tools: bool = False
    most_output: int | None = None
    least_cached: int = 1_024


def traits_of(model: str) -> ModelTraits:
    """Returns the traits of a model, named the provider's way or a gateway's (`anthropic/claude-...`)."""
    match = _NAME.search(model)
    if match is None:
        return ModelTraits()
    version = int(match["major"]), int(match["minor"] or 0)
    family = match["family"] or ""
    if family == "sonnet" and version in ((4, 0), (4, 6)):
        most, least = 64_000, 1_024
    else:
        most = next(tokens for since, tokens in _OUTPUT_SINCE if version >= since)
        least = next(tokens for since, tokens in _CACHED_SINCE if version >= since)
    if family == "sonnet" and version < (5, 5):
        least = 1_024
    return ModelTraits(
        thinks=version >= _ADAPTIVE_SINCE,
        eager_tools=version >= (4, 0),
        notes=family in _NOTES_SINCE and version >= _NOTES_SINCE[family],
        diagnostics=version >= (4, 0),
        effort=version >= ((4, 5) if family == "opus" else _ADAPTIVE_SINCE),
        strict_tools=version >= _STRICT_SINCE,
        most_output=most,
        least_cached=least,
    )


def output_limit(wanted: int, traits: ModelTraits, setting: int | None) -> int:
    """Returns `max_tokens` for a call that may want so many: a setting and a known limit cap it.

    A model that nobody knows gets a share: what is above its limit, it would refuse. A reply that is cut is asked for
    again with more room.
    """
    if setting is not None:
        return min(wanted, setting)
    if traits.most_output is None:
        return max(1, round(wanted * limits.UNKNOWN_OUTPUT_SHARE))
    return min(wanted, traits.most_output)
