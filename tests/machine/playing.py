"""Playing cases: many runs at a time on one server, with Workers that are stopped and started meanwhile."""

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import uuid4

from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistory,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.service import RPCError

from temporal_supervisor.client import NoAnswer, UpdateRefused
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status, Wait
from temporal_supervisor.trees import tree_status
from tests.machine.cases import BLOCK, Case, Deed, Surroundings, case, surroundings
from tests.machine.model_replies import ModelReplies, Served
from tests.machine.replaced_workers import ReplacedWorkers
from tests.scripted_model import Call, ScriptedModel
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Handle
from workflows.supervisor import SupervisorWorkflow

T = TypeVar("T")

CALLS_OF_A_RUN = 5
AT_ONCE = 25
LOOKS_AT_ONCE = 2
"""Of a Worker's three polls for tasks of workflows that it does not keep: one is left for the work of agents."""
WATCHED_EACH = 0.02
DECIDED_EACH = 0.15
UPDATED = 0.1
MISTAKEN = 0.3
WORD = "word-of-a-person-"
EDITED = "edited at the plan"
PATIENCE = 400
"""Seconds for one run among others, on a machine that has much else to do: most take two."""

_TOO_LATE = (
    RPCError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    NoAnswer,
    UpdateRefused,
)


@dataclass
class Ending:
    """How a run ended: `error` is the type of a failed one, `result` what it left.

    `executions` are its run ids, the last one after all resets.
    `shown` and `status` are its queries' replies, `unread` is the error of one that failed. `shown_waits` are what
    people saw, by its hash, `approved` the hashes of the tool calls and plans that they approved. `shown_plans` are the
    plans among them, `edited` what people made of these, by the same hash.
    """

    case: Case
    run_id: str
    executions: list[str]
    kind: str
    result: RunResult | None
    error: str | None = None
    unread: str | None = None
    shown: RunResult | None = None
    status: Status | None = None
    served: list[Served] = field(default_factory=list)
    calls: Callable[[], list[Call]] = list
    restarted: bool = False
    shown_waits: dict[str, Wait] = field(default_factory=dict)
    approved: set[str] = field(default_factory=set)
    shown_plans: dict[str, Plan] = field(default_factory=dict)
    edited: dict[str, Plan] = field(default_factory=dict)
    histories: dict[str, WorkflowHistory] = field(default_factory=dict)

    @property
    def was_reset(self) -> bool:
        """True if another execution went on with the run."""
        return len(self.executions) > 1


@dataclass
class Batch:
    """Cases that are played together. After so many model calls of all of them the Workers are stopped and started."""

    cases: Sequence[Case]
    surroundings: Surroundings
    restarts: tuple[int, ...]


def batches(first: int, count: int) -> Iterator[Batch]:
    """Gives the cases of so many seeds, from the first one on, by their blocks."""
    for _, seeds in groupby(range(first, first + count), key=lambda seed: (seed - 1) // BLOCK):
        cases = [case(seed) for seed in seeds]
        around = surroundings(cases[0].seed)
        restarts = tuple(int(share * CALLS_OF_A_RUN * len(cases)) for share in around.restarts)
        yield Batch(cases, around, restarts)


async def played(
    client: Client, model: ScriptedModel, artifacts: Path, group: Batch, ended: Callable[[Ending], Awaitable[None]]
) -> None:
    """Plays a batch to its end, and hands each ending over to `ended` while the Workers still serve."""
    async with ReplacedWorkers(client, model, artifacts, group.restarts) as workers:
        slots = asyncio.Semaphore(AT_ONCE)
        looks = asyncio.Semaphore(LOOKS_AT_ONCE)

        async def one(case: Case) -> None:
            async with slots:
                await ended(await _Play(client, model, case, workers, looks).end())

        async with asyncio.TaskGroup() as group_of_runs:
            for case in group.cases:
                group_of_runs.create_task(one(case))


class _Play:
    """One case on its way. `_handle` is that of its last execution."""

    def __init__(
        self,
        client: Client,
        model: ScriptedModel,
        case: Case,
        workers: ReplacedWorkers,
        looks: asyncio.Semaphore,
    ) -> None:
        self._looks_at_once = looks
        self._client = client
        self._model = model
        self._case = case
        self._workers = workers
        self._waiting: list[tuple[int, asyncio.Event]] = []
        self._id = f"case-{case.seed}-{uuid4().hex[:6]}"
        self._replies = ModelReplies(case, self._counted)
        self._executions: list[str] = []
        self._shown: dict[str, Wait] = {}
        self._approved: set[str] = set()
        self._shown_plans: dict[str, Plan] = {}
        self._edited: dict[str, Plan] = {}
        self._handle: Handle
        self._resetting = asyncio.Lock()
        self._is_over = False

    async def end(self) -> Ending:
        """Starts the run, does what people do to it, and returns its ending."""
        case = self._case
        self._model.play(self._id, self._replies.reply)
        request = RunRequest(**case.request)
        handle = await self._client.start_workflow(
            SupervisorWorkflow.run,
            request,
            id=self._id,
            task_queue="supervisor",
            task_timeout=surroundings(case.seed).task_timeout,
        )
        self._handle, self._executions = handle, [handle.first_execution_run_id or ""]
        people = [asyncio.create_task(self._person(handle, deed)) for deed in case.deeds]
        people.append(asyncio.create_task(self._decider(handle)))
        if surroundings(case.seed).watched:
            people.append(asyncio.create_task(self._watcher(handle)))
        if any(deed.action.startswith("pause") for deed in case.deeds):
            people.append(asyncio.create_task(self._resumer(handle)))
        if case.unpaid_from is not None:
            people.append(asyncio.create_task(self._payer(handle)))
        try:
            async with asyncio.timeout(PATIENCE):
                ending = await self._ending()
        except TimeoutError:
            ending = Ending(case, self._id, self._executions, "hung", None, await _standing(self._client, self._id))
            with contextlib.suppress(RPCError):
                await handle.terminate("it hung")
        finally:
            self._is_over = True
            for person in people:
                person.cancel()
        for outcome in await asyncio.gather(*people, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        return ending

    async def _ending(self) -> Ending:
        ends_again = self._case.reset_at_end
        while True:
            handle = self._handle
            ending = await self._end_of(handle)
            async with self._resetting:
                if ends_again and handle is self._handle:
                    ends_again = False
                    await self._reset()
                if handle is self._handle:
                    self._is_over = True
                    break
        try:
            ending.shown = await _answered(lambda: handle.query(SupervisorWorkflow.result))
            ending.status = await _answered(lambda: handle.query(SupervisorWorkflow.status))
        except WorkflowQueryFailedError as failed:
            ending.unread = str(failed)
        if ending.kind == "cancelled":
            ending.result = ending.shown
        ending.restarted = self._workers.restarted
        ending.shown_waits, ending.approved = self._shown, self._approved
        ending.shown_plans, ending.edited = self._shown_plans, self._edited
        ending.served, ending.calls = self._replies.served, partial(self._model.of, self._id)
        return ending

    async def _end_of(self, handle: Handle) -> Ending:
        """Returns the end of one execution."""
        try:
            result: RunResult | None = await handle.result()
            kind, error = "completed", None
        except WorkflowFailureError as failed:
            cause, result, error = failed.cause, None, type(failed.cause).__name__
            kind = "cancelled" if isinstance(cause, CancelledError) else "failed"
            if isinstance(cause, ApplicationError):
                error = cause.type
                result = RunResult.model_validate(cause.details[0]) if cause.details else None
        return Ending(self._case, self._id, self._executions, kind, result, error)

    async def _reset(self) -> None:
        """Resets the last execution, to any of its workflow tasks."""
        points = await workflow_tasks(self._handle)
        if not points:  # it was just reset to its first one
            return
        point = self._case.draw("reset", len(self._executions)).choice(points)
        self._handle = await reset(self._client, self._handle, point)
        self._executions.append(self._handle.run_id or "")

    def _counted(self, calls: float) -> None:
        self._workers.count()
        for number, event in self._waiting:
            if calls >= number:
                event.set()

    async def _person(self, handle: Handle, deed: Deed) -> None:
        """Does one thing, when it is time for it."""
        reached = asyncio.Event()
        self._waiting.append((deed.after_calls, reached))
        await reached.wait()
        with contextlib.suppress(*_TOO_LATE):  # the run had ended, or has no such child
            await self._do(handle, deed.action)

    async def _do(self, handle: Handle, action: str) -> None:
        match action:
            case "cancel":
                await handle.cancel()
            case "reset":
                async with self._resetting:
                    if not self._is_over:
                        await self._reset()
            case "extend":
                more = {"budget": {"tokens": 500_000}, "deadline": "PT1H"}
                await handle.execute_update("extend_limits", more)
            case "tighten":
                await self._tighten(handle, self._case.draw("tighten").choice([0, 5_000, 30_000]))
            case "resume":
                await handle.execute_update("resume", {"request_id": uuid4().hex})
            case "look":
                await handle.query(SupervisorWorkflow.trace)
            case "cancel_child" | "terminate_child":
                shown = await handle.query(SupervisorWorkflow.status)
                children = [report.workflow_id for report in shown.subtasks if report.state == "running"]
                for child in [self._client.get_workflow_handle(child) for child in children if child][:1]:
                    await (child.cancel() if action == "cancel_child" else child.terminate("a test"))
            case _:
                await self._steer(handle, action)

    async def _tighten(self, handle: Handle, left: int) -> None:
        """Leaves so many tokens beside those that are spent or promised, whose number a refusal names."""
        try:
            await handle.execute_update("extend_limits", {"budget": {"tokens": 1}})
        except WorkflowUpdateFailedError as refused:
            for least in re.findall(r"must be at least (\d+)", str(refused.cause)):
                await handle.execute_update("extend_limits", {"budget": {"tokens": int(least) + left}})

    async def _steer(self, handle: Handle, action: str) -> None:
        """Says something to the run, or of a subtask that it can be said of."""
        shown = (await handle.query(SupervisorWorkflow.status)).subtasks
        ids = [report.id for report in shown if (report.state in ("waiting", "running")) != (action == "retry")]
        one, words = self._case.draw(action).choice(ids or [""]), f"{WORD}{uuid4().hex[:6]}"
        updates: dict[str, tuple[str, dict[str, Any]]] = {
            "pause": ("pause", {"by": "a test"}),
            "pause_now": ("pause", {"now": True}),
            "steer_all": ("steer", {"text": words}),
            "steer": ("steer", {"text": words, "to": one}),
            "retry": ("retry_subtask", {"subtask_id": one, "instruction": "once more"}),
            "skip": ("skip_subtask", {"subtask_id": one, "comment": "no need"}),
        }
        await handle.execute_update(*updates[action])

    async def _looks(self, each: float) -> AsyncIterator[None]:
        """Yields until the run is over, at most once in `each` seconds.

        A look that took long is followed by a longer rest.
        """
        took = 0.0
        while not self._is_over:
            await asyncio.sleep(max(each, 2 * took))
            began = time.monotonic()
            yield
            took = time.monotonic() - began

    async def _looked(self, query: Callable[[], Awaitable[T]]) -> T:
        """Returns the reply to a query, asked when few others are.

        The server gives a Worker queries before workflow tasks. So where many ask without a rest, and the Worker has
        just been replaced or keeps no workflows, new agents would wait until nobody asks any more.
        """
        async with self._looks_at_once:
            return await query()

    async def _resumer(self, handle: Handle) -> None:
        """Resumes the run, some time after it was paused."""
        dice = self._case.draw("resumer")
        async for _ in self._looks(0.2):
            with contextlib.suppress(*_TOO_LATE):
                if (await self._looked(lambda: handle.query(SupervisorWorkflow.status))).flags.paused:
                    await asyncio.sleep(2 * dice.random())
                    await handle.execute_update("resume", {"request_id": uuid4().hex})

    async def _decider(self, handle: Handle) -> None:
        """Decides about all that waits for a person, now and then twice at once."""
        async for _ in self._looks(DECIDED_EACH):
            with contextlib.suppress(*_TOO_LATE):
                shown = await self._looked(lambda: tree_status(self._client, handle.id))
                waits = [wait for wait in shown.waiting if wait.for_decision]
                for workflow_id, here in groupby(waits, lambda wait: wait.workflow_id):
                    with contextlib.suppress(*_TOO_LATE):
                        await self._decide(self._client.get_workflow_handle(workflow_id), [*here])

    async def _decide(self, handle: WorkflowHandle[Any, Any], waits: list[Wait]) -> None:
        """Decides about what waits in a run: one by one, in a list, by a signal; sometimes by what was seen before.

        What was seen is kept before it is said.
        """
        dice = self._case.draw("decide", *(wait.sha256 for wait in waits))
        await self._look_at_plans(handle, waits)
        waits = [wait for wait in waits if wait.kind != "plan" or wait.sha256 in self._shown_plans]
        updates = [self._said(wait) for wait in waits]
        self._shown |= {wait.sha256: wait for wait in waits}
        self._approved |= {body["sha256"] for name, body in updates if body.get("decision") == "approve"}
        way = dice.choice(["each", "each", "list", "signal"])
        listed = [body for name, body in updates if name != "retry_subtask"]
        if way == "each" or len(listed) < len(updates):
            for update in updates:
                said = [handle.execute_update(*update) for _ in range(dice.choice([1, 1, 2]))]
                await asyncio.gather(*said)
            return
        if way == "list":
            await handle.execute_update("decide", {"decisions": listed})
        else:
            await handle.signal("decide", {"decisions": listed})
        if dice.random() < MISTAKEN:  # the word for one wait, sent for another one: nothing may come of it
            wait = dice.choice(waits)
            name, body = self._said(dice.choice([*self._shown.values()]))
            if name == "decide_plan" or body.get("sha256") == wait.sha256:
                return
            await handle.execute_update(name, {**body, "id": wait.id})

    async def _look_at_plans(self, handle: WorkflowHandle[Any, Any], waits: list[Wait]) -> None:
        """Keeps what a person is shown of each plan that waits; that of another wait by then is left for later."""
        for wait in waits:
            if wait.kind != "plan" or wait.sha256 in self._shown_plans:
                continue
            asked = await self._looked(partial(handle.query, SupervisorWorkflow.waiting, wait.id))
            if asked.wait.sha256 == wait.sha256 and asked.content:
                self._shown_plans[wait.sha256] = Plan.model_validate_json(asked.content)

    def _said(self, wait: Wait) -> tuple[str, dict[str, Any]]:
        """Returns an update that decides about a wait: the same whenever it is said.

        But for an edited plan that cannot run: it is refused, and nobody would say it for ever.
        """
        name, body = _decision(wait, self._case.draw("decide", wait.id, wait.sha256))
        if body.get("decision") == "edit":
            plan = self._shown_plans[wait.sha256]
            subtasks = [
                one.model_copy(update={"description": f"{one.description} {EDITED} {wait.sha256[:8]}"})
                for one in plan.subtasks
            ]
            cannot_run = self._case.draw("edit", wait.sha256).random() < 0.2
            if cannot_run and wait.sha256 not in self._edited:
                subtasks[0] = subtasks[0].model_copy(update={"depends_on": [subtasks[0].id]})
            self._edited[wait.sha256] = plan.model_copy(update={"subtasks": subtasks})
            body["plan"] = self._edited[wait.sha256].model_dump(mode="json", exclude_defaults=True)
            del body["comment"]
        return name, body

    async def _watcher(self, handle: Handle) -> None:
        """Queries the run and its worker agents without a pause, and updates it now and then."""
        dice = self._case.draw("watcher")
        async for _ in self._looks(WATCHED_EACH):  # an update that is cancelled raises an error of its own
            with contextlib.suppress(*_TOO_LATE):
                shown = await self._looked(lambda: handle.query(SupervisorWorkflow.status))
                running = [report.workflow_id for report in shown.subtasks if report.state == "running"]
                for child in [self._client.get_workflow_handle(child) for child in running if child][:2]:
                    await self._looked(partial(child.query, "trace"))
                if dice.random() < UPDATED:
                    await handle.execute_update("resume", {"request_id": uuid4().hex})

    async def _payer(self, handle: Handle) -> None:
        """Mends the account when the run says that it waits for that, and resumes it."""
        async for _ in self._looks(0.5):
            with contextlib.suppress(*_TOO_LATE):
                shown = await self._looked(lambda: tree_status(self._client, handle.id))
                if any(wait.kind == "resume" for wait in shown.waiting):
                    self._replies.mend_account()
                    await handle.execute_update("resume", {"request_id": uuid4().hex})


def _decision(wait: Wait, dice: Random) -> tuple[str, dict[str, Any]]:
    """Returns an update that decides about a wait."""
    subtask_id = (wait.subtask_id or "").split("/")[-1]
    if wait.kind == "plan":
        choice = dice.choices(["approve", "change", "edit", "reject"], [6, 3, 3, 1])[0]
        choice = choice if choice in wait.choices else "approve"
        body = {"revision": int(wait.id.split(".")[1]), "decision": choice, "comment": "less of it"}
        return "decide_plan", {**body, "sha256": wait.sha256}
    if wait.kind == "tool":
        choice = dice.choice(["approve", "approve", "deny"])
        return "decide_tool_call", {"id": wait.id, "decision": choice, "sha256": wait.sha256}
    if "retry" in wait.choices and "/" not in (wait.subtask_id or "") and dice.random() < 0.5:
        return "retry_subtask", {"subtask_id": subtask_id, "instruction": "once more", "request_id": wait.id}
    text = f"finding of {subtask_id}/ by a person who saw {wait.sha256}"
    return "reply", {"id": wait.id, "text": text, "by": "a test", "sha256": wait.sha256}


async def _answered(query: Callable[[], Awaitable[T]]) -> T:
    """Returns the reply to a query, asked again while the Workers are replaced."""
    while True:
        with contextlib.suppress(RPCError):
            return await query()


async def _standing(client: Client, workflow_id: str) -> str:
    """Returns what a workflow that hangs waits for, and each open child of it."""
    handle = client.get_workflow_handle(workflow_id)
    described = (await handle.describe()).raw_description
    tried = [f"{a.activity_type.name}, attempt {a.attempt}" for a in described.pending_activities]
    task = described.pending_workflow_task
    last = [
        f"{EventType.Name(event.event_type).removeprefix('EVENT_TYPE_')} at {event.event_time.ToDatetime():%H:%M:%S}"
        async for event in handle.fetch_history_events()
    ]
    below = [await _standing(client, child.workflow_id) for child in described.pending_children]
    return (
        f"{workflow_id}: activities {tried}, workflow task {task.state} attempt {task.attempt}, last {last[-6:]}, "
        f"children {below}"
    )


def say(words: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()
