"""The client library: start runs, watch them and decide in them. Workers run elsewhere.

    client = await connect()
    run = await Run.start(client, RunRequest(goal="Which region sold most in 2025?"))
    result = await run.result()

Errors of updates:

- ValueError: the update is malformed, so nothing was sent.
- UpdateRefused: the run rejected it; the message is the run's own.
- NoAnswer: no Worker answered. A decision may be sent again: only the first one counts.

The package imports neither `workflows` nor `activities`, so a program may have folders of these
names. Names are loaded on first use, so that workflow code which imports a module below this
package loads no client.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporal_supervisor.child import run_as_child as run_as_child
    from temporal_supervisor.child import run_failure as run_failure
    from temporal_supervisor.client import NO_WORKER as NO_WORKER
    from temporal_supervisor.client import OWNER as OWNER
    from temporal_supervisor.client import Inbox as Inbox
    from temporal_supervisor.client import Item as Item
    from temporal_supervisor.client import NoAnswer as NoAnswer
    from temporal_supervisor.client import NoRun as NoRun
    from temporal_supervisor.client import Run as Run
    from temporal_supervisor.client import RunFailed as RunFailed
    from temporal_supervisor.client import UpdateRefused as UpdateRefused
    from temporal_supervisor.client import asked as asked
    from temporal_supervisor.client import connect as connect
    from temporal_supervisor.client import decide as decide
    from temporal_supervisor.client import decide_all as decide_all
    from temporal_supervisor.client import decide_plan as decide_plan
    from temporal_supervisor.client import decide_tool_call as decide_tool_call
    from temporal_supervisor.client import follow as follow
    from temporal_supervisor.client import inbox as inbox
    from temporal_supervisor.client import new_run_id as new_run_id
    from temporal_supervisor.client import pause as pause
    from temporal_supervisor.client import query as query
    from temporal_supervisor.client import reply as reply
    from temporal_supervisor.client import resume as resume
    from temporal_supervisor.client import run as run
    from temporal_supervisor.client import send as send
    from temporal_supervisor.client import start as start
    from temporal_supervisor.client import steer as steer
    from temporal_supervisor.client import wait as wait
    from temporal_supervisor.client import waiting as waiting
    from temporal_supervisor.plugin import PluginUnusable as PluginUnusable
    from temporal_supervisor.plugin import SupervisorPlugin as SupervisorPlugin
    from temporal_supervisor.supervision.contract import Attachment as Attachment
    from temporal_supervisor.supervision.contract import Finding as Finding
    from temporal_supervisor.supervision.contract import Plan as Plan
    from temporal_supervisor.supervision.contract import RunRequest as RunRequest
    from temporal_supervisor.supervision.contract import RunResult as RunResult
    from temporal_supervisor.supervision.contract import Status as Status
    from temporal_supervisor.supervision.contract import TraceEvent as TraceEvent
    from temporal_supervisor.supervision.contract import UpdateReply as UpdateReply
    from temporal_supervisor.supervision.contract import Wait as Wait
    from temporal_supervisor.supervision.contract.status import Asked as Asked
    from temporal_supervisor.testing import call_tool as call_tool
    from temporal_supervisor.testing import open_team as open_team
    from temporal_supervisor.tools import Arguments as Arguments
    from temporal_supervisor.tools import NewArtifact as NewArtifact
    from temporal_supervisor.tools import Tool as Tool
    from temporal_supervisor.tools import ToolContext as ToolContext
    from temporal_supervisor.tools import ToolMisuse as ToolMisuse
    from temporal_supervisor.tools import ToolOutput as ToolOutput
    from temporal_supervisor.tools import tool as tool

_CONTRACT = "Attachment Finding Plan RunRequest RunResult Status TraceEvent UpdateReply Wait"
_CLIENT = (
    "NO_WORKER OWNER Inbox Item NoAnswer NoRun Run RunFailed UpdateRefused asked connect decide "
    "decide_all decide_plan decide_tool_call follow inbox new_run_id pause query reply resume run "
    "send start steer wait waiting"
)
_TOOLS = "Arguments NewArtifact Tool ToolContext ToolMisuse ToolOutput tool"
_HOMES = {
    **dict.fromkeys(_CONTRACT.split(), "temporal_supervisor.supervision.contract"),
    **dict.fromkeys(_CLIENT.split(), "temporal_supervisor.client"),
    **dict.fromkeys(_TOOLS.split(), "temporal_supervisor.tools"),
    **dict.fromkeys(["run_as_child", "run_failure"], "temporal_supervisor.child"),
    **dict.fromkeys(["PluginUnusable", "SupervisorPlugin"], "temporal_supervisor.plugin"),
    **dict.fromkeys(["call_tool", "open_team"], "temporal_supervisor.testing"),
    "Asked": "temporal_supervisor.supervision.contract.status",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    value = getattr(import_module(home), name)
    globals()[name] = value  # the next time it is found without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
