"""How many tokens the models of this process take at once, and what that leaves for the parts of a prompt.

A setting says it, else the price list, else the provider; what that said when it refused a prompt is remembered.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase

from cachetools import LRUCache

from activities.model.port import ModelFailure
from activities.model.pricing import dearer_from, listed_window
from supervision import limits
from supervision.agent.clearing import Room
from supervision.text import cut, size

# The provider's words, and those of compatible servers, for a prompt that does not fit.
_WORDS = (
    re.compile(r"(?<!\d)(?P<tokens>\d{1,12}) tokens > (?P<window>\d{1,12}) maximum"),
    re.compile(r"context limit: (?P<tokens>\d{1,12}) \+ \d{1,12} > (?P<window>\d{1,12})"),
    re.compile(r"(?:maximum (?:context|prompt) length is |context size \(|token limit: )(?P<window>\d{1,12})"),
)


class KnownWindows:
    """The windows by model. `settings` are tokens by name or pattern, the first that fits; they go before the list."""

    def __init__(self, settings: Mapping[str, int] | None = None) -> None:
        self._settings = dict(settings or {})
        self._learned: LRUCache[str, int] = LRUCache(limits.KNOWN_MODELS)
        self._asked: LRUCache[str, bool] = LRUCache(limits.KNOWN_MODELS)

    def of(self, model: str) -> int:
        """Returns the tokens that a prompt and its reply may have together."""
        known = self._stated(model)
        learned = self._learned.get(model)
        if learned is not None:
            return min(learned, known or learned)
        return known or limits.UNKNOWN_WINDOW_TOKENS

    def is_unknown(self, model: str) -> bool:
        """True if nobody has said how large the model's window is, and the provider was not asked."""
        return not (self._stated(model) or self._learned.get(model)) and model not in self._asked

    async def find_out(self, model: str, ask: Callable[[str], Awaitable[int | None]]) -> None:
        """Asks the provider, once, for the window of a model that nobody knows."""
        self._asked[model] = True
        if (window := await ask(model)) is not None:
            self.learn(model, window)

    def learn(self, model: str, window: int) -> None:
        """Remembers what the provider said."""
        if window > 0:
            self._learned[model] = window

    def room(self, model: str) -> Room:
        """Returns the room that a conversation of worker agents has."""
        return Room.of(self.of(model), dearer_from(model))

    def prompt_tokens(self, model: str) -> int:
        """Returns how many tokens of findings, and of other texts that can be cut, one prompt holds."""
        return min(limits.CONTEXT_TOKENS, int(self.of(model) * limits.CONTEXT_SHARE))

    def reply_tokens(self, model: str, prompt: Callable[[], int]) -> int | None:
        """Returns how many tokens a small window has left beside a prompt; None for one that has enough for any reply.

        Endpoints with small windows often refuse what asks for more.
        """
        window = self.of(model)
        return max(window - prompt(), limits.LEAST_OUTPUT_TOKENS) if window < limits.UNKNOWN_WINDOW_TOKENS else None

    def _stated(self, model: str) -> int | None:
        """Returns what a setting says of the model, else the price list."""
        settings = (tokens for name, tokens in self._settings.items() if fnmatchcase(model, name))
        return next(settings, None) or listed_window(model)


def refused_size(failure: ModelFailure) -> tuple[int | None, int | None]:
    """Returns the tokens of a prompt that did not fit, and the window, where the provider's words have them."""
    match = next((match for words in _WORDS if (match := words.search(failure.message))), None)
    if match is None:
        return None, None
    tokens = match.groupdict().get("tokens")
    return int(tokens) if tokens else None, int(match["window"])


def lasting(refusal: ModelFailure) -> ModelFailure:
    """Returns the refusal of a prompt from which nothing more can be left out, with what helps."""
    window = refused_size(refusal)[1]
    size_known = "" if window else " SUPERVISOR_MODEL_WINDOW says how much it takes, then prompts are fitted to it."
    message = (
        f"{cut(refusal.message, limits.COMPLAINT_BYTES)}. Nothing more can be left out: use a model with a "
        "larger window (models.supervisor for plans, reviews and answers, models.workers or a role's own model for "
        f"subtasks), or shorten the goal, the subtask or the prompts of the team.{size_known}"
    )
    return ModelFailure(refusal.kind, message, retryable=False, status=refusal.status, request_id=refusal.request_id)


def tokens_of(text: str) -> int:
    """Returns about how many tokens a text has: by its bytes, as scripts with more of them take more tokens."""
    return round(size(text) / limits.CHARS_PER_TOKEN)


def brief_tokens(tokens: int) -> int:
    """Returns how many of a prompt's tokens are for findings in a worker agent's brief, which every turn reads."""
    return min(limits.AGENT_CONTEXT_TOKENS, int(tokens * limits.AGENT_CONTEXT_SHARE))
