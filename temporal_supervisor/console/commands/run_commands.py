"""The commands `run` and `follow`: start a run, ask about its plan, follow it to its answer."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from temporalio.exceptions import WorkflowAlreadyStartedError

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from activities.store.artifacts import ArtifactStore
from activities.teams.team_files import TeamFiles
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    FAILED,
    WAITS,
    Access,
    CommandFailed,
    hint,
    user_name,
    web_address,
)
from temporal_supervisor.console.base.terminal import (
    Report,
    console,
    counted,
    file_size,
    print_err,
    print_rows,
)
from temporal_supervisor.console.commands.people_commands import way_rows
from temporal_supervisor.console.run.again_requests import built_on
from temporal_supervisor.console.run.command_line import AnyRun, AsJson
from temporal_supervisor.console.run.described_files import check_description, check_readable
from temporal_supervisor.console.run.edited_plan import (
    changed_plan,
    drop_edited_plan,
    edited_plan_came_back,
)
from temporal_supervisor.console.run.found_runs import short_id
from temporal_supervisor.console.run.pollers import Polled
from temporal_supervisor.console.run.request_options import check_run_id, prepared_request
from temporal_supervisor.console.run.required_workers import require_same_store, require_workers
from temporal_supervisor.console.view.answer_text import answer_report, bare_report
from temporal_supervisor.console.view.follow import follow
from temporal_supervisor.console.view.live_view import QuietScreen, Screen
from temporal_supervisor.console.view.model_ways import model_notes
from temporal_supervisor.console.view.one_subtask import one_subtask_notes
from temporal_supervisor.console.view.plan_view import PlanPage, plan_page
from temporal_supervisor.messages import NoAnswer, UpdateRefused
from temporal_supervisor.outcomes import is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.starting import new_run_id
from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.contract.request import Attachment, RunRequest
from temporal_supervisor.supervision.contract.status import Status, Wait
from temporal_supervisor.supervision.contract.team import NAME_RULE, Team, is_name
from temporal_supervisor.supervision.planning.new_roles import unknown_role_problems

_CHOICES = {
    "approve": "approve a",
    "edit": "edit e",
    "change": 'change c "what to change"',
    "reject": "reject r",
}
_WORDS = {"a": "approve", "r": "deny", "c": "reply", "e": "approve"}


class PlanLeft(Exception):
    """A plan was left waiting; `report` explains how to decide later."""

    def __init__(self, report: Report) -> None:
        super().__init__("the plan waits")
        self.report = report


async def ask_about_plan(
    run: Run,
    screen: Screen,
    store: ArtifactStore | None,
    status: Status | None,
    *,
    can_ask: bool,
) -> None:
    """Asks a person about a waiting plan until it is decided.

    Raises PlanLeft if it is left waiting.
    """
    if status is None or all(wait.kind != "plan" for wait in status.waiting):
        return
    with screen.cleared():
        page = await plan_page(run, store)
        if page.asked is None:
            return
        wait = page.asked.wait
        if not can_ask:
            raise PlanLeft(_later_report(page, wait, shown=False))
        print_rows(console(), page.rows())
        if edited_plan_came_back(run):
            print_err(wait.prompt_preview)

        done = False
        while not done:
            try:
                done = await _is_decided(run, page, wait)
            except (CommandFailed, UpdateRefused, NoAnswer, ValueError, OSError) as error:
                print_err(str(error))


async def _is_decided(run: Run, page: PlanPage, wait: Wait) -> bool:
    """Asks once; True if the plan no longer waits."""
    named = [words for choice, words in _CHOICES.items() if choice in wait.choices]
    line = await _read_line(run, " · ".join([*named, "leave it q: "]), wait)
    if line is None:
        print_err("\nthe plan no longer waits: it was decided about elsewhere")
        return True

    key, _, rest = line.strip().partition(" ")
    if key == "q" or not line:
        raise PlanLeft(_later_report(page, wait, shown=True))
    if key not in _WORDS:
        return False

    plan = await changed_plan(run, page.plan) if key == "e" else None
    text = rest.strip().strip('"') or None
    await run.decide(wait, _WORDS[key], text, plan=plan, by=user_name())
    if plan is None:
        drop_edited_plan(run)  # it is of the plan that was decided about
    return True


async def _read_line(run: Run, prompt: str, wait: Wait) -> str | None:
    """Returns the line that a person types, empty at the end of the input.

    None if the plan no longer waits.
    """
    sys.stdout.write(prompt)
    sys.stdout.flush()
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), typed.set)  # a thread that reads would outlive Ctrl-C
    try:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(typed.wait(), _LOOK.total_seconds())
                return os.read(sys.stdin.fileno(), 1 << 16).decode("utf-8", "replace")
            with contextlib.suppress(NoAnswer):
                if all(other.id != wait.id for other in (await run.status()).waiting):
                    return None
    finally:
        loop.remove_reader(sys.stdin.fileno())


def _later_report(page: PlanPage, wait: Wait, *, shown: bool) -> Report:
    """Returns the ways to decide about a plan later, below the plan if it is not `shown` yet."""
    data = {"run_id": page.run_id, "state": "running", "waiting": [wait]}
    plan = [] if shown else page.rows()
    rows = [*plan, "the plan waits for approval", *way_rows(page.run_id, wait)]
    note = f"follow it: {hint('follow', short_id(page.run_id))}"
    return Report(data, rows, [note], code=WAITS)


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="the answer alone, and what the run waits for")
]
_HINT = "Ctrl-C leaves the run going"
_OF_WORKERS = "pass --queue-anyway if Workers have one of this name"
_LOOK = timedelta(seconds=2)  # between two looks at whether a plan that is asked about still waits


async def run_goal(
    access: Access,
    goal: Annotated[
        str | None, typer.Argument(help="the question or task; - reads standard input")
    ] = None,
    request: Annotated[
        Path | None, typer.Option(help="a JSON file with a whole request; options override it")
    ] = None,
    team: Annotated[str | None, typer.Option(help="see `teams`")] = None,
    strategy: Annotated[str | None, typer.Option(help="auto, plan, route or step")] = None,
    success: Annotated[
        str | None, typer.Option(help="any, all or a fraction such as 2/3; default any")
    ] = None,
    max_subtasks: Annotated[int | None, typer.Option(help="default 12")] = None,
    max_parallel: Annotated[int | None, typer.Option(help="subtasks at a time, default 8")] = None,
    max_turns: Annotated[
        int | None, typer.Option(help="model calls per subtask, default 10")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="tokens of one reply: plan, turn or answer")
    ] = None,
    max_reviews: Annotated[
        int | None, typer.Option(help="rounds of review, default 3, 0 for none")
    ] = None,
    max_replans: Annotated[
        int | None, typer.Option(help="new revisions of the plan, default 2, 0 for none")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(help="levels of teams within teams, default 2")
    ] = None,
    incremental_synthesis: Annotated[
        int | None, typer.Option(help="start drafts after this many findings; 0: never")
    ] = None,
    effort: Annotated[
        str | None, typer.Option(help="low, medium or high; else the model's own")
    ] = None,
    subtask_timeout: Annotated[
        str | None, typer.Option(help="work of one attempt of a subtask, such as 5m")
    ] = None,
    deadline: Annotated[str | None, typer.Option(help="such as 30m or PT30M, default 30m")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="default 1,000,000")] = None,
    budget_usd: Annotated[float | None, typer.Option(help="default 5")] = None,
    answer_schema: Annotated[
        Path | None, typer.Option(help="a JSON schema: the answer comes as JSON, too")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="a JSON file with your own plan, as of `plan --json`")
    ] = None,
    approve_plan: Annotated[
        bool | None,
        typer.Option("--approve-plan", help="show the plan and ask before anything of it begins"),
    ] = None,
    approval_timeout: Annotated[str | None, typer.Option(help="such as 2d, default 7d")] = None,
    on_approval_timeout: Annotated[
        str | None, typer.Option(help="reject or approve; default reject")
    ] = None,
    on_no_answer: Annotated[
        str | None, typer.Option(help="fail or answer: a run without an answer; default fail")
    ] = None,
    supervisor_model: Annotated[
        list[str] | None,
        typer.Option(help="plans and writes the answer; repeat it for fallbacks"),
    ] = None,
    worker_model: Annotated[
        list[str] | None, typer.Option(help="works on subtasks; may be repeated, too")
    ] = None,
    data: Annotated[
        list[Path] | None, typer.Option(help="a folder or file to answer from; may be repeated")
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN_ID", help="build on this run's findings and files; up to 10"),
    ] = None,
    describe: Annotated[
        Path | None,
        typer.Option(help="how the tables of these data are read: a data.toml by any name"),
    ] = None,
    attach: Annotated[
        list[Path] | None, typer.Option(help="a text or table to read; may be repeated")
    ] = None,
    data_from_others: Annotated[
        bool,
        typer.Option(
            "--data-from-others",
            help="others wrote these data: what obeys them asks a person first",
        ),
    ] = False,
    run_id: Annotated[
        str | None, typer.Option("--id", help="the run's id, else one is made of the goal")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="print the run's id and return at once")
    ] = False,
    as_json: AsJson = False,
    queue_anyway: Annotated[
        bool, typer.Option("--queue-anyway", help="start even if no worker is there yet")
    ] = False,
    quiet: Quiet = False,
) -> Report:
    """Start a run and follow it to its answer. Ctrl-C stops following, never the run."""
    run, wanted = await start_from_options(access, locals())
    return await _follow_started(run, wanted, access, detach=detach, as_json=as_json, quiet=quiet)


async def _follow_started(
    run: Run,
    wanted: RunRequest,
    access: Access,
    *,
    detach: bool,
    as_json: bool,
    quiet: bool = False,
) -> Report:
    """Follows a run that was started and returns its outcome; with `detach` only its id."""
    web = web_address(run.client, run.id)
    if detach:
        print_err(f"follow it: {hint('follow', short_id(run.id))}")
        return Report({"run_id": run.id, "web": web}, [run.id])

    if not quiet:
        print_err(f"run {run.id}")
        if web:
            print_err(web)
    return await _follow_to_end(run, access, as_json, asks=wanted.approve_plan, quiet=quiet)


async def start_from_options(access: Access, options: Mapping[str, Any]) -> tuple[Run, RunRequest]:
    """Stores the files of a run and starts it. Raises CommandFailed."""
    wanted, uploads, files = prepared_request(options)
    after = options.get("after")
    if not after:
        wanted = _with_usual_team(wanted, access)
    run_id = options.get("run_id")
    if run_id is not None:
        check_run_id(run_id)
    is_sure = bool(options.get("queue_anyway"))
    if not is_sure:
        check_team(wanted.team, access.settings.teams_folders)
    await check_description(files)
    await check_readable(files)

    client = await access.client()
    if after:
        wanted = _with_usual_team(await built_on(client, wanted, after), access)
    if not is_sure:
        workers = await require_workers(client)
        await require_team(workers, wanted, access.settings)
    if not is_sure and (uploads or files):
        await require_same_store(client, await access.store())

    for content in uploads:
        store = await access.store()
        await store.put_upload(content)
    if files:
        trusted = not options.get("data_from_others")
        wanted = await with_files(access, wanted, files, trusted=trusted)

    run = Run(client, run_id or new_run_id(client, wanted.goal))
    await _start(run, wanted)
    return run, wanted


def _with_usual_team(wanted: RunRequest, access: Access) -> RunRequest:
    """Returns a request with the team of this environment, which a Worker may not know."""
    if wanted.team is not None or "team" not in access.settings.model_fields_set:
        return wanted
    return wanted.model_copy(update={"team": access.settings.team})


async def start_and_report(
    access: Access,
    wanted: RunRequest,
    run_id: str,
    *,
    detach: bool,
    as_json: bool,
) -> Report:
    """Starts a run, and returns its outcome or, with `detach`, its id.

    Raises CommandFailed if a run has that id.
    """
    run = Run(await access.client(), run_id)
    await _start(run, wanted)
    return await _follow_started(run, wanted, access, detach=detach, as_json=as_json)


async def _start(run: Run, wanted: RunRequest) -> None:
    """Starts the run. Raises CommandFailed if a run has its id."""
    try:
        await Run.start(run.client, wanted, run.id)
    except WorkflowAlreadyStartedError as error:
        other = await run.describe()
        if is_open(other):
            known = "is already running"
            shows = hint("follow", short_id(run.id))
        else:
            known = f"exists already ({state_word(other)})"
            shows = hint("result", short_id(run.id))
        helps = f"{shows} shows it, or choose another --id"
        raise CommandFailed(FAILED, f"run '{run.id}' {known}: {helps}") from error


def check_team(team: object, folders: Sequence[Path], advice: str = _OF_WORKERS) -> None:
    """Raises CommandFailed for a team name that is almost one of the teams here.

    Other names may be teams of the Workers.
    """
    if not isinstance(team, str):
        return
    if not is_name(team):
        raise CommandFailed(BAD_INPUT, f"there is no team {quoted(team)}: a name is {NAME_RULE}")

    here = {file.parent.name for folder in folders for file in folder.glob("*/team.toml")}
    similar = [] if team in here else get_close_matches(team, here, 1)
    if similar:
        problem = f"there is no team '{team}': did you mean '{similar[0]}'?"
        raise CommandFailed(BAD_INPUT, f"{problem} ({advice})" if advice else problem)


async def require_team(workers: Polled, wanted: RunRequest, settings: Settings) -> None:
    """Raises CommandFailed for a team that no Worker can use, or that lacks roles of the plan.

    Workers may have other teams, so this is checked only if all of them read the same folders as
    this program.
    """
    team = wanted.team
    if isinstance(team, str) and workers.read_teams_of(settings.teams_mark):
        team = await asyncio.to_thread(TeamFiles(settings.teams_folders).definition, team)
    if not isinstance(team, Team) or wanted.plan is None:
        return
    problems = unknown_role_problems(wanted.plan, team)
    if problems:
        raise CommandFailed(BAD_INPUT, f"the plan cannot run: {'; '.join(problems)}")


async def follow_run(
    run: AnyRun,
    access: Access,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Report:
    """Follow a run to its end and print its answer."""
    return await _follow_to_end(run, access, as_json, quiet=quiet)


async def _follow_to_end(
    run: Run,
    access: Access,
    as_json: bool,
    *,
    asks: bool = False,
    quiet: bool = False,
) -> Report:
    """Follows a run and returns its outcome.

    With `asks`, a person is asked about plans that wait for approval.
    """
    web = web_address(run.client, run.id)
    can_ask = console().is_terminal and sys.stdin.isatty() and not as_json
    screen_type = QuietScreen if quiet else Screen
    try:
        with screen_type(console(stderr=as_json), _HINT) as screen:
            store = await access.store_or_none()
            look = partial(ask_about_plan, run, screen, store, can_ask=can_ask) if asks else None
            outcome = await follow(run, screen, store, web, look)
    except PlanLeft as left:
        return left.report
    except asyncio.CancelledError:
        print_err(f"the run continues: {hint('follow', short_id(run.id))}")
        raise

    drop_edited_plan(run)
    if quiet:
        return bare_report(run.id, outcome)
    notes = [*model_notes(outcome), *one_subtask_notes(outcome.result)]
    return answer_report(run.id, outcome, web, notes)


async def with_files(
    access: Access,
    wanted: RunRequest,
    files: list[DataFile],
    *,
    trusted: bool,
) -> RunRequest:
    """Stores files and returns the request with them as data."""
    attachment = (await _store_files(access, files)).model_copy(update={"trusted": trusted})
    return wanted.model_copy(update={"attachments": [*wanted.attachments, attachment]})


async def _store_files(access: Access, files: list[DataFile]) -> Attachment:
    """Stores files, prints their number and size, and returns them as an attachment."""
    sizes: list[int] = []  # as sent: 0 for a file that the store has
    ref = await put_files(await access.store(), files, lambda _, size: sizes.append(size))
    sent = [size for size in sizes if size]
    uploaded = f"{len(sent):,} uploaded ({file_size(sum(sent))})" if sent else "all uploaded before"
    print_err(f"{counted(len(sizes), 'file')}, {uploaded}")
    return Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)
