"""The commands that move a run: start it, follow it, cancel it."""

import asyncio
from dataclasses import dataclass

from temporalio.client import WorkflowFailureError

from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from console import console_limits
from console.access import Access, web_address
from console.command_errors import DONE, FAILED
from console.commands.follow import follow
from console.run.queue_pollers import require_workers
from console.run.request_options import Asked, check_run_id
from console.run.run_handle import Run, is_open, state_word
from console.run.start_run import new_run_id, start
from console.terminal import console, say, tell, tell_json
from console.view.answer_text import print_outcome
from console.view.live_screens import open_screen

_HINT = "Ctrl-C leaves the run going"


@dataclass(frozen=True)
class How:
    """The options of `run` that are not part of the request; `run_id` None makes one of the goal."""

    run_id: str | None = None
    detach: bool = False
    as_json: bool = False
    queue_anyway: bool = False


async def run_goal(access: Access, asked: Asked, how: How) -> int:
    """Starts a run and follows it, or only prints its id."""
    run_id = check_run_id(how.run_id) if how.run_id is not None else new_run_id(asked.request.goal)
    client = await access.client()
    if not how.queue_anyway:
        await require_workers(client)
    if asked.uploads:
        await asked.store_uploads(access.store)
    run = await start(client, asked.request, run_id)
    web = web_address(client, run_id)
    if how.detach:
        if how.as_json:
            tell_json({"run_id": run_id, "web": web})
        else:
            tell(run_id)
        say(f"follow it: python starter.py follow {run_id}")
        return DONE
    say(f"run {run_id}" + (f"\n{web}" if web else ""))
    return await watch(run, access, as_json=how.as_json)


async def watch(run: Run, access: Access, *, as_json: bool = False) -> int:
    """Follows a run to its end and prints what it came to; Ctrl-C leaves it going and says so."""
    web = web_address(run.client, run.id)
    try:
        async with open_screen(console(stderr=as_json), _HINT) as screen:
            ended = await follow(run, screen, _store(access), web)
    except asyncio.CancelledError:
        say(f"the run goes on: python starter.py follow {run.id}")
        raise
    return print_outcome(console(), run.id, ended, as_json=as_json, web=web)


async def cancel(run: Run) -> int:
    """Cancels a run and waits a moment for its end."""
    before = await run.require()
    read = f"`python starter.py result {run.id}`"
    if not is_open(before):
        say(f"run '{run.id}' has ended already ({state_word(before)}): read it with {read}")
        return DONE if state_word(before) == "cancelled" else FAILED
    await run.handle.cancel()
    try:
        async with asyncio.timeout(console_limits.CANCEL_WAIT.total_seconds()):
            await run.handle.result()
    except TimeoutError:
        say(f"run '{run.id}' will be cancelled as soon as a worker takes it up")
        return DONE
    except WorkflowFailureError:
        pass
    after = state_word(await run.describe())
    say(f"run '{run.id}' is {after}; what it had found: {read}")
    return DONE if after == "cancelled" else FAILED


def _store(access: Access) -> ArtifactStore | None:
    """The store, if it can be opened: following a run needs none."""
    try:
        return access.store
    except (ArtifactUnavailable, ValueError):
        return None
