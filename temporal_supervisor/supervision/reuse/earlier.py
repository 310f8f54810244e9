"""Plans that build on earlier runs: their findings by name, and a plan carried out again."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.contract.base import Model, Summary
from temporal_supervisor.supervision.contract.plan import Plan, Subtask, template_of
from temporal_supervisor.supervision.contract.result import SubtaskReport

_ID_CHARS = 64
_ITEMS_NAMED = 50  # of a template that a plan names: more would fill the answer's prompt


class EarlierFinding(Model):
    """A finding of an earlier run, as a planner sees it; `id` is its subtask's in that run."""

    id: str
    role: str = ""
    description: str = ""
    summary: Summary = ""


class EarlierWork(Model):
    """An earlier run, as a planner sees it.

    Plans refer to its findings by `place/t2`, such as `r1/t2`, or by the run's id.
    """

    run_id: str
    place: str
    goal: str = ""
    answer: str = ""
    findings: list[EarlierFinding] = []


def texts_in(work: EarlierWork) -> list[str]:
    """Returns the texts of an earlier run that a direct answer may use."""
    return [work.answer, *(finding.summary for finding in work.findings)]


def with_earlier(
    plan: Plan,
    works: Sequence[EarlierWork],
    roles: Iterable[str],
    generalist: str,
) -> tuple[Plan, list[str]]:
    """Returns the plan with a subtask for each earlier finding in it, and its problems.

    These subtasks come first, and have their findings when the run begins.
    """
    known = set(roles)
    ids = {subtask.id for subtask in plan.subtasks}
    added: dict[str, Subtask] = {}
    problems: list[str] = []
    subtasks: list[Subtask] = []
    for subtask in plan.subtasks:
        depends_on: list[str] = []
        for dependency in subtask.depends_on:
            if dependency in ids or "/" not in dependency:
                depends_on.append(dependency)
                continue

            found = _named(dependency, works)
            if not found:
                problems.append(_unknown(subtask, dependency, works))
            for number, finding in found:
                taken = _subtask_taking(number, works[number], finding, known, generalist)
                added[taken.id] = taken
                depends_on.append(taken.id)
        distinct = list(dict.fromkeys(depends_on))
        subtasks.append(subtask.model_copy(update={"depends_on": distinct}))

    new = [subtask for subtask in added.values() if subtask.id not in ids]
    return plan.model_copy(update={"subtasks": [*new, *subtasks]}), problems


def _named(dependency: str, works: Sequence[EarlierWork]) -> list[tuple[int, EarlierFinding]]:
    """Returns the findings that a name such as `r1/t2` means, each with its run's number."""
    place, _, source = dependency.rpartition("/")
    for number, work in enumerate(works):
        if place not in (work.place, work.run_id):
            continue
        own = [finding for finding in work.findings if finding.id == source]
        items = [finding for finding in work.findings if template_of(finding.id) == source]
        return [(number, finding) for finding in own or items[:_ITEMS_NAMED]]
    return []


def _unknown(subtask: Subtask, dependency: str, works: Sequence[EarlierWork]) -> str:
    known = [f"{work.place}/{finding.id}" for work in works for finding in work.findings]
    listed = ", ".join(known[:_ITEMS_NAMED]) or "none"
    words = f"subtask {quoted(subtask.id)} depends on {quoted(dependency)}"
    return f"{words}, which is no finding of an earlier run; there are: {listed}"


def _subtask_taking(
    number: int,
    work: EarlierWork,
    finding: EarlierFinding,
    roles: set[str],
    generalist: str,
) -> Subtask:
    before = f"earlier{number + 1 if number else ''}-"
    own_id = finding.id.replace(".", "-")[: _ID_CHARS - len(before)]
    return Subtask(
        id=f"{before}{own_id}",
        description=finding.description,
        role=finding.role if finding.role in roles else generalist,
        importance="optional",
        reasoning="found by an earlier run",
        taken_from=f"{work.run_id}/{finding.id}",
    )


def earlier_ids(plan: Plan) -> list[str]:
    """Returns the ids of the plan's subtasks that take findings of earlier runs."""
    return [subtask.id for subtask in plan.subtasks if subtask.taken_from and not subtask.template]


def plan_again(plan: Plan, run_id: str) -> Plan:
    """Returns the plan of a run in the form in which it can be carried out again.

    Replaced subtasks are left out. Findings that the run took from elsewhere are referred to as its
    own.
    """
    named = plan.folded().subtasks
    replaced = {old for subtask in named for old in subtask.replaces}
    kept = [subtask for subtask in named if subtask.id not in replaced]
    ids = {subtask.id for subtask in kept}
    subtasks = []
    for subtask in kept:
        is_taken = subtask.taken_from is not None and subtask.for_each is None
        changes: dict[str, object] = {
            "replaces": [],
            "depends_on": [other for other in subtask.depends_on if other in ids],
            "taken_from": f"{run_id}/{subtask.id}" if is_taken else None,
        }
        subtasks.append(subtask.model_copy(update=changes))
    return plan.model_copy(update={"subtasks": subtasks, "revision": 1, "direct_answer": None})


def plan_of_failed(plan: Plan, reports: Sequence[SubtaskReport], run_id: str) -> Plan:
    """Returns the plan of a run in which only failed work is done again.

    That is failed subtasks, and those that were done without them. All other findings are taken by
    name, whatever they are based on: nothing is looked up or sent again.
    """
    again = plan_again(plan, run_id)
    states = {report.id: report for report in reports}
    taken = set[str]()
    subtasks = []
    for subtask in _in_order(again.subtasks):
        report = states.get(subtask.id)
        is_whole = all(dependency in taken for dependency in subtask.depends_on)
        if report is not None and is_whole:
            if _is_done(report):
                taken.add(subtask.id)
            if subtask.id in taken or subtask.for_each is not None:  # of a template some items, too
                place = f"{run_id}/{subtask.id}"
                subtask = subtask.model_copy(update={"taken_from": place})
        subtasks.append(subtask)
    by_id: Mapping[str, Subtask] = {subtask.id: subtask for subtask in subtasks}
    return again.model_copy(update={"subtasks": [by_id[subtask.id] for subtask in again.subtasks]})


def _is_done(report: SubtaskReport) -> bool:
    """True if a subtask completed, with all items of a template."""
    counts = report.counts
    is_all = counts is None or counts.completed == counts.total
    return report.state == "completed" and is_all and not report.stale


def _in_order(subtasks: Sequence[Subtask]) -> list[Subtask]:
    """Returns the subtasks, each after its dependencies."""
    by_id = {subtask.id: subtask for subtask in subtasks}
    graph = {subtask.id: subtask.depends_on for subtask in subtasks}
    return [by_id[subtask_id] for subtask_id in TopologicalSorter(graph).static_order()]
