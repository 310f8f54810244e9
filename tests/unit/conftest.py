"""Hypothesis for `make mutants`: the same cases each time, and no search for the smallest one that fails."""

from hypothesis import Phase, settings

settings.register_profile(
    "mutants", deadline=None, max_examples=100, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
