"""The commands `status`, `plan`, `trace` and `result`: reports on one run, with or without a Worker to ask."""

from dataclasses import replace
from datetime import UTC, datetime

from pydantic import JsonValue
from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from temporalio.client import WorkflowExecutionDescription, WorkflowQueryFailedError

from activities.store.artifacts import ArtifactMissing, ArtifactStore
from console.access import Access, web_address
from console.command import DONE, FAILED, UNREACHABLE, CommandFailed
from console.console_limits import FOLLOW_LINE_CHARS
from console.run.run_handle import NO_WORKER, NoAnswer, RunHandle, facts, is_open, state_word
from console.run.run_outcome import RunOutcome, read_result, run_outcome, stored_outcome, stored_result
from console.run.run_story import run_story
from console.run.standstill import grouped, observed, stated
from console.terminal import print_err, print_json, print_out, safe_line
from console.view.answer_text import print_outcome
from console.view.event_lines import line
from console.view.live_view import draw, spend_table, story_rows
from console.view.picture import Picture, tree_rows
from supervision import limits
from supervision.contract.status import Status
from supervision.text import money

_WIDEST = 120


async def print_status(run: RunHandle, console: Console, store: ArtifactStore | None, as_json: bool) -> int:
    """Prints where the run stands, or only the server's facts if no Worker answers."""
    described = await run.require()
    try:
        status = await run.whole_status()
    except NoAnswer as error:
        refused = isinstance(error.__cause__, WorkflowQueryFailedError)  # by a Worker, for a run that did not begin
        why = str(error) if refused else "no Worker answers: only the server's facts"
        return await _print_facts(run, described, store, why, as_json)
    causes = grouped([*stated(status, run.id), *await observed(run, described, answered=True)])
    web = web_address(run.client, run.id)
    if as_json:
        facts_first = {"run_id": run.id, "state": state_word(described), **_times(described), "web": web}
        waits: JsonValue = [cause.as_json() for cause in causes]
        print_json({**facts_first, **status.model_dump(mode="json"), "standstills": waits})
        return DONE
    began, closed = described.start_time, described.close_time
    picture = Picture(run.id, web, began, closed, state_word(described), status)
    picture.observed = causes
    picture.reports = {report.id: report for report in status.subtasks}
    whose = f"run {run.id}, {state_word(described)}, team {status.team}"
    for words in (safe_line(status.goal, FOLLOW_LINE_CHARS), whose, _limits(status)):
        console.print(Text(words))
    if status.spend:
        console.print(spend_table(status.spend))
    height = len(tree_rows(status.subtasks)) + limits.STATUS_PAGE
    picture.status = status.model_copy(update={"spend": []})  # shown above, row by row
    console.print(draw(picture, min(console.width, _WIDEST), height), crop=False)
    for warning in status.warnings:
        print_out(safe_line(f"warning: {warning}", limits.ERROR_BYTES))
    if status.error:
        print_out(
            safe_line(f"{state_word(described)}: {status.error.type}: {status.error.message}", limits.ERROR_BYTES)
        )
    return DONE


def _limits(status: Status) -> str:
    """Returns one line on review, deadline and budget."""
    allowed, used = status.limits, status.usage
    tokens = "any" if allowed.budget_tokens is None else f"{allowed.budget_tokens:,}"
    dollars = "" if allowed.budget_usd is None else f", {money(used.usd)} of {money(allowed.budget_usd)}"
    ends = f"{datetime.fromisoformat(status.deadline_at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"review {status.review} · deadline {ends} · budget {used.tokens:,} of {tokens} tokens{dollars}"


async def print_plan(run: RunHandle, console: Console, as_json: bool) -> int:
    """Prints the plan, out of the run's history if no Worker answers."""
    described = await run.require()
    try:
        plan = await run.plan()
    except NoAnswer as error:
        recorded = await run.recorded_plan()
        if recorded is None:
            raise CommandFailed(UNREACHABLE, f"the plan of '{run.id}' is not known: {error}") from error
        plan = recorded
    if as_json:
        print_json({"run_id": run.id, "state": state_word(described), **plan.model_dump(mode="json")})
        return DONE
    if plan.direct_answer:
        print_out("no subtasks: the planner answered the goal itself")
    elif not plan.subtasks:
        print_out("there is no plan yet")
    for subtask in plan.subtasks:
        after = f", after {', '.join(subtask.depends_on)}" if subtask.depends_on else ""
        console.print(Text(f"{subtask.id}  ({subtask.role}, {subtask.importance}{after})"))
        description = Text(safe_line(subtask.description, limits.DESCRIPTION_CHARS))
        console.print(Padding(description, (0, 0, 0, 4), expand=False))
    return DONE


async def print_trace(run: RunHandle, console: Console, store: ArtifactStore | None, as_json: bool) -> int:
    """Prints all that happened in a run; of an open run so far, of a forgotten one out of the store."""
    events = await run_story(run, store)
    if as_json:
        print_json([event.model_dump(mode="json") for event in events])
        return DONE
    for event in events:
        for row in story_rows(line(event), console.width if console.is_terminal else None):
            console.print(row) if console.is_terminal else print_out(row.plain)
    if store is None:
        print_err("the turns of worker agents are in the artifact store, which can't be opened from here")
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
        return print_outcome(console, run.id, stored_outcome(stored), as_json=as_json)
    if is_open(described) and not wait:
        try:
            outcome = RunOutcome(DONE, state_word(described), await run.result())
        except NoAnswer as error:
            causes = await observed(run, described, answered=False)
            why = causes[0].line if causes else NO_WORKER
            raise CommandFailed(UNREACHABLE, f"'{run.id}' is running: {why}") from error
    else:
        outcome = await run_outcome(run, store)
    if full and outcome.result and outcome.result.result_ref:
        try:
            outcome = replace(outcome, result=await read_result(store, outcome.result.result_ref))
        except ArtifactMissing as error:
            if await run.recorded_store() == await store.identity():
                raise
            raise CommandFailed(
                FAILED, f"{error}: the run uses another store, so set SUPERVISOR_ARTIFACTS_URL as its Workers have it"
            ) from error
    return print_outcome(console, run.id, outcome, as_json=as_json, web=web_address(run.client, run.id))


def _times(described: WorkflowExecutionDescription) -> dict[str, JsonValue]:
    closed = described.close_time
    return {"started_at": described.start_time.isoformat(), "closed_at": closed.isoformat() if closed else None}


async def _print_facts(
    run: RunHandle, described: WorkflowExecutionDescription, store: ArtifactStore | None, why: str, as_json: bool
) -> int:
    """Prints what the server knows, for a run that does not answer, and why it does not."""
    phase, team, usd = await facts(described)
    causes = await observed(run, described, answered=False)
    ended = None if is_open(described) else await run_outcome(run, store)
    error: JsonValue = {"type": ended.error.type, "message": ended.error.message} if ended and ended.error else None
    known: dict[str, JsonValue] = {
        "run_id": run.id,
        "state": state_word(described),
        "phase": phase or None,
        "team": team or None,
        "usd": usd,
        **_times(described),
        "notice": None if is_open(described) else why,
        "error": error,
        "standstills": [cause.as_json() for cause in causes],
    }
    if as_json:
        print_json(known)
        return DONE
    known["error"] = str(ended.error) if ended and ended.error else None
    for name, value in known.items():
        if isinstance(value, (str, float)):
            print_out(f"{name:<12}{value}")
    for cause in causes:
        print_out(f"⏸ {cause.line}")
    return DONE
