"""The fit of a plan to the expected one: coverage, needless subtasks, missing dependencies."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.scores.question_sets import ExpectedSubtask


class PlanFit(Model):
    """The fit of a plan to the expected one.

    `coverage` is the share of expected subtasks in it. `needless` lists subtasks that were not
    expected, `missing` the expected dependencies that it lacks, as "b after a".
    """

    coverage: float
    needless: list[str] = []
    missing: list[str] = []

    @property
    def is_whole(self) -> bool:
        """True for a plan with everything that was expected, and nothing else."""
        return self.coverage == 1.0 and not self.needless and not self.missing


def plan_fit(expected: Sequence[ExpectedSubtask], reports: Sequence[SubtaskReport]) -> PlanFit:
    """Returns the fit of a plan by its subtasks, without items and replaced ones.

    One subtask may do the work of several expected ones, which then need no dependency between
    them.
    """
    planned = [each for each in reports if each.template is None and each.replaced_by is None]
    doing: dict[str, set[str]] = {}
    for one in expected:
        doing[one.id] = {each.id for each in planned if _fits(one, each)}
    used = set[str]().union(*doing.values())

    builds_on = _all_before(planned)
    missing: list[str] = []
    for one in expected:
        for other in one.after:
            if not _is_after(doing[one.id], doing[other], builds_on):
                missing.append(f"{one.id} after {other}")
    return PlanFit(
        coverage=sum(map(bool, doing.values())) / len(expected),
        needless=[each.id for each in planned if each.id not in used],
        missing=missing,
    )


def _fits(expected: ExpectedSubtask, report: SubtaskReport) -> bool:
    """True if a subtask has the role and all facts of an expected one."""
    if expected.role is not None and expected.role != report.role:
        return False
    return all(has_fact(report.description, fact) for fact in expected.says)


def has_fact(text: str, fact: str) -> bool:
    """True if a text contains one of the alternatives of a fact, such as `Bern|Berne`."""
    return any(words.strip().casefold() in text.casefold() for words in fact.split("|"))


def _all_before(planned: Sequence[SubtaskReport]) -> Mapping[str, set[str]]:
    """Returns the direct and indirect dependencies of each subtask."""
    graph = {each.id: each.depends_on for each in planned}
    before = dict[str, set[str]]()
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError:  # such a plan never runs
        return {}
    for name in order:
        direct = graph.get(name, [])
        before[name] = set(direct).union(*(before[other] for other in direct))
    return before


def _is_after(ones: set[str], others: set[str], builds_on: Mapping[str, set[str]]) -> bool:
    """True if one of `ones` depends on one of `others`, or they share a subtask.

    If either is not planned, nothing is missing here: the coverage shows it.
    """
    if not ones or not others or ones & others:
        return True
    return any(builds_on.get(one, set()) & others for one in ones)
