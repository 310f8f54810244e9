"""Rights of roles: every role with every tool, by its name and by names that look like it."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.teams.team_files import LoadedTeam, TeamFiles
from activities.teams.toolbox import Toolbox
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput
from supervision.contract.plan import NewRole
from supervision.planning.new_roles import new_role_problems, with_new_roles

TEAMS = Path(__file__).parents[2] / "teams"
LOOK_ALIKES = str.maketrans({"a": "\u0430", "c": "\u0441", "e": "\u0435", "o": "\u043e"})  # Cyrillic
DISGUISES: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "one letter less": lambda name: name[:-1],
    "one letter more": lambda name: f"{name}s",
    "hyphens": lambda name: name.replace("_", "-").title(),
    "blank behind": lambda name: f"{name} ",
    "line end": lambda name: f"{name}\n",
    "zero width": lambda name: f"{name[:2]}\u200b{name[2:]}",
    "full width": lambda name: "".join(chr(ord(letter) + 0xFEE0) for letter in name),
    "other script": lambda name: name.translate(LOOK_ALIKES),
    "with its team": lambda name: f"default/{name}",
    "path": lambda name: f"../default/{name}",
    "NUL": lambda name: f"{name}\x00",
    "attribute": lambda name: f"{name}.run",
}


class AnyArguments(Arguments):
    """None that matter."""


@pytest.fixture(scope="module")
async def team() -> LoadedTeam:
    """The team that ships, with a role of a plan's own; its tools only count."""
    loaded = await TeamFiles([TEAMS]).load("default")
    able = loaded.team.model_copy(update={"toolbox": ["list_tables"]})
    own = NewRole(name="own", description="d", system_prompt="s", tools=["list_tables"])
    assert new_role_problems(able, [own]) == []
    return LoadedTeam(with_new_roles(able, [own]), loaded.folder, loaded.toolbox)


def counting(names: list[str], ran: list[str]) -> Toolbox:
    def tool(name: str) -> Tool[Any]:
        async def run(arguments: AnyArguments, context: ToolContext) -> ToolOutput:
            ran.append(name)
            return ToolOutput("done")

        return Tool(name, "Counts.", AnyArguments, run)

    return Toolbox(map(tool, names))


async def test_a_role_runs_its_own_tools_by_their_very_names(
    team: LoadedTeam, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    ran: list[str] = []
    tools = counting(team.toolbox.names(), ran)
    tried = 0
    for role in team.team.roles:
        for name in tools.names():
            for spelt in (name, *(disguise(name) for disguise in DISGUISES.values()), "", "finish"):
                ran.clear()
                caplog.clear()
                outcome = await tools.run(role, spelt, {}, ToolContext())
                allowed = spelt in role.tools
                assert (ran == [name], outcome.is_error) == (allowed, not allowed), (role.name, spelt)
                assert len(caplog.records) == (not allowed), (role.name, spelt)
                tried += 1
    assert tried >= 400


@pytest.mark.parametrize(
    "name", ["list_tables ", "LIST_TABLES", "list_t\u0430bles", "default/list_tables", "shell", ""]
)
def test_a_role_of_a_plan_gets_no_tool_outside_the_toolbox(team: LoadedTeam, name: str) -> None:
    own = NewRole(name="own2", description="d", system_prompt="s", tools=[name])
    assert new_role_problems(team.team, [own]) != []
