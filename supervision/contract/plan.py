"""The plan, as the planner returns it and query `plan` shows it."""

from typing import Literal

from supervision.contract.base import Model

Importance = Literal["required", "optional"]
Aggregation = Literal["merge", "select", "reduce"]


class Subtask(Model):
    """One unit of delegation. `role` is a role of the team or `auto`; `timeout_seconds` None is the default.

    `weight`, from 0 to 1, decides which findings are kept when there is not room for all. Of several `candidates` the
    first has the `role`, the others those of `candidate_roles` and the `role` again, in turn. `estimated_tokens` (0 is
    no estimate) weighs its share of the budget. `replaces` names failed or skipped subtasks of earlier revisions.
    """

    id: str
    description: str
    role: str = "auto"
    capabilities: list[str] = []
    depends_on: list[str] = []
    importance: Importance = "required"
    weight: float = 0.5
    reasoning: str = ""
    candidates: int = 1
    candidate_roles: list[str] = []
    estimated_tokens: int = 0
    timeout_seconds: float | None = None
    attachments: list[str] = []
    replaces: list[str] = []


class NewRole(Model):
    """A role that the plan defines, with tools out of the team's toolbox."""

    name: str
    description: str
    system_prompt: str
    tools: list[str] = []


class Plan(Model):
    """A graph of subtasks, or a direct answer and no subtask at all.

    `aggregation` says how the answer is made: of all findings, by choosing the best, or by condensing groups of them.
    """

    goal: str = ""
    direct_answer: str | None = None
    reasoning: str = ""
    aggregation: Aggregation = "merge"
    final_instruction: str = ""
    subtasks: list[Subtask] = []
    new_roles: list[NewRole] = []
    revision: int = 1

    def subtask(self, subtask_id: str) -> Subtask:
        """Returns the subtask of that id. Raises KeyError if there is none."""
        for subtask in self.subtasks:
            if subtask.id == subtask_id:
                return subtask
        raise KeyError(subtask_id)
