"""A bound and what was measured against it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """A target and its measurement."""

    name: str
    bound: str
    measured: float
    is_met: bool


def at_least(name: str, bound: float, measured: float) -> Verdict:
    """Returns a target that is met when the measured value is not below the bound."""
    return Verdict(name, f"at least {bound:g}", measured, measured >= bound)
