"""Trees of supervisors in tests: scripts by workflow, and what each level shows of its own."""

from dataclasses import dataclass

from temporalio.client import Client
from temporalio.service import RPCError

from temporal_supervisor.supervision.contract.status import Status
from tests.scripted_model import OTHERS, Reply, Script, Step, answer, status, text
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


@dataclass
class Account:
    """A model whose provider refuses the account at one call, until it is paid."""

    refused_at: str
    usual: Script
    paid: bool = False

    def reply(self, step: Step) -> Reply:
        """Returns the reply to a call."""
        unpaid = not self.paid and step.call.endswith(self.refused_at)
        return status(402, "billing_error", "no credit") if unpaid else self.usual(step)


STOREY_BESIDE_T2 = subtasks(item("t0"), item("t1", "storey", depends_on=["t0"]), item("t2", depends_on=["t0"]))


def one_waits() -> Account:
    """A run in which t1, a nested one, waits for its account, while t2 may begin."""
    return Account("/t1/1/f1/1/turn.1", tree({"": STOREY_BESIDE_T2, "t1/1": subtasks(item("f1", "walker"))}))
