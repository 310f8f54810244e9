"""The program of a child process that serves the functions of one module.

A request is one JSON line, and so is an answer. The program imports nothing else of the project:
each process pays for its imports. It ends with its standard input, so it outlives its Worker by one
request at most.
"""

import importlib
import json
import resource
import signal
import sys
from typing import Any

from activities.bounded import own_bounds
from temporal_supervisor.supervision.base.json_object import JsonObject

TOO_DEEP = "it is nested too deeply"
TOO_LARGE = "it needs more than {} MiB of memory"


def main(setup_json: str) -> None:
    """Sets the limits of the process, reports that it is ready, and serves."""
    setup = json.loads(setup_json)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    module = importlib.import_module(setup["module"])
    own_bounds.bound_memory(own_bounds.data_bytes() + setup["memory"])
    own_bounds.bound(resource.RLIMIT_FSIZE, setup["file_bytes"])
    own_bounds.leave_no_core()
    _send({"result": None})
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, setup["seconds"])
        _send(_answer(module, line, setup["memory"]))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(module: Any, question: str, memory: int) -> JsonObject:
    try:
        name, arguments = json.loads(question)
        return {"result": getattr(module, name)(*arguments)}
    except RecursionError:
        return {"exceeded": TOO_DEEP}
    except MemoryError:
        return {"exceeded": TOO_LARGE.format(memory >> 20)}
    except Exception as error:
        return {"error": str(error), "type": type(error).__name__}


def _send(reply: JsonObject) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
