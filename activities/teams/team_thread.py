"""The thread of a team: its files are read there and its author's own tools run there, never on the Worker's loop."""

import asyncio
import inspect
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from activities.tools.tool import Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.contract.request import describe_errors

log = logging.getLogger(__name__)

T = TypeVar("T")


class TeamThread:
    """A daemon thread with an event loop of its own.

    A tool that blocks the loop blocks the tools of its team only: they time out, and the team gets another thread.
    """

    def __init__(self, team: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._ending = False
        self._asked: float | None = None
        self._thread = threading.Thread(target=self._serve, name=f"team-{team}", daemon=True)
        self._thread.start()

    @property
    def serves(self) -> bool:
        """True if it takes further work."""
        return not self.stuck and not self._ending

    @property
    def stuck(self) -> bool:
        """True if a call was stopped and the loop has not answered for a while since then."""
        patience = limits.TEAM_THREAD_PATIENCE.total_seconds()
        return self._asked is not None and time.monotonic() - self._asked > patience

    def begin(self, work: Callable[[], T]) -> "Future[T]":
        """Calls `work` in the thread. Returns its future."""
        done: Future[T] = Future()
        self._loop.call_soon_threadsafe(_settle, done, work)
        return done

    def own(self, tool: Tool[Any]) -> Tool[Any]:
        """Returns the author's tool, for this thread; called there, as its schema is made of the author's code."""
        tool.schema()

        async def run(arguments: Any, context: ToolContext) -> ToolOutput:
            running = asyncio.run_coroutine_threadsafe(_caught(tool, arguments, context), self._loop)
            try:
                outcome = await asyncio.wrap_future(running)
            except asyncio.CancelledError:  # timed out, or stopped
                self._ask()
                raise
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return replace(tool, run=run, own=True, catalogue=None)  # that would run elsewhere

    def end(self) -> None:
        """Ends the thread after the work begun so far; one that hangs stays until the process ends."""
        if self.stuck:
            frame = sys._current_frames().get(self._thread.ident or 0)
            stack = "".join(traceback.format_stack(frame, limit=8))
            log.error("%s hangs: it is replaced, and gone when this Worker is restarted\n%s", self._thread.name, stack)
        if not self._ending:
            self._ending = True
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _ask(self) -> None:
        if self._asked is None:
            self._asked = time.monotonic()
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._asked = None

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
            except BaseException:  # a task of an author's own that ends with SystemExit
                log.warning("a task of %s failed", self._thread.name, exc_info=True)
            else:
                break
        waiting = asyncio.all_tasks(self._loop)
        for task in waiting:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
        self._loop.close()


async def _caught(tool: Tool[Any], arguments: Any, context: ToolContext) -> ToolOutput | BaseException:
    """Returns what the tool gives or raises: asyncio would end the thread with a SystemExit."""
    try:
        return await _checked(tool, arguments, context)
    except BaseException as error:
        return error


async def _checked(tool: Tool[Any], arguments: Any, context: ToolContext) -> ToolOutput:
    try:
        parsed = tool.arguments.model_validate(arguments)
    except ValidationError as error:
        raise ToolMisuse(f"wrong arguments: {describe_errors(error).removeprefix('request: ')}") from None
    output: ToolOutput = await _called(tool.run, parsed, context)
    return output


async def _called(function: Callable[..., Any], arguments: Any, context: ToolContext) -> Any:
    """Returns the output of an author's function; a plain one gets a thread, so that it holds up no other call."""
    if inspect.iscoroutinefunction(function):
        return await function(arguments, context)
    done: Future[Any] = Future()
    work = partial(function, arguments, context)
    threading.Thread(target=_settle, args=(done, work), daemon=True).start()
    output = await asyncio.wrap_future(done)
    return await output if inspect.isawaitable(output) else output


def _settle(done: "Future[T]", work: Callable[[], T]) -> None:
    """Does the work for a future; the code of an author may raise anything."""
    if done.set_running_or_notify_cancel():
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)
