"""Tokens per minute: who may spend how much when. The clock is an argument, in seconds."""

from supervision import limits


class TokenBucket:
    """At most `per_minute` tokens in any minute, in the order of taking.

    It holds TPM_BURST_SHARE of a minute's tokens and refills with the rest, so a full bucket and a minute's refill
    make one minute's tokens. An amount above what it holds may be taken when it is full; it then owes the difference.
    """

    def __init__(self, per_minute: int) -> None:
        self._capacity = per_minute * limits.TPM_BURST_SHARE
        self._rate = per_minute * (1 - limits.TPM_BURST_SHARE) / 60
        self._level = self._capacity
        self._at = float("-inf")
        self._promised_until = float("-inf")

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be spent if it is taken now."""
        self._refill(now)
        return max((min(amount, self._capacity) - self._level) / self._rate, 0.0)

    def take(self, amount: float, now: float) -> None:
        """Takes `amount`, to be spent after `wait(amount, now)`; later takers wait for it too."""
        self._refill(now)
        self._level -= amount

    def give_back(self, amount: float, now: float) -> None:
        """Returns what was taken and not spent; a negative amount takes what was spent on top."""
        self._refill(now)
        self._level = min(self._level + amount, self._capacity)

    def turn_away(self, amount: float, now: float) -> float:
        """Seconds after which one who does not want to wait should come back, at most TPM_DELAY_MAX.

        Those turned away are sent to different moments, as they could not all be served at the same one.
        """
        most = limits.TPM_DELAY_MAX.total_seconds()
        delay = min(max(self.wait(amount, now), self._promised_until - now), most)
        self._promised_until = now + delay + amount / self._rate
        return delay

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._level + (now - max(self._at, now - 3600)) * self._rate, self._capacity)
            self._at = now
