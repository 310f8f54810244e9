"""What `status`, `plan`, `trace` and `result` print of one run, with or without a worker to ask."""

import json
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from activities.store.artifacts import ArtifactMissing, ArtifactStore, ArtifactUnavailable
from console.access import Access, web_address
from console.command_errors import DONE, FAILED, UNREACHABLE, CommandFailed
from console.run.run_handle import NO_WORKER, NoAnswer, Run, facts, is_open, state_word, stuck
from console.run.run_outcome import Outcome, outcome, stored_result
from console.terminal import tell, tell_json
from console.view.answer_text import exit_code, print_outcome
from console.view.live_view import draw
from console.view.plan_tree import rows
from console.view.run_poller import Picture
from console.view.safe_text import safe_line
from supervision import limits
from supervision.contract.plan import Plan
from supervision.contract.status import Status, TraceEvent
from supervision.store_keys import named_key
from supervision.text import money

_WIDEST = 120


async def print_status(run: Run, console: Console, as_json: bool) -> int:
    """Where the run stands; what the server knows when no worker answers."""
    described = await run.require()
    try:
        status = await _whole_status(run)
    except NoAnswer:
        return await _print_outside(run, as_json)
    if as_json:
        tell_json(status)
        return DONE
    picture = Picture(run.id, web_address(run.client, run.id), described.start_time, state_word(described), status)
    picture.reports = {report.id: report for report in status.subtasks}
    if is_open(described):
        picture.notice = stuck(described)
    else:
        picture.started = None  # the clock of an ended run stands still
    tell(
        f"{safe_line(status.goal, limits.FOLLOW_LINE_CHARS)}\nrun {run.id}, {state_word(described)}, team {status.team}"
    )
    tell(_limits(status))
    height = len(rows(status.subtasks)) + limits.STATUS_PAGE
    console.print(draw(picture, min(console.width, _WIDEST), height))
    for text in [*([status.error] if status.error else []), *status.warnings]:
        tell(safe_line(text, limits.ERROR_BYTES))
    return DONE


def _limits(status: Status) -> str:
    """One line on review, deadline and budget."""
    allowed, used = status.limits, status.usage
    tokens = "any" if allowed.budget_tokens is None else f"{allowed.budget_tokens:,}"
    dollars = "" if allowed.budget_usd is None else f", {money(used.usd)} of {money(allowed.budget_usd)}"
    ends = f"{datetime.fromisoformat(status.deadline_at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"review {status.review} · deadline {ends} · budget {used.tokens:,} of {tokens} tokens{dollars}"


async def print_plan(run: Run, store: ArtifactStore | None, as_json: bool) -> int:
    """The plan; out of the store when no worker answers."""
    await run.require()
    try:
        plan = await run.plan()
    except NoAnswer as error:
        stored = await _stored(store, named_key(run.id, "plan.1"))
        if stored is None:
            raise CommandFailed(UNREACHABLE, f"the plan of '{run.id}' is not known: {error}") from error
        plan = Plan.model_validate_json(stored)
    if as_json:
        tell_json(plan)
        return DONE
    if plan.direct_answer:
        tell("no subtasks: the planner answered the goal itself")
    elif not plan.subtasks:
        tell("there is no plan yet")
    for subtask in plan.subtasks:
        after = f", after {', '.join(subtask.depends_on)}" if subtask.depends_on else ""
        tell(f"{subtask.id}  ({subtask.role}, {subtask.importance}{after})")
        tell(f"    {safe_line(subtask.description, limits.DESCRIPTION_CHARS)}")
    return DONE


async def print_trace(run: Run, store: ArtifactStore | None) -> int:
    """The run's events as JSON; out of the store when no worker answers or Temporal has forgotten the run."""
    try:
        events = (await run.trace()).events
    except (NoAnswer, CommandFailed) as error:
        stored = await _stored(store, named_key(run.id, "trace"))
        if stored is None and isinstance(error, CommandFailed):
            raise
        if stored is None:
            raise CommandFailed(UNREACHABLE, f"the trace of '{run.id}' is not known: {error}") from error
        events = [TraceEvent.model_validate(item) for item in json.loads(stored)]
    tell_json([event.model_dump(mode="json") for event in events])
    return DONE


async def print_result(
    run: Run, access: Access, console: Console, *, as_json: bool = False, full: bool = False, wait: bool = False
) -> int:
    """What the run came to, or what there is so far; out of the store when Temporal has forgotten the run."""
    store = access.store
    try:
        described = await run.require()
    except CommandFailed:
        kept = await stored_result(run.id, store)
        if kept is None:
            raise
        return print_outcome(console, run.id, Outcome(exit_code(kept), kept), as_json=as_json)
    if is_open(described) and not wait:
        try:
            ended = Outcome(DONE, await run.result())
        except NoAnswer as error:
            raise CommandFailed(UNREACHABLE, f"'{run.id}' is running: {stuck(described) or NO_WORKER}") from error
    else:
        ended = await outcome(run, store)
    if full and ended.result and ended.result.result_ref:
        whole = await store.get(ended.result.result_ref)
        ended = Outcome(ended.code, type(ended.result).model_validate_json(whole), ended.problem)
    if ended.result is None and ended.problem is None:
        raise CommandFailed(FAILED, f"'{run.id}' has no result")
    return print_outcome(console, run.id, ended, as_json=as_json, web=web_address(run.client, run.id))


async def _whole_status(run: Run) -> Status:
    status = await run.status()
    cursor = status.next_cursor
    while cursor is not None:
        page = await run.status(cursor)
        status.subtasks += page.subtasks
        cursor = page.next_cursor
    status.next_cursor = None
    return status


async def _print_outside(run: Run, as_json: bool) -> int:
    described = await run.require()
    phase, team, usd = await facts(described)
    notice = stuck(described) or NO_WORKER if is_open(described) else "no worker answers: only the server's facts"
    known: dict[str, Any] = {
        "run_id": run.id,
        "state": state_word(described),
        "phase": phase or None,
        "team": team or None,
        "usd": usd,
        "started_at": described.start_time.isoformat(),
        "closed_at": described.close_time.isoformat() if described.close_time else None,
        "notice": notice,
    }
    if as_json:
        tell_json(known)
    else:
        for name, value in known.items():
            if value is not None:
                tell(f"{name:<12}{value}")
    return DONE


async def _stored(store: ArtifactStore | None, key: str) -> bytes | None:
    try:
        return await store.get(key) if store else None
    except (ArtifactMissing, ArtifactUnavailable):
        return None
