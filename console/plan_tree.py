"""A plan's graph as a tree: each subtask under the last of its dependencies, the others named beside it."""

from dataclasses import dataclass

from supervision.result import SubtaskReport


@dataclass(frozen=True)
class Row:
    """One subtask at its depth; `after` are the dependencies that the tree does not show."""

    report: SubtaskReport
    depth: int
    after: list[str]


def rows(reports: list[SubtaskReport]) -> list[Row]:
    """Every subtask once, parents before children, siblings in the order of the plan."""
    known = {report.id for report in reports}
    children: dict[str | None, list[SubtaskReport]] = {}
    for report in reports:
        dependencies = [d for d in report.depends_on if d in known and d != report.id]
        children.setdefault(dependencies[-1] if dependencies else None, []).append(report)
    found: list[Row] = []
    pending = [(report, 0) for report in reversed(children.get(None, []))]
    while pending:
        report, depth = pending.pop()
        found.append(Row(report, depth, report.depends_on[:-1]))
        pending += [(child, depth + 1) for child in reversed(children.pop(report.id, []))]
    return found


def fitted(tree: list[Row], height: int) -> tuple[list[Row], int]:
    """At most `height` rows, those that run or are next first but in the tree's order; how many were left out."""
    if len(tree) <= height:
        return tree, 0
    rank = {"running": 0, "waiting": 1, "failed": 2, "cancelled": 2, "skipped": 3, "completed": 4}
    kept = sorted(range(len(tree)), key=lambda i: (rank[tree[i].report.state], i))[: max(0, height)]
    return [tree[i] for i in sorted(kept)], len(tree) - len(kept)
