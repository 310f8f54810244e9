"""A plan's graph as a tree: each subtask under the last of its dependencies, the others named beside it.

The subtasks of a nested supervisor stand under the subtask that it works on.
"""

from dataclasses import dataclass

from supervision.contract.result import SubtaskReport


@dataclass(frozen=True)
class Row:
    """One subtask at its depth; `after` are the dependencies that the tree does not show.

    `path` is its id below those of the subtasks that it is nested in, as `t3/t1`.
    """

    report: SubtaskReport
    depth: int
    after: list[str]
    path: str


def rows(reports: list[SubtaskReport], above: str = "", depth: int = 0) -> list[Row]:
    """Every subtask once, parents before children, siblings in the order of the plan."""
    known = {report.id for report in reports}
    children: dict[str | None, list[SubtaskReport]] = {}
    for report in reports:
        dependencies = [d for d in report.depends_on if d in known and d != report.id]
        children.setdefault(dependencies[-1] if dependencies else None, []).append(report)
    found: list[Row] = []
    pending = [(report, depth) for report in reversed(children.get(None, []))]
    while pending:
        report, level = pending.pop()
        path = f"{above}{report.id}"
        found.append(Row(report, level, report.depends_on[:-1], path))
        found += rows(report.subtasks, f"{path}/", level + 1)
        pending += [(child, level + 1) for child in reversed(children.pop(report.id, []))]
    return found


def fitted(tree: list[Row], height: int) -> tuple[list[Row], int]:
    """At most `height` rows, those that run or are next first but in the tree's order; how many were left out."""
    if len(tree) <= height:
        return tree, 0
    rank = {"running": 0, "waiting": 1, "failed": 2, "cancelled": 2, "skipped": 3, "completed": 4}
    kept = sorted(range(len(tree)), key=lambda i: (rank[tree[i].report.state], i))[: max(0, height)]
    return [tree[i] for i in sorted(kept)], len(tree) - len(kept)
