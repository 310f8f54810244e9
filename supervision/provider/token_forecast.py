"""How many tokens a model call will use, guessed before the provider has counted."""

from supervision import limits

_NEW = 0.2  # weight of the newest call: some ten calls are remembered


class TokenForecast:
    """Learns from a model's calls how much of a prompt counts (cached text does not) and how long answers are."""

    def __init__(self) -> None:
        self._per_char = 1 / limits.CHARS_PER_TOKEN
        self._output: float | None = None

    def guess(self, prompt_chars: int, max_tokens: int) -> float:
        """Tokens of a call with that prompt that may answer with `max_tokens`."""
        output = limits.OUTPUT_TOKENS_GUESS if self._output is None else self._output
        return prompt_chars * self._per_char + min(output, max_tokens)

    def learn(self, prompt_chars: int, input_tokens: int, output_tokens: int) -> None:
        """What a call really used; `input_tokens` without those read from the cache."""
        if prompt_chars:
            self._per_char += _NEW * (input_tokens / prompt_chars - self._per_char)
        before = output_tokens if self._output is None else self._output
        self._output = before + _NEW * (output_tokens - before)
