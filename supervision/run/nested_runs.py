"""The nested supervisors below a run: what each last reported, in sums and as waits, never their subtasks."""

from dataclasses import dataclass, field

from supervision.contract.base import Model
from supervision.contract.progress import Counts, NestedRun, Phase
from supervision.contract.status import Wait
from supervision.contract.usage import Usage

NESTED_STEPS = 20  # reports of a nested run on its progress: each costs two histories some five events


class WaitChanges(Model):
    """Waits that have begun or changed, and the ids of those that have ended, since the report before."""

    begun: list[Wait] = []
    ended: list[str] = []


@dataclass
class _AtWork:
    key: str
    waits: dict[str, Wait] = field(default_factory=dict)


class NestedRuns:
    """Nested supervisors by the subtask that they work on, or worked on last.

    A report counts only with the key that its supervisor was given at its start: not a late one of an attempt that
    has ended, nor a stranger's.
    """

    def __init__(self) -> None:
        self._runs: dict[str, NestedRun] = {}
        self._at_work: dict[str, _AtWork] = {}

    def begin(self, subtask_id: str, key: str) -> None:
        """Lets in the reports of the nested supervisor that begins to work on a subtask, and has this key."""
        self._runs[subtask_id] = NestedRun()
        self._at_work[subtask_id] = _AtWork(key)

    def expects(self, subtask_id: str, key: str) -> bool:
        """True if a message with this key is from the nested supervisor that works on the subtask now."""
        at_work = self._at_work.get(subtask_id)
        return at_work is not None and bool(key) and at_work.key == key

    def report(self, subtask_id: str, run: NestedRun, waits: WaitChanges) -> None:
        """Takes over what a nested supervisor reports."""
        at_work = self._at_work[subtask_id]
        self._runs[subtask_id] = run
        for wait_id in waits.ended:
            at_work.waits.pop(wait_id, None)
        at_work.waits |= {wait.id: wait.below(subtask_id) for wait in waits.begun}

    def end(self, subtask_id: str, run: NestedRun | None = None) -> None:
        """Ends the nested supervisor of a subtask; without a `run` it has left nothing."""
        if self._at_work.pop(subtask_id, None) is not None:
            left = {"phase": "failed", "status": "partial"}
            self._runs[subtask_id] = run or self._runs[subtask_id].model_copy(update=left)

    def of(self, subtask_id: str) -> NestedRun | None:
        """Returns the nested supervisor of a subtask."""
        return self._runs.get(subtask_id)

    @property
    def counts(self) -> Counts:
        """The subtasks of all of them, on all levels."""
        return sum((run.counts for run in self._runs.values()), Counts())

    @property
    def usage(self) -> Usage:
        """What those at work have consumed so far; what ended ones did is booked."""
        return sum((self._runs[subtask_id].usage for subtask_id in self._at_work), Usage())

    @property
    def has_finding(self) -> bool:
        """True if there is a finding in one of those at work."""
        return any(self._runs[subtask_id].counts.completed for subtask_id in self._at_work)

    def waits(self) -> list[Wait]:
        """Returns what those at work wait for, on all levels."""
        return [wait for at_work in self._at_work.values() for wait in at_work.waits.values()]


def milestone(phase: Phase, counts: Counts) -> tuple[object, ...]:
    """Returns what makes a report worth sending once it changes.

    Ended subtasks count in steps of a NESTED_STEPS-th of all: reports would otherwise grow with the run.
    """
    step = max(1, counts.total // NESTED_STEPS)
    return phase, counts.running > 0, counts.completed > 0, counts.ended // step
