"""The picture of a run that is followed: where it stands, its worker agents, and its plan as a tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from console.run.standstill import Standstill, grouped, stated
from supervision.contract.result import SubtaskReport
from supervision.contract.status import Status

ENDED_PHASES = ("done", "failed", "cancelled")
_RANK = {"running": 0, "waiting": 1, "failed": 2, "cancelled": 2, "skipped": 3, "completed": 4}


@dataclass(frozen=True)
class LiveCall:
    """A model or tool call in flight: tokens so far and the tail of its text; `trouble` if it is being retried."""

    tokens: int = 0
    tail: str = ""
    trouble: str = ""


@dataclass
class LiveAgent:
    """One worker agent or nested supervisor, known by the workflow id of its attempt.

    `path` is its subtask's id, below those of the subtasks that it is nested in, as `t3/t1`. `moment` is its history
    when it was last asked: the execution, and how long it was.
    """

    path: str = ""
    cursor: int = 0
    moment: tuple[str, int] | None = None
    turn: int = 0
    tokens: int = 0
    call: LiveCall | None = None
    ended: bool = False
    read_to_end: bool = False


@dataclass
class Picture:
    """Where a run stands, as far as it was seen. `notice` says why there is nothing newer.

    `reports` are its subtasks by id, `nested` those of the nested runs below it, by workflow id.
    """

    run_id: str
    web: str | None = None
    started: datetime | None = None
    closed: datetime | None = None
    state: str = ""
    status: Status | None = None
    reports: dict[str, SubtaskReport] = field(default_factory=dict)
    nested: dict[str, dict[str, SubtaskReport]] = field(default_factory=dict)
    agents: dict[str, LiveAgent] = field(default_factory=dict)
    root_call: LiveCall | None = None
    notice: str | None = None
    observed: list[Standstill] = field(default_factory=list)

    @property
    def phase(self) -> str:
        """The run's phase, or its state in Temporal where something else ended it."""
        phase = self.status.phase if self.status else ""
        return self.state or "starting" if not phase or (self.closed and phase not in ENDED_PHASES) else phase

    @property
    def standstills(self) -> list[Standstill]:
        """Returns what the run waits for, as it says itself and as the server knows."""
        said = stated(self.status, self.run_id) if self.status else []
        return grouped([*said, *self.observed])

    def agent(self, report: SubtaskReport) -> LiveAgent | None:
        """Returns the worker agent of a subtask's present attempt."""
        return self.agents.get(report.workflow_id or "")

    @property
    def tokens(self) -> int:
        """Tokens of ended subtasks and of the turns of running ones."""
        running = (self.agent(row.report) for row in self.tree() if row.report.state == "running")
        not_booked = sum(agent.tokens for agent in running if agent)
        return (self.status.usage.tokens if self.status else 0) + not_booked

    def tree(self) -> list["TreeRow"]:
        """Returns the subtasks of all levels."""
        return tree_rows(list(self.reports.values()), self.nested)


@dataclass(frozen=True)
class TreeRow:
    """One subtask at its depth; `after` are its dependencies, if it has several: the tree shows only the last.

    `path` is its id below those of the subtasks that it is nested in, as `t3/t1`.
    """

    report: SubtaskReport
    depth: int
    after: list[str]
    path: str


def tree_rows(
    reports: list[SubtaskReport],
    nested: Mapping[str, Mapping[str, SubtaskReport]] | None = None,
    above: str = "",
    depth: int = 0,
) -> list[TreeRow]:
    """Returns every subtask once, each under the last of its dependencies, siblings in the order of the plan.

    The subtasks of `nested` runs, by workflow id, stand under the subtask that theirs works on.
    """
    known = {report.id for report in reports}
    children: dict[str | None, list[SubtaskReport]] = {}
    for report in reports:
        dependencies = [d for d in report.depends_on if d in known and d != report.id]
        children.setdefault(dependencies[-1] if dependencies else None, []).append(report)
    tree: list[TreeRow] = []
    pending = [(report, depth) for report in reversed(children.get(None, []))]
    while pending:
        report, level = pending.pop()
        path = f"{above}{report.id}"
        tree.append(TreeRow(report, level, report.depends_on if len(report.depends_on) > 1 else [], path))
        if nested and (below := nested.get(report.workflow_id or "")):
            tree += tree_rows(list(below.values()), nested, f"{path}/", level + 1)
        pending += [(child, level + 1) for child in reversed(children.pop(report.id, []))]
    return tree


def fitted(tree: list[TreeRow], height: int) -> tuple[list[TreeRow], int]:
    """Returns at most `height` rows in the tree's order, and how many were left out: ended ones first."""
    if len(tree) <= height:
        return tree, 0
    chosen = sorted(range(len(tree)), key=lambda i: (_RANK[tree[i].report.state], i))[: max(0, height)]
    return [tree[i] for i in sorted(chosen)], len(tree) - len(chosen)
