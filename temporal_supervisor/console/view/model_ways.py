"""Notes below an answer in which the stand-in refused something: the ways to a real model."""

from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.runtime.local_models import find_local_model
from temporal_supervisor.supervision.base.standin_words import NEEDS_MODEL, ways_to_a_model


def model_notes(outcome: RunOutcome) -> list[str]:
    """Returns the lines; none for an answer that lacks nothing for want of a model."""
    gaps = outcome.result.gaps if outcome.result else []
    if not any(NEEDS_MODEL in gap.reason for gap in gaps):
        return []
    found = find_local_model()
    return [*ways_to_a_model(), *([found.worker_hint] if found else [])]
