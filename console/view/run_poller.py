"""Watching a run: one round of questions at a time, gathered into a picture that can be drawn at any moment."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime

from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from console import console_limits
from console.command_errors import CommandFailed
from console.run.run_handle import NO_WORKER, NoAnswer, Run, facts, is_open, state_word, stuck
from console.view.event_lines import Line, line
from console.view.plan_tree import rows
from supervision import limits
from supervision.contract.result import SubtaskReport
from supervision.contract.status import Status, TraceEvent


@dataclass(frozen=True)
class Call:
    """A model or tool call in flight: tokens so far and the tail of its text; `trouble` when it is being retried."""

    tokens: int = 0
    tail: str = ""
    trouble: str = ""


@dataclass
class Agent:
    """What is known of one worker agent or nested supervisor, by the workflow id of its attempt.

    `path` is its subtask's id, below those of the subtasks that it is nested in.
    """

    path: str = ""
    cursor: int = 0
    turn: int = 0
    tokens: int = 0
    call: Call | None = None
    ended: bool = False
    read_to_end: bool = False


@dataclass
class Picture:
    """Where a run stands, as far as it was seen. `notice` says why there is nothing newer."""

    run_id: str
    web: str | None = None
    started: datetime | None = None
    state: str = ""
    status: Status | None = None
    reports: dict[str, SubtaskReport] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)
    root_call: Call | None = None
    notice: str | None = None

    def agent(self, report: SubtaskReport) -> Agent | None:
        """The worker agent of a subtask's present attempt."""
        return self.agents.get(report.workflow_id or "")

    @property
    def tokens(self) -> int:
        """Tokens of ended subtasks and of the turns of running ones."""
        return (self.status.usage.tokens if self.status else 0) + sum(map(self._live_tokens, self.reports.values()))

    def _live_tokens(self, report: SubtaskReport) -> int:
        """What a running subtask used and its supervisor has not booked yet."""
        if report.state != "running":
            return 0
        agent = self.agent(report)
        nested = sum(one.usage.tokens + self._live_tokens(one) for one in report.subtasks)
        return nested + (agent.tokens if agent else 0)


class Watch:
    """Asks about a run, about a few worker agents per round, and never about those that ended."""

    def __init__(self, run: Run, web: str | None = None) -> None:
        self.picture = Picture(run.id, web)
        self._run = run
        self._cursor = 0
        self._page = 0
        self._asked = 0

    async def look(self) -> list[Line]:
        """One round of questions; what happened since the last one, in order. Raises CommandFailed, RPCError."""
        lines: list[Line] = []
        try:
            await self._take(await self._run.status())
            for found in await asyncio.gather(*map(self._look_at, self._next_agents())):
                lines += found
            await self._look_at_root()
            trace = await self._run.trace(self._cursor)  # last: what an agent did never shows before its start
            lines += map(line, trace.events)
            self._cursor = trace.next_cursor
            self.picture.notice = None
        except NoAnswer:
            await self._look_from_outside()
        return sorted(lines, key=lambda one: one.at)

    @property
    def ended(self) -> bool:
        """Whether the run has reached its last phase."""
        return self.picture.status is not None and self.picture.status.phase in ("done", "failed", "cancelled")

    @property
    def caught_up(self) -> bool:
        """Whether everything was read that ended worker agents did."""
        return all(agent.read_to_end for agent in self.picture.agents.values())

    async def _take(self, first: Status) -> None:
        """Takes the first page over, and one further page of subtasks a round."""
        self.picture.status = first
        pages = [first]
        if first.next_cursor is not None:
            self._page = self._page + limits.STATUS_PAGE
            if self._page >= first.counts.total:
                self._page = limits.STATUS_PAGE
            pages.append(await self._run.status(self._page))
        for report in (report for page in pages for report in page.subtasks):
            self.picture.reports[report.id] = report
        tree = rows(list(self.picture.reports.values()))
        for row in tree:
            if row.report.workflow_id:
                self.picture.agents.setdefault(row.report.workflow_id, Agent(row.path))
        live = {row.report.workflow_id for row in tree if row.report.state == "running"}
        for workflow_id, agent in self.picture.agents.items():
            agent.ended = workflow_id not in live

    async def _look_from_outside(self) -> None:
        """No worker answers: the server still knows whether the run is open."""
        described = await self._run.describe()
        self.picture.started = described.start_time
        self.picture.root_call = await self._call(described)
        phase, _, _ = await facts(described)
        self.picture.state = phase or state_word(described)
        if is_open(described):
            self.picture.notice = stuck(described) or NO_WORKER

    async def _look_at_root(self) -> None:
        picture = self.picture
        if picture.started is None or (picture.status and picture.status.phase in ("planning", "synthesizing")):
            described = await self._run.describe()
            picture.started = described.start_time
            picture.root_call = await self._call(described)
        else:
            picture.root_call = None

    def _next_agents(self) -> list[str]:
        """The worker agents to ask in this round, each in its turn; ended ones once more, for their last words."""
        open_ones = [id for id, agent in self.picture.agents.items() if not agent.read_to_end]
        if not open_ones:
            return []
        start = self._asked % len(open_ones)
        chosen = (open_ones + open_ones)[start : start + min(len(open_ones), console_limits.FOLLOW_CHILDREN)]
        self._asked += len(chosen)
        return chosen

    async def _look_at(self, workflow_id: str) -> list[Line]:
        agent = self.picture.agents[workflow_id]
        ended = agent.ended
        try:
            page = await self._run.trace(agent.cursor, workflow_id)
            agent.call = None if ended else await self._call(await self._run.describe(workflow_id))
        except (NoAnswer, CommandFailed, RPCError):  # it is about to start, or no worker has it: the next round tells
            return []
        agent.cursor, agent.read_to_end = page.next_cursor, ended
        for event in page.events:
            if event.type == "turn":
                agent.tokens += _number(event.data.get("tokens"))
                agent.turn = _number(event.data.get("turn"))
        return [replace(line(event), subject=_subject(agent.path, event)) for event in page.events]

    async def _call(self, described: WorkflowExecutionDescription) -> Call | None:
        """The call in flight that says most: the one with a text, else any."""
        calls = []
        for activity in described.raw_description.pending_activities:
            details = await self._run.client.data_converter.decode(activity.heartbeat_details.payloads)
            said = details[0] if details and isinstance(details[0], dict) else {}
            trouble = ""
            if activity.attempt > 1:
                trouble = f"attempt {activity.attempt}, after: {activity.last_failure.message or 'a lost worker'}"
            calls.append(Call(_number(said.get("tokens")), str(said.get("tail") or ""), trouble))
        return max(calls, key=lambda call: (bool(call.tail), call.tokens), default=None)


def _subject(path: str, event: TraceEvent) -> str:
    """What an event of a worker agent or nested supervisor is about: that has subtasks of its own."""
    own = event.type in ("turn", "tool") or event.subtask_id is None
    return path if own else f"{path}/{event.subtask_id}"


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
