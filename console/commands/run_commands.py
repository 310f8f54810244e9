"""The commands `run` and `follow`: starting a run, and following it to its answer."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from temporalio.client import Client
from temporalio.exceptions import WorkflowAlreadyStartedError

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from console.base.command import (
    BAD_INPUT,
    FAILED,
    UNREACHABLE,
    Access,
    CommandFailed,
    server_address,
    user,
    web_address,
)
from console.base.hints import hint, worker_hint
from console.base.terminal import Report, console, counted, print_err
from console.commands.plan_question import PlanLeft, PlanQuestion
from console.run.pollers import ACTIVITIES, WORKFLOWS, pollers
from console.run.request_options import check_run_id, prepared_request
from console.run.run_handle import RunHandle, is_open, state_word
from console.view.answer_text import answer_report
from console.view.follow import follow
from console.view.live_view import open_screen
from supervision.base.errors import ErrorKind
from supervision.base.queues import MODEL_QUEUE, WORKFLOW_QUEUE
from supervision.base.text import did_you_mean
from supervision.contract.request import Attachment
from supervision.contract.status import Status
from temporal_supervisor.runs import new_run_id, start

_HINT = "Ctrl-C leaves the run going"
_READ_BYTES = 4 << 20  # of CSV that are made a table in a second
_LISTED_AFTER = 2.0  # seconds after which the server lists a Worker that has just said that it is ready


async def run_goal(access: Access, options: Mapping[str, Any]) -> Report:
    """Starts a run and follows it, or only prints its id; the options are the parameters of the command `run`."""
    request, uploads, files = prepared_request(options)
    require_likely_team(access, request.team)
    given = options["run_id"]
    given = check_run_id(given) if given is not None else None
    client = await access.client()
    run_id = given or new_run_id(client, request.goal)
    if not options["queue_anyway"]:
        await require_workers(client)
    for data in uploads:
        await (await access.store()).put_upload(data)
    if files:
        attachment = await _stored(access, files)
        request = request.model_copy(update={"attachments": [*request.attachments, attachment]})
    run = RunHandle(client, run_id)
    try:
        await start(client, request, run_id)
    except WorkflowAlreadyStartedError as error:
        raise CommandFailed(FAILED, await _taken(run)) from error
    web = web_address(client, run_id)
    if options["detach"]:
        print_err(f"follow it: {hint('follow', run_id)}")
        return Report({"run_id": run_id, "web": web}, lambda _: [run_id])
    print_err(f"run {run_id}" + (f"\n{web}" if web else ""))
    asks = console().is_terminal and sys.stdin.isatty() and not options["as_json"]
    question = PlanQuestion(run, user(), asks=asks) if request.approve_plan else None
    return await follow_run(run, access, as_json=options["as_json"], question=question)


async def follow_run(
    run: RunHandle, access: Access, *, as_json: bool = False, question: PlanQuestion | None = None
) -> Report:
    """Follows a run to its end and returns its outcome; Ctrl-C leaves the run going.

    With a `question` a person is asked about plans that wait for approval.
    """
    web = web_address(run.client, run.id)
    try:
        async with open_screen(console(stderr=as_json), _HINT) as screen:

            async def look(status: Status | None) -> None:
                if question is not None and question.waits(status):
                    with screen.cleared():
                        await question.ask()

            outcome = await follow(run, screen, await access.store_or_none(), web, look)
    except PlanLeft as left:
        return left.report
    except asyncio.CancelledError:
        print_err(f"the run continues: {hint('follow', run.id)}")
        raise
    if question is not None:
        question.clean_up()
    report = answer_report(run.id, outcome, web)
    if outcome.error and outcome.error.type == ErrorKind.UNKNOWN_TEAM:
        return replace(report, error="\n".join([report.error, *_explained(access, outcome.error.message)]))
    return report


async def _stored(access: Access, files: list[DataFile]) -> Attachment:
    """Stores files and returns the attachment that names them all."""
    sent: list[int] = []
    ref = await put_files(await access.store(), files, lambda _, size: sent.append(size))
    news = f", {sum(map(bool, sent)):,} of them new ({sum(sent) / 2**20:,.1f} MiB)"
    seconds = sum(file.path.stat().st_size for file in files if not file.problem) / _READ_BYTES
    wait = (
        f"; before the plan a Worker reads them, in about {seconds:.0f} s if they are new to it" if seconds > 3 else ""
    )
    print_err(f"{counted(len(sent), 'file')} as data{news}{wait}")
    return Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)


def require_likely_team(access: Access, name: object) -> None:
    """Raises CommandFailed if a team of this client has nearly that name, and none has it."""
    known = [file.parent.name for folder in access.settings.teams_folders for file in folder.glob("*/team.toml")]
    if isinstance(name, str) and name not in known and (guess := did_you_mean(name, known)):
        raise CommandFailed(BAD_INPUT, f"there is no team '{name}'{guess}: {hint('teams')} lists them")


def _explained(access: Access, message: str) -> Iterator[str]:
    """Yields a sentence if this client has the team that no Worker has."""
    for folder in access.settings.teams_folders:
        for file in folder.glob("*/team.toml"):
            if f"there is no team '{file.parent.name}'" in message:
                yield (
                    f"this client has team '{file.parent.name}' in {folder}, the Worker that prepared the run has not: "
                    "set SUPERVISOR_TEAMS_DIR where Workers run, too"
                )


async def require_workers(client: Client, otherwise: str = ", or pass --queue-anyway") -> None:
    """Raises CommandFailed if no Worker serves one of the queues that a run needs; the message says what to do."""
    latest = time.monotonic() + _LISTED_AFTER
    while (why := await _unserved(client)) is not None:
        if time.monotonic() > latest:
            raise CommandFailed(UNREACHABLE, f"{why}{otherwise}")
        await asyncio.sleep(_LISTED_AFTER / 10)


async def _unserved(client: Client) -> str | None:
    """Returns which queue has no Worker, and what to do."""
    server, key = server_address(client), "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
    if not await pollers(client, WORKFLOW_QUEUE, WORKFLOWS):
        return f"no worker serves queue '{WORKFLOW_QUEUE}' at {server}: start one with {worker_hint()} (it needs {key})"
    if not await pollers(client, MODEL_QUEUE, ACTIVITIES):
        none = f"no worker makes model calls (queue '{MODEL_QUEUE}' at {server})"
        return f"{none}: set {key} and start one with {worker_hint()}"
    return None


async def _taken(run: RunHandle) -> str:
    """Returns a sentence on the run that has the id, and on what to do."""
    other = await run.describe()
    if is_open(other):
        known = f"is already running (since {other.start_time:%Y-%m-%d %H:%M} UTC): follow it with"
        return f"run '{run.id}' {known} {hint('follow', run.id)}, or choose another --id"
    known = f"exists already ({state_word(other)}): read it with"
    return f"run '{run.id}' {known} {hint('result', run.id)}, or choose another --id"
