"""The commands that read runs: `list`, `spend`, `status`, `plan`, `trace`, `result`, `report`."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactError, ArtifactMissing, ArtifactStore
from activities.store.spending import run_spends
from temporal_supervisor.client import OWNER, inbox
from temporal_supervisor.console.base.command import BAD_INPUT, DONE, FAILED, Access, CommandFailed, hint, web_address
from temporal_supervisor.console.base.output_file import Force, check_output, write_file
from temporal_supervisor.console.base.terminal import (
    Either,
    Remark,
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
    STATUS,
    goal_in,
    list_roots,
    listed_facts,
    no_runs,
    recorded_goal,
    recorded_request,
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
from temporal_supervisor.console.run.standstill import Standstill, causes_of, observed_standstills
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
from temporal_supervisor.supervision.base.store_keys import named_key, run_prefix
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status
from temporal_supervisor.supervision.contract.usage import Spend, Usage
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
        str | None, typer.Option(metavar="SUBTASK", help="prompts and whole replies of t1, t1/t2, plan, ... or all")
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
    full: Annotated[bool, typer.Option("--full", help="whole texts, from the artifact store")] = False,
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
    output: Annotated[Path, typer.Option("--output", "-o", help="the file to write")] = Path("report.html"),
    prompts: Annotated[bool, typer.Option("--prompts", help="with prompts and whole replies")] = False,
    force: Force = False,
) -> int:
    """Write the report of a run, to be handed on: one HTML page with the answer and all that it rests on."""
    # these load what compares claims, and makes the page: 0.3 s for one command only
    from temporal_supervisor.console.report.report_data import report_data
    from temporal_supervisor.console.report.report_page import report_page

    check_output(output, force=force)
    page = report_page(await report_data(access, run_id, prompts=prompts))
    write_file(output, page.encode(), force=force)
    return DONE


_DESCRIBED_AT_ONCE = 16  # questions to the server at a time, while runs are listed
SpendBy = Literal["owner", "day", "team"]
RunState = Literal["running", "completed", "failed", "cancelled", "terminated", "timed out"]


async def list_report(
    access: Access,
    limit: Annotated[int, typer.Option(min=1, help="newest first")] = 50,
    state: Annotated[RunState | None, typer.Option(help="only such ones")] = None,
    team: Annotated[str | None, typer.Option(help="only those of this team")] = None,
    owner: Annotated[str | None, typer.Option(help="only those of this owner, of the request's metadata")] = None,
    of_eval: Annotated[str | None, typer.Option("--eval", help="only of this one")] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="only those that wait for a person")] = False,
) -> Report:
    """List the runs that the server knows."""
    client = await access.client()
    selects = bool(team or owner or waiting)
    status = _server_status(state) if state else None
    begins = f"{of_eval}/" if of_eval else ""
    executions = await list_roots(client, None if selects else limit, status, begins)

    if team:
        executions = [each for each in executions if await _team_of(each) == team]
    if owner:
        executions = [each for each in executions if _owner_of(each) == owner]
    if waiting:
        found = await inbox(client)
        waiting_ids = {*found.unanswered, *(item.run_id for item in found.items)}
        executions = [each for each in executions if each.id in waiting_ids]
    executions = executions[:limit]

    looks = asyncio.Semaphore(_DESCRIBED_AT_ONCE)
    described = await asyncio.gather(*(_run_row(client, each, looks) for each in executions))
    rows = [row for row in described if state in (None, row["state"])]
    if of_eval:
        verdicts = await _verdicts(access, of_eval, [row["run_id"] for row in rows])
        for row in rows:
            row["verdict"] = verdicts.get(row["run_id"])
    if rows:
        return Report(rows, list(run_table(rows)))

    none = no_runs(client.namespace)
    if state or selects or of_eval:
        none = f"there is no such run in namespace '{client.namespace}': {hint('list')} shows all"
    return Report([], notes=[none])


def _server_status(state: RunState) -> str:
    """Returns the server's own word for the state of a run, such as `TimedOut`."""
    return "Canceled" if state == "cancelled" else state.title().replace(" ", "")


async def _team_of(execution: WorkflowExecution) -> str:
    _, team, _ = await listed_facts(execution)
    return team


def _owner_of(execution: WorkflowExecution) -> str | None:
    return execution.typed_search_attributes.get(OWNER)


async def _verdicts(access: Access, eval_id: str, run_ids: Sequence[str]) -> dict[str, str]:
    """Returns the known verdicts on runs of an eval, in words, by run id."""
    # these load the rules of scores, for this option only
    from temporal_supervisor.supervision.scores.score import Score
    from temporal_supervisor.supervision.scores.score_table import WORDS

    store = await access.store()
    keys = [named_key("score", eval_id, run_id.removeprefix(f"{eval_id}/")) for run_id in run_ids]
    run_of = dict(zip(keys, run_ids, strict=True))
    judged = [key for key in await store.list_keys(run_prefix(eval_id)) if key in run_of]
    scores = await store.read_all(judged, Score.model_validate_json)
    return {run_of[key]: WORDS[score.verdict] for key, score in scores.items()}


async def _run_row(
    client: Client,
    execution: WorkflowExecution,
    looks: asyncio.Semaphore,
) -> dict[str, Any]:
    """Returns the row of a run, with as much as can be read."""
    goal = ""
    partial = ""
    builds_on: list[str] = []
    causes: list[Standstill] = []

    # Any client may have written the request and the summary, and the run be deleted meanwhile.
    async with looks:
        with contextlib.suppress(Exception):
            run = Run(client, execution.id)
            # the latest one: a reset leaves others, which have ended
            execution = described = await run.describe()

            # The request comes first: the Web UI's form for a start copies another run's summary,
            # which is no text without the keys of a run that encrypts.
            request = await recorded_request(run)
            summary = await described.static_summary()
            goal = goal_in(request) or (summary if isinstance(summary, str) else "")
            named = request.get("reuse_from")
            if isinstance(named, list):
                builds_on = [str(each) for each in named]

            status = described.typed_search_attributes.get(STATUS)
            if is_open(described):
                causes = await causes_of(run, described)
            elif status == "partial" and state_word(described) == "completed":
                partial = why_partial(await run.handle.result())

    phase, team, usd = await listed_facts(execution)
    return {
        "run_id": execution.id,
        "goal": goal,
        "state": state_word(execution),
        "status": execution.typed_search_attributes.get(STATUS),
        "partial": partial or None,
        "reuse_from": builds_on,
        "phase": phase,
        "team": team,
        "started_at": execution.start_time.isoformat(),
        "usd": usd,
        "standstills": causes,
    }


def run_table(rows: Sequence[dict[str, Any]]) -> Iterator[ScreenRow]:
    """Yields the table of runs, then the waits of open ones."""
    cells = []
    for row in rows:
        started = datetime.fromisoformat(row["started_at"]).astimezone()
        cost = "" if row["usd"] is None else money(row["usd"])
        name = Either(short_id(row["run_id"]), row["run_id"])
        state = _state_cell(row)
        cells.append([state, f"{started:%m-%d %H:%M}", cost, row["team"], name, row["goal"]])
    yield TextTable(["state", "started", "cost", "team", "run", "goal"], cells, wide="goal")

    for row in rows:
        for cause in row["standstills"]:
            yield Remark(f"⏸ {short_id(row['run_id'])}: {cause.line}", "yellow")
    for row in rows:
        if row["reuse_from"]:
            origins = ", ".join(map(short_id, row["reuse_from"]))
            words = f"↳ {short_id(row['run_id'])} builds on {origins}"
            yield Remark(words, "dim", is_one_row=True)
    for row in rows:
        if row["partial"]:
            why = f"◐ {short_id(row['run_id'])}: {row['partial']}"
            yield Remark(why, "dim", is_one_row=True)


def _state_cell(row: dict[str, Any]) -> str:
    """Returns the state of a run with its phase, and with its verdict in an eval."""
    state = str(row["state"])
    if row["status"] == "partial":
        state = "partial"
    elif state == "running" and row["phase"]:
        state = f"{state}, {row['phase']}"
    verdict = row.get("verdict")
    return f"{state}: {verdict}" if verdict else state


async def spend_report(
    access: Access, days: Annotated[int, typer.Option(min=1, max=3650)] = 30, by: SpendBy = "day"
) -> Report:
    """Show what ended runs have cost: dollars, tokens, runs."""
    today = datetime.now(UTC).date()
    spent = await run_spends(await access.store(), days, today)
    if not spent:
        return Report([], notes=[f"no run of this namespace ended in the last {days} days"])

    usages: dict[str, list[Usage]] = {}
    for run in spent:
        names = {"owner": run.owner, "day": f"{run.ended_at:%Y-%m-%d}", "team": run.team}
        usages.setdefault(names[by], []).append(run.usage)
    rows = [(name, len(each), sum(each, Usage())) for name, each in sorted(usages.items())]
    if by != "day":
        rows.sort(key=lambda row: row[2].usd or 0.0, reverse=True)  # equal ones stay by name

    data = []
    shown = []
    total = sum((run.usage for run in spent), Usage())
    for name, runs, usage in rows:
        data.append({by: name, "runs": runs, "tokens": usage.tokens, "usd": usage.usd})
        shown.append((name or "-", f"{runs}", f"{usage.tokens:,}", money(usage.usd)))
    shown.append(("all", f"{len(spent)}", f"{total.tokens:,}", money(total.usd)))
    return Report(data, [TextTable([by], shown, numbers=["runs", "tokens", "cost"])])
