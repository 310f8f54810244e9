"""Hypothesis for the unit tests: what they check is never how fast the machine is."""

from hypothesis import settings

settings.register_profile("unit", deadline=None)
settings.load_profile("unit")
