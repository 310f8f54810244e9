"""The commands that read a run: `status`, `plan`, `trace`, `result`, `report`."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from temporalio.client import WorkflowExecutionDescription, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactError, ArtifactMissing, ArtifactStore
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    DONE,
    FAILED,
    Access,
    CommandFailed,
    hint,
    web_address,
)
from temporal_supervisor.console.base.output_file import Force, check_output, write_file
from temporal_supervisor.console.base.terminal import (
    Report,
    ScreenRow,
    TextTable,
    safe_line,
)
from temporal_supervisor.console.commands.evidence_commands import calls_report
from temporal_supervisor.console.commands.people_commands import way_rows
from temporal_supervisor.console.run.at_work import tail_of
from temporal_supervisor.console.run.command_line import AnyId, AnyRun
from temporal_supervisor.console.run.found_runs import (
    listed_facts,
    recorded_goal,
    short_id,
)
from temporal_supervisor.console.run.run_outcome import (
    exit_code,
    full_trace,
    outcome_so_far,
    read_result,
    run_outcome,
    stored_plan,
)
from temporal_supervisor.console.run.standstill import causes_of, observed_standstills
from temporal_supervisor.console.view.answer_text import answer_file, answer_report, why_partial
from temporal_supervisor.console.view.event_lines import event_line
from temporal_supervisor.console.view.live_view import (
    ENDED_PHASES,
    LINE_CHARS,
    LiveAgent,
    Picture,
    WholePicture,
    story_rows,
)
from temporal_supervisor.console.view.model_ways import model_notes
from temporal_supervisor.console.view.plan_view import PlanPage, plan_page
from temporal_supervisor.console.view.saved_words import saved_words
from temporal_supervisor.messages import NoAnswer, NoRun
from temporal_supervisor.outcomes import RunOutcome, is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status
from temporal_supervisor.supervision.contract.usage import Spend
from temporal_supervisor.supervision.results.answer_table import table_content

_CALLS_SHOWN = 8  # worker agents whose calls one looks at: each is a question to the server
_OUTPUT_HELP = "write it: answer.md or .docx, table.csv or .xlsx, answer.json; - prints it"
_ANSWER_ENDINGS = (".md", ".txt", ".docx", ".json", ".csv", ".xlsx")


async def status_report(run: AnyRun, access: Access) -> Report:
    """Show where a run stands."""
    described = await run.require()
    data = await _listed_data(run, described)
    started, closed = described.start_time, described.close_time
    picture = Picture(run.id, data["web"], started, closed, data["state"])

    try:
        status = await run.whole_status()
        data |= status.model_dump(mode="json")
        picture.status = status
        picture.reports = {report.id: report for report in status.subtasks}
        picture.observed = await causes_of(run, described, status)
        await _add_calls(picture, run, described)
    except NoAnswer as error:
        picture.notice = _notice_of(error)
        picture.observed = await observed_standstills(run, described, answered=False)
        data["goal"] = await recorded_goal(run)
        data["notice"] = picture.notice

    ending = ""
    if closed:
        outcome = await run_outcome(run, await access.store_or_none())
        data["error"] = outcome.error
        ending = outcome.sentence
        if outcome.error is None and outcome.result:
            data["status"] = outcome.result.status
            missing = why_partial(outcome.result)
            ending = f"partial: {missing}" if missing else ""
        elif data["phase"] not in ENDED_PHASES:  # terminated: the run could not say so itself
            _cancel_open_subtasks(picture)
    data["standstills"] = picture.observed
    return Report(data, list(_status_rows(data, picture, ending)))


async def _listed_data(run: Run, described: WorkflowExecutionDescription) -> dict[str, Any]:
    """Returns the facts of a run that the server has without a Worker."""
    phase, team, usd = await listed_facts(described)
    closed = described.close_time
    return {
        "run_id": run.id,
        "state": state_word(described),
        "error": None,
        "web": web_address(run.client, run.id),
        "usd": usd,
        "started_at": described.start_time.isoformat(),
        "closed_at": closed and closed.isoformat(),
        "phase": phase or None,
        "team": team or None,
    }


def _notice_of(error: NoAnswer) -> str:
    """Returns the reason why only the server's facts are shown."""
    if isinstance(error.__cause__, WorkflowQueryFailedError):
        return str(error)  # of a Worker, for a run that did not begin
    return "no Worker answers: only the server's facts"


def _cancel_open_subtasks(picture: Picture) -> None:
    """Marks the subtasks that were open when their run was terminated."""
    for report in picture.reports.values():
        if report.state in ("running", "waiting"):
            report.state = "cancelled"


async def _add_calls(
    picture: Picture,
    run: Run,
    described: WorkflowExecutionDescription,
) -> None:
    """Adds the calls in flight of the run and of some worker agents to the picture."""
    picture.tail = await tail_of(run, described)
    running = [row for row in picture.tree() if row.report.state == "running"]
    agents = [(row.path, row.report.workflow_id) for row in running if row.report.workflow_id]
    for path, workflow_id in agents[:_CALLS_SHOWN]:
        with contextlib.suppress(RPCError, NoRun, NoAnswer):  # it may just have ended
            agent = await run.describe(workflow_id)
            picture.agents[workflow_id] = LiveAgent(path, tail=await tail_of(run, agent))


def _status_rows(data: dict[str, Any], picture: Picture, ending: str) -> Iterator[ScreenRow | str]:
    """Yields the head of the status, the tree of subtasks, and the remarks below."""
    status = picture.status
    yield safe_line(data["goal"], LINE_CHARS)
    yield f"run {picture.run_id}, {data['state']}, team {data['team'] or 'unknown'}"
    if status:
        yield _limits_line(status)
        if status.spend:
            yield _spend_table(status.spend)
    elif data["phase"]:
        yield f"phase {data['phase']}, {money(data['usd'])}"

    yield WholePicture(picture)

    if status and status.reuse_from:
        yield safe_line(saved_words(status), limits.ERROR_BYTES)
    if status:
        for warning in status.warnings:
            yield safe_line(f"warning: {warning}", limits.ERROR_BYTES)
    if ending:
        yield safe_line(ending, limits.ERROR_BYTES)


def _spend_table(spend: Sequence[Spend]) -> TextTable:
    """Returns a row for each role and model: calls, tokens in and out, cached share, cost."""
    rows = []
    for item in spend:
        usage = item.usage
        row = [
            item.role,
            item.model,
            f"{usage.model_calls:,}",
            f"{usage.prompt_tokens:,}",
            f"{usage.cached_share:.0%}",
            f"{usage.output_tokens:,}",
            money(usage.usd),
        ]
        rows.append(row)
    numbers = ["calls", "input", "cached", "output", "cost"]
    return TextTable(["role", "model"], rows, numbers=numbers)


def _limits_line(status: Status) -> str:
    """Returns the round of review, the deadline, and the use of the budget."""
    allowed, used = status.limits, status.usage
    deadline = datetime.fromisoformat(status.deadline_at).astimezone(UTC)
    tokens = "any" if allowed.budget_tokens is None else f"{allowed.budget_tokens:,}"
    budget = f"{used.tokens:,} of {tokens} tokens"
    if allowed.budget_usd is not None:
        budget += f", {money(used.usd)} of {money(allowed.budget_usd)}"
    return f"review {status.review} · deadline {deadline:%Y-%m-%d %H:%M:%S} UTC · budget {budget}"


async def plan_report(run: AnyRun, access: Access) -> Report:
    """Show the plan of a run."""
    described = await run.require()
    store = await access.store_or_none()
    try:
        page = await plan_page(run, store)
    except NoAnswer:
        plan = None if is_open(described) else await stored_plan(run.id, store)
        if plan is None:
            raise
        page = PlanPage(run.id, plan)

    data = {"run_id": run.id, "state": state_word(described), **page.plan.model_dump(mode="json")}
    notes = [row.plain for row in way_rows(run.id, page.asked.wait)] if page.asked else []
    return Report(data, list(page.rows()), notes)


async def trace_report(
    run: AnyRun,
    access: Access,
    full: Annotated[
        str | None,
        typer.Option(
            metavar="SUBTASK", help="prompts and whole replies of t1, t1/t2, plan, ... or all"
        ),
    ] = None,
) -> Report:
    """Show all that happened in a run: plans, turns, tool calls, retries, reviews, and why."""
    if full:
        return await calls_report(run, access, full)
    store = await access.store_or_none()
    events = await full_trace(run, store)
    rows = [row for event in events for row in story_rows(event_line(event))]
    if store is not None:
        return Report(events, rows)
    away = "the turns of worker agents are in the artifact store, which can't be opened from here"
    return Report(events, rows, [away])


async def result_report(
    run: AnyRun,
    access: Access,
    full: Annotated[
        bool, typer.Option("--full", help="whole texts, from the artifact store")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="wait for the run's end")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=_OUTPUT_HELP)] = None,
    force: Force = False,
) -> Report:
    """Show the answer of a run, or its result so far."""
    if output:
        check_output(output, _ANSWER_ENDINGS, force=force)
    store = await access.store()
    outcome = await outcome_so_far(run, store, wait=wait)
    if full or output:
        outcome = await _with_whole_result(outcome, store)

    if output:
        await _write_answer(run.id, outcome.result, store, output, force=force)
        return Report(outcome.as_json(run.id), code=exit_code(outcome))

    web = None if outcome.forgotten else web_address(run.client, run.id)
    outcome = await _with_whole_draft(outcome, store)
    return answer_report(run.id, outcome, web, model_notes(outcome))


async def _with_whole_result(outcome: RunOutcome, store: ArtifactStore) -> RunOutcome:
    """Returns the outcome with the whole texts of its result.

    Raises CommandFailed if the store lacks them.
    """
    if outcome.result is None or not outcome.result.result_ref:
        return outcome
    try:
        whole = await read_result(store, outcome.result.result_ref)
    except ArtifactMissing as error:
        helps = "if the run uses another store, set SUPERVISOR_ARTIFACTS_URL as its Workers have it"
        raise CommandFailed(FAILED, f"{error}: {helps}") from error
    return replace(outcome, result=whole)


async def _write_answer(
    run_id: str,
    result: RunResult | None,
    store: ArtifactStore,
    output: Path,
    *,
    force: bool,
) -> None:
    """Writes the answer in the form of the file's ending, such as `.csv`.

    Raises CommandFailed if the answer has no such form.
    """
    has_answer = result is not None and (result.answer or result.answer_json)
    if result is None or not has_answer or result.status == "running":
        shows_why = hint("status", short_id(run_id))
        raise CommandFailed(FAILED, f"run '{run_id}' has no answer: {shows_why} says why")

    suffix = output.suffix.lower()
    is_table = suffix in (".csv", ".xlsx")
    try:
        if is_table and len(result.tables) == 1:
            made = await store.get(result.tables[0].ref)
        else:
            made = answer_file(result, ".csv" if is_table else suffix)
    except ValueError as error:
        raise CommandFailed(BAD_INPUT, f"{output}: {error}") from None
    content = table_content(made) if is_table else ""

    if suffix in (".xlsx", ".docx"):
        # loads what writes these: for two endings only
        from temporal_supervisor.console.view.office_files import word_document, workbook

        made = workbook(made) if is_table else word_document(result.answer, run_id)
    write_file(output, made, content, force=force)


async def _with_whole_draft(outcome: RunOutcome, store: ArtifactStore) -> RunOutcome:
    """Returns the outcome of an open run with its whole draft.

    The query returns only the draft's beginning.
    """
    result = outcome.result
    if result is None or result.status != "running" or not result.answer_ref:
        return outcome
    try:
        draft = await store.get(result.answer_ref)
    except ArtifactError:  # another store, or one that is away: the beginning is worth reading, too
        return outcome
    return replace(outcome, result=result.model_copy(update={"answer": draft.decode()}))


async def page_report(
    access: Access,
    run_id: AnyId = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="the file to write")] = Path(
        "report.html"
    ),
    prompts: Annotated[
        bool, typer.Option("--prompts", help="with prompts and whole replies")
    ] = False,
    force: Force = False,
) -> int:
    """Write a run's report, to hand on: one HTML page with the answer and all that it rests on."""
    # these load what compares claims, and makes the page: 0.3 s for one command only
    from temporal_supervisor.console.report.report_data import report_data
    from temporal_supervisor.console.report.report_page import report_page

    check_output(output, force=force)
    page = report_page(await report_data(access, run_id, prompts=prompts))
    write_file(output, page.encode(), force=force)
    return DONE
