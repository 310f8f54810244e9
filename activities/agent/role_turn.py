"""One turn of a role, with all that its input names loaded."""

from collections.abc import Iterable
from dataclasses import dataclass

from temporalio import activity

from activities.agent.grounds import Grounds, read_grounds
from activities.contracts.run_contracts import SubtaskBrief
from activities.contracts.turn_contracts import TurnInput
from activities.model.conversation import Opening
from activities.model.journalled_call import ModelCalls
from activities.model.port import Window
from activities.teams.stored_teams import StoredTeams
from activities.teams.toolbox import Toolbox
from activities.tools.documents import SearchDocuments
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.run.attempt_rules import subtask_path


@dataclass(frozen=True)
class RoleTurn:
    """One turn: the call as `asked` for, its role, the team's tools, and the model's window.

    `calls` reaches the model and the store.
    """

    asked: TurnInput
    role: Role
    toolbox: Toolbox
    window: Window
    calls: ModelCalls

    @property
    def brief(self) -> SubtaskBrief:
        """The brief of a turn that begins a conversation."""
        assert self.asked.brief is not None
        return self.asked.brief

    @property
    def queries_first(self) -> bool:
        """True if a small model is to query tables, which it does before it looks at them."""
        return self.window.is_small and self.toolbox.queries_tables(self.role)

    @property
    def search_tool(self) -> str | None:
        """The name of the tool with which a small model's search begins; None for other roles.

        Who can query tables begins with a query.
        """
        if not self.window.is_small or self.queries_first:
            return None
        tools = self.toolbox.tools_named(self.role.tools)
        return next((tool.name for tool in tools if tool.arguments is SearchDocuments), None)

    def opening(self, system: str, tools: list[JsonObject]) -> Opening:
        """Returns the opening of a conversation with the turn's model."""
        return Opening(system=system, model=self.asked.model, effort=self.asked.effort, tools=tools)

    async def keep_output(self, text: str) -> str:
        """Stores an output of this turn. Returns its reference."""
        return await self.calls.store.put_output(self.asked.run.run_id, text)

    async def grounds(self, head: str) -> Grounds:
        """Returns the grounds for a finding in the conversation at `head`."""
        return await read_grounds(self.calls.conversations, head, self.toolbox, self.keep_output)

    def labels_of(self, uses: Iterable[JsonObject]) -> Labels:
        """Returns the labels of the outputs of the role's calls, which name this subtask."""
        place = subtask_path(activity.info().workflow_id or "", self.asked.run.run_id)
        return self.toolbox.labels_of(self.role, uses, place)


async def load_turn(asked: TurnInput, calls: ModelCalls, teams: StoredTeams) -> RoleTurn:
    """Returns the turn of an input.

    Raises SupervisionError `TeamUnavailable` if this Worker lacks a part of the team.
    """
    loaded = await teams.load(asked.team_ref)
    role = loaded.team.role(asked.role)
    window = await calls.window(asked.run, asked.model)
    return RoleTurn(asked, role, loaded.toolbox, window, calls)
