"""The commands `status`, `plan`, `trace` and `result`: reports on one run, with or without a Worker to ask."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from temporalio.service import RPCError

from activities.contracts.run_contracts import Published
from activities.store.artifacts import ArtifactMissing, ArtifactStore, ArtifactUnavailable
from console.access import Access, web_address
from console.command import DONE, FAILED, UNREACHABLE, CommandFailed
from console.console_limits import FOLLOW_LINE_CHARS, SHOWN_RETRYING
from console.run.retrying import RetryingCall, retrying_calls
from console.run.run_handle import NO_WORKER, NoAnswer, RunHandle, facts, is_open, state_word, stuck
from console.run.run_outcome import RunOutcome, exit_code, read_result, run_outcome, stored_result
from console.terminal import print_json, print_out, safe_line
from console.view.answer_text import print_outcome
from console.view.live_view import draw
from console.view.picture import Picture
from supervision import limits
from supervision.contract.result import SubtaskReport
from supervision.contract.status import Status, TraceEvent
from supervision.text import money

_WIDEST = 120


async def print_status(run: RunHandle, console: Console, as_json: bool) -> int:
    """Prints where the run stands, or only the server's facts if no Worker answers."""
    described = await run.require()
    try:
        status = await run.whole_status()
    except NoAnswer:
        return await _print_facts(run, as_json)
    retrying = await retrying_calls(run.client, run.id) if is_open(described) else []
    if as_json:
        print_json({**status.model_dump(mode="json"), "retrying": [call.as_json() for call in retrying]})
        return DONE
    picture = Picture(run.id, web_address(run.client, run.id), described.start_time, state_word(described), status)
    picture.reports = {report.id: report for report in status.subtasks}
    picture.nested = await _nested(run, status)
    if is_open(described):
        picture.notice = stuck(described)
    else:
        picture.started = None  # the clock of an ended run stands still
    print_out(f"{safe_line(status.goal, FOLLOW_LINE_CHARS)}\nrun {run.id}, {state_word(described)}, team {status.team}")
    print_out(_limits(status))
    height = len(picture.tree()) + limits.STATUS_PAGE
    console.print(draw(picture, min(console.width, _WIDEST), height))
    for text in [*([status.error] if status.error else []), *status.warnings]:
        print_out(safe_line(text, limits.ERROR_BYTES))
    _print_retrying(retrying)
    return DONE


def _print_retrying(calls: list[RetryingCall]) -> None:
    for call in calls[:SHOWN_RETRYING]:
        print_out(safe_line(call.sentence(), limits.ERROR_BYTES))
    if len(calls) > SHOWN_RETRYING:
        print_out(f"and {len(calls) - SHOWN_RETRYING} more activities that are tried again")


def _limits(status: Status) -> str:
    """Returns one line on review, deadline and budget."""
    allowed, used = status.limits, status.usage
    tokens = "any" if allowed.budget_tokens is None else f"{allowed.budget_tokens:,}"
    dollars = "" if allowed.budget_usd is None else f", {money(used.usd)} of {money(allowed.budget_usd)}"
    ends = f"{datetime.fromisoformat(status.deadline_at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"review {status.review} · deadline {ends} · budget {used.tokens:,} of {tokens} tokens{dollars}"


async def print_plan(run: RunHandle, as_json: bool) -> int:
    """Prints the plan, out of the run's history if no Worker answers."""
    await run.require()
    try:
        plan = await run.plan()
    except NoAnswer as error:
        recorded = await run.recorded_plan()
        if recorded is None:
            raise CommandFailed(UNREACHABLE, f"the plan of '{run.id}' is not known: {error}") from error
        plan = recorded
    if as_json:
        print_json(plan)
        return DONE
    if plan.direct_answer:
        print_out("no subtasks: the planner answered the goal itself")
    elif not plan.subtasks:
        print_out("there is no plan yet")
    for subtask in plan.subtasks:
        after = f", after {', '.join(subtask.depends_on)}" if subtask.depends_on else ""
        print_out(f"{subtask.id}  ({subtask.role}, {subtask.importance}{after})")
        print_out(f"    {safe_line(subtask.description, limits.DESCRIPTION_CHARS)}")
    return DONE


async def print_trace(run: RunHandle, store: ArtifactStore) -> int:
    """Prints the events as JSON, out of the store if no Worker answers or Temporal has forgotten the run."""
    try:
        events = (await run.trace()).events
    except (NoAnswer, CommandFailed) as error:
        published = await store.latest_ended(run.id)
        stored = await _stored(store, Published.model_validate_json(published).trace_ref) if published else None
        if stored is None and isinstance(error, CommandFailed):
            raise
        if stored is None:
            raise CommandFailed(UNREACHABLE, f"the trace of '{run.id}' is not known: {error}") from error
        events = [TraceEvent.model_validate(item) for item in json.loads(stored)]
    print_json([event.model_dump(mode="json") for event in events])
    return DONE


async def print_result(
    run: RunHandle, access: Access, console: Console, *, as_json: bool = False, full: bool = False, wait: bool = False
) -> int:
    """Prints the result, or the result so far; out of the store if Temporal has forgotten the run."""
    store = access.store
    try:
        described = await run.require()
    except CommandFailed:
        stored = await stored_result(run.id, store)
        if stored is None:
            raise
        return print_outcome(console, run.id, RunOutcome(exit_code(stored), stored), as_json=as_json)
    if is_open(described) and not wait:
        try:
            outcome = RunOutcome(DONE, await run.result())
        except NoAnswer as error:
            raise CommandFailed(UNREACHABLE, f"'{run.id}' is running: {stuck(described) or NO_WORKER}") from error
    else:
        outcome = await run_outcome(run, store)
    if full and outcome.result and outcome.result.result_ref:
        outcome = replace(outcome, result=await read_result(store, outcome.result.result_ref))
    if outcome.result is None and outcome.problem is None:
        raise CommandFailed(FAILED, f"'{run.id}' has no result")
    return print_outcome(console, run.id, outcome, as_json=as_json, web=web_address(run.client, run.id))


async def _nested(run: RunHandle, status: Status) -> dict[str, dict[str, SubtaskReport]]:
    """Returns the subtasks of all nested runs by workflow id, as far as these answer."""
    nested: dict[str, dict[str, SubtaskReport]] = {}
    pending = [status]
    while pending:
        level, pending = pending, []
        for workflow_id in [r.workflow_id for page in level for r in page.subtasks if r.nested and r.workflow_id]:
            try:
                below = await run.whole_status(workflow_id)
            except (NoAnswer, CommandFailed, RPCError):  # it is about to start, or Temporal has forgotten it
                continue
            nested[workflow_id] = {report.id: report for report in below.subtasks}
            pending.append(below)
    return nested


async def _print_facts(run: RunHandle, as_json: bool) -> int:
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
    retrying = await retrying_calls(run.client, run.id) if is_open(described) else []
    if as_json:
        print_json({**known, "retrying": [call.as_json() for call in retrying]})
    else:
        for name, value in known.items():
            if value is not None:
                print_out(f"{name:<12}{value}")
        _print_retrying(retrying)
    return DONE


async def _stored(store: ArtifactStore, key: str) -> bytes | None:
    try:
        return await store.get(key)
    except (ArtifactMissing, ArtifactUnavailable):
        return None
