"""Asking a run where it stands: one round of questions at a time, gathered into a picture.

The server says how long a history is, which takes no Worker; a workflow is queried when that has changed. Nothing that
a query tells can change without an event.
"""

import asyncio
import time
from dataclasses import replace

from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from console import console_limits
from console.command import CommandFailed
from console.run.run_handle import NO_WORKER, NoAnswer, RunHandle, facts, is_open, state_word, stuck
from console.run.standstill import observed
from console.view.event_lines import Line, line
from console.view.picture import LiveAgent, LiveCall, Picture
from supervision import limits
from supervision.contract.status import Status, TraceEvent

_ROOT_CALLS = ("planning", "synthesizing")


class RunPoller:
    """Asks about a run and about a few worker agents per round, never about those that ended.

    A run without news is queried every few seconds, to notice that no Worker answers any more.
    """

    def __init__(self, run: RunHandle, web: str | None = None) -> None:
        self.picture = Picture(run.id, web)
        self._run = run
        self._cursor = 0
        self._page = 0
        self._next_agent = 0
        self._rounds = 0
        self._seen: dict[str, tuple[str, int]] = {}
        self._pages_left = 0
        self._answered_at = 0.0
        self._next_nested = 0
        self._nested_pages: dict[str, int] = {}
        self._nested_ended: set[str] = set()
        self._ending: set[str] = set()

    async def poll(self) -> list[Line]:
        """Asks once and returns the events since the last round, in order. Raises CommandFailed and RPCError."""
        lines: list[Line] = []
        described = await self._run.describe()
        self.picture.started, self.picture.closed = described.start_time, described.close_time
        moment = _moment(described)
        news = self._seen.get(self._run.id) != moment
        try:
            await self._poll_status(news)
            await asyncio.gather(*map(self._poll_nested, self._chosen_nested()))
            self._name_agents()
            for agent_lines in await asyncio.gather(*map(self._poll_agent, self._chosen_agents())):
                lines += agent_lines
            await self._take_call(described)
            if news:  # last, so that no worker agent's event comes before the event that it was started
                trace = await self._run.trace(self._cursor)
                lines += map(line, trace.events)
                self._cursor = trace.next_cursor
                self._seen[self._run.id] = moment
            self.picture.notice = None
            await self._observe(described)
        except NoAnswer:
            await self._poll_server(described)
        return sorted(lines, key=lambda item: item.at)

    async def _poll_status(self, news: bool) -> None:
        """Asks for the status if there is news, pages of it are left to read, or the last answer is old."""
        idle = time.monotonic() - self._answered_at
        if news or self._pages_left or idle >= console_limits.FOLLOW_IDLE.total_seconds():
            await self._update(await self._run.status(), news)
            self._answered_at = time.monotonic()

    @property
    def ended(self) -> bool:
        """True once the run has reached its last phase."""
        return self.picture.status is not None and self.picture.status.phase in ("done", "failed", "cancelled")

    @property
    def caught_up(self) -> bool:
        """True if all events of ended worker agents were read."""
        return all(agent.read_to_end for agent in self.picture.agents.values())

    async def _update(self, first: Status, news: bool) -> None:
        """Takes the first page over, and one further page of subtasks a round, until each was read since the news."""
        self.picture.status = first
        pages = [first]
        further = max(0, first.counts.total - 1) // limits.STATUS_PAGE
        self._pages_left = further if news else self._pages_left
        if self._pages_left > 0:
            self._page = self._page % further + 1
            self._pages_left -= 1
            pages.append(await self._run.status(self._page * limits.STATUS_PAGE))
        for report in (report for page in pages for report in page.subtasks):
            self.picture.reports[report.id] = report

    def _name_agents(self) -> None:
        """Finds the worker agents and nested runs in the tree."""
        tree = self.picture.tree()
        for row in tree:
            if row.report.workflow_id:
                self.picture.agents.setdefault(row.report.workflow_id, LiveAgent(row.path))
        live = {row.report.workflow_id for row in tree if row.report.state == "running"}
        for workflow_id, agent in self.picture.agents.items():
            agent.ended = workflow_id not in live

    def _chosen_nested(self) -> list[str]:
        """Returns the nested runs to ask in this round, in rotation; ended ones once more, for their last states."""
        rows = [row.report for row in self.picture.tree() if row.report.nested and row.report.workflow_id]
        open_ids = [r.workflow_id or "" for r in rows if r.workflow_id not in self._nested_ended]
        start = self._next_nested % len(open_ids) if open_ids else 0
        chosen = (open_ids + open_ids)[start : start + min(len(open_ids), console_limits.FOLLOW_CHILDREN)]
        self._next_nested += len(chosen)
        running = {report.workflow_id for report in rows if report.state == "running"}
        self._ending = {workflow_id for workflow_id in chosen if workflow_id not in running}
        return chosen

    async def _poll_nested(self, workflow_id: str) -> None:
        """Takes over the first page of a nested run, and one further page a round."""
        try:
            moment = _moment(await self._run.describe(workflow_id))
            if self._seen.get(workflow_id) == moment and workflow_id not in self._ending:
                return
            first = await self._run.status(0, workflow_id)
            self._seen[workflow_id] = moment
            pages = [first]
            if first.next_cursor is not None:
                page = self._nested_pages.get(workflow_id, 0) + limits.STATUS_PAGE
                page = page if page < first.counts.total else limits.STATUS_PAGE
                self._nested_pages[workflow_id] = page
                pages.append(await self._run.status(page, workflow_id))
        except (NoAnswer, CommandFailed, RPCError):  # it is about to start, or no Worker has it: asked again
            return
        reports = self.picture.nested.setdefault(workflow_id, {})
        reports |= {report.id: report for page in pages for report in page.subtasks}
        if workflow_id in self._ending and len(reports) >= first.counts.total:
            self._nested_ended.add(workflow_id)

    async def _poll_server(self, described: WorkflowExecutionDescription) -> None:
        """Takes what the server alone knows, if no Worker answers: it still knows whether the run is open."""
        self.picture.root_call = await self._call(described)
        phase, _, _ = await facts(described)
        self.picture.state = phase or state_word(described)
        if is_open(described):
            self.picture.notice = stuck(described) or NO_WORKER
        self.picture.observed = await observed(self._run, described, answered=False)

    async def _observe(self, described: WorkflowExecutionDescription) -> None:
        """Asks the server, every few rounds, what the run stands still for."""
        self._rounds += 1
        if self.ended:
            self.picture.observed = []
        elif self._rounds % console_limits.OBSERVED_ROUNDS == 0:
            self.picture.observed = await observed(self._run, described, answered=True)

    async def _take_call(self, described: WorkflowExecutionDescription) -> None:
        status = self.picture.status
        calls = status is not None and status.phase in _ROOT_CALLS
        self.picture.root_call = await self._call(described) if calls else None

    def _chosen_agents(self) -> list[str]:
        """Returns the worker agents to ask in this round, in rotation; ended ones once more, for their last events."""
        unread = [workflow_id for workflow_id, agent in self.picture.agents.items() if not agent.read_to_end]
        if not unread:
            return []
        start = self._next_agent % len(unread)
        chosen = (unread + unread)[start : start + min(len(unread), console_limits.FOLLOW_CHILDREN)]
        self._next_agent += len(chosen)
        return chosen

    async def _poll_agent(self, workflow_id: str) -> list[Line]:
        agent = self.picture.agents[workflow_id]
        ended = agent.ended
        try:
            described = await self._run.describe(workflow_id)
            agent.call = None if ended else await self._call(described)
            moment = _moment(described)
            if agent.moment == moment:
                agent.read_to_end = ended
                return []
            page = await self._run.trace(agent.cursor, workflow_id)
        except (NoAnswer, CommandFailed, RPCError):  # it is about to start, or no Worker has it: asked again next round
            return []
        agent.cursor, agent.read_to_end, agent.moment = page.next_cursor, ended, moment
        for event in page.events:
            if event.type == "turn":
                agent.tokens += _number(event.data.get("tokens"))
                agent.turn = _number(event.data.get("turn"))
        return [replace(line(event), subject=_subject(agent.path, event)) for event in page.events]

    async def _call(self, described: WorkflowExecutionDescription) -> LiveCall | None:
        """Returns the call in flight that shows most: one with a text, else any."""
        calls = []
        for activity in described.raw_description.pending_activities:
            beat = await self._run.beat(activity)
            trouble = ""
            if activity.attempt > 1:
                trouble = f"attempt {activity.attempt}, after: {activity.last_failure.message or 'a lost worker'}"
            calls.append(LiveCall(_number(beat.get("tokens")), str(beat.get("tail") or ""), trouble))
        return max(calls, key=lambda call: (bool(call.tail), call.tokens), default=None)


def _moment(described: WorkflowExecutionDescription) -> tuple[str, int]:
    """Returns what changes with each event of a workflow."""
    return described.run_id, described.history_length


def _subject(path: str, event: TraceEvent) -> str:
    """Returns the path of the subtask that an event is about: a nested supervisor has subtasks of its own."""
    own = event.type in ("turn", "tool") or event.subtask_id is None
    return path if own else f"{path}/{event.subtask_id}"


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
