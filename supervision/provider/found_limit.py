"""How many requests a provider grants, found by its refusals: the rule, and the words in which a queue keeps it.

The rate is a function of the last refusal alone: lower at once, back to just below the refused rate within some forty
calls, then beyond it, ever faster, until the provider refuses again. All processes compute the same from what the
queue's configuration says, so it does not matter which of them writes. Rates are in requests per second.
"""

import re
from dataclasses import dataclass, replace

from supervision import limits

_OURS = "temporal-supervisor: "
_FOUND = re.compile(r"429 at (?P<refused>[\d.]+)/min, (?P<at>\S+), (?P<calm>[\d.]+) s without one since")
_NAMED = re.compile(r"the provider names (?P<named>[\d.]+)/min")
_SHARE = re.compile(r"a share of SUPERVISOR_MODEL_RPM (?P<total>[\d.]+)")
_BY_HAND = re.compile(r"by hand: at most (?P<rate>[\d.]+)/min(?:, (?P<why>.*))?$", re.DOTALL)


@dataclass(frozen=True)
class FoundLimit:
    """What the last refusal showed.

    `refused` is the rate at which it came, `at` its time, for people and to tell it from others. `calm` counts the
    seconds since then in which calls waited for the queue.
    """

    refused: float
    at: str
    calm: float = 0.0

    @classmethod
    def first(cls, rate: float, at: str) -> "FoundLimit":
        """Returns the limit after a refusal where none was known, at about `rate`."""
        return cls(max(rate, limits.FOUND_FIRST_RATE), at)

    @property
    def rate(self) -> float:
        """The rate at which to send."""
        top, beyond = limits.FOUND_TOP * self.refused, self.calm - self._recovery
        if beyond <= 0:
            return top * (1 - (1 - limits.FOUND_CUT) * (beyond / self._recovery) ** 2)
        return top * (1 + (beyond / limits.FOUND_PROBE.total_seconds()) ** 2)

    @property
    def window(self) -> float:
        """Seconds after a refusal in which further ones are the same: a few calls, as busy processes send in clumps."""
        return max(limits.FOUND_WINDOW.total_seconds(), limits.FOUND_WINDOW_CALLS / self.rate)

    def calmer(self, seconds: float) -> "FoundLimit":
        """Returns the limit after so many more seconds in which calls waited and none was refused."""
        return replace(self, calm=self.calm + seconds)

    def refused_again(self, at: str) -> "FoundLimit":
        """Returns the limit after a refusal of a call that was sent at this rate.

        One that ends a short try beyond the last limit confirms that limit: the provider's burst had hidden it for a
        while.
        """
        tried = self.rate / (limits.FOUND_TOP * self.refused)
        refused = self.rate if not 1 < tried < limits.FOUND_BEYOND else self.refused * tried**limits.FOUND_DRIFT
        return FoundLimit(max(refused, limits.FOUND_LEAST_RATE), at)

    def is_over(self, ceiling: float | None) -> bool:
        """True if the refusals have ended: the rate is far beyond what was refused, or above what is allowed at all."""
        return self.rate >= (limits.FOUND_FORGOTTEN * self.refused if ceiling is None else 2 * ceiling)

    @property
    def _recovery(self) -> float:
        least, most = limits.FOUND_RECOVERY_MIN.total_seconds(), limits.FOUND_RECOVERY_MAX.total_seconds()
        return min(max(limits.FOUND_RECOVERY_CALLS / self.refused, least), most)


@dataclass(frozen=True)
class QueueLimit:
    """Everything that bounds a queue's rate; its words are the `reason` of the queue's configuration.

    `named` is what the provider's headers say, `share` the part of `total` that SUPERVISOR_MODEL_RPM leaves for this
    queue, `by_hand` a rate that somebody set with `temporal task-queue config set`, with the reason given.
    """

    found: FoundLimit | None = None
    named: float | None = None
    share: float | None = None
    total: float | None = None
    by_hand: float | None = None
    why: str = ""

    @classmethod
    def read(cls, rate: float | None, reason: str) -> "QueueLimit":
        """Returns the limit that a queue's configuration holds: ours, somebody's, or none."""
        if not reason.startswith(_OURS):
            return cls() if rate is None else cls(by_hand=rate, why=reason)
        found, named = _FOUND.search(reason), _NAMED.search(reason)
        share, by_hand = _SHARE.search(reason), _BY_HAND.search(reason)
        return cls(
            found=_found(found) if found else None,
            named=_per_second(named["named"]) if named else None,
            total=_per_second(share["total"]) if share else None,
            by_hand=_per_second(by_hand["rate"]) if by_hand else None,
            why=(by_hand["why"] or "") if by_hand else "",
        )

    @property
    def ceiling(self) -> float | None:
        """The highest rate that may be tried; what was set by hand stands in place of the setting."""
        set_rate = self.by_hand if self.by_hand is not None else self.share
        named = None if self.named is None else limits.FOUND_NAMED_SHARE * self.named
        known = [rate for rate in (set_rate, named) if rate is not None]
        return min(known) if known else None

    @property
    def rate(self) -> float | None:
        """The rate for the queue; None if nothing bounds it."""
        known = [rate for rate in (self.found.rate if self.found else None, self.ceiling) if rate is not None]
        return min(known) if known else None

    @property
    def is_by_hand_alone(self) -> bool:
        """True if nothing is lower than what was set by hand: the queue's configuration is then left as it was set."""
        return self.by_hand is not None and self.rate == self.by_hand

    def reason(self) -> str:
        """Returns the limit in words, from which `read` makes it again."""
        if self.is_by_hand_alone or self.rate is None:
            return self.why
        parts = []
        if self.found:
            found = self.found
            parts.append(f"429 at {_per_minute(found.refused)}, {found.at}, {found.calm:.1f} s without one since")
        if self.named is not None:
            parts.append(f"the provider names {_per_minute(self.named)}")
        if self.share is not None and self.total is not None:
            parts.append(f"a share of SUPERVISOR_MODEL_RPM {self.total * 60:g}")
        if self.by_hand is not None:
            parts.append(f"by hand: at most {_per_minute(self.by_hand)}" + (f", {self.why}" if self.why else ""))
        return (_OURS + "; ".join(parts))[: limits.QUEUE_REASON_CHARS]


def _found(words: re.Match[str]) -> FoundLimit:
    return FoundLimit(_per_second(words["refused"]), words["at"], float(words["calm"]))


def _per_minute(rate: float) -> str:
    return f"{rate * 60:.4g}/min" if rate * 60 < 1000 else f"{rate * 60:.0f}/min"  # an exponent is no rate to `read`


def _per_second(per_minute: str) -> float:
    return max(float(per_minute) / 60, limits.FOUND_LEAST_RATE)
