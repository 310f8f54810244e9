"""What a Python program needs to give goals to a supervisor and to watch its runs.

    client = await connect()
    result = await run(client, RunRequest(goal="Which region sold most in 2025?"))

Workers run elsewhere. Imports neither `workflows` nor `activities`: a program may have folders of these names.
"""

from supervision.contract import Attachment, Finding, Plan, RunRequest, RunResult, Status, TraceEvent
from temporal_supervisor.runs import RunFailed, connect, follow, new_run_id, run, start, wait

__all__ = [
    "Attachment",
    "Finding",
    "Plan",
    "RunFailed",
    "RunRequest",
    "RunResult",
    "Status",
    "TraceEvent",
    "connect",
    "follow",
    "new_run_id",
    "run",
    "start",
    "wait",
]
