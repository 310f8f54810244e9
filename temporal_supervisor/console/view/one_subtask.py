"""The note on runs with one subtask, which may not have needed a supervisor."""

from temporal_supervisor.console.base.command import hint
from temporal_supervisor.supervision.contract.result import RunResult

_LEAST_OWN_CALLS = 2  # a route takes one call at most, and has left out the others already


def one_subtask_notes(result: RunResult | None) -> list[str]:
    """Returns the note on a run whose one subtask had the answer; none for others."""
    if result is None or not result.answer or len(result.subtasks) != 1:
        return []
    if result.subtasks[0].reused:  # an earlier run did its work
        return []
    by_agent = result.subtasks[0].usage.model_calls
    own = result.usage.model_calls - by_agent
    if own < _LEAST_OWN_CALLS:
        return []
    calls = f"{own} of {result.usage.model_calls} model calls were the supervisor's own"
    return [
        f"one subtask did all the work, and {calls}: for a goal such as this one --strategy route "
        "leaves out its review and synthesis, and one agent alone may do: "
        f"{hint('docs', 'one-agent')} says when"
    ]
