"""The parts of a request that an endpoint takes, by the name of the model: thinking, effort, output limits, caching.

From the provider's documentation (`docs/model-calls.md` says from where). An unknown name gets a plain request.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from supervision.base import limits

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
class EndpointProfile:
    """The parts of a request that an endpoint takes for a model; a setting names those that it lacks.

    `thinking` is adaptive thinking with a visible summary; `eager_input_streaming` streams tool arguments as they are
    written; `system_messages` stand inside a conversation; `diagnostics` explain cache misses; `strict` keeps tool
    arguments to their schema. `most_output` is None where it is unknown. `least_cached` is the shortest prefix that is
    cached, in tokens.
    """

    thinking: bool = False
    eager_input_streaming: bool = False
    system_messages: bool = False
    diagnostics: bool = False
    effort: bool = False
    strict: bool = False
    cache_control: bool = True
    most_output: int | None = None
    least_cached: int = 1_024


def profile_of(model: str, without: Iterable[str] = (), most_output: int | None = None) -> EndpointProfile:
    """Returns the profile of a model, named the provider's way or a gateway's (`anthropic/claude-...`).

    The parts of `without` are left out; `most_output` goes before what is known of the model.
    """
    known = _known(model)
    return replace(known, most_output=most_output or known.most_output, **dict.fromkeys(without, False))


@lru_cache(limits.KNOWN_MODELS)
def _known(model: str) -> EndpointProfile:
    match = _NAME.search(model)
    if match is None:
        return EndpointProfile()
    version = int(match["major"]), int(match["minor"] or 0)
    family = match["family"] or ""
    if family == "sonnet" and version in ((4, 0), (4, 6)):
        most, least = 64_000, 1_024
    else:
        most = next(tokens for since, tokens in _OUTPUT_SINCE if version >= since)
        least = next(tokens for since, tokens in _CACHED_SINCE if version >= since)
    if family == "sonnet" and version < (5, 5):
        least = 1_024
    return EndpointProfile(
        thinking=version >= _ADAPTIVE_SINCE,
        eager_input_streaming=version >= (4, 0),
        system_messages=family in _NOTES_SINCE and version >= _NOTES_SINCE[family],
        diagnostics=version >= (4, 0),
        effort=version >= ((4, 5) if family == "opus" else _ADAPTIVE_SINCE),
        strict=version >= _STRICT_SINCE,
        most_output=most,
        least_cached=least,
    )
