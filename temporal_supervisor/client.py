"""Functions for client programs: the connection, the inbox of all runs, and shortcuts to `Run`."""

import asyncio
import atexit
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from temporalio.client import Client
from temporalio.common import SearchAttributeKey

from temporal_supervisor.messages import NO_WORKER as NO_WORKER
from temporal_supervisor.messages import Item as Item
from temporal_supervisor.messages import NoAnswer as NoAnswer
from temporal_supervisor.messages import NoRun as NoRun
from temporal_supervisor.messages import PlanDecision
from temporal_supervisor.messages import UpdateRefused as UpdateRefused
from temporal_supervisor.messages import query as query
from temporal_supervisor.messages import send as send
from temporal_supervisor.outcomes import RunFailed as RunFailed
from temporal_supervisor.runs import Run as Run
from temporal_supervisor.runtime.connection import connect as _connect
from temporal_supervisor.runtime.search_attributes import usable
from temporal_supervisor.runtime.settings import load_settings
from temporal_supervisor.starting import new_run_id as new_run_id
from temporal_supervisor.supervision.contract import (
    Plan,
    RunRequest,
    RunResult,
    Status,
    TraceEvent,
    UpdateReply,
)
from temporal_supervisor.supervision.contract.status import Asked
from temporal_supervisor.supervision.contract.updates import DecisionReply
from temporal_supervisor.supervision.run.attempt_rules import is_child_id

OWNER = SearchAttributeKey.for_keyword("SupervisorOwner")
_ASKED_AT_ONCE = 16  # runs, for the inbox
# Threads of the SDK let go of finished calls; in the interpreter's tear-down they aborted 14 of 90
# processes.
_let_go = partial(time.sleep, 0.05)


async def connect(address: str | None = None, namespace: str | None = None) -> Client:
    """Returns a client; arguments override Temporal's own configuration.

    That is `TEMPORAL_*`, then profiles, then a server that `temporal-supervisor serve` started on
    this machine. Any other client works too if its data converter is pydantic's. With
    SUPERVISOR_KEYS_FILE payloads are encrypted. Raises
    temporal_supervisor.runtime.connection.ConnectionFailed.
    """
    atexit.unregister(_let_go)
    atexit.register(_let_go)
    return await _connect(address=address, namespace=namespace, keys=load_settings().keys)


async def start(
    client: Client,
    request: RunRequest | Mapping[str, object],
    run_id: str | None = None,
) -> str:
    """Starts a run and returns its id; raises like `Run.start`."""
    return (await Run.start(client, request, run_id)).id


async def wait(client: Client, run_id: str) -> RunResult:
    """Waits for the end of a run and returns its result.

    Raises RunFailed if it gave no answer.
    """
    return await Run(client, run_id).result()


async def run(
    client: Client,
    request: RunRequest | Mapping[str, object],
    run_id: str | None = None,
) -> RunResult:
    """Starts a run and returns its result; raises RunFailed, and like `Run.start`."""
    return await (await Run.start(client, request, run_id)).result()


async def follow(client: Client, run_id: str) -> AsyncIterator[Status | TraceEvent]:
    """Yields the events of a run and its status; see `Run.follow`."""
    async for news in Run(client, run_id).follow():
        yield news


@dataclass(frozen=True)
class Inbox:
    """The waits for people, oldest first; `unanswered`: runs whose Workers did not answer."""

    items: list[Item]
    unanswered: list[str]


async def inbox(client: Client, owner: str | None = None) -> Inbox:
    """Returns the waits for people in all open runs and their nested runs.

    `owner` restricts it to runs of that owner. Raises ValueError if the server lacks the search
    attribute for owners.
    """
    have = await usable(client)
    if owner is not None and OWNER.name not in have:
        missing = f"search attribute {OWNER.name} is missing, start a Worker once"
        raise ValueError(f"this server knows no owners: {missing}")
    selected = "WorkflowType = 'SupervisorWorkflow' AND ExecutionStatus = 'Running'"
    if "SupervisorWaiting" in have:
        selected += " AND SupervisorWaiting = 'person'"
    found = [run async for run in client.list_workflows(selected)]
    roots = [run for run in found if not is_child_id(run.id, run.parent_id)]
    if owner is not None:
        roots = [run for run in roots if run.typed_search_attributes.get(OWNER) == owner]
    at_once = asyncio.Semaphore(_ASKED_AT_ONCE)
    unanswered: list[str] = []

    async def waits_of_run(run_id: str) -> list[Item]:
        try:
            async with at_once:
                return await Run(client, run_id).waiting()
        except NoAnswer:
            unanswered.append(run_id)
        except UpdateRefused:  # it has just ended
            pass
        return []

    waits = await asyncio.gather(*(waits_of_run(run.id) for run in roots))
    items = [item for of_run in waits for item in of_run]
    return Inbox(sorted(items, key=lambda item: item.wait.since), unanswered)


async def waiting(client: Client, run_id: str) -> list[Item]:
    """Returns the waits for people in a run and its nested runs; see `Run.waiting`."""
    return await Run(client, run_id).waiting()


async def asked(client: Client, run_id: str, wait_id: str) -> Asked:
    """Returns a wait with its whole content. Raises UpdateRefused if no wait has that id."""
    return await Run(client, run_id).asked(wait_id)


async def decide(
    client: Client,
    item: Item,
    word: str,
    text: str | None = None,
    *,
    plan: Plan | None = None,
    by: str | None = None,
) -> UpdateReply:
    """Decides about an item of the inbox; see `Run.decide`."""
    return await Run(client, item.run_id).decide(item.wait, word, text, plan=plan, by=by)


async def decide_all(
    client: Client,
    items: Sequence[Item],
    word: str,
    text: str | None = None,
    *,
    by: str | None = None,
) -> list[DecisionReply]:
    """Makes one decision about many items of the inbox, in any runs; see `Run.decide_all`."""
    waits = [item.wait for item in items]
    return await Run(client, "any").decide_all(waits, word, text, by=by)


async def decide_plan(
    client: Client,
    run_id: str,
    revision: int,
    decision: PlanDecision,
    *,
    sha256: str,
    plan: Plan | None = None,
    comment: str | None = None,
    by: str | None = None,
) -> UpdateReply:
    """Decides about a plan; see `Run.decide_plan`."""
    run = Run(client, run_id)
    return await run.decide_plan(
        revision,
        decision,
        sha256=sha256,
        plan=plan,
        comment=comment,
        by=by,
    )


async def reply(
    client: Client,
    run_id: str,
    wait_id: str,
    text: str,
    *,
    sha256: str,
    by: str | None = None,
) -> UpdateReply:
    """Replies to a question, or hands in a person's finding; see `Run.reply`."""
    return await Run(client, run_id).reply(wait_id, text, sha256=sha256, by=by)


async def decide_tool_call(
    client: Client,
    run_id: str,
    wait_id: str,
    decision: Literal["approve", "deny"],
    *,
    sha256: str,
    comment: str | None = None,
    by: str | None = None,
) -> UpdateReply:
    """Decides about a tool call; see `Run.decide_tool_call`."""
    run = Run(client, run_id)
    return await run.decide_tool_call(wait_id, decision, sha256=sha256, comment=comment, by=by)


async def pause(
    client: Client,
    run_id: str,
    *,
    now: bool = False,
    by: str | None = None,
) -> UpdateReply:
    """Pauses a run; see `Run.pause`."""
    return await Run(client, run_id).pause(now=now, by=by)


async def resume(client: Client, run_id: str, *, by: str | None = None) -> UpdateReply:
    """Ends a pause and waits for the provider's account; see `Run.resume`."""
    return await Run(client, run_id).resume(by=by)


async def steer(
    client: Client,
    run_id: str,
    text: str,
    *,
    to: str = "*",
    by: str | None = None,
) -> UpdateReply:
    """Instructs the worker agent of a subtask, or all of them; see `Run.steer`."""
    return await Run(client, run_id).steer(text, to=to, by=by)
