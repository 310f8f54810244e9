"""Trees of supervisors in tests: scripts by workflow, and what each level shows of its own."""

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from supervision.base import limits
from supervision.budget.ledger import SYNTHESIS_HOLDBACK_SHARE
from supervision.contract.status import Status
from supervision.contract.updates import ExtendLimits, NewBudget
from tests.scripted_model import OTHERS, Reply, Script, ScriptedModel, Step, answer, status, text, when
from tests.waiting import until
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
STOREY_BESIDE_STOREY = subtasks(
    item("t0"), item("t1", "storey", depends_on=["t0"]), item("t2", "storey", depends_on=["t0"])
)


@dataclass
class ScarceBudget:
    """A run in which t1, a nested run, has most of the budget and waits for its account, while t2 may begin.

    t1 is planned once the budget is scarce.
    """

    shape: Reply
    account: Account = field(init=False)
    _is_scarce: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        below = subtasks(item("f1", "walker"))
        usual = tree({"": self.shape, "t1/1": below, "t2/1": below})
        self.account = Account("/t1/1/f1/1/turn.1", usual)

    def reply(self, step: Step) -> Reply:
        """Returns the reply to a call."""
        reply = self.account.reply(step)
        return when(self._is_scarce, reply) if step.call.endswith("/t1/1/plan.1.1") else reply

    async def make_scarce(self, handle: Handle, model: ScriptedModel, tokens: int) -> None:
        """Leaves so many tokens free beside t1, which is planned then."""
        await until(lambda: "t1/1/plan.1.1" in model.steps(handle.id))
        await leave_free(handle, tokens)
        self._is_scarce.set()

    async def pay(self, handle: Handle) -> None:
        """Pays the account and lets the run go on."""
        self.account.paid = True
        await handle.execute_update(SupervisorWorkflow.resume)


async def leave_free(handle: Handle, tokens: int) -> None:
    """Lowers the run's budget until so much of it can be promised, beside what is held back for the answer."""
    card: Any = (await status_of(handle)).limits.ledger["tokens"]
    total = math.ceil((card["spent"] + card["promised"] + tokens) / (1 - SYNTHESIS_HOLDBACK_SHARE)) + 1
    await handle.execute_update(SupervisorWorkflow.extend_limits, ExtendLimits(budget=NewBudget(tokens=total)))
    card = (await status_of(handle)).limits.ledger["tokens"]
    assert tokens <= card["free"] < tokens + limits.LEAST_GRANT_TOKENS
