"""The commands `rerun` and `fork`: a run once more, on new data or with one change."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from temporal_supervisor.console.base.command import BAD_INPUT, FAILED, Access, CommandFailed, hint
from temporal_supervisor.console.base.terminal import Report, console, print_err
from temporal_supervisor.console.commands.run_commands import start_and_report, with_files
from temporal_supervisor.console.run.again_requests import (
    once_more,
    with_model,
    with_plan,
    with_subtask_description,
)
from temporal_supervisor.console.run.command_line import AsJson, RunId
from temporal_supervisor.console.run.described_files import (
    check_description,
    check_readable,
    with_description,
)
from temporal_supervisor.console.run.edited_plan import edit_plan
from temporal_supervisor.console.run.request_options import (
    check_run_id,
    data_files,
    parsed_plan,
    read_text_file,
)
from temporal_supervisor.console.run.required_workers import require_workers
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.starting import new_run_id
from temporal_supervisor.supervision.base.store_keys import encode
from temporal_supervisor.supervision.contract.request import RunRequest

_OWN_ID = "the new run's id, else one is made of the goal"
_ANYWAY = "start even if no worker is there yet"
_FAILED = "do again what failed, nothing else"
OwnId = Annotated[str | None, typer.Option("--id", help=_OWN_ID)]
Detach = Annotated[bool, typer.Option("--detach", help="print the run's id and return at once")]
Anyway = Annotated[bool, typer.Option("--queue-anyway", help=_ANYWAY)]
Unasked = Annotated[bool, typer.Option("--yes", help="begin without showing what is done again")]


async def rerun(
    run: RunId,
    access: Access,
    failed: Annotated[bool, typer.Option("--failed", help=_FAILED)] = False,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="a folder or file in place of the run's own; may be repeated"),
    ] = None,
    describe: Annotated[
        Path | None,
        typer.Option(help="how the tables of these data are read: a data.toml by any name"),
    ] = None,
    data_from_others: Annotated[
        bool,
        typer.Option(
            "--data-from-others",
            help="others wrote these data: what obeys them asks a person first",
        ),
    ] = False,
    yes: Unasked = False,
    own_id: OwnId = None,
    detach: Detach = False,
    as_json: AsJson = False,
    queue_anyway: Anyway = False,
) -> Report:
    """Carry out the plan of a run once more, and pay only for what is no longer the same."""
    if failed and data:
        words = "--failed and --data exclude each other: new data change what did not fail"
        raise CommandFailed(BAD_INPUT, words)
    files = with_description(data_files(data or []), describe)
    await check_description(files)
    await check_readable(files)
    wanted = await once_more(run, await access.store(), failed=failed)
    if files:
        wanted = await with_files(access, wanted, files, trusted=not data_from_others)
    how = _How(own_id, yes=yes, detach=detach, as_json=as_json, anyway=queue_anyway)
    return await _start(access, wanted, how)


async def fork(
    run: RunId,
    access: Access,
    edit: Annotated[bool, typer.Option("--edit", help="change the plan in your editor")] = False,
    plan: Annotated[
        Path | None,
        typer.Option(help="a JSON file with the changed plan, as of `plan --json`"),
    ] = None,
    change: Annotated[
        tuple[str, str],
        typer.Option(metavar="SUBTASK TEXT", help="another description of this subtask"),
    ] = ("", ""),
    role: Annotated[str | None, typer.Option(help="the role that gets another model")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="the model of that role; repeat it for fallbacks"),
    ] = None,
    yes: Unasked = False,
    own_id: OwnId = None,
    detach: Detach = False,
    as_json: AsJson = False,
    queue_anyway: Anyway = False,
) -> Report:
    """Change a run in one place, and do again only what rests on the change."""
    subtask_id, description = change
    if not (edit or plan or subtask_id or role):
        ways = '--edit, --plan FILE, --change t3 "..." or --role NAME --model NAME'
        raise CommandFailed(BAD_INPUT, f"say what changes: {ways}")
    if bool(role) != bool(model):
        words = "--role and --model go together: the role that gets another model, and which"
        raise CommandFailed(BAD_INPUT, words)
    given = None if plan is None else parsed_plan(read_text_file(plan), str(plan))

    wanted = await once_more(run, await access.store())
    if given is not None:
        wanted = with_plan(wanted, given, run.id)
    if subtask_id:
        wanted = with_subtask_description(wanted, subtask_id, description)
    if role and model:
        wanted = with_model(wanted, role, model)
    if edit:
        wanted = await _with_edited_plan(wanted, run.id)

    how = _How(own_id, yes=yes, detach=detach, as_json=as_json, anyway=queue_anyway)
    report = await _start(access, wanted, how)
    if not edit:
        return report
    if report.code == FAILED:
        again = hint("fork", run.id, "--edit")
        kept = f"the plan is kept as you changed it: {again} opens it again"
        return replace(report, notes=[*report.notes, kept])
    _edited_file(run.id).unlink(missing_ok=True)
    return report


@dataclass(frozen=True)
class _How:
    """The way to start a run, from the command's options."""

    own_id: str | None
    yes: bool
    detach: bool
    as_json: bool
    anyway: bool


async def _start(access: Access, wanted: RunRequest, how: _How) -> Report:
    """Starts a run.

    On a terminal it first shows which findings are taken, which are done again, and the likely
    cost.
    """
    client = await access.client()
    if not how.anyway:
        await require_workers(client)
    can_ask = console().is_terminal and sys.stdin.isatty()
    is_unasked = how.yes or how.detach or how.as_json
    if can_ask and not is_unasked and wanted.plan is not None:
        wanted = wanted.model_copy(update={"approve_plan": True})

    run_id = new_run_id(client, wanted.goal) if how.own_id is None else check_run_id(how.own_id)
    return await start_and_report(access, wanted, run_id, detach=how.detach, as_json=how.as_json)


async def _with_edited_plan(wanted: RunRequest, run_id: str) -> RunRequest:
    """Returns the request with its plan as edited by the person.

    Raises CommandFailed if the plan can't run.
    """
    if wanted.plan is None:
        raise CommandFailed(BAD_INPUT, f"run '{run_id}' had no plan that could be changed")
    plan = await edit_plan(wanted.plan, _edited_file(run_id))
    if plan == wanted.plan:
        print_err("the plan was not changed: what is the same is taken")
    return wanted.model_copy(update={"plan": plan})


def _edited_file(run_id: str) -> Path:
    """Returns the path of the fork's plan while a person edits it."""
    return cache_dir() / f"fork-of-{encode(run_id)}.json"
