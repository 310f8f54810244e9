"""Tokens per minute: how many a model call will use, and when it may spend them. The clock is an argument."""

from supervision import limits

_NEWEST = 0.2  # weight of the newest call: some ten calls count


class TokenForecast:
    """How many tokens a model call will use, guessed before the provider has counted.

    It learns from a model's calls how much of a prompt counts (cached text does not) and how long answers are.
    """

    def __init__(self) -> None:
        self._per_char = 1 / limits.CHARS_PER_TOKEN
        self._output: float | None = None

    def guess(self, prompt_chars: int, max_tokens: int) -> float:
        """Returns the tokens of a call with that prompt whose answer may have `max_tokens`."""
        output = limits.OUTPUT_TOKENS_GUESS if self._output is None else self._output
        return prompt_chars * self._per_char + min(output, max_tokens)

    def learn(self, prompt_chars: int, input_tokens: int, output_tokens: int) -> None:
        """Learns from a call that was answered; `input_tokens` are without those read from the cache."""
        if prompt_chars:
            self._per_char += _NEWEST * (input_tokens / prompt_chars - self._per_char)
        before = output_tokens if self._output is None else self._output
        self._output = before + _NEWEST * (output_tokens - before)


class TokenBucket:
    """At most `per_minute` tokens in any minute, in the order of taking; times are in seconds.

    Its capacity is TPM_BURST_SHARE of a minute's tokens, and it refills with the rest, so a full bucket and a
    minute's refill make one minute's tokens. An amount above the capacity may be taken when the bucket is full: the
    level is then negative.
    """

    def __init__(self, per_minute: int) -> None:
        self._capacity = per_minute * limits.TPM_BURST_SHARE
        self._rate = per_minute * (1 - limits.TPM_BURST_SHARE) / 60
        self._level = self._capacity
        self._at = float("-inf")
        self._promised_until = float("-inf")

    def wait(self, amount: float, now: float) -> float:
        """Returns the seconds until `amount` may be spent if it is taken now."""
        self._refill(now)
        return max((min(amount, self._capacity) - self._level) / self._rate, 0.0)

    def take(self, amount: float, now: float) -> None:
        """Takes `amount`, to be spent after `wait(amount, now)`; later takers wait for it too."""
        self._refill(now)
        self._level -= amount

    def give_back(self, amount: float, now: float) -> None:
        """Puts back tokens that were taken and not spent; a negative amount takes those spent on top."""
        self._refill(now)
        self._level = min(self._level + amount, self._capacity)

    def turn_away(self, amount: float, now: float) -> float:
        """Returns the seconds after which a caller that cannot wait should come back, at most TPM_DELAY_MAX.

        Callers get different moments, as they could not all be served at the same one.
        """
        most = limits.TPM_DELAY_MAX.total_seconds()
        delay = min(max(self.wait(amount, now), self._promised_until - now), most)
        self._promised_until = now + delay + amount / self._rate
        return delay

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._level + (now - self._at) * self._rate, self._capacity)
            self._at = now
