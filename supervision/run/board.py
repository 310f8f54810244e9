"""The board: which subtask stands where, and which may start now.

One instance lives in a run. Its methods are the only way a subtask changes state:

    waiting -> running -> completed | failed | cancelled
    waiting -> skipped | cancelled
    running -> running                              (the next attempt)
    running -> waiting                              (put back between attempts)
    completed -> waiting                            (reopened by a review; its finding is kept until a better one)
    skipped -> waiting                              (a revision gave it new dependencies)
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from graphlib import TopologicalSorter

from supervision import limits
from supervision.contract.finding import Finding
from supervision.contract.plan import Plan, Subtask
from supervision.contract.progress import Counts, NestedRun
from supervision.contract.result import Gap, Problem, SubtaskReport, SubtaskState
from supervision.contract.usage import Usage
from supervision.errors import ErrorKind
from supervision.text import cut

_ENDED = ("completed", "failed", "skipped", "cancelled")
_FROM: dict[SubtaskState, tuple[SubtaskState, ...]] = {
    "running": ("waiting", "running"),
    "completed": ("running",),
    "failed": ("running",),
    "skipped": ("waiting",),
    "cancelled": ("waiting", "running"),
    "waiting": ("running", "completed", "skipped"),
}


class Board:
    """The subtasks of a plan without `problems`, and their states. `now` is the run's clock.

    A change that the states do not allow raises ValueError.
    """

    def __init__(self, plan: Plan, now: Callable[[], datetime]) -> None:
        self._now = now
        self._subtasks: dict[str, Subtask] = {}
        self._reports: dict[str, SubtaskReport] = {}
        self._dependencies_first: tuple[str, ...] = ()
        self.extend(plan)

    def extend(self, plan: Plan) -> None:
        """Takes over a later revision: new subtasks are added, replaced ones marked, skipped dependents wait again."""
        for subtask in plan.subtasks:
            self._subtasks[subtask.id] = subtask
            report = self._reports.get(subtask.id)
            if report is None:
                self._reports[subtask.id] = SubtaskReport(
                    id=subtask.id, role=subtask.role, description=subtask.description, depends_on=subtask.depends_on
                )
            elif report.depends_on != subtask.depends_on:
                report.depends_on = subtask.depends_on
            for old in subtask.replaces:
                self._reports[old].replaced_by = subtask.id
        self._dependencies_first = tuple(TopologicalSorter({s.id: s.depends_on for s in plan.subtasks}).static_order())
        for report in map(self._reports.__getitem__, self._dependencies_first):
            if report.state == "skipped" and not self._hopeless(report):
                self._move(report.id, "waiting").error = None

    def __contains__(self, subtask_id: object) -> bool:
        return subtask_id in self._reports

    def __getitem__(self, subtask_id: str) -> SubtaskReport:
        return self._reports[subtask_id]

    def subtask(self, subtask_id: str) -> Subtask:
        """Returns the subtask as planned."""
        return self._subtasks[subtask_id]

    def reports(self) -> list[SubtaskReport]:
        """Returns all subtasks in the order of the plan."""
        return list(self._reports.values())

    def counts(self) -> Counts:
        """Returns how many subtasks stand in each state."""
        states = Counter(report.state for report in self._reports.values())
        return Counts.model_validate({"total": len(self._reports), **states})

    def skip_hopeless(self) -> list[str]:
        """Skips each waiting subtask whose dependencies all ended without success; returns their ids.

        One success among the dependencies is enough to go on: the prompt names what is missing.
        """
        skipped: list[str] = []
        for subtask_id in self._dependencies_first:
            report = self._reports[subtask_id]
            if report.state == "waiting" and report.depends_on and self._hopeless(report):
                message = "none of its dependencies succeeded: " + ", ".join(report.depends_on)
                self._end(subtask_id, "skipped").error = _capped(
                    Problem(type=ErrorKind.DEPENDENCIES_FAILED, message=message)
                )
                skipped.append(subtask_id)
        return skipped

    def _hopeless(self, report: SubtaskReport) -> bool:
        states = [self._reports[dependency].state for dependency in report.depends_on]
        return all(state in _ENDED for state in states) and "completed" not in states

    def ready(self) -> list[str]:
        """Returns the ids that may start now, in the order of the plan.

        A subtask is ready when all its dependencies have ended and one succeeded, or when it has none.
        """
        return [r.id for r in self._reports.values() if r.state == "waiting" and self._unblocked(r)]

    def _unblocked(self, report: SubtaskReport) -> bool:
        states = [self._reports[dependency].state for dependency in report.depends_on]
        return not states or (all(state in _ENDED for state in states) and "completed" in states)

    def missing_for(self, subtask_id: str) -> list[Gap]:
        """Returns the dependencies of a subtask that did not succeed."""
        return [_gap(self._reports[d]) for d in self._reports[subtask_id].depends_on if not self._completed(d)]

    def completed_for(self, subtask_id: str) -> list[SubtaskReport]:
        """Returns the dependencies of a subtask that succeeded."""
        return [self._reports[d] for d in self._reports[subtask_id].depends_on if self._completed(d)]

    def _completed(self, subtask_id: str) -> bool:
        return self._reports[subtask_id].state == "completed"

    def begin(self, subtask_id: str, role: str) -> None:
        """Marks a subtask as running, and by which role."""
        report = self._move(subtask_id, "running")
        report.role = role
        report.started_at = report.started_at or self._now().isoformat()

    def start(self, subtask_id: str, workflow_id: str) -> int:
        """Begins the next attempt of a subtask and returns its number, from 1."""
        report = self._move(subtask_id, "running")
        report.attempts += 1
        report.workflow_id, report.nested, report.gaps = workflow_id, None, []
        report.started_at = report.started_at or self._now().isoformat()
        return report.attempts

    def put_back(self, subtask_id: str) -> None:
        """Puts a subtask whose attempt has ended back among those that wait."""
        self._move(subtask_id, "waiting")

    def reopen(self, subtask_id: str) -> None:
        """Has a completed subtask worked on again; its finding stays until there is a better one."""
        self._move(subtask_id, "waiting").finished_at = None

    def keep(self, subtask_id: str) -> None:
        """Ends a reopened subtask with the finding it had."""
        if self._reports[subtask_id].state == "waiting":
            self._move(subtask_id, "running")
        self._end(subtask_id, "completed")

    def show_nested(self, subtask_id: str, run: NestedRun | None) -> None:
        """Shows a nested supervisor under the subtask that it works on."""
        self._reports[subtask_id].nested = run

    def set_gaps(self, subtask_id: str, gaps: Sequence[Gap]) -> None:
        """Sets what the answer of a nested supervisor lacks: it is known at its end."""
        self._reports[subtask_id].gaps = list(gaps)

    def record(self, subtask_id: str, turns: int, usage: Usage) -> None:
        """Adds what an attempt consumed, whatever became of it."""
        report = self._reports[subtask_id]
        report.turns += turns
        report.usage += usage

    def complete(self, subtask_id: str, finding: Finding) -> None:
        """Ends a subtask that succeeded."""
        self._end(subtask_id, "completed").finding = finding

    def fail(self, subtask_id: str, error: Problem) -> None:
        """Ends a subtask that failed for good."""
        self._end(subtask_id, "failed").error = _capped(error)

    def cancel(self, subtask_id: str, error: Problem, finding: Finding | None = None) -> None:
        """Ends a subtask that was stopped; `finding` is what it had."""
        report = self._end(subtask_id, "cancelled")
        report.error = _capped(error)
        report.finding = finding

    def close(self, error: Problem) -> None:
        """Stops every subtask that has not ended, but one that was reopened keeps the finding it had.

        `error` is the reason for these and for those that were stopped before.
        """
        for report in self._reports.values():
            if report.state in ("waiting", "running"):
                if report.finding is not None:
                    self.keep(report.id)
                else:
                    self.cancel(report.id, error)
            elif report.state == "cancelled":
                report.error = _capped(error)

    def _end(self, subtask_id: str, state: SubtaskState) -> SubtaskReport:
        report = self._move(subtask_id, state)
        report.finished_at = self._now().isoformat()
        return report

    def _move(self, subtask_id: str, state: SubtaskState) -> SubtaskReport:
        report = self._reports[subtask_id]
        if report.state not in _FROM[state]:
            raise ValueError(f"subtask '{subtask_id}' is {report.state}: it cannot become {state}")
        report.state = state
        return report

    def gaps(self) -> list[Gap]:
        """Returns what is missing from the answer, in nested runs, too; not what a completed subtask replaced.

        Of nested runs GAPS_SHOWN are listed one by one; the others are one gap for each run, with their number.
        """
        own: list[Gap] = []
        below: list[Gap] = []
        for report in self._reports.values():
            if report.state != "completed":
                own += [] if self._replaced_well(report) else [_gap(report)]
            elif len(below) + len(report.gaps) <= limits.GAPS_SHOWN:
                below += [Gap(subtask_id=f"{report.id}/{gap.subtask_id}", reason=gap.reason) for gap in report.gaps]
            elif report.gaps:
                below.append(Gap(subtask_id=report.id, reason=f"{len(report.gaps)} gaps in the answer of its team"))
        return [*own, *below]

    def _replaced_well(self, report: SubtaskReport) -> bool:
        """True if the subtask that replaced this one, or that one's replacement, completed."""
        while report.replaced_by is not None:
            report = self._reports[report.replaced_by]
        return report.state == "completed"

    def current(self) -> list[SubtaskReport]:
        """Returns the subtasks of the last revision: without those that were replaced."""
        return [report for report in self._reports.values() if report.replaced_by is None]

    def running(self) -> list[str]:
        """Returns the ids of the subtasks that are worked on."""
        return [report.id for report in self._reports.values() if report.state == "running"]

    def in_flight(self) -> dict[str, int]:
        """Returns how many subtasks of each role are running."""
        return dict(Counter(report.role for report in self._reports.values() if report.state == "running"))

    def agents(self, slots: int) -> int:
        """Returns how many worker agents the next `slots` subtasks take, running ones first; each candidate is one."""
        unfinished = [report for report in self._reports.values() if report.state in ("running", "waiting")]
        unfinished.sort(key=lambda report: report.state)
        return sum(self._subtasks[report.id].candidates for report in unfinished[:slots])

    def size(self, subtask_id: str) -> float:
        """Returns how much work the plan expects of a subtask, against the mean of all; 1 without an estimate."""
        estimates = [subtask.estimated_tokens for subtask in self._subtasks.values() if subtask.estimated_tokens > 0]
        own = self._subtasks[subtask_id].estimated_tokens
        return own * len(estimates) / sum(estimates) if own > 0 else 1.0

    @property
    def has_finding(self) -> bool:
        """True if any subtask has a finding, be it one that is worked on again."""
        return any(report.finding is not None for report in self._reports.values())

    def usable(self) -> list[SubtaskReport]:
        """Returns subtasks with a finding: completed ones, and cancelled ones that returned what they had."""
        return [report for report in self._reports.values() if report.finding is not None]


def _gap(report: SubtaskReport) -> Gap:
    error = report.error
    if error is None:
        return Gap(subtask_id=report.id, reason=f"it is {report.state}")
    reason = error.message if error.type.lower() == report.state else f"{error.type}: {error.message}"
    return Gap(subtask_id=report.id, reason=cut(f"{report.state}: {reason}", 600))


def _capped(error: Problem) -> Problem:
    return Problem(type=error.type, message=cut(error.message, limits.ERROR_BYTES))
