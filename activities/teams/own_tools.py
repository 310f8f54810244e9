"""The tools in a team's `tools.py`, which is imported and run in a thread of its own."""

import asyncio
import contextlib
import hashlib
import inspect
import logging
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import ValidationError

from activities.teams.toolbox import complaints
from activities.tools.files import open_to_others
from activities.tools.tool import Tool, ToolContext, ToolMisuse, ToolSource
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import NAME_SHOWN_BYTES, one_line
from temporal_supervisor.supervision.contract.team import ToolRights

# A thread that does not answer for so long after a call's timeout is blocked.
_PATIENCE = timedelta(seconds=1)

log = logging.getLogger(__name__)

T = TypeVar("T")


class OwnTools(ToolSource):
    """The source of an author's tools, which run in one thread per team.

    A call that blocks the thread delays the team's other calls, not the Worker. The thread is a
    daemon with an event loop, and lives while a call may still come. If a call is still blocking it
    after its timeout, the file is imported again in another thread.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._loop: asyncio.AbstractEventLoop
        self._tools: dict[str, Tool[Any]] = {}
        self._version = ""
        self._may_block = False  # a call did not end by itself

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools, as calls into the thread.

        Raises ValueError with all problems of the file.
        """
        read: Future[list[Tool[Any]]] = Future()
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = runner.get_loop()
        self._may_block = False
        threading.Thread(
            target=_serve,
            args=[runner, read, self._file],
            name=f"team-{self._file.parent.name}",
            daemon=True,
        ).start()
        # The thread has no reference to this object, but calls in flight have.
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop).atexit = False
        self._tools = {tool.name: tool for tool in await asyncio.wrap_future(read)}
        content = await asyncio.to_thread(self._file.read_bytes)
        self._version = hashlib.sha256(content).hexdigest()
        return [
            replace(
                tool,
                run=partial(self._run_in_thread, tool.name),
                own=True,
                catalogue=None,  # the author's would run on the Worker's loop
                version=self._code,
            )
            for tool in self._tools.values()
        ]

    async def _code(self) -> str:
        """Returns the hash of the file."""
        return self._version

    async def _run_in_thread(self, name: str, arguments: Any, context: ToolContext) -> Any:
        if self._may_block and not await self._is_thread_free():
            blocked = "a call blocks the tools of %s: the file is imported again in another thread"
            log.error(blocked, self._file)
            await self.open()
        call = _outcome(self._tools[name], arguments, context)
        running = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            output, error = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            self._may_block = True
            raise
        if error is not None:
            raise error
        return output

    async def _is_thread_free(self) -> bool:
        """True if the thread responds, or another call has just replaced it."""
        loop = self._loop
        asked = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)
        await asyncio.wait([asyncio.wrap_future(asked)], timeout=_PATIENCE.total_seconds())
        self._may_block = self._may_block and not asked.done()
        return asked.done() or loop is not self._loop


async def _outcome(
    tool: Tool[Any],
    arguments: Any,
    context: ToolContext,
) -> tuple[Any, BaseException | None]:
    """Returns a tool's output and exception: a raised SystemExit would end the thread."""
    try:
        try:
            parsed = tool.arguments.model_validate(arguments)
        except ValidationError as error:
            raise ToolMisuse(f"Wrong arguments: {complaints(error)}") from None
        return await _called(tool.run, parsed, context), None
    except BaseException as error:
        return None, error


def _serve(runner: asyncio.Runner, tools: "Future[list[Tool[Any]]]", file: Path) -> None:
    asyncio.set_event_loop(runner.get_loop())
    _settle(tools, partial(own_tools, file))
    while True:
        try:
            runner.get_loop().run_forever()
        except BaseException:  # a task of an author's own that ends with SystemExit
            log.warning("a task of %s failed", threading.current_thread().name, exc_info=True)
        else:
            break
    runner.close()


async def _called(function: Callable[..., Any], arguments: Any, context: ToolContext) -> Any:
    """Returns the output of an author's function. A plain one runs in a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(arguments, context)
    done: Future[Any] = Future()
    work = partial(function, arguments, context)
    threading.Thread(target=_settle, args=(done, work), daemon=True).start()
    output = await asyncio.wrap_future(done)
    return await output if inspect.isawaitable(output) else output


def _settle(done: "Future[T]", work: Callable[[], T]) -> None:
    """Completes a future with the result or the exception of the work."""
    if done.set_running_or_notify_cancel():
        try:
            done.set_result(work())
        except BaseException as error:  # an author's code may raise anything
            done.set_exception(error)


def own_tools(file: Path) -> list[Tool[Any]]:
    """Imports the tools of a `tools.py`.

    Raises ValueError with every problem, or with the line of an exception.
    """
    why = open_to_others(file)
    if why:
        raise ValueError(f"it is code and is not run: {why}")
    try:
        tools = _import_tools(file)
    except BaseException as error:  # an author's code may raise anything
        words = one_line(str(error), limits.ERROR_BYTES)
        problem = f"line {_line_of(error, file)}: {type(error).__name__}: {words}"
        raise ValueError(problem) from error
    if not isinstance(tools, list):
        raise ValueError("it must define TOOLS as a list of Tool")
    problems: list[str] = []
    for number, tool in enumerate(tools):
        problems += _problems(number, tool)
    if problems:
        raise ValueError(one_line("; ".join(problems), limits.ERROR_BYTES))
    return tools


def _import_tools(file: Path) -> object:
    """Runs a file as a module. Returns its `TOOLS`, None without any."""
    name = f"supervisor_team_{file.parent.name.replace('-', '_')}_tools"
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # dataclasses and pydantic look their module up there
    # Not importlib's loader: its bytecode cache takes two writes within a second for one.
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return getattr(module, "TOOLS", None)


def _line_of(error: BaseException, file: Path) -> int | None:
    """Returns the last line of a file that an exception passed, or where its syntax ends."""
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return lines[-1] if lines else None


def _problems(number: int, tool: object) -> Iterator[str]:
    if not isinstance(tool, Tool):
        kind = type(tool).__name__
        helps = "it must be Tool(name, description, arguments, function), or a function below @tool"
        yield f"TOOLS[{number}] is of type {kind}: {helps}"
        return
    where = f"tools.{one_line(str(tool.name), NAME_SHOWN_BYTES)}"
    rights = {field: getattr(tool, field) for field in ToolRights.model_fields}
    try:  # a word that is none would else count as another one
        ToolRights.model_validate(rights)
    except ValidationError as error:
        yield f"{where}: {complaints(error)}"
    try:
        tool.schema()
    except Exception as error:  # of a class that is no Arguments, or of pydantic
        why = one_line(str(error), limits.SENTENCE_BYTES)
        needed = "a class derived from Arguments that has a JSON schema"
        yield f"{where}: its arguments must be {needed}: {why}"
    # A function made by other means than `def` may have no signature: its first call tells.
    with contextlib.suppress(ValueError):
        try:
            inspect.signature(tool.run).bind(object(), object())
        except TypeError:
            yield f"{where}: its function must take (arguments, context)"
