"""A sentence on the findings that a run took from earlier runs."""

from temporal_supervisor.console.base.terminal import counted
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status

_NAMED = 8  # findings, with the subtasks that have them now


def saved_words(run: RunResult | Status) -> str:
    """Returns the earlier runs of a run, the findings taken from them, and the saving."""
    words = f"builds on {', '.join(run.reuse_from)}"
    if run.saved is None:
        return f"{words}: no finding was taken"
    taken = [(report.id, report.reused) for report in run.subtasks if report.reused]
    named = [f"{subtask_id} from {origin.place}" for subtask_id, origin in taken[:_NAMED]]
    more = [f"{len(taken) - _NAMED} more"] if len(taken) > _NAMED else []
    shown = f": {', '.join([*named, *more])}" if taken else ""
    calls = counted(run.saved.model_calls, "model call")
    saved = f"{calls}, {run.saved.tokens:,} tokens, {money(run.saved.usd)}"
    return f"{words}{shown}; this saved {saved}"
