"""Trees of supervisors in tests: scripts by workflow, and what each level shows of its own."""

from temporalio.client import Client
from temporalio.service import RPCError

from supervision.contract.status import Status
from tests.scripted_model import OTHERS, Reply, Script, Step, answer, text
from tests.workflow.runs import Handle, status_of
from tests.workflow.scripts import item, subtasks
from workflows.supervisor import SupervisorWorkflow

DEEP = ("t1/1", "t1/1/f1/1")
"""The nested supervisors of PLANS, from the root down."""

PLANS = {
    "": subtasks(item("t1", "storey"), item("t2")),
    "t1/1": subtasks(item("f1", "bench"), item("f2", "walker")),
    "t1/1/f1/1": subtasks(item("l1", "finder"), item("l2", "scribe")),
}
"""Plans of the team `house` on three levels."""


def path(step: Step) -> str:
    """The workflow of a call, below the run."""
    return step.call.rpartition("/")[0].removeprefix(step.run_id).lstrip("/")


def tree(plans: dict[str, Reply], **calls: Reply) -> Script:
    """A script of plans by workflow below the run; `calls` are other replies by the end of their step's name."""

    def reply(step: Step) -> Reply:
        where = path(step)
        special = next((said for end, said in calls.items() if step.call.endswith(end)), None)
        if special:
            return special
        if step.kind == "plan":
            return plans[where]
        if step.kind in OTHERS:
            return OTHERS[step.kind](step)
        if step.kind == "synthesis":
            return answer(f"answer of {where or 'the root'}")
        return text(f"finding of {where}\n\nConfidence: 0.8")

    return reply


def nested_handle(client: Client, workflow_id: str) -> Handle:
    """Returns the handle of a nested run."""
    return client.get_workflow_handle_for(SupervisorWorkflow.run, workflow_id)


async def nested_status(client: Client, workflow_id: str) -> Status:
    """Returns the status that a nested run shows."""
    return await status_of(nested_handle(client, workflow_id))


async def leaves(client: Client, workflow_id: str, above: str = "") -> dict[str, str]:
    """The states of all subtasks of a tree that have none below, as each supervisor shows its own."""
    states: dict[str, str] = {}
    try:
        shown = await nested_status(client, workflow_id)
    except RPCError:  # it is about to start
        return {}
    for report in shown.subtasks:
        where = f"{above}{report.id}"
        below = await leaves(client, report.workflow_id or "", f"{where}/") if report.nested else {}
        states |= below or {where: report.state}
    return states
