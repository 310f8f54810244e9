"""Following a run to its end, in rounds of queries that are put into a picture.

The server knows the length of a history without a Worker; a workflow is queried only if its history
has grown, because no reply changes without an event. Ending the command does not affect the run.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from typing import Any

from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.command import UNREACHABLE, CommandFailed
from temporal_supervisor.console.run.at_work import tail_of
from temporal_supervisor.console.run.found_runs import listed_facts
from temporal_supervisor.console.run.run_outcome import run_outcome
from temporal_supervisor.console.run.standstill import observed_standstills
from temporal_supervisor.console.view.event_lines import Line, event_line
from temporal_supervisor.console.view.live_view import LiveAgent, Picture, Screen
from temporal_supervisor.messages import NoAnswer, NoRun
from temporal_supervisor.outcomes import RunOutcome, is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import Status, TraceEvent

SERVER_AWAY = "the Temporal server does not answer; the run is safe and continues when it is back"
# A run without news is queried after this: to notice that no Worker answers.
IDLE = timedelta(seconds=5)
_POLL = timedelta(seconds=1)  # how often the server is asked whether a followed run has news
_AGENTS = 64  # worker agents at work that are asked per poll, in rotation
_AT_ONCE = 16  # of them asked at the same time
_REPLAYS = 4  # that have just ended, asked at the same time: for each a Worker replays a history
_EARLIER = 200  # that had ended before anybody looked: a page keeps hardly more events
_EARLIER_AT_ONCE = 1  # of them asked at the same time
_LAST_LOOKS = 5  # polls after a run's end that collect what its worker agents did last
_LAST_WAIT = timedelta(seconds=1)  # of each of these for what they are reading
_OBSERVED = timedelta(seconds=2)  # between two looks at what a run stands still for


async def follow(
    run: Run,
    screen: Screen,
    store: ArtifactStore | None,
    web: str | None = None,
    look: Callable[[Status | None], Awaitable[None]] | None = None,
) -> RunOutcome:
    """Shows the run until it ends and returns its outcome.

    `look` is called with each status. The server decides whether the run has ended, because it may
    end without any Worker. Raises CommandFailed if there is no such run.
    """
    await run.require()
    poller = RunPoller(run, web)
    while not poller.picture.closed:
        await _poll(poller, screen)
        if look is not None:
            await look(poller.picture.status)
        if not poller.picture.closed:
            await asyncio.sleep(_POLL.total_seconds())

    for _ in range(_LAST_LOOKS):
        if poller.picture.notice:
            break
        answered = await _poll(poller, screen)
        if not answered or poller.caught_up:
            break

    outcome = await run_outcome(run, store)
    _take_states(poller.picture.reports, outcome.result)
    screen.update(poller.picture)
    return outcome


def _take_states(known: dict[str, SubtaskReport], result: RunResult | None) -> None:
    """Copies the states of an ended run's subtasks from its result.

    Each page of its status would replay the run.
    """
    if result is None:
        return
    for ended in result.subtasks:
        known[ended.id] = known.get(ended.id, ended).model_copy(update={"state": ended.state})


async def _poll(poller: "RunPoller", screen: Screen) -> bool:
    """Polls and shows once; returns False if the server does not answer."""
    try:
        for news in await poller.poll():
            screen.log(news)
    except RPCError as error:
        poller.picture.notice = SERVER_AWAY
        screen.update(poller.picture)
        if poller.picture.status is None and not poller.picture.started:
            raise CommandFailed(UNREACHABLE, f"{SERVER_AWAY} ({error.message})") from error
        return False
    screen.update(poller.picture)
    return True


class RunPoller:
    """Polls a run and a few of its open worker agents and nested runs in rounds.

    With `patience` a round does not wait for slow replies: later rounds have them.
    """

    def __init__(
        self,
        run: Run,
        web: str | None = None,
        patience: timedelta | None = None,
    ) -> None:
        self.picture = Picture(run.id, web)
        self._run = run
        self._patience = patience
        self._asking_run: asyncio.Task[tuple[Status | None, list[TraceEvent]]] | None = None
        self._is_answered = True
        self._root = LiveAgent()
        self._asking = asyncio.Semaphore(_AT_ONCE)
        self._replaying = asyncio.Semaphore(_REPLAYS)
        self._replaying_earlier = asyncio.Semaphore(_EARLIER_AT_ONCE)
        self._asked: dict[str, asyncio.Task[list[Line]]] = {}  # ask each of those at work
        self._ended: dict[str, asyncio.Task[list[Line]]] = {}  # read the last events of each
        self._answered_at = -math.inf
        self._observed_at = -math.inf
        self._is_new = True

    @property
    def caught_up(self) -> bool:
        """True if all events of ended worker agents were read."""
        return not self._ended and all(agent.read_to_end for agent in self.picture.agents.values())

    async def poll(self) -> list[Line]:
        """Polls once and returns the new events in order. Raises CommandFailed and RPCError."""
        described = await self._run.describe()
        self.picture.started = described.start_time
        self.picture.closed = described.close_time
        self.picture.state = state_word(described)
        self.picture.notice = None

        self._ask_run(described)
        for workflow_id in self._chosen_agents():
            self._asked[workflow_id] = asyncio.create_task(self._poll_agent(workflow_id))
        await self._observe(described)
        await self._wait()

        found = _collect_done(self._asked)
        is_answered, events = self._run_news()
        # One that the status names is asked from the next round on: the event of its start is read
        # by then.
        self._name_agents()
        if is_answered and self._is_new:
            self._leave_out_earlier()
        found += await self._read_ended()
        self._is_new = self._is_new and not is_answered
        self.picture.tail = await tail_of(self._run, described)
        if not is_answered:
            await self._poll_server(described)
        lines = [*map(event_line, events), *chain.from_iterable(found)]
        return sorted(lines, key=lambda item: item.at)

    def _ask_run(self, described: WorkflowExecutionDescription) -> None:
        """Begins to query the run if there is news, or if the last reply is old."""
        is_old = _seconds_since(self._answered_at) >= IDLE.total_seconds()
        has_news = self._root.moment != _moment(described)
        if self._asking_run is None and (has_news or is_old):
            self._asking_run = asyncio.create_task(self._asked_run(described))

    async def _wait(self) -> None:
        """Waits for all queries; once there is a picture, no longer than the patience."""
        asked: list[asyncio.Task[Any]] = [*self._asked.values()]
        if self._asking_run:
            asked.append(self._asking_run)
        seconds = None
        is_urgent = self._is_new or self.picture.closed
        if self._patience is not None and not is_urgent:
            seconds = self._patience.total_seconds()
        if asked:
            await asyncio.wait(asked, timeout=seconds)

    def _run_news(self) -> tuple[bool, list[TraceEvent]]:
        """Returns the run's own new events, and False if no Worker answered."""
        asking = self._asking_run
        if asking is None or not asking.done():
            return True, []
        self._asking_run = None
        status, events = asking.result()
        self._is_answered = status is not None
        self._answered_at = time.monotonic() if status else -math.inf
        if status is not None:
            self.picture.status = status
            self.picture.reports |= {report.id: report for report in status.subtasks}
        return self._is_answered, events

    async def _asked_run(
        self,
        described: WorkflowExecutionDescription,
    ) -> tuple[Status | None, list[TraceEvent]]:
        """Returns the run's status, None without a Worker, and its own new events.

        The two queries are sent in turn: during a workflow task the second of two simultaneous ones
        is answered a second later.
        """
        status = await self._status()
        if status is None:
            return None, []
        return status, await self._root_events(described)

    async def _status(self) -> Status | None:
        """Returns the status; None if no Worker answers."""
        with suppress(NoAnswer):
            if self.picture.closed:
                return await self._run.status()
            return await self._run.whole_status()
        return None

    async def _root_events(self, described: WorkflowExecutionDescription) -> list[TraceEvent]:
        """Returns the run's own new events; none without a Worker."""
        with suppress(NoAnswer):
            return await self._events(self._root, described)
        return []

    async def _observe(self, described: WorkflowExecutionDescription) -> None:
        """Looks up the causes of a standstill now and then, with a request per agent."""
        if self.picture.closed or _seconds_since(self._observed_at) >= _OBSERVED.total_seconds():
            with suppress(RPCError):  # the next round says so
                answered = self._is_answered
                found = await observed_standstills(self._run, described, answered=answered)
                self.picture.observed = found
            self._observed_at = time.monotonic()

    def _name_agents(self) -> None:
        """Finds the worker agents and nested runs in the tree."""
        live = set()
        for row in self.picture.tree():
            workflow_id = row.report.workflow_id
            if not workflow_id:
                continue
            agent = self.picture.agents.setdefault(workflow_id, LiveAgent(row.path))
            if row.report.nested and workflow_id not in self.picture.nested:
                self.picture.nested[workflow_id] = {}
                agent.moment = None  # its status was not read yet
                agent.read_to_end = False
            if row.report.state == "running":
                live.add(workflow_id)
        for workflow_id, agent in self.picture.agents.items():
            agent.ended = workflow_id not in live
            # an attempt that was stopped may go on
            agent.read_to_end = agent.read_to_end and agent.ended

    def _leave_out_earlier(self) -> None:
        """Marks worker agents that ended long ago as read."""
        agents = self.picture.agents
        reports = [row.report for row in self.picture.tree()]
        ended_at = {report.workflow_id: report.finished_at or "" for report in reports}
        ended = [workflow_id for workflow_id in agents if self._has_ended(workflow_id)]
        ended.sort(key=lambda workflow_id: ended_at.get(workflow_id, ""))
        for workflow_id in ended[:-_EARLIER]:
            agents[workflow_id].read_to_end = True

    def _has_ended(self, workflow_id: str) -> bool:
        """True if a worker agent has ended; nested runs still have subtasks to read."""
        return self.picture.agents[workflow_id].ended and workflow_id not in self.picture.nested

    def _chosen_agents(self) -> list[str]:
        """Returns the worker agents to poll in this round, in rotation, and nested runs."""
        agents = self.picture.agents
        chosen = []
        for workflow_id, agent in agents.items():
            is_done = agent.read_to_end or self._has_ended(workflow_id)
            if not is_done and workflow_id not in self._asked:
                chosen.append(workflow_id)
        del chosen[_AGENTS:]
        for workflow_id in chosen:
            agents[workflow_id] = agents.pop(workflow_id)  # the others are first next time
        return chosen

    async def _read_ended(self) -> list[list[Line]]:
        """Returns the last events of ended worker agents, without waiting for them.

        Once the run has ended it waits a little, because nothing else comes.
        """
        places = self._replaying_earlier if self._is_new else self._replaying
        for workflow_id, agent in reversed([*self.picture.agents.items()]):
            is_due = self._has_ended(workflow_id) and not agent.read_to_end
            if is_due and workflow_id not in self._asked:  # else its events would come twice
                self._read_last(workflow_id, places)
        if self.picture.closed and self._ended:
            await asyncio.wait(self._ended.values(), timeout=_LAST_WAIT.total_seconds())
        return _collect_done(self._ended)

    def _read_last(self, workflow_id: str, places: asyncio.Semaphore) -> None:
        """Begins to read an ended worker agent's last events, which replays it in a Worker."""
        if workflow_id not in self._ended:
            reading = self._last_lines(workflow_id, places)
            self._ended[workflow_id] = asyncio.create_task(reading)

    async def _last_lines(self, workflow_id: str, places: asyncio.Semaphore) -> list[Line]:
        agent = self.picture.agents[workflow_id]
        try:
            async with places:
                events = await self._events(agent, await self._run.describe(workflow_id))
        except (NoAnswer, NoRun, RPCError):  # no Worker has it: asked again next round
            return []
        agent.tail = ""
        agent.read_to_end = True
        return _lines_of(agent, events)

    async def _poll_agent(self, workflow_id: str) -> list[Line]:
        async with self._asking:
            return await self._agent_lines(workflow_id)

    async def _agent_lines(self, workflow_id: str) -> list[Line]:
        """Returns the new events of a worker agent or nested run, and updates its picture."""
        agent = self.picture.agents[workflow_id]
        nested = self.picture.nested.get(workflow_id)
        ended = agent.ended
        try:
            described = await self._run.describe(workflow_id)
            if nested is None and not is_open(described):  # the run itself does not know it yet
                if agent.moment != _moment(described):
                    self._read_last(workflow_id, self._replaying)
                return []
            agent.tail = "" if ended else await tail_of(self._run, described)
            if nested is not None and self._asking_run:  # which asks nested runs, too
                await asyncio.wait([self._asking_run])
            if nested is not None and agent.moment != _moment(described):
                below = Run(self._run.client, workflow_id)
                status = await (below.own_status() if is_open(described) else below.status())
                nested |= {report.id: report for report in status.subtasks}
                if status.next_cursor is not None:
                    _take_states(nested, await below.result_so_far())
            events = await self._events(agent, described)
        except (NoAnswer, NoRun, RPCError):
            return []  # it is about to start, or no Worker has it: asked again next round
        agent.read_to_end = ended
        return _lines_of(agent, events)

    async def _events(
        self,
        agent: LiveAgent,
        described: WorkflowExecutionDescription,
    ) -> list[TraceEvent]:
        """Returns the events since the last query; none if the history has not grown."""
        if agent.moment == _moment(described):
            return []
        page = await self._run.trace(agent.cursor, described.id)
        agent.cursor = page.next_cursor
        agent.moment = _moment(described)
        return page.events

    async def _poll_server(self, described: WorkflowExecutionDescription) -> None:
        """Reads the server's facts if no Worker answers: it knows if the run is open."""
        phase, _, _ = await listed_facts(described)
        self.picture.state = phase or state_word(described)
        self.picture.observed = await observed_standstills(self._run, described, answered=False)


def _collect_done(tasks: dict[str, asyncio.Task[list[Line]]]) -> list[list[Line]]:
    """Removes finished tasks and returns their lines."""
    done = [workflow_id for workflow_id, task in tasks.items() if task.done()]
    return [tasks.pop(workflow_id).result() for workflow_id in done]


def _lines_of(agent: LiveAgent, events: Sequence[TraceEvent]) -> list[Line]:
    """Returns the lines of a worker agent's events, and updates its turn."""
    for event in events:
        turn = event.data.get("turn")
        if isinstance(turn, int):
            agent.turn = turn
    return [replace(event_line(event), subject=_subject(agent.path, event)) for event in events]


def _seconds_since(moment: float) -> float:
    """Returns the seconds since a time of the monotonic clock."""
    return time.monotonic() - moment


def _moment(described: WorkflowExecutionDescription) -> tuple[str, int]:
    """Returns a part of a description that changes with each event of a workflow."""
    return described.run_id, described.history_length


def _subject(path: str, event: TraceEvent) -> str:
    """Returns the path of an event's subtask, which may be in a nested run."""
    own = event.type in ("turn", "tool") or event.subtask_id is None
    return path if own else f"{path}/{event.subtask_id}"
