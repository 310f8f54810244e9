"""The plan, as the planner returns it and query `plan` shows it."""

from typing import Literal

from supervision.contract.base import Model

Importance = Literal["required", "optional"]


class Subtask(Model):
    """One unit of delegation. `role` is a role of the team or `auto`; `timeout_seconds` None is the default.

    `replaces` names failed or skipped subtasks of earlier revisions whose place this one takes.
    """

    id: str
    description: str
    role: str = "auto"
    capabilities: list[str] = []
    depends_on: list[str] = []
    importance: Importance = "required"
    candidates: int = 1
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
    """A graph of subtasks, or a direct answer and no subtask at all."""

    goal: str = ""
    direct_answer: str | None = None
    aggregation: Literal["merge", "select", "reduce"] = "merge"
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
