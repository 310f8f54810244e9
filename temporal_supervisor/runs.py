"""One run, as programs, commands, the MCP server and the page use it.

A program starts a run, follows it and reads its result:

    run = await Run.start(client, RunRequest(goal="Which region sold most in 2025?"))
    async for news in run.follow():
        print(news)
    result = await run.result()
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, Protocol, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import ApplicationError, TerminatedError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeout
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.messages import (
    RPC_TIMEOUT,
    Item,
    NoAnswer,
    NoRun,
    PlanDecision,
    UpdateRefused,
    decision_about,
    news_of,
    query,
    send,
    send_many,
)
from temporal_supervisor.outcomes import (
    WAS_CANCELLED,
    Ending,
    RunFailed,
    RunOutcome,
    failed_outcome,
    is_open,
    state_word,
)
from temporal_supervisor.starting import RUN_TYPE, start_run
from temporal_supervisor.supervision.contract import (
    ArtifactRef,
    Plan,
    RunRequest,
    RunResult,
    Status,
    TraceEvent,
    TracePage,
    UpdateReply,
    Wait,
)
from temporal_supervisor.supervision.contract.status import Asked
from temporal_supervisor.supervision.contract.updates import (
    DecidePlan,
    DecideToolCall,
    DecisionReply,
    ExtendLimits,
    NewBudget,
    Pause,
    Reply,
    Resume,
    RetrySubtask,
    SkipSubtask,
    Steer,
    Update,
    read_update,
)
from temporal_supervisor.supervision.run.attempt_rules import supervisor_of
from temporal_supervisor.trees import TreeStatus, all_pages, waits_of

_OPEN_REASON = re.compile(r"^it is (\w+)$")  # the reason of a subtask that has not ended
_T = TypeVar("_T")

Kept = Callable[[], Awaitable[RunResult | None]]
"""Looks for the result of a run that ended without one, in a store."""


class FileStore(Protocol):
    """The part of an artifact store that is needed to read files."""

    async def get(self, key: str) -> bytes:
        """Returns the content of the object at a reference."""


class Run:
    """A run with an id, which need not exist yet; with a `store` its files can be read.

    Reading raises NoRun if there is no such run, and NoAnswer if no Worker answers or the run did
    not begin. Changes raise UpdateRefused with the run's message, NoAnswer, or ValueError for a
    malformed update.
    """

    def __init__(self, client: Client, run_id: str, store: FileStore | None = None) -> None:
        self.client = client
        self.id = run_id
        self._store = store
        self._tree = TreeStatus(client, run_id)

    @classmethod
    async def start(
        cls,
        client: Client,
        request: RunRequest | Mapping[str, object],
        run_id: str | None = None,
        store: FileStore | None = None,
    ) -> "Run":
        """Starts a run and returns it; a request may be a dict of its fields.

        Raises ValueError for a wrong request or a plan that cannot run, and temporalio's
        WorkflowAlreadyStartedError if there is a run with that id.
        """
        started_id = await start_run(client, request, run_id)
        return cls(client, started_id, store)

    @property
    def handle(self) -> WorkflowHandle[object, RunResult]:
        """The SDK's handle of the run."""
        return self.client.get_workflow_handle(self.id, result_type=RunResult)

    async def describe(self, workflow_id: str | None = None) -> WorkflowExecutionDescription:
        """Returns the server's description of the run, or of one of its worker agents.

        Raises NoRun, and RPCError if the server does not answer.
        """
        handle = self.client.get_workflow_handle(workflow_id or self.id)
        try:  # the client's own retries last longer than a person waits
            async with asyncio.timeout(RPC_TIMEOUT.total_seconds()):
                return await handle.describe(rpc_timeout=RPC_TIMEOUT)
        except TimeoutError as error:
            raise RPCError("no answer in time", RPCStatusCode.UNAVAILABLE, b"") from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise self._unknown(handle.id) from error
            raise

    async def require(self) -> WorkflowExecutionDescription:
        """Returns the server's description of the run. Raises NoRun if it is not a run."""
        described = await self.describe()
        if described.workflow_type != RUN_TYPE:
            other = f"'{self.id}' is a {described.workflow_type}, not a run: name the run's id"
            raise NoRun(other, is_other=True)
        return described

    async def status(self, cursor: int = 0) -> Status:
        """Returns the status of the run, with a page of subtasks from `cursor` on."""
        return await self._read("status", Status, cursor)

    async def whole_status(self) -> Status:
        """Returns the status with all pages, and with the waits of nested runs.

        If called again, this object reads only the subtasks that have changed.
        """
        return await self._answered(self._tree.read(), self.id)

    async def own_status(self) -> Status:
        """Returns the status with all pages, without the state of nested runs."""
        return await self._answered(all_pages(self.client, self.id), self.id)

    async def plan(self) -> Plan:
        """Returns the plan, which is empty until it has been made."""
        return await self._read("plan", Plan)

    async def trace(self, cursor: int = 0, workflow_id: str | None = None) -> TracePage:
        """Returns the events after `cursor`, of the run or of one of its worker agents."""
        return await self._read("trace", TracePage, cursor, workflow_id=workflow_id)

    async def result_so_far(self) -> RunResult:
        """Returns the result at present."""
        return await self._read("result", RunResult)

    async def result(self) -> RunResult:
        """Waits for the end of the run and returns its result.

        Raises RunFailed if it gave no answer.
        """
        outcome = await self.outcome()
        if outcome.error is not None:
            raise RunFailed(outcome.error.type, outcome.error.message, outcome.result)
        assert outcome.result is not None
        return outcome.result

    async def outcome(self, kept: Kept | None = None) -> RunOutcome:
        """Waits for the end of the run, however long, and returns its outcome.

        For a run that was cancelled, terminated or timed out, the result is the `kept` one, else a
        Worker's. Raises RPCError if the server goes away.
        """
        try:
            return RunOutcome("completed", await self.handle.result())
        except WorkflowFailureError as error:
            cause = error.cause
        if is_cancelled_exception(cause):
            return RunOutcome("cancelled", await self._partial(kept), WAS_CANCELLED)
        if isinstance(cause, ApplicationError):
            return failed_outcome(cause)
        if isinstance(cause, TerminatedError):
            if state_word(await self.describe()) != "terminated":
                return await self.outcome(kept)  # a reset took its place, as `repair` does it
            why = Ending("Terminated", str(cause))
            return RunOutcome("terminated", await self._partial(kept), why)
        if isinstance(cause, TemporalTimeout):
            why = Ending("TimedOut", "the run ran into its Temporal timeout")
            return RunOutcome("timed out", await self._partial(kept), why)
        return RunOutcome("failed", None, Ending("Error", str(cause)))

    async def outcome_so_far(self, kept: Kept | None = None) -> RunOutcome:
        """Returns the end of a run, or the present result of an open one."""
        described = await self.require()
        if not is_open(described):
            return await self.outcome(kept)
        return RunOutcome(state_word(described), await self.result_so_far())

    async def follow(self) -> AsyncIterator[Status | TraceEvent]:
        """Yields the run's events, and its status after each group of them, until it ends.

        If too much happens at once, the oldest events may be left out; `temporal-supervisor trace`
        has them all. It waits while no Worker or server answers.
        """
        async for news in news_of(self.handle):
            yield news

    async def files(self) -> list[ArtifactRef]:
        """Returns the files that the run has made so far, with their references."""
        outcome = await self.outcome_so_far()
        return outcome.result.artifacts if outcome.result else []

    async def read_file(self, ref: str) -> bytes:
        """Returns the content at a reference: of a file, a finding's text, a tool's output.

        Raises ValueError without a store, and the store's own errors.
        """
        if self._store is None:
            raise ValueError("this Run was made without a store: Run(client, run_id, store)")
        return await self._store.get(ref)

    async def waiting(self) -> list[Item]:
        """Returns the waits for people in the run and its nested runs.

        Raises UpdateRefused if it did not begin.
        """
        return await waits_of(self.client, self.id)

    async def asked(self, wait_id: str) -> Asked:
        """Returns a wait with its whole content. Raises UpdateRefused if no wait has that id."""
        return await query(self.client, self._place_of(wait_id), "waiting", Asked, wait_id)

    async def decide(
        self,
        wait: Wait,
        word: str,
        text: str | None = None,
        *,
        plan: Plan | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Decides about a wait: `approve`, `deny`, or `reply` with a text for the agent.

        The decision holds only for the content that the wait shows. With a `plan`, that plan is
        approved in place of the waiting one. Raises ValueError if the word does not fit.
        """
        kind, fields = decision_about(wait, word, text, plan)
        return await send(self.client, wait.workflow_id, kind, **fields, by=by)

    async def decide_all(
        self,
        waits: Sequence[Wait],
        word: str,
        text: str | None = None,
        *,
        by: str | None = None,
    ) -> list[DecisionReply]:
        """Makes one decision about many waits and returns a reply for each.

        Up to 100 waits in one place share an update. Raises ValueError, before anything is sent, if
        the word does not fit one of them.
        """
        by_place: dict[str, list[dict[str, object]]] = {}
        for wait in waits:
            kind, fields = decision_about(wait, word, text, None)
            named = {**fields, "by": by}
            given = {name: value for name, value in named.items() if value is not None}
            decision = read_update(kind, given).model_dump(exclude_none=True)
            by_place.setdefault(wait.workflow_id, []).append(decision)
        replies: list[DecisionReply] = []
        for workflow_id, decisions in by_place.items():
            replies += await send_many(self.client, workflow_id, decisions, by)
        return replies

    async def decide_plan(
        self,
        revision: int,
        decision: PlanDecision,
        *,
        sha256: str,
        plan: Plan | None = None,
        comment: str | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Decides about the plan in a wait with that `sha256`.

        `edit` needs a `plan`, `change` a `comment`.
        """
        fields = {"revision": revision, "decision": decision, "sha256": sha256, "plan": plan}
        return await self.send(DecidePlan, **fields, comment=comment, by=by)

    async def decide_tool_call(
        self,
        wait_id: str,
        decision: Literal["approve", "deny"],
        *,
        sha256: str,
        comment: str | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Decides about the tool call in a wait with that `sha256`.

        The model reads the `comment`.
        """
        fields = {"id": wait_id, "decision": decision, "sha256": sha256, "comment": comment}
        return await send(self.client, self._place_of(wait_id), DecideToolCall, **fields, by=by)

    async def reply(
        self,
        wait_id: str,
        text: str,
        *,
        sha256: str,
        by: str | None = None,
    ) -> UpdateReply:
        """Replies to the question in a wait with that `sha256`, or hands in a finding."""
        fields = {"id": wait_id, "text": text, "sha256": sha256}
        return await send(self.client, self._place_of(wait_id), Reply, **fields, by=by)

    async def pause(
        self,
        *,
        now: bool = False,
        comment: str | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Pauses the run: no work begins, and worker agents stop after their turn.

        With `now` they stop at once, and their calls in flight may be paid for again.
        """
        return await self.send(Pause, now=now, comment=comment, by=by)

    async def resume(self, *, by: str | None = None) -> UpdateReply:
        """Ends a pause and waits for the provider's account."""
        return await self.send(Resume, by=by)

    async def steer(self, text: str, *, to: str = "*", by: str | None = None) -> UpdateReply:
        """Instructs the worker agent of the subtask `to`, else all of them and later prompts."""
        run, subtask_id = await self.level(to)
        return await run.send(Steer, text=text, to=subtask_id, by=by)

    async def retry(
        self,
        subtask: str,
        *,
        instruction: str | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Retries a subtask that has ended; `t3/t2` is t2 in the nested run of t3."""
        run, subtask_id = await self.level(subtask)
        return await run.send(RetrySubtask, subtask_id=subtask_id, instruction=instruction, by=by)

    async def skip(
        self,
        subtask: str,
        *,
        comment: str | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Ends a subtask with its finding so far; `t3/t2` is t2 in the nested run of t3."""
        run, subtask_id = await self.level(subtask)
        return await run.send(SkipSubtask, subtask_id=subtask_id, comment=comment, by=by)

    async def extend(
        self,
        *,
        deadline: timedelta | float | str | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        by: str | None = None,
    ) -> UpdateReply:
        """Sets new totals, counted from the run's start; None keeps a total as it is."""
        has_budget = tokens is not None or usd is not None
        budget = NewBudget(tokens=tokens, usd=usd) if has_budget else None
        return await self.send(ExtendLimits, deadline=deadline, budget=budget, by=by)

    async def cancel(self) -> None:
        """Cancels the run and keeps its result so far."""
        await self.handle.cancel()

    async def send(self, kind: type[Update], **fields: object) -> UpdateReply:
        """Sends an update; updates with one `request_id` count once."""
        return await send(self.client, self.id, kind, **fields)

    async def level(self, path: str) -> tuple["Run", str]:
        """Returns the run that has the subtask at `path`, and the subtask's id in it.

        That is this run or a nested one. `*`, for all subtasks, belongs to this run. Raises
        ValueError if a part of the path is no nested run.
        """
        *teams, subtask_id = path.split("/")
        run = self
        for team in teams:
            reports = (await run.own_status()).subtasks
            nested = {report.id: report.workflow_id for report in reports if report.nested}
            workflow_id = nested.get(team)
            if workflow_id is None:
                raise ValueError(f"subtask '{team}' of run '{run.id}' has no team below it")
            run = Run(self.client, workflow_id, self._store)
        return run, subtask_id

    async def _read(
        self,
        name: str,
        kind: type[_T],
        *arguments: int,
        workflow_id: str | None = None,
    ) -> _T:
        asked_id = workflow_id or self.id
        return await self._answered(query(self.client, asked_id, name, kind, *arguments), asked_id)

    async def _answered(self, asking: Awaitable[_T], workflow_id: str) -> _T:
        try:
            return await asking
        except NoRun as error:
            raise self._unknown(workflow_id) from error
        except UpdateRefused as error:
            raise NoAnswer(workflow_id, str(error)) from error.__cause__

    async def _partial(self, kept: Kept | None) -> RunResult | None:
        """Returns the result of a run without an end: the `kept` one, else a Worker's."""
        found = await kept() if kept is not None else None
        if found is not None:
            return found
        try:
            result = await self.result_so_far()
            ended = state_word(await self.describe())
        except (NoAnswer, NoRun):
            return None
        for gap in result.gaps:  # a Worker knows nothing of a sudden end
            gap.reason = _OPEN_REASON.sub(rf"{ended} while it was \1", gap.reason)
        return result.model_copy(update={"status": "partial"})

    def _place_of(self, wait_id: str) -> str:
        """Returns the id of the run that has a wait: this run, or its root."""
        there = supervisor_of(self.id, wait_id)
        is_here = self.id.endswith(there.removeprefix(self.id))
        return self.id if is_here else there

    def _unknown(self, workflow_id: str) -> NoRun:
        return NoRun(f"there is no run '{workflow_id}' in namespace '{self.client.namespace}'")
