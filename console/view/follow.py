"""Following a run to its end. Ending the command leaves the run alone."""

import asyncio
from dataclasses import replace

from temporalio.service import RPCError

from activities.store.artifacts import ArtifactStore
from console import console_limits
from console.command import UNREACHABLE, CommandFailed
from console.run.run_handle import RunHandle
from console.run.run_outcome import RunOutcome, run_outcome
from console.view.live_screens import Screen
from console.view.run_poller import RunPoller

SERVER_AWAY = "the Temporal server does not answer; the run is safe and goes on when it is back"


async def follow(run: RunHandle, screen: Screen, store: ArtifactStore | None, web: str | None = None) -> RunOutcome:
    """Shows the run until it ends and returns its outcome. Raises CommandFailed if there is no such run.

    The outcome is awaited beside the polling, not derived from it: a run may end without any Worker to ask.
    """
    await run.require()
    poller = RunPoller(run, web)
    ending = asyncio.create_task(run_outcome(run, store))
    asked_again = False
    try:
        while True:
            await _poll(poller, screen)
            if poller.ended and not asked_again and not ending.done():
                # a server may fail to wake a waiting client: its answer then comes only after 20 s
                asked_again = True
                ending.cancel()
                ending = asyncio.create_task(run_outcome(run, store))
            await asyncio.wait({ending}, timeout=console_limits.FOLLOW_POLL.total_seconds())
            if ending.done():
                if not isinstance(ending.exception(), RPCError):
                    break
                ending = asyncio.create_task(run_outcome(run, store))  # the server was away: wait on
        for _ in range(console_limits.FOLLOW_LAST_LOOKS):
            if poller.picture.notice or (not await _poll(poller, screen)) or poller.caught_up:
                break
        status = poller.picture.status
        return replace(ending.result(), notice=status.model_notice if status else None)
    finally:
        ending.cancel()


async def _poll(poller: RunPoller, screen: Screen) -> bool:
    """Asks and shows once. Returns False if the server does not answer."""
    try:
        for line in await poller.poll():
            screen.log(line)
    except RPCError as error:
        poller.picture.notice = SERVER_AWAY
        screen.show(poller.picture)
        if poller.picture.status is None and not poller.picture.started:
            raise CommandFailed(UNREACHABLE, f"{SERVER_AWAY} ({error.message})") from error
        return False
    screen.show(poller.picture)
    return True
