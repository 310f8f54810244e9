"""Which subtasks may start, kept up to date as subtasks end: a change costs what depends on it, not the whole plan."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from supervision.contract.plan import Subtask


class Readiness:
    """The dependencies of a plan's subtasks, counted.

    Of each subtask it knows whether it waits, whether it has ended, and with success: `changed` takes what changes.
    """

    def __init__(self, subtasks: list[Subtask], outcome: Callable[[str], tuple[bool, bool | None]]) -> None:
        """`outcome` returns for an id whether it waits, and whether it succeeded; None while it has not ended."""
        self._order = [subtask.id for subtask in subtasks]
        self._place = {subtask_id: place for place, subtask_id in enumerate(self._order)}
        self._depends_on = {subtask.id: subtask.depends_on for subtask in subtasks}
        self._dependents: dict[str, list[str]] = {}
        for subtask in subtasks:
            for dependency in subtask.depends_on:
                self._dependents.setdefault(dependency, []).append(subtask.id)
        states = {subtask_id: outcome(subtask_id) for subtask_id in self._order}
        self._waiting = {subtask_id for subtask_id, (waits, _) in states.items() if waits}
        self._success = {subtask_id: success for subtask_id, (_, success) in states.items() if success is not None}
        self._open: dict[str, int] = {}
        self._succeeded: dict[str, int] = {}
        for subtask_id, dependencies in self._depends_on.items():
            self._open[subtask_id] = sum(dependency not in self._success for dependency in dependencies)
            self._succeeded[subtask_id] = sum(self._success.get(dependency, False) for dependency in dependencies)
        self._ready: list[int] = []  # places in the plan, ascending
        self._hopeless: list[int] = []
        for subtask_id in self._order:
            self._sort_in(subtask_id)

    def ready(self) -> Iterator[str]:
        """Yields those that wait and whose dependencies have ended, one with success; in the order of the plan."""
        return map(self._order.__getitem__, tuple(self._ready))

    def hopeless(self) -> str | None:
        """Returns the first that waits and whose dependencies all ended without success; None if there is none."""
        return self._order[self._hopeless[0]] if self._hopeless else None

    def changed(self, subtask_id: str, waits: bool, success: bool | None) -> None:
        """Takes over where a subtask stands now."""
        (self._waiting.add if waits else self._waiting.discard)(subtask_id)
        self._sort_in(subtask_id)
        before = self._success.get(subtask_id)
        if before is success:
            return
        if success is None:
            del self._success[subtask_id]
        else:
            self._success[subtask_id] = success
        ended, succeeded = (success is not None) - (before is not None), bool(success) - bool(before)
        for dependent in self._dependents.get(subtask_id, ()):
            self._open[dependent] -= ended
            self._succeeded[dependent] += succeeded
            self._sort_in(dependent)

    def _sort_in(self, subtask_id: str) -> None:
        unblocked = subtask_id in self._waiting and not self._open[subtask_id]
        has_ground = bool(self._succeeded[subtask_id]) or not self._depends_on[subtask_id]
        _keep(self._ready, self._place[subtask_id], unblocked and has_ground)
        _keep(self._hopeless, self._place[subtask_id], unblocked and not has_ground)


def _keep(places: list[int], place: int, wanted: bool) -> None:
    """Has `place` in the ascending list, or not."""
    at = bisect_left(places, place)
    known = at < len(places) and places[at] == place
    if wanted and not known:
        insort(places, place)
    elif known and not wanted:
        del places[at]
