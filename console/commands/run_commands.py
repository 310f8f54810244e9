"""The commands `run` and `follow`: starting a run, asking about its plan, following it to its answer."""

import asyncio
import contextlib
import os
import shlex
import sys
import tempfile
import time
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
)
from console.base.terminal import Report, console, counted, print_err, put, safe_json
from console.commands.people_commands import way_rows
from console.run.command_line import AnyRun, AsJson
from console.run.pollers import ACTIVITIES, SET_CURRENT, WORKFLOWS, builds, pollers
from console.run.request_options import check_run_id, parsed_plan, prepared_request, read_text_file
from console.run.run_handle import NoAnswer, RunHandle, is_open, state_word
from console.view.answer_text import answer_report
from console.view.follow import follow
from console.view.live_view import Screen
from console.view.plan_view import PlanPage, plan_page
from supervision.base.queues import MODEL_QUEUE, WORKFLOW_QUEUE
from supervision.base.text import did_you_mean, quoted
from supervision.contract.plan import Plan
from supervision.contract.request import Attachment
from supervision.contract.status import Status, Wait
from temporal_supervisor import Item, UpdateRefused, decide, new_run_id, start

_WORDS = {"a": "approve", "r": "deny", "c": "reply", "e": "approve"}


class PlanLeft(Exception):
    """A plan is left waiting; `report` says how to decide later."""

    def __init__(self, report: Report) -> None:
        super().__init__("the plan waits")
        self.report = report


class PlanQuestion:
    """Asks about the plans of a run. Where it can't it leaves the first one waiting."""

    def __init__(self, run: RunHandle, *, can_ask: bool) -> None:
        self._run = run
        self._can_ask = can_ask
        self._shown = ""
        self._decided = set[str]()
        self._file: Path | None = None  # the plan as the person has edited it

    async def ask(self, status: Status | None, screen: Screen) -> None:
        """Asks once if a plan waits. Raises PlanLeft if it is left waiting."""
        waiting = status.waiting if status else []
        if not any(wait.kind == "plan" and wait.id not in self._decided for wait in waiting):
            return
        with screen.cleared():
            page = await plan_page(self._run)
            if page is None or page.asked is None:
                return
            wait = page.asked.wait
            if not self._can_ask:
                raise PlanLeft(_left(page, wait, shown=False))
            if wait.id != self._shown and self._file:  # an edited plan came back
                self._say(wait.prompt_preview)
            elif wait.id != self._shown:
                put(console(), page.rows())
            self._shown = wait.id
            try:
                await self._decide(page, wait)
            except (CommandFailed, UpdateRefused, NoAnswer, ValueError, OSError) as error:
                self._say(str(error))

    async def _decide(self, page: PlanPage, wait: Wait) -> None:
        keys = {"approve": "approve a", "edit": "edit e", "change": 'change c "what to change"', "reject": "reject r"}
        named = [words for choice, words in keys.items() if choice in wait.choices]
        line = await self._typed(" · ".join([*named, "leave it q: "]), wait)
        key, _, rest = line.strip().partition(" ")
        if key == "q" or not line:
            raise PlanLeft(_left(page, wait, shown=True))
        if key not in _WORDS:
            return
        plan = await self._edited(page.plan) if key == "e" else None
        item, text = Item(self._run.id, page.plan.goal, wait), rest.strip().strip('"') or None
        await decide(self._run.client, item, _WORDS[key], text, plan=plan, by=user())
        self._decided.add(wait.id)
        if key != "e":
            self.clean_up()

    async def _typed(self, prompt: str, wait: Wait) -> str:
        """Returns the line that a person types, empty at the end of the input. Raises CommandFailed without a wait."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), typed.set)  # a thread that reads would outlive Ctrl-C
        try:
            while not typed.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(typed.wait(), _LOOK.total_seconds())
                if not typed.is_set() and not await self._still(wait):
                    raise CommandFailed(FAILED, "\nthe plan no longer waits: it was decided about elsewhere")
        finally:
            loop.remove_reader(sys.stdin.fileno())
        return os.read(sys.stdin.fileno(), 1 << 16).decode("utf-8", "replace")

    async def _still(self, wait: Wait) -> bool:
        """True if a plan waits, as far as is known."""
        try:
            return any(other.id == wait.id for other in (await self._run.status()).waiting)
        except NoAnswer:
            return True

    async def _edited(self, plan: Plan) -> Plan:
        """Returns the plan as the person's editor leaves it. Raises CommandFailed if it can't run, or is the same."""
        if self._file is None:
            with tempfile.NamedTemporaryFile("wb", prefix="plan-", suffix=".json", delete=False) as file:
                file.write(safe_json(plan.model_dump(mode="json")).encode())
            self._file = Path(file.name)
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        await (await asyncio.create_subprocess_exec(*editor, str(self._file))).wait()
        edited = parsed_plan(read_text_file(self._file), str(self._file))
        if edited == plan:
            raise CommandFailed(BAD_INPUT, "nothing was changed")
        return edited

    def _say(self, problem: str) -> None:
        print_err(problem + (f"\nyour text is kept in {self._file}: e opens it again" if self._file else ""))

    def clean_up(self) -> None:
        """Removes the file of an edited plan."""
        if self._file:
            self._file.unlink(missing_ok=True)
        self._file = None


def _left(page: PlanPage, wait: Wait, *, shown: bool) -> Report:
    rows = [*([] if shown else page.rows()), "the plan waits for approval", *way_rows(page.run_id, wait)]
    note = f"follow it: {hint('follow', page.run_id)}"
    return Report({"run_id": page.run_id, "state": "running", "waiting": [wait]}, lambda _: rows, [note], code=WAITS)


_HINT = "Ctrl-C leaves the run going"
_LOOK = timedelta(seconds=2)  # between two looks at whether a plan that is asked about still waits
_LISTED_AFTER = 2.0  # seconds after which the server lists a Worker that has just said that it is ready


async def run_goal(
    access: Access,
    goal: Annotated[str | None, typer.Argument(help="the question or task; - reads standard input")] = None,
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
    known = [file.parent.name for folder in access.settings.teams_folders for file in folder.glob("*/team.toml")]
    if team and team not in known and access.settings.teams_dir:  # without one the Workers may know other teams
        close = did_you_mean(team, known)
        raise CommandFailed(BAD_INPUT, f"there is no team {quoted(team)}{close}; {hint('teams')} lists them")
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
    can_ask = console().is_terminal and sys.stdin.isatty() and not as_json
    question = PlanQuestion(run, can_ask=can_ask) if wanted.approve_plan else None
    return await _followed(run, access, as_json, question)


async def follow_run(run: AnyRun, access: Access, as_json: AsJson = False) -> Report:
    """Follow a run to its end and print its answer."""
    return await _followed(run, access, as_json)


async def _followed(run: RunHandle, access: Access, as_json: bool, question: PlanQuestion | None = None) -> Report:
    """Returns the outcome of a run; with a `question` a person is asked about plans that wait for approval."""
    web = web_address(run.client, run.id)
    try:
        with Screen(console(stderr=as_json), _HINT) as screen:
            look = partial(question.ask, screen=screen) if question else None
            outcome = await follow(run, screen, await access.store_or_none(), web, look)
    except PlanLeft as left:
        return left.report
    except asyncio.CancelledError:
        print_err(f"the run continues: {hint('follow', run.id)}")
        raise
    if question is not None:
        question.clean_up()
    return answer_report(run.id, outcome, web)


async def _stored(access: Access, files: list[DataFile]) -> Attachment:
    sent: list[int] = []
    ref = await put_files(await access.store(), files, lambda _, size: sent.append(size))
    news = f", {sum(map(bool, sent)):,} of them new ({sum(sent) / 2**20:,.1f} MiB)"
    print_err(f"{counted(len(sent), 'file')} as data{news}")
    return Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)


async def require_workers(client: Client, otherwise: str = ", or pass --queue-anyway") -> None:
    """Raises CommandFailed if no Worker serves one of the queues that a run needs; the message says what to do."""
    latest = time.monotonic() + _LISTED_AFTER
    while (why := await _unserved(client)) is not None:
        if time.monotonic() > latest:
            raise CommandFailed(UNREACHABLE, f"{why}{otherwise}")
        await asyncio.sleep(_LISTED_AFTER / 10)


async def _unserved(client: Client) -> str | None:
    server, key = server_address(client), "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
    if not (seen := await pollers(client, WORKFLOW_QUEUE, WORKFLOWS)):
        return (
            f"no worker serves queue '{WORKFLOW_QUEUE}' at {server}: start one with {hint('worker')} (it needs {key})"
        )
    if why := (await builds(client, seen))[1]:
        return f"no run begins at {server}, of the builds of its Workers {why}: {SET_CURRENT}"
    if not await pollers(client, MODEL_QUEUE, ACTIVITIES):
        none = f"no worker makes model calls (queue '{MODEL_QUEUE}' at {server})"
        return f"{none}: set {key} and start one with {hint('worker')}"
    return None


async def _taken(run: RunHandle) -> str:
    other = await run.describe()
    known = "is already running" if is_open(other) else f"exists already ({state_word(other)})"
    helps = hint("follow" if is_open(other) else "result", run.id)
    return f"run '{run.id}' {known}: {helps} shows it, or choose another --id"
