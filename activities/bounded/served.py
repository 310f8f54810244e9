"""The program of a child process: it serves the functions of one module, one JSON line in, one JSON line out.

It imports nothing of ours but that module: each process pays for what it imports. It ends with its standard input,
so it outlives its Worker by one question at most.
"""

import contextlib
import importlib
import json
import resource
import signal
import sys
from typing import Any

Json = dict[str, Any]

TOO_DEEP = "it is nested too deeply"
TOO_LARGE = "it needs more than {} MiB of memory"


def main(setup: Json) -> None:
    """Bounds the process for good, says so, and serves."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    module = importlib.import_module(setup["module"])
    bounds = {
        # What may be written to: libraries reserve addresses, and map files, that cost no memory.
        resource.RLIMIT_DATA: data_bytes() + setup["memory"],
        resource.RLIMIT_FSIZE: setup["file_bytes"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in bounds.items():
        with contextlib.suppress(ValueError, OSError):  # systems without that limit
            resource.setrlimit(kind, (value, value))
    _say({"result": None})
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, setup["seconds"])
        _say(_answer(module, line, setup["memory"]))
        signal.setitimer(signal.ITIMER_REAL, 0)


def data_bytes() -> int:
    """Returns the memory of this process that it can write to."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:  # systems without that file
        return 0


def _answer(module: Any, question: str, memory: int) -> Json:
    try:
        name, arguments = json.loads(question)
        return {"result": getattr(module, name)(*arguments)}
    except RecursionError:
        return {"exceeded": TOO_DEEP}
    except MemoryError:
        return {"exceeded": TOO_LARGE.format(memory >> 20)}
    except Exception as error:
        return {"error": str(error), "type": type(error).__name__}


def _say(reply: Json) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
