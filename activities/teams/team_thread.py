"""The thread of a team: its files are read there and its author's own tools run there, never on the Worker's loop."""

import asyncio
import contextlib
import ctypes
import inspect
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from activities.tools.tool import Tool, ToolContext, ToolMisuse, ToolOutput
from supervision import limits
from supervision.contract.request import describe_errors

log = logging.getLogger(__name__)

T = TypeVar("T")
Run = Callable[[Any, ToolContext], Awaitable[ToolOutput]]

_left_behind: list[threading.Thread] = []


class ToolBlocked(BaseException):
    """Interrupts a tool that blocks its thread; a BaseException, as tools catch Exception."""

    def __str__(self) -> str:
        return "the tool blocked its thread and was interrupted"


class TeamThread:
    """A daemon thread with an event loop of its own.

    A tool that blocks the loop blocks the tools of its team only. Once one of their calls has timed out, a loop that
    does not answer is interrupted, and `stuck` if that does not help: then the team needs a new thread.
    """

    def __init__(self, team: str) -> None:
        """RuntimeError when too many threads of this process never ended."""
        _left_behind[:] = [thread for thread in _left_behind if thread.is_alive()]
        if len(_left_behind) >= limits.STUCK_THREADS:
            raise RuntimeError(f"{len(_left_behind)} threads of tools never ended: restart this Worker")
        self.stuck = False
        self._loop = asyncio.new_event_loop()
        self._ending = self._ended = False
        self._thread = threading.Thread(target=self._serve, name=f"team-{team}", daemon=True)
        self._thread.start()

    @property
    def serves(self) -> bool:
        """True if it takes further work."""
        return not self.stuck and not self._ending

    def begin(self, work: Callable[[], T]) -> "Future[T]":
        """Calls `work` in the thread. Returns its future."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # the code of an author may raise anything; the loop must go on
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done

    def own(self, tool: Tool[Any]) -> Tool[Any]:
        """Returns the author's tool, for this thread; called there, as its schema is made of the author's code."""
        tool.schema()

        async def checked(arguments: Any, context: ToolContext) -> ToolOutput:
            try:
                parsed = tool.arguments.model_validate(arguments)
            except ValidationError as error:
                raise ToolMisuse(f"wrong arguments: {describe_errors(error).removeprefix('request: ')}") from None
            output: ToolOutput = await _called(tool.run, parsed, context)
            return output

        async def run(arguments: Any, context: ToolContext) -> ToolOutput:
            return await self._run(checked, arguments, context)

        return replace(tool, run=run, own=True, catalogue=None)  # that would run elsewhere

    def end(self) -> None:
        """Ends the thread after the work begun so far."""
        self._ending = True
        self._loop.call_soon_threadsafe(self._finish)

    def leave(self) -> None:
        """Leaves the thread behind: it hangs, so that it can only be replaced."""
        if not self.stuck:
            self.stuck = True
            self._raise_in_thread()
            _left_behind.append(self._thread)
            log.error("%s is left behind: it does not answer", self._thread.name)
            self.end()

    async def _run(self, run: Run, arguments: Any, context: ToolContext) -> ToolOutput:
        if self.stuck:
            raise RuntimeError(f"{self._thread.name} hangs, the next call gets a new one")
        running = asyncio.run_coroutine_threadsafe(_caught(run, arguments, context), self._loop)
        try:
            outcome = await asyncio.wrap_future(running)
        except asyncio.CancelledError:  # timed out, or stopped
            if not self.stuck:
                self._look(self._interrupt)
            raise
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _look(self, if_silent: Callable[[], None]) -> None:
        """Calls `if_silent` unless the thread's loop answers soon."""
        answered = threading.Event()
        self._loop.call_soon_threadsafe(answered.set)
        patience = limits.TEAM_THREAD_PATIENCE.total_seconds()
        asyncio.get_running_loop().call_later(patience, lambda: None if answered.is_set() else if_silent())

    def _interrupt(self) -> None:
        if self.stuck or self._thread.ident is None:
            return
        frame = sys._current_frames().get(self._thread.ident)
        log.error("a tool blocks %s:\n%s", self._thread.name, "".join(traceback.format_stack(frame, limit=8)))
        self._raise_in_thread()
        self._look(self.leave)

    def _raise_in_thread(self) -> None:
        """Ends Python code that runs on."""
        _interrupt_thread(self._thread)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._ended:
            try:
                self._loop.run_forever()
            except BaseException:  # a task of an author's own that ends with SystemExit
                log.warning("a task of %s failed", self._thread.name, exc_info=True)
        self._loop.close()

    def _finish(self) -> None:
        self._ended = True
        self._loop.stop()


async def _called(function: Callable[..., Any], arguments: Any, context: ToolContext) -> Any:
    """Returns the output of an author's function; a plain one gets a thread, so that it holds up no other call."""
    if inspect.iscoroutinefunction(function):
        return await function(arguments, context)
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    thread = threading.Thread(
        target=_call_in_thread, args=(asyncio.get_running_loop(), done, function, arguments, context), daemon=True
    )
    thread.start()
    try:
        output = await done
    except asyncio.CancelledError:  # timed out, or stopped: Python code that runs on is ended
        _interrupt_thread(thread)
        raise
    if isinstance(output, BaseException):
        raise output
    return await output if inspect.isawaitable(output) else output


def _call_in_thread(
    loop: asyncio.AbstractEventLoop,
    done: "asyncio.Future[Any]",
    function: Callable[..., Any],
    arguments: Any,
    context: ToolContext,
) -> None:
    output: Any
    try:
        output = function(arguments, context)
    except BaseException as error:  # an author's code may raise anything
        output = error
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(output))


def _interrupt_thread(thread: threading.Thread) -> None:
    """Raises ToolBlocked in the thread; native code that does not return stays."""
    if thread.is_alive():
        ident = ctypes.c_ulong(thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(ToolBlocked))


async def _caught(run: Run, arguments: Any, context: ToolContext) -> ToolOutput | BaseException:
    """Returns what the tool gives or raises: asyncio would end the thread with a SystemExit."""
    try:
        return await run(arguments, context)
    except BaseException as error:
        return error
