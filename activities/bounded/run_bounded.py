"""Running a function on foreign text in a child process, with a bound on its time, its memory and its answer."""

import importlib
import json
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from activities.bounded.fair_pool import FairPool
from activities.bounded.line_process import Json, LineProcess
from supervision import limits

R = TypeVar("R")

_TOO_DEEP = "it is nested too deeply"
_pools: dict[str, FairPool] = {}


class BoundExceeded(Exception):
    """The function needed more time, memory or depth than it may; the message says so."""


async def run_bounded(function: Callable[..., R], *arguments: Any, owner: str) -> R:
    """Returns `function(*arguments)`, computed in a child process of this module's.

    Arguments and result are JSON. `owner` is the run that asks: runs take turns. Raises BoundExceeded. The function
    is of the top level of a module that loads fast, as each child process imports it.
    """
    module = function.__module__
    pool = _pools.setdefault(module, FairPool(lambda: _start(module), limits.BOUNDED_PROCESSES))
    seconds = limits.BOUNDED_TIME.total_seconds()
    try:
        reply = await pool.ask(owner, [function.__name__, arguments], seconds)
    except RecursionError:
        raise BoundExceeded(_TOO_DEEP) from None
    if reply is None:
        raise BoundExceeded(f"it takes longer than {seconds:g} s or too much memory")
    if "exceeded" in reply:
        raise BoundExceeded(reply["exceeded"])
    if "error" in reply:
        raise RuntimeError(f"{module}.{function.__name__} failed: {reply['error']}")
    result: R = reply["result"]
    return result


def _start(module: str) -> LineProcess:
    setup = {
        "module": module,
        "seconds": limits.BOUNDED_TIME.total_seconds(),
        "address": limits.BOUNDED_ADDRESS_BYTES,
    }
    process = LineProcess(__name__, setup)
    if process.read(limits.BOUNDED_START_TIMEOUT.total_seconds()) is None:
        raise OSError(f"the process for {module} does not start")
    return process


def main(setup: Json) -> None:
    """The child process: serves the functions of one module until standard input ends."""
    module = importlib.import_module(setup["module"])
    resource.setrlimit(resource.RLIMIT_AS, (setup["address"], setup["address"]))
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _say({"ready": True})
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, setup["seconds"])
        _say(_answer(module, line))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(module: Any, line: str) -> Json:
    try:
        name, arguments = json.loads(line)
        return {"result": getattr(module, name)(*arguments)}
    except RecursionError:
        return {"exceeded": _TOO_DEEP}
    except MemoryError:
        return {"exceeded": "it takes too much memory"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _say(reply: Json) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
