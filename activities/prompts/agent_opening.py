"""The part of a worker agent's prompts that is the same in all of a role's conversations: its prompt and its tools."""

from activities.model.conversation import Opening
from activities.model.port import Json
from activities.prompts.agent_prompts import worker_system
from supervision.agent.agent_tools import ask_tool, finish_tool, read_output_tool
from supervision.contract.model_choice import Effort
from supervision.contract.team import Role


def agent_opening(
    role: Role,
    tools: list[Json],
    model: str,
    effort: Effort | None,
    max_turns: int,
    date: str,
    names_items: bool = False,
    output_schema: Json | None = None,
) -> Opening:
    """Returns the part that all of a role's conversations in a run share; `tools` are the definitions of its tools.

    `read_output` is there from the beginning wherever tools are: were it added with the first clearing, that would
    change the prefix that the role's worker agents share. Those of an agent that `names_items` say so.
    """
    asks = [ask_tool()] if role.ask else []
    own = [*([read_output_tool()] if role.tools else []), *asks, finish_tool(names_items, output_schema)]
    system = worker_system(role, max_turns, date, cites=any("input_schema" not in tool for tool in tools))
    return Opening(system=system, model=model, effort=effort, tools=[*tools, *own])
