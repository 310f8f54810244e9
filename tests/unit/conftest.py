"""Hypothesis for the unit tests: what they check is never how fast the machine is."""

from hypothesis import Phase, settings

settings.register_profile("unit", deadline=None)
# For `make mutants`: the same cases each time, and no search for the smallest one that fails.
settings.register_profile(
    "mutants", deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("unit")
