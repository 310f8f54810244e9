"""The commands `run` and `follow`: starting a run, asking about its plan, following it to its answer."""

import asyncio
import contextlib
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from temporalio.client import Client
from temporalio.exceptions import WorkflowAlreadyStartedError

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from console.base.command import (
    BAD_INPUT,
    FAILED,
    UNREACHABLE,
    WAITS,
    Access,
    CommandFailed,
    hint,
    server_address,
    user,
    web_address,
    worker_hint,
)
from console.base.terminal import Report, console, counted, print_err, put, safe_json
from console.commands.people_commands import applied, way_rows
from console.run.command_line import AnyRun, AsJson
from console.run.pollers import ACTIVITIES, SET_CURRENT, WORKFLOWS, builds, pollers
from console.run.request_options import check_run_id, parsed_plan, prepared_request, read_text_file
from console.run.run_handle import NoAnswer, RunHandle, is_open, state_word
from console.view.answer_text import answer_report
from console.view.follow import follow
from console.view.live_view import open_screen
from console.view.plan_view import PlanPage, plan_page
from runtime.process import cache_dir
from supervision.base.errors import ErrorKind
from supervision.base.queues import MODEL_QUEUE, WORKFLOW_QUEUE
from supervision.base.text import did_you_mean
from supervision.contract.plan import Plan
from supervision.contract.request import Attachment
from supervision.contract.status import Status, Wait
from temporal_supervisor import Item, decide, new_run_id, start

_EDITOR = "vi"
_NO_NAME = re.compile(r"[^\w.-]")
_WORDS = {"a": "approve", "r": "deny", "c": "reply", "e": "approve"}
_LOOK = timedelta(seconds=2)  # while a person thinks


class PlanLeft(Exception):
    """A plan is left waiting; `report` says how to decide later."""

    def __init__(self, report: Report) -> None:
        super().__init__("the plan waits")
        self.report = report


class PlanQuestion:
    """Asks about the plans of a run: each revision once. Without a terminal it leaves the first one waiting."""

    def __init__(self, run: RunHandle, by: str, *, asks: bool) -> None:
        self._run = run
        self._by = by
        self._asks = asks
        self._asked: set[str] = set()
        self._file = Path()
        self._edited = False

    def waits(self, status: Status | None) -> bool:
        """True if a plan waits that was not asked about."""
        waiting = status.waiting if status else []
        return any(wait.kind == "plan" and wait.id not in self._asked for wait in waiting)

    async def ask(self) -> None:
        """Shows the plan and returns when it is decided about. Raises PlanLeft if it is left waiting."""
        page = await plan_page(self._run)
        if page is None or page.asked is None:
            return
        wait, screen = page.asked.wait, console()
        if not self._asks:
            raise PlanLeft(_left(page, wait, shown=False))
        self._asked.add(wait.id)
        own, self._file = self._file, cache_dir() / "plans" / f"{_NO_NAME.sub('_', self._run.id)[-80:]}.{wait.id}.json"
        if self._edited:  # it came back
            own.rename(self._file)
            self._say(wait.prompt_preview, kept=True)
        else:
            put(screen, page.rows())
        while not await self._decided(page, wait):
            pass

    async def _still(self, wait: Wait) -> bool:
        """True if a plan waits, as far as is known."""
        try:
            return any(other.id == wait.id for other in (await self._run.status()).waiting)
        except NoAnswer:
            return True

    def clean_up(self) -> None:
        """Removes the text of an edited plan that was taken."""
        if self._edited:
            self._file.unlink(missing_ok=True)

    async def _decided(self, page: PlanPage, wait: Wait) -> bool:
        """Asks once. Returns True if the plan no longer waits."""
        keys = {"approve": "approve a", "edit": "edit e", "change": 'change c "what to change"', "reject": "reject r"}
        named = [words for choice, words in keys.items() if choice in wait.choices]
        if (line := await self._line(" · ".join([*named, "leave it q: "]), wait)) is None:
            return True
        key, _, rest = line.strip().partition(" ")
        text, plan = rest.strip().strip('"') or None, None
        if key == "q" or not line:
            raise PlanLeft(_left(page, wait, shown=True))
        if key == "c" and text is None:
            text = (await self._line("what to change: ", wait) or "").strip() or None
        if key == "e":
            text, plan = None, await self._edit(page.plan)
        word = _WORDS.get(key)
        if word is None or (key == "c" and text is None) or (key == "e" and plan is None):
            return False
        item = Item(self._run.id, page.plan.goal, wait)
        try:
            await applied(self._run, partial(decide, self._run.client, item, word, text, plan=plan, by=self._by))
        except (CommandFailed, NoAnswer, ValueError) as error:
            self._say(f"{error}", kept=key == "e")
            return not await self._still(wait)
        self._edited = key == "e"
        return True

    async def _line(self, prompt: str, wait: Wait) -> str | None:
        """Returns what a person types, empty at the end of the input; None once the plan no longer waits."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), typed.set)  # a thread that reads would outlive Ctrl-C
        try:
            while not typed.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(typed.wait(), _LOOK.total_seconds())
                if not typed.is_set() and not await self._still(wait):
                    print_err("\nthe plan no longer waits: it was decided about elsewhere, or its time is over")
                    return None
        finally:
            loop.remove_reader(sys.stdin.fileno())
        return os.read(sys.stdin.fileno(), 1 << 16).decode("utf-8", "replace")

    def _say(self, problem: str, *, kept: bool) -> None:
        print_err(problem + (f"\nyour text is kept in {self._file}: e opens it again" if kept else ""))

    async def _edit(self, plan: Plan) -> Plan | None:
        """Returns the plan as the person's editor leaves it; None with the reason on the screen if it can't run."""
        whole = f"{safe_json(plan.model_dump(mode='json'))}\n"
        if not self._file.exists():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(whole, encoding="utf-8")
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(self._file))
            await process.wait()
        except (OSError, ValueError) as error:
            print_err(
                f"the editor '{editor}' can't be started ({error}): set EDITOR, or change {self._file} and press e"
            )
            return None
        try:
            edited = parsed_plan(read_text_file(self._file), str(self._file))
        except CommandFailed as failed:
            self._say(failed.message, kept=True)
            return None
        if edited == plan:
            print_err("nothing was changed")
            self._file.unlink(missing_ok=True)
            return None
        return edited


def _left(page: PlanPage, wait: Wait, *, shown: bool) -> Report:
    """Returns what to say about a plan that is left waiting."""
    rows = [*([] if shown else page.rows()), "the plan waits for approval", *way_rows(page.run_id, wait)]
    note = f"follow it: {hint('follow', page.run_id)}"
    return Report({"run_id": page.run_id, "state": "running", "waiting": [wait]}, lambda _: rows, [note], code=WAITS)


_HINT = "Ctrl-C leaves the run going"
_READ_BYTES = 4 << 20  # of CSV that are made a table in a second
_LISTED_AFTER = 2.0  # seconds after which the server lists a Worker that has just said that it is ready


async def run_goal(
    access: Access,
    goal: Annotated[str | None, typer.Argument(help="the question or task; - reads standard input")] = None,
    goal_file: Annotated[Path | None, typer.Option(help="read the goal from a file")] = None,
    request: Annotated[Path | None, typer.Option(help="a JSON file with a whole request; options override it")] = None,
    team: Annotated[str | None, typer.Option(help="see `teams`")] = None,
    strategy: Annotated[str | None, typer.Option(help="auto, plan, route or step")] = None,
    success: Annotated[str | None, typer.Option(help="any, all or a fraction such as 2/3; default any")] = None,
    max_subtasks: Annotated[int | None, typer.Option(help="default 12")] = None,
    max_parallel: Annotated[int | None, typer.Option(help="subtasks at a time, default 8")] = None,
    max_turns: Annotated[int | None, typer.Option(help="model calls per subtask, default 10")] = None,
    max_reviews: Annotated[int | None, typer.Option(help="rounds of review, default 3, 0 for none")] = None,
    max_replans: Annotated[int | None, typer.Option(help="new revisions of the plan, default 2, 0 for none")] = None,
    max_depth: Annotated[int | None, typer.Option(help="levels of teams within teams, default 2")] = None,
    incremental_synthesis: Annotated[int | None, typer.Option(help="drafts from so many findings on, 0 never")] = None,
    effort: Annotated[str | None, typer.Option(help="low, medium or high; else the model's own")] = None,
    subtask_timeout: Annotated[str | None, typer.Option(help="work of one attempt of a subtask, such as 5m")] = None,
    deadline: Annotated[str | None, typer.Option(help="such as 30m or PT30M, default 30m")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="default 1,000,000")] = None,
    budget_usd: Annotated[float | None, typer.Option(help="default 5")] = None,
    answer_schema: Annotated[Path | None, typer.Option(help="a JSON schema: the answer comes as JSON, too")] = None,
    plan: Annotated[Path | None, typer.Option(help="a JSON file with your own plan, as of `plan --json`")] = None,
    approve_plan: Annotated[
        bool | None, typer.Option("--approve-plan", help="show the plan and ask before anything of it begins")
    ] = None,
    approval_timeout: Annotated[str | None, typer.Option(help="such as 2d, default 7d")] = None,
    on_approval_timeout: Annotated[str | None, typer.Option(help="reject or approve; default reject")] = None,
    supervisor_model: Annotated[
        list[str] | None, typer.Option(help="plans and writes the answer; repeated: one stands in for another")
    ] = None,
    worker_model: Annotated[list[str] | None, typer.Option(help="works on subtasks; may be repeated, too")] = None,
    data: Annotated[list[Path] | None, typer.Option(help="a folder or file to answer from; may be repeated")] = None,
    attach: Annotated[list[Path] | None, typer.Option(help="a text or table to read; may be repeated")] = None,
    run_id: Annotated[str | None, typer.Option("--id", help="the run's id, else one is made of the goal")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="print the run's id and return at once")] = False,
    as_json: AsJson = False,
    queue_anyway: Annotated[bool, typer.Option("--queue-anyway", help="start even if no worker is there yet")] = False,
) -> Report:
    """Start a run and follow it to its answer. Ctrl-C stops following, never the run."""
    wanted, uploads, files = prepared_request(locals())
    require_likely_team(access, wanted.team)
    given = check_run_id(run_id) if run_id is not None else None
    client = await access.client()
    run_id = given or new_run_id(client, wanted.goal)
    if not queue_anyway:
        await require_workers(client)
    for content in uploads:
        await (await access.store()).put_upload(content)
    if files:
        attachment = await _stored(access, files)
        wanted = wanted.model_copy(update={"attachments": [*wanted.attachments, attachment]})
    run = RunHandle(client, run_id)
    try:
        await start(client, wanted, run_id)
    except WorkflowAlreadyStartedError as error:
        raise CommandFailed(FAILED, await _taken(run)) from error
    web = web_address(client, run_id)
    if detach:
        print_err(f"follow it: {hint('follow', run_id)}")
        return Report({"run_id": run_id, "web": web}, lambda _: [run_id])
    print_err(f"run {run_id}" + (f"\n{web}" if web else ""))
    asks = console().is_terminal and sys.stdin.isatty() and not as_json
    question = PlanQuestion(run, user(), asks=asks) if wanted.approve_plan else None
    return await _followed(run, access, as_json, question)


async def follow_run(run: AnyRun, access: Access, as_json: AsJson = False) -> Report:
    """Follow a run to its end and print its answer."""
    return await _followed(run, access, as_json)


async def _followed(run: RunHandle, access: Access, as_json: bool, question: PlanQuestion | None = None) -> Report:
    """Returns the outcome of a run; with a `question` a person is asked about plans that wait for approval."""
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
    if not (seen := await pollers(client, WORKFLOW_QUEUE, WORKFLOWS)):
        return f"no worker serves queue '{WORKFLOW_QUEUE}' at {server}: start one with {worker_hint()} (it needs {key})"
    if why := (await builds(client, seen))[1]:
        return f"no run begins at {server}, of the builds of its Workers {why}: {SET_CURRENT}"
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
