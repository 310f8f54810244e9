"""The command `eval`: asks the questions of a set and shows how good the answers are."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer
from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.eval_contracts import (
    EVAL_TYPE,
    TABLE,
    EvalInput,
    EvalProgress,
    EvalResult,
    OwnLimits,
    is_eval_id,
    new_eval_id,
)
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    CANCELLED,
    DONE,
    FAILED,
    Access,
    CommandFailed,
    hint,
    web_address,
)
from temporal_supervisor.console.base.output_file import write_file
from temporal_supervisor.console.base.terminal import (
    Report,
    counted,
    duration,
    print_err,
    safe_line,
)
from temporal_supervisor.console.evals.eval_view import eval_page, headline, table_rows
from temporal_supervisor.console.evals.set_files import (
    check_set,
    data_of,
    default_team,
    for_part,
    read_set,
    request_fields,
    set_file,
    store_set,
    unknown_source,
    variants_of,
    with_agents,
    with_results,
)
from temporal_supervisor.console.run.command_line import AsJson
from temporal_supervisor.console.run.request_options import check_run_id, read_text_file, seconds
from temporal_supervisor.console.run.required_workers import require_workers
from temporal_supervisor.messages import NoAnswer, NoRun, UpdateRefused, query
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import WORKFLOW_QUEUE
from temporal_supervisor.supervision.base.store_keys import named_key
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.base import Duration
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.scores.eval_budget import EvalBudget
from temporal_supervisor.supervision.scores.eval_plan import Part
from temporal_supervisor.supervision.scores.score_table import (
    WORDS,
    Comparison,
    EvalTable,
    compare_tables,
    shortfalls,
)

_LOOK = timedelta(seconds=1)
_SAID = timedelta(seconds=15)  # between two lines about an eval in which nothing has ended
_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


@dataclass(frozen=True)
class Wanted:
    """The aims of an eval: it is compared with `before`, and must not be below `floor`."""

    at_least: float | None = None
    unflagged_at_most: float | None = None
    before: EvalTable | None = None
    floor: EvalTable | None = None


async def evaluate(
    access: Access,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            help="a folder with questions.jsonl or goals.toml; or the id of an eval",
        ),
    ],
    team: Annotated[
        str | None,
        typer.Option(help="see `teams`; `files` for questions with data"),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="for all roles; repeated: side by side"),
    ] = None,
    bare: Annotated[
        bool,
        typer.Option(
            "--bare",
            help="ask one worker agent without a supervisor, too, to compare with",
        ),
    ] = False,
    only: Annotated[
        Literal["plan", "agent", "answer"] | None,
        typer.Option(help="a part alone: the plan, one worker agent, or the answer"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="ask this model for its opinion of answers in words, beside the verdict",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="the first questions alone")] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="ask each question so often")] = 1,
    parallel: Annotated[
        int,
        typer.Option(min=1, max=limits.MAX_PARALLEL, help="runs at a time"),
    ] = 4,
    budget_tokens: Annotated[int, typer.Option(min=1, help="for all runs together")] = 20_000_000,
    budget_usd: Annotated[float | None, typer.Option(help="for all runs together")] = None,
    deadline: Annotated[str, typer.Option(help="for all runs together, such as 12h")] = "24h",
    request: Annotated[
        Path | None,
        typer.Option(help="a JSON file with fields that each run's request has"),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="EVAL", help="say what differs from it; or a file"),
    ] = None,
    no_worse_than: Annotated[
        str | None,
        typer.Option(metavar="EVAL", help="exit code 1 if it is worse"),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="exit code 1 if less is right"),
    ] = None,
    unflagged_at_most: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="exit code 1 if more is wrong and not flagged"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write a page, and each run's report"),
    ] = None,
    eval_id: Annotated[
        str | None,
        typer.Option("--id", help="the eval's id, else one is made of the set"),
    ] = None,
    detach: Annotated[
        bool,
        typer.Option("--detach", help="print the eval's id and return at once"),
    ] = False,
    as_json: AsJson = False,
    queue_anyway: Annotated[
        bool,
        typer.Option("--queue-anyway", help="start even if no worker is there yet"),
    ] = False,
) -> Report:
    """Ask questions with known answers: how many are right, wrong, wrong but not flagged?"""
    wanted = Wanted(
        at_least,
        unflagged_at_most,
        await _earlier_table(access, against),
        await _earlier_table(access, no_worse_than),
    )
    file = set_file(source)
    if file is None or file.suffix == ".json":
        return await _eval_report(access, await _table_of(access, source), wanted, output)
    if bare and only is not None:
        raise CommandFailed(BAD_INPUT, "--bare compares whole answers: leave out --only")
    if judge is not None and only == "plan":
        raise CommandFailed(BAD_INPUT, "--judge is asked about answers: leave out --only plan")

    part: Part = only or "whole"
    known = for_part(await with_results(read_set(file, limit)), part)
    fields = request_fields(request)
    team_name = default_team(known, team, fields)
    if part == "agent":
        fields = with_agents(access.settings, fields, team_name)
        team_name = None
    compared_with = access.settings if bare else None
    variants = variants_of(fields, team_name, model or [], compared_with, part)
    whole = check_set(known, variants, repeat)

    # All that can be refused is refused before anything is stored.
    data = data_of(known)
    own = _own_limits(fields)
    budget = EvalBudget(tokens=budget_tokens, usd=budget_usd)
    time = _deadline(deadline)
    named = _eval_id(eval_id) if eval_id else new_eval_id(known.name, secrets.token_hex(3))
    client = await access.client()
    if not queue_anyway:
        await require_workers(client)

    given = EvalInput(
        set_ref=await store_set(await access.store(), whole, data),
        name=known.name,
        total=whole.total,
        own=own,
        parallel=parallel,
        judge=judge or "",
        budget=budget,
        deadline_seconds=time.total_seconds(),
    )
    await _start_eval(client, given, named)

    web = web_address(client, named)
    if detach:
        print_err(f"follow it: {hint('eval', named)}")
        return Report({"eval_id": named, "web": web}, [named])
    print_err(f"eval {named}, {counted(whole.total, 'run')}")
    if web:
        print_err(web)
    return await _eval_report(access, await _follow_eval(access, named), wanted, output)


def _own_limits(fields: Mapping[str, Any]) -> OwnLimits:
    """Returns the limits in each run's own request."""
    request = RunRequest.model_validate({"goal": "-", **fields})
    budget, deadline = request.budget, request.deadline
    return OwnLimits(tokens=budget.tokens, usd=budget.usd, seconds=deadline.total_seconds())


def _eval_id(given: str) -> str:
    if not is_eval_id(check_run_id(given)):
        raise CommandFailed(
            BAD_INPUT,
            f"the id of an eval begins with eval- and has no slash, not '{given}'",
        )
    return given


def _deadline(deadline: str) -> timedelta:
    try:
        time = _DURATION.validate_python(seconds(deadline))
    except ValidationError:
        time = timedelta()
    if not limits.MIN_DEADLINE <= time <= limits.MAX_DEADLINE:
        most = f"at most {limits.MAX_DEADLINE.days} days"
        words = f"--deadline must be a duration such as 12h, of {most}"
        raise CommandFailed(BAD_INPUT, words)
    return time


async def _start_eval(client: Client, given: EvalInput, eval_id: str) -> None:
    """Starts an eval unless it is open; a terminated one starts again."""
    try:
        await client.start_workflow(
            EVAL_TYPE,
            given,
            id=eval_id,
            task_queue=WORKFLOW_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
            static_summary=f"eval of {given.name}: {counted(given.total, 'run')}",
        )
    except WorkflowAlreadyStartedError as error:
        helps = f"{hint('eval', eval_id)} shows it, or choose another --id"
        words = f"eval '{eval_id}' exists already: {helps}"
        raise CommandFailed(FAILED, words) from error


async def _table_of(access: Access, given: str) -> EvalTable:
    """Returns the table of an eval, followed to its end, or of a file written by `--json`."""
    if Path(given).is_file():
        return _table_in_file(Path(given))
    if not is_eval_id(given):
        raise unknown_source(given)
    client = await access.client()
    try:
        described = await client.get_workflow_handle(given).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    else:
        if described.status is WorkflowExecutionStatus.RUNNING:
            return await _follow_eval(access, given)
    return await _stored_table(access, given)


def _table_in_file(file: Path) -> EvalTable:
    try:
        return EvalTable.model_validate_json(read_text_file(file))
    except ValidationError:
        raise CommandFailed(
            BAD_INPUT,
            f"{file} is no table of an eval: `eval ... --json` writes one",
        ) from None


async def _earlier_table(access: Access, given: str | None) -> EvalTable | None:
    """Returns the table of an earlier eval, by its id or file; None without one."""
    if given is None:
        return None
    if Path(given).is_file():
        return _table_in_file(Path(given))
    if not is_eval_id(given):
        raise unknown_source(given)
    return await _stored_table(access, given)


async def _stored_table(access: Access, eval_id: str) -> EvalTable:
    """Returns the stored table of an ended eval. Raises CommandFailed if there is none."""
    content = await (await access.store()).find(named_key("scores", eval_id, TABLE))
    if content is None:
        raise CommandFailed(
            BAD_INPUT,
            f"there is no table of an eval '{eval_id}': it has not ended, or was pruned",
        )
    return EvalTable.model_validate_json(content)


async def _follow_eval(access: Access, eval_id: str) -> EvalTable:
    """Follows an eval to its end, with progress on standard error, and returns its table."""
    client = await access.client()
    handle: WorkflowHandle[object, EvalResult] = client.get_workflow_handle(
        eval_id,
        result_type=EvalResult,
    )
    ending = asyncio.create_task(handle.result())
    try:
        await _say_progress(client, eval_id, ending)
        await ending
    except asyncio.CancelledError:
        print_err(f"the eval continues: {hint('eval', eval_id)}")
        raise
    except WorkflowFailureError as error:
        if not is_cancelled_exception(error.cause):
            cause = error.cause
            words = cause.message if isinstance(cause, ApplicationError) else str(cause)
            raise CommandFailed(FAILED, f"eval '{eval_id}' failed: {words}") from error
    finally:
        ending.cancel()
    return await _stored_table(access, eval_id)


async def _say_progress(client: Client, eval_id: str, ending: "asyncio.Task[EvalResult]") -> None:
    """Writes a line whenever questions have ended, until the eval has ended."""
    said = -1  # questions that had ended, in the last line
    quiet = timedelta()
    while not ending.done():
        try:
            progress = await query(client, eval_id, "progress", EvalProgress)
        except (NoAnswer, UpdateRefused):
            progress = None  # it has just begun or ended, or no Worker is there for a moment
        if progress is not None and (progress.ended != said or quiet >= _SAID):
            print_err(progress_line(progress))
            said = progress.ended
            quiet = timedelta()
        quiet += _LOOK
        await asyncio.wait([ending], timeout=_LOOK.total_seconds())


def progress_line(progress: EvalProgress) -> str:
    """Returns a line with an eval's progress, and its likely remaining time and cost."""
    counts = [f"{number} {WORDS[verdict]}" for verdict, number in progress.counts.items() if number]
    spent = f"{progress.usage.tokens:,} tokens, {money(progress.usage.usd)}"
    parts = [f"{progress.ended} of {progress.planned}", *counts, spent]
    if progress.seconds_to_go is not None:
        cost = "" if progress.usd_to_go is None else f" and {money(progress.usd_to_go)}"
        parts.append(f"about {duration(progress.seconds_to_go)}{cost} to go")
    return " · ".join(parts)


async def _eval_report(
    access: Access,
    found: EvalTable,
    wanted: Wanted,
    output: Path | None,
) -> Report:
    """Returns the table with the missed aims, and writes the page if asked to."""
    try:
        differs = [] if wanted.before is None else compare_tables(wanted.before, found)
        floor = [] if wanted.floor is None else compare_tables(wanted.floor, found)
    except ValueError as error:
        raise CommandFailed(BAD_INPUT, f"nothing to compare: {error}") from None
    short = shortfalls(found, wanted.at_least, wanted.unflagged_at_most, floor)
    changes = [*differs, *(each for each in floor if each not in differs)]
    if output is not None:
        await _write_page(access, found, changes, output)
    code = FAILED if short else DONE
    if found.status == "cancelled":
        code = CANCELLED
    data = {**found.model_dump(mode="json"), "comparisons": changes, "falls_short": short}
    said = safe_line("; ".join(short), limits.ERROR_BYTES)
    return Report(data, list(table_rows(found, changes)), error=said, code=code)


async def _write_page(
    access: Access,
    found: EvalTable,
    changes: Sequence[Comparison],
    output: Path,
) -> None:
    """Writes the page of an eval, and a folder with the reports that its rows open."""
    # these load what compares claims, and makes the page: 0.3 s
    from temporal_supervisor.console.report.report_data import report_data
    from temporal_supervisor.console.report.report_page import report_page

    if output.exists():
        raise CommandFailed(FAILED, f"{output} exists already: remove it, or choose another name")
    folder = output.parent / f"{output.stem}-runs"
    links: dict[str, str] = {}
    for score in found.scores:
        file = folder / f"{quote(score.case, safe='~')}.html"
        try:
            page = report_page(await report_data(access, score.run_id))
        except NoRun:  # it was pruned, or ended before it began
            continue
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(page.encode())
        links[score.run_id] = f"{quote(folder.name)}/{quote(file.name)}"
    write_file(output, eval_page(found, links, changes).encode())
    print_err(f"{headline(found)}: {output}")
