"""Following a run to its end. Whoever stops following leaves the run alone."""

import asyncio
from dataclasses import replace

from temporalio.service import RPCError

from activities.store.artifacts import ArtifactStore
from console import console_limits
from console.command_errors import UNREACHABLE, CommandFailed
from console.run.run_handle import Run
from console.run.run_outcome import Outcome, outcome
from console.view.live_screens import Screen
from console.view.run_poller import Watch

SERVER_AWAY = "the Temporal server does not answer; the run is safe and goes on when it is back"


async def follow(run: Run, screen: Screen, store: ArtifactStore | None, web: str | None = None) -> Outcome:
    """Shows the run until it ends and returns what it came to. Raises CommandFailed when there is no such run."""
    await run.require()
    watch = Watch(run, web)
    ending = asyncio.create_task(outcome(run, store))
    asked_again = False
    try:
        while True:
            await _look(watch, screen)
            if watch.ended and not asked_again and not ending.done():
                # a server may miss telling who waits: then its answer comes only after its own 20 s
                asked_again = True
                ending.cancel()
                ending = asyncio.create_task(outcome(run, store))
            await asyncio.wait({ending}, timeout=console_limits.FOLLOW_POLL.total_seconds())
            if ending.done():
                if not isinstance(ending.exception(), RPCError):
                    break
                ending = asyncio.create_task(outcome(run, store))  # the server was away: wait on
        for _ in range(console_limits.FOLLOW_LAST_LOOKS):
            if watch.picture.notice or (not await _look(watch, screen)) or watch.caught_up:
                break
        status = watch.picture.status
        return replace(ending.result(), notice=status.model_notice if status else None)
    finally:
        ending.cancel()


async def _look(watch: Watch, screen: Screen) -> bool:
    """One look; False when the server does not answer."""
    try:
        for line in await watch.look():
            screen.log(line)
    except RPCError as error:
        watch.picture.notice = SERVER_AWAY
        screen.show(watch.picture)
        if watch.picture.status is None and not watch.picture.started:
            raise CommandFailed(UNREACHABLE, f"{SERVER_AWAY} ({error.message})") from error
        return False
    screen.show(watch.picture)
    return True
