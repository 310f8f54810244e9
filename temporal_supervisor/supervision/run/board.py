"""The board: the states of all subtasks, and the subtasks that may start now.

A run has one board, whose methods are the only way to change a subtask's state. A template waits
until its items are known. After that its state follows theirs, and it is not counted itself.
Changes are numbered, so that a reader can ask for the subtasks that changed after the last one it
knows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from graphlib import TopologicalSorter
from itertools import chain, islice

from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask, folded, template_of
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
from temporal_supervisor.supervision.contract.result import (
    Gap,
    Problem,
    Reused,
    SubtaskReport,
    SubtaskState,
)
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.run.gaps import gap_of, gaps_of, is_missing, partial_gaps

_OPEN: tuple[SubtaskState, ...] = ("waiting", "running")
_ENDED: tuple[SubtaskState, ...] = ("completed", "failed", "skipped", "cancelled")
_FROM: dict[SubtaskState, tuple[SubtaskState, ...]] = {
    "running": ("waiting", "running"),  # the first attempt, or the next one
    "completed": ("running",),
    "failed": ("running",),
    "skipped": ("waiting", "running"),  # one at work by a person
    "cancelled": ("waiting", "running"),
    # Put back between attempts, or reopened, with its finding until there is a better one; one that
    # was skipped also if a revision gave it new dependencies, or one of them is reopened.
    "waiting": ("running", *_ENDED),
}


class Board:
    """The subtasks of a plan without `problems`.

    Methods raise ValueError for a change that the states do not allow.
    """

    def __init__(self, plan: Plan, now: Callable[[], datetime]) -> None:
        self._now = now
        self._subtasks: dict[str, Subtask] = {}
        self._reports: dict[str, SubtaskReport] = {}
        # The number of the last change, and of each subtask's last one.
        self.version = 0
        self._changed: dict[str, int] = {}
        # Kept up to date, as it is asked for after every event.
        self._states: Counter[SubtaskState] = Counter()
        self._left_out: dict[str, str] = {}
        self._once_completed: set[str] = set()
        # At work, by an attempt that began with findings that were changed since.
        self._outdated: set[str] = set()
        self.extend(plan)

    def extend(self, plan: Plan) -> None:
        """Adopts a later revision: adds new subtasks and marks replaced ones.

        Skipped dependents of replaced subtasks wait again.
        """
        for subtask in plan.subtasks:
            self._add(subtask)
        self._index(plan)
        # In the order of dependencies, as one that waits again lets its own dependents wait.
        depends_on = {subtask.id: subtask.depends_on for subtask in plan.subtasks}
        for subtask_id in TopologicalSorter(depends_on).static_order():
            report = self._reports[subtask_id]
            is_hopeless = self._is_due(report) and not self._has_ground(report)
            if is_blocked(report) and not is_hopeless:
                self._move(report.id, "waiting").error = None

    def _add(self, subtask: Subtask) -> None:
        """Adds a subtask of a revision, or adopts the revision's changes to it."""
        self._subtasks[subtask.id] = subtask
        report = self._reports.get(subtask.id)
        if report is not None:
            report.depends_on = subtask.depends_on
        else:
            self._reports[subtask.id] = SubtaskReport(
                id=subtask.id,
                role=subtask.role,
                description=subtask.description,
                depends_on=subtask.depends_on,
            )
            self._states["waiting"] += 1
            if subtask.template:
                self._add_item(self._reports[subtask.template])
        self._number_change(subtask.id)
        if not subtask.template:
            self._mark_replaced(subtask)

    def _index(self, plan: Plan) -> None:
        """Computes the indexes by place, by dependency and by state."""
        self._order = [subtask.id for subtask in plan.subtasks]
        self._reports = {subtask_id: self._reports[subtask_id] for subtask_id in self._order}
        self._templates = [subtask.id for subtask in plan.subtasks if subtask.for_each]
        self._named = len(plan.named)
        self._place = {subtask_id: place for place, subtask_id in enumerate(self._order)}
        self._dependents: dict[str, list[str]] = {}
        for subtask in plan.subtasks:
            for dependency in subtask.depends_on:
                self._dependents.setdefault(dependency, []).append(subtask.id)

        # Places in the plan, so that each set has its order.
        self._at_work: set[int] = set()
        self._ready: set[int] = set()
        self._blocked: set[int] = set()
        for place, report in enumerate(self._reports.values()):
            if report.state == "running" and report.counts is None:
                self._at_work.add(place)
        for subtask_id in self._order:
            self._sort_in(subtask_id)

    def _number_change(self, subtask_id: str) -> SubtaskReport:
        """Numbers a change of a subtask and returns the subtask's report."""
        self.version += 1
        self._changed[subtask_id] = self.version
        return self._reports[subtask_id]

    def changed_since(self, version: int) -> list[SubtaskReport]:
        """Returns the subtasks that changed after the change `version`, in plan order."""
        return [report for report in self._reports.values() if self._changed[report.id] > version]

    def _add_item(self, template: SubtaskReport) -> None:
        if template.counts is None:
            template.counts = Counts()
            template.state = "running"
            self._states["waiting"] -= 1
        template.counts.total += 1
        template.counts.waiting += 1

    def _mark_replaced(self, subtask: Subtask) -> None:
        """Marks the subtasks that this one replaces, with all items of templates."""
        if not subtask.replaces:
            return
        for report in self._reports.values():
            if (report.template or report.id) in subtask.replaces:
                report.replaced_by = subtask.id

    def leave_out(self, template: str, items: int, why: str) -> None:
        """Records items of a template that get no subtask."""
        counts = self._reports[template].counts
        if counts is None or not items:
            return
        counts.total += items
        self._number_change(template)
        reason = f"{items} of them were left out, because {why}"
        if template in self._left_out:
            reason = f"{self._left_out[template]}; {reason}"
        self._left_out[template] = reason

    def expandable(self) -> list[str]:
        """Returns the templates whose items can be determined now.

        Their dependencies have ended, at least one of them with success.
        """
        found = []
        for template in self._templates:
            report = self._reports[template]
            if report.state == "waiting" and self._is_due(report) and self._has_ground(report):
                found.append(template)
        return found

    def names_items(self, subtask_id: str) -> bool:
        """True if the finding of a subtask must list items."""
        own = template_of(subtask_id) or subtask_id
        return any(self._subtasks[template].names_items_of == own for template in self._templates)

    @property
    def named_count(self) -> int:
        """The number of subtasks that the plan lists, without those of items."""
        return self._named

    @property
    def item_count(self) -> int:
        """The number of subtasks that are items."""
        return sum(template_of(subtask_id) is not None for subtask_id in self._reports)

    def __contains__(self, subtask_id: object) -> bool:
        return subtask_id in self._reports

    def __getitem__(self, subtask_id: str) -> SubtaskReport:
        return self._reports[subtask_id]

    def subtask(self, subtask_id: str) -> Subtask:
        """Returns the planned subtask with that id."""
        return self._subtasks[subtask_id]

    def reports(self) -> list[SubtaskReport]:
        """Returns all subtasks in plan order."""
        return list(self._reports.values())

    def counts(self) -> Counts:
        """Returns the number of subtasks in each state."""
        return Counts.model_validate({"total": self._states.total(), **self._states})

    def ready(self) -> Iterator[str]:
        """Yields the ids of subtasks that can start, in plan order.

        Their dependencies have ended, at least one of them with success.
        """
        return map(self._order.__getitem__, sorted(self._ready))

    def skip_blocked(self) -> list[str]:
        """Skips waiting subtasks whose dependencies all ended without success.

        Returns their ids.
        """
        skipped: list[str] = []
        while self._blocked:
            report = self[self._order[min(self._blocked)]]
            message = "none of its dependencies succeeded: " + ", ".join(folded(report.depends_on))
            error = Problem(type=ErrorKind.DEPENDENCIES_FAILED, message=message)
            self.end(report.id, "skipped", error, report.finding)
            skipped.append(report.id)
        return skipped

    def _is_due(self, report: SubtaskReport) -> bool:
        return all(self._reports[dependency].state in _ENDED for dependency in report.depends_on)

    def _has_ground(self, report: SubtaskReport) -> bool:
        """True if a dependency succeeded, or none is needed.

        An item needs none: the finding that lists it has succeeded.
        """
        if report.template or not report.depends_on:
            return True
        return any(self._completed(dependency) for dependency in report.depends_on)

    def _sort_in(self, subtask_id: str) -> None:
        """Lists a subtask as ready, as blocked, or as neither."""
        report, place = self._reports[subtask_id], self._place[subtask_id]
        self._ready.discard(place)
        self._blocked.discard(place)
        if report.state != "waiting" or not self._is_due(report):
            return
        if not self._has_ground(report):
            self._blocked.add(place)
        elif not self._subtasks[subtask_id].for_each:
            self._ready.add(place)

    def missing_for(self, subtask_id: str) -> list[Gap]:
        """Returns gaps for the dependencies that did not succeed; items as their template."""
        names = folded(self._reports[subtask_id].depends_on)
        missing = [name for name in names if is_missing(self._reports[name])]
        return [gap_of(self._reports[name], self._reports, self._left_out) for name in missing]

    def completed_for(self, subtask_id: str) -> list[SubtaskReport]:
        """Returns the dependencies that succeeded."""
        succeeded = filter(self._completed, self._reports[subtask_id].depends_on)
        return [self._reports[name] for name in succeeded]

    def _completed(self, subtask_id: str) -> bool:
        return self._reports[subtask_id].state == "completed"

    def begin(self, subtask_id: str, role: str) -> None:
        """Marks a subtask as running, by that role."""
        self._move(subtask_id, "running").role = role

    def start(self, subtask_id: str, role: str) -> SubtaskReport:
        """Begins the next attempt of a subtask, by that role, and returns its report."""
        self.begin(subtask_id, role)
        self._outdated.discard(subtask_id)
        report = self._reports[subtask_id]
        report.attempts += 1
        report.nested = None
        report.gaps = []
        report.reused = None
        return report

    def set_workflow(self, subtask_id: str, workflow_id: str) -> None:
        """Sets the child workflow that works on a subtask."""
        self._number_change(subtask_id).workflow_id = workflow_id

    def set_model(self, subtask_id: str, model: str | None) -> None:
        """Sets the model that works on a subtask."""
        self._number_change(subtask_id).model = model

    def set_nested(self, subtask_id: str, run: NestedRun) -> None:
        """Sets the known facts of a subtask's current or last nested run."""
        self._number_change(subtask_id).nested = run

    def put_back(self, subtask_id: str) -> None:
        """Returns a subtask whose attempt has ended to the waiting ones."""
        self._move(subtask_id, "waiting")

    def reopen(self, subtask_id: str) -> None:
        """Makes an ended subtask wait again, with the subtasks that were skipped because of it.

        Its finding stays until there is a better one.
        """
        report = self._move(subtask_id, "waiting")
        report.finished_at = report.error = None
        for dependent in self._dependents.get(subtask_id, ()):
            if is_blocked(self._reports[dependent]):
                self.reopen(dependent)

    def open_parts(self, subtask_id: str) -> list[str]:
        """Returns the open parts of a subtask: itself, or the open items of a template."""
        reports = [self._reports[subtask_id]]
        if reports[0].counts is not None:
            reports = [report for report in self._reports.values() if report.template == subtask_id]
        return [report.id for report in reports if report.state in _OPEN]

    def skip(self, subtask_id: str, error: Problem, finding: Finding | None = None) -> None:
        """Ends a subtask that a person does not want, with the finding so far.

        A reopened subtask keeps its finding.
        """
        if subtask_id in self._once_completed:
            self.keep_finding(subtask_id)
        else:
            self.end(subtask_id, "skipped", error, finding)

    def keep_finding(self, subtask_id: str) -> None:
        """Ends a reopened subtask with its previous finding."""
        if self._reports[subtask_id].state == "waiting":
            self._move(subtask_id, "running")
        self._finish(subtask_id, "completed")

    def book(self, subtask_id: str, turns: int, usage: Usage, gaps: Sequence[Gap] = ()) -> None:
        """Adds the turns and the usage of an attempt, and sets the gaps of a nested run."""
        report = self._number_change(subtask_id)
        report.turns += turns
        report.usage += usage
        report.gaps = list(gaps)

    def complete(self, subtask_id: str, finding: Finding) -> None:
        """Ends a subtask that succeeded, and marks findings that were built on its previous one."""
        if finding.text_ref != self.text_ref(subtask_id):
            self.mark_stale([subtask_id])
        report = self._finish(subtask_id, "completed")
        template = self._reports.get(template_of(subtask_id) or "")
        if template is not None and template.counts:
            template.counts.partial += _is_partial(finding) - _is_partial(report.finding)
        report.finding = finding
        report.stale = subtask_id in self._outdated
        self._once_completed.add(subtask_id)
        if template is not None:
            template.error = None

    def take_over(self, subtask_id: str, finding: Finding, origin: Reused) -> None:
        """Ends a running subtask with a finding of an earlier run."""
        self.complete(subtask_id, finding)
        self._number_change(subtask_id).reused = origin

    def text_ref(self, subtask_id: str) -> str | None:
        """Returns the reference of a finding's text; None without a finding."""
        finding = self._reports[subtask_id].finding
        return finding.text_ref if finding else None

    def mark_stale(self, changed: Collection[str]) -> dict[str, list[str]]:
        """Marks findings that were built on `changed` ones.

        Returns the changed findings behind each completed subtask.
        """
        stale: dict[str, list[str]] = {}
        for subtask_id in changed:
            for dependent in self._dependents.get(subtask_id, ()):
                report = self._reports[dependent]
                if report.state == "completed" and report.finding:
                    self._number_change(report.id).stale = True
                    stale.setdefault(report.id, []).append(subtask_id)
                elif report.state == "running":
                    self._outdated.add(report.id)
        return stale

    def end(
        self,
        subtask_id: str,
        state: SubtaskState,
        error: Problem | None = None,
        finding: Finding | None = None,
    ) -> None:
        """Ends a subtask that did not complete; `finding` is its part, if any.

        Without an `error`, `close` sets the reason. A template without completed items has the
        reason of its last item.
        """
        report = self._finish(subtask_id, state)
        report.error = error
        report.finding = finding
        template = self._reports.get(report.template or "")
        if template is not None and template.state not in ("running", "completed"):
            template.error = report.error

    def close(self, error: Problem) -> None:
        """Stops every subtask that has not ended; reopened ones keep their findings.

        `error` is the reason for these, and for subtasks that were stopped earlier without one.
        """
        for report in reversed(self.reports()):  # items, and then their templates
            if report.counts is None and report.state in _OPEN:
                if report.id in self._once_completed:
                    self.keep_finding(report.id)
                else:
                    self.end(report.id, "cancelled", error, report.finding)
            elif report.state == "cancelled" and report.error is None:
                self._number_change(report.id).error = error

    def _finish(self, subtask_id: str, state: SubtaskState) -> SubtaskReport:
        """Moves a subtask to its last state, and notes the time."""
        report = self._move(subtask_id, state)
        report.finished_at = self._now().isoformat()
        return report

    def _move(self, subtask_id: str, state: SubtaskState) -> SubtaskReport:
        """Moves a subtask to another state, with all that is counted or sorted by states.

        Raises ValueError if it cannot have that state next.
        """
        report = self._reports[subtask_id]
        before = report.state
        if before not in _FROM[state]:
            raise ValueError(f"subtask '{subtask_id}' is {before}: it cannot become {state}")

        self._number_change(subtask_id)
        if state == "running":
            report.started_at = report.started_at or self._now().isoformat()
        if state == before:
            return report

        report.state = state
        place = self._place[subtask_id]
        if state == "running":
            self._at_work.add(place)
        else:
            self._at_work.discard(place)
        self._states[before] -= 1
        self._states[state] += 1
        template = template_of(subtask_id)
        if template:
            _count_item(self._number_change(template), before, state)

        self._sort_in(subtask_id)
        for dependent in self._dependents.get(subtask_id, ()):
            self._sort_in(dependent)
        return report

    def gaps(self) -> list[Gap]:
        """Returns the gaps of the answer, with those of nested runs.

        A gap that a completed subtask has filled is left out.
        """
        return gaps_of(self._reports, self._left_out)

    def partial_findings(self) -> list[Gap]:
        """Returns a gap for each partial finding, unless a team's own gaps name it."""
        return partial_gaps(self._reports)

    def current(self) -> list[SubtaskReport]:
        """Returns the subtasks of the last revision, without replaced ones."""
        return [report for report in self._reports.values() if report.replaced_by is None]

    def running(self) -> list[str]:
        """Returns the ids of running subtasks in plan order."""
        return [self._order[place] for place in sorted(self._at_work)]

    def in_flight(self) -> Counter[str]:
        """Returns the number of running subtasks by role."""
        return Counter(self._reports[subtask_id].role for subtask_id in self.running())

    def agent_count(self, slots: int) -> int:
        """Returns the number of worker agents of the next `slots` subtasks, running ones first.

        Each candidate counts.
        """
        waiting = (report.id for report in self._reports.values() if report.state == "waiting")
        first = islice(chain(self.running(), waiting), slots)
        return sum(self._subtasks[subtask_id].candidates for subtask_id in first)

    def ready_beside(self, subtask_id: str) -> int:
        """Returns the number of other subtasks that could begin now."""
        return len(self._ready - {self._place[subtask_id]})

    def unfinished(self) -> list[SubtaskReport]:
        """Returns the waiting and running subtasks; items in place of their template."""
        open_ones = [report for report in self._reports.values() if report.state in _OPEN]
        return [report for report in open_ones if report.counts is None]

    @property
    def has_finding(self) -> bool:
        """True if any subtask has a finding, even one that was reopened."""
        if self._states["completed"] > 0:
            return True
        return any(report.finding is not None for report in self._reports.values())

    def usable(self) -> list[SubtaskReport]:
        """Returns the subtasks with a finding: completed ones, and others with a partial one."""
        return [report for report in self._reports.values() if report.finding is not None]


def is_blocked(report: SubtaskReport) -> bool:
    """True if a subtask was skipped because of its dependencies, not by a person."""
    if report.state != "skipped" or report.error is None:
        return False
    return report.error.type == ErrorKind.DEPENDENCIES_FAILED


def _is_partial(finding: Finding | None) -> bool:
    return finding is not None and finding.outcome == "partial"


def _count_item(template: SubtaskReport, before: SubtaskState, state: SubtaskState) -> None:
    """Counts the move of an item to another state; the template's own state follows."""
    counts = template.counts
    assert counts is not None
    setattr(counts, before, getattr(counts, before) - 1)
    setattr(counts, state, getattr(counts, state) + 1)
    ended = "completed" if counts.completed else state
    template.state = "running" if counts.waiting or counts.running else ended
