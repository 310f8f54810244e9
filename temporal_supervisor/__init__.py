"""What a Python program needs to give goals to a supervisor, to watch its runs and to decide in them.

    client = await connect()
    result = await run(client, RunRequest(goal="Which region sold most in 2025?"))

Workers run elsewhere. Imports neither `workflows` nor `activities`: a program may have folders of these names.
"""

from supervision.contract import Attachment, Finding, Plan, RunRequest, RunResult, Status, TraceEvent, UpdateReply, Wait
from supervision.contract.status import Asked
from temporal_supervisor.people import (
    Inbox,
    Item,
    NoAnswer,
    UpdateRefused,
    asked,
    decide,
    decide_plan,
    decide_tool_call,
    inbox,
    pause,
    reply,
    resume,
    steer,
    waiting,
)
from temporal_supervisor.runs import RunFailed, connect, follow, new_run_id, run, start, wait

__all__ = [
    "Asked",
    "Attachment",
    "Finding",
    "Inbox",
    "Item",
    "NoAnswer",
    "Plan",
    "UpdateRefused",
    "RunFailed",
    "RunRequest",
    "RunResult",
    "Status",
    "TraceEvent",
    "UpdateReply",
    "Wait",
    "asked",
    "connect",
    "decide",
    "decide_plan",
    "decide_tool_call",
    "follow",
    "inbox",
    "new_run_id",
    "pause",
    "reply",
    "resume",
    "run",
    "start",
    "steer",
    "wait",
    "waiting",
]
