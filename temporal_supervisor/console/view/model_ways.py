"""Notes on ways to a real model, below an answer that lacks something for want of one."""

from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.runtime.local_models import find_local_model
from temporal_supervisor.standin.extract.standin_words import NEEDS_MODEL, ways_to_a_model


def model_notes(outcome: RunOutcome) -> list[str]:
    """Returns the notes; none if the stand-in refused nothing."""
    gaps = outcome.result.gaps if outcome.result else []
    if not any(NEEDS_MODEL in gap.reason for gap in gaps):
        return []
    found = find_local_model()
    return [*ways_to_a_model(), *([found.worker_hint] if found else [])]
