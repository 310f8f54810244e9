"""The commands `run` and `follow`: starting a run, and following it to its answer."""

import asyncio

from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from console.access import Access, web_address
from console.command import DONE
from console.hints import hint
from console.run.request_options import RunOptions, check_run_id
from console.run.run_handle import RunHandle
from console.run.start_run import new_run_id, require_workers, start
from console.terminal import console, print_err, print_json, print_out
from console.view.answer_text import print_outcome
from console.view.follow import follow
from console.view.live_screens import open_screen
from supervision.errors import ErrorKind

_HINT = "Ctrl-C leaves the run going"


async def run_goal(access: Access, options: RunOptions) -> int:
    """Starts a run and follows it, or only prints its id. Returns the exit code.

    The request is checked before the server is asked. Attached files are stored before the run is started, because
    it names them by reference.
    """
    prepared = options.as_request()
    run_id = check_run_id(options.run_id) if options.run_id is not None else new_run_id(prepared.request.goal)
    client = await access.client()
    if not options.queue_anyway:
        await require_workers(client)
    if prepared.uploads:
        await prepared.store_uploads(access.store)
    run = await start(client, prepared.request, run_id)
    web = web_address(client, run_id)
    if options.detach:
        if options.as_json:
            print_json({"run_id": run_id, "web": web})
        else:
            print_out(run_id)
        print_err(f"follow it: {hint('follow', run_id)}")
        return DONE
    print_err(f"run {run_id}" + (f"\n{web}" if web else ""))
    return await follow_run(run, access, as_json=options.as_json)


async def follow_run(run: RunHandle, access: Access, *, as_json: bool = False) -> int:
    """Follows a run to its end and prints its outcome. Returns the exit code; Ctrl-C leaves the run going."""
    web = web_address(run.client, run.id)
    try:
        async with open_screen(console(stderr=as_json), _HINT) as screen:
            outcome = await follow(run, screen, opened(access), web)
    except asyncio.CancelledError:
        print_err(f"the run goes on: {hint('follow', run.id)}")
        raise
    code = print_outcome(console(), run.id, outcome, as_json=as_json, web=web)
    if outcome.error and outcome.error.type == ErrorKind.UNKNOWN_TEAM:
        _explain_team(access, outcome.error.message)
    return code


def _explain_team(access: Access, message: str) -> None:
    """Says it if this client has the team that no Worker has."""
    for folder in access.settings.teams_folders:
        for file in folder.glob("*/team.toml"):
            if f"there is no team '{file.parent.name}'" in message:
                print_err(
                    f"this client has team '{file.parent.name}' in {folder}, the Worker that prepared the run has not: "
                    "set SUPERVISOR_TEAMS_DIR where Workers run, too"
                )


def opened(access: Access) -> ArtifactStore | None:
    """Returns the store if it can be opened: following a run needs none."""
    try:
        return access.store
    except (ArtifactUnavailable, ValueError):
        return None
