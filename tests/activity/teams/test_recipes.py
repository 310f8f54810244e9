"""Recipes of real teams: each part of a file changed alone makes another one, nothing else does, and some have none."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from activities.reuse.begun_runs import BegunRun
from activities.reuse.earlier_runs import parts_of
from activities.store.store_urls import open_store
from activities.teams.stored_teams import StoredTeam, StoredTeams, read_team
from activities.teams.team_files import TeamFiles
from activities.teams.tool_states import tool_state
from activities.tools.mcp.pins import Pinned, write_pins
from activities.tools.tool import Arguments, Tool, ToolContext
from temporal_supervisor.supervision.base.store_keys import output_key
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.reuse.recipes import recipes, why_never

TEAM = """
name = "crew"
description = "Counts."
generalist = "other"
share_tools = true

[planning]
instructions = "Plan well."

[[roles]]
name = "counter"
description = "Counts pears."
system_prompt = "You count."
tools = ["greet", "calculate"]

[[roles]]
name = "other"
description = "Does the rest."
system_prompt = "You do the rest."
tools = ["weigh"]

[[roles]]
name = "dated"
description = "Tells what holds on a day."
system_prompt = "You tell."
tools = ["rate"]

[[tools]]
name = "calculate"
uses = "calculator"
"""
FILES = """
[[tools]]
name = "query_data"
uses = "sql_query"
options = { tables = "data/*.csv", descriptions = { pears = "The harvest" } }

[[tools]]
name = "search"
uses = "document_search"
options = { documents = "notes/*.md" }
"""
TOOLS = """
from temporal_supervisor import Tool
from temporal_supervisor.tools import Arguments

class Greeting(Arguments):
    name: str

async def greet(arguments, context):
    return f"Hello, {arguments.name}"

TOOLS = [
    Tool("greet", "Greets.", Greeting, greet, stays="always", reads="public"),
    Tool("weigh", "Weighs.", Greeting, greet, stays="always", reads="public"),
    Tool("rate", "Tells the rate.", Greeting, greet, stays="day", reads="public"),
]
"""


@dataclass
class Scene:
    """The files of a team, what a run of it was given, and its plan: all that may be edited before it is looked at."""

    folder: Path
    models: list[str] = field(default_factory=lambda: ["small"])
    supervisor: list[str] = field(default_factory=lambda: ["large", "small"])
    roles: dict[str, list[str]] = field(default_factory=dict)
    begun: dict[str, Any] = field(default_factory=dict)
    note: str = "content of the note"
    from_others: bool = False
    role: str = "counter"
    plan: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {"id": "t1", "description": "Count the pears", "role": "other"},
            {"id": "t2", "description": "Weigh the pears", "depends_on": ["t1"], "attachments": ["note"]},
        ]
    )

    def edit(self, file: str, old: str, new: str) -> None:
        """Changes one place of a file."""
        path = self.folder / "teams" / "crew" / file
        text = path.read_text()
        assert text.count(old) >= 1
        path.write_text(text.replace(old, new, 1))

    async def stored(self) -> StoredTeam:
        """Returns the team as a run that begins now freezes it."""
        store = open_store(self.folder / "artifacts")
        teams = StoredTeams(store, TeamFiles([self.folder / "teams"]))
        others, roles = self.from_others, self.roles
        ref, _ = await teams.save(
            "run",
            "crew",
            self.models,
            data_from_others=others,
            models_of_roles=roles,
            supervisor_models=self.supervisor,
        )
        return await read_team(store, ref)

    def subtasks(self) -> Plan:
        """Returns the plan of the run."""
        return Plan(subtasks=[Subtask.model_validate({"role": self.role, **each}) for each in self.plan])

    async def recipe(self, of: str = "t2") -> str | None:
        """Returns the recipe of a subtask; None if it has none."""
        attachments = [ArtifactRef(name="note", ref=output_key("run", hashlib.sha256(self.note.encode()).hexdigest()))]
        usual = {"run_id": "run", "day": "2026-11-27", "attachments": attachments}
        begun = BegunRun(**{**usual, "data_from_others": self.from_others, **self.begun})
        parts = parts_of(begun, await self.stored(), {})
        return recipes(self.subtasks(), parts, {}).get(of)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """The team as it is before an edit."""
    team = tmp_path / "teams" / "crew"
    for file, text in {
        "team.toml": TEAM,
        "tools.py": TOOLS,
        "data/pears.csv": "tree,pears\n1,20\n2,30\n",
        "notes/trees.md": "The trees are old.",
        "unused.txt": "Nobody reads it.",
    }.items():
        path = team / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Scene(tmp_path)


def edits(file: str, old: str, new: str) -> Callable[[Scene], None]:
    return lambda scene: scene.edit(file, old, new)


def sets(**fields: Any) -> Callable[[Scene], None]:
    """Changes what a run of the team was given."""

    def change(scene: Scene) -> None:
        for name, value in fields.items():
            setattr(scene, name, value)

    return change


def plans(place: int, **fields: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.plan[place].update(fields)


def says(line: str) -> Callable[[Scene], None]:
    """Adds a line to the role that does the work."""
    return edits("team.toml", 'system_prompt = "You count."', f'system_prompt = "You count."\n{line}')


def renamed(scene: Scene) -> None:
    """Gives the first subtask another id."""
    scene.plan[0]["id"] = "first"
    scene.plan[1]["depends_on"] = ["first"]


Edit = Callable[[Scene], None]
PARTS: dict[str, Edit] = {
    "prompt of the role": edits("team.toml", "You count.", "You count twice."),
    "tools of the role": edits("team.toml", '"greet", "calculate"', '"greet"'),
    "version of a tool": edits("tools.py", "Hello", "Hi"),
    "words of a tool": edits("tools.py", "Greets.", "Greets people."),
    "rights of a tool": edits("team.toml", 'uses = "calculator"', 'uses = "calculator"\nreturns = "untrusted"'),
    "model of the role": says('model = "large"'),
    "model of the request": sets(roles={"counter": ["large"]}),
    "a further model of the request": sets(roles={"counter": ["small", "large"]}),
    "models of worker agents": sets(models=["large"]),
    "effort of the role": says('effort = "high"'),
    "effort of the run": sets(begun={"effort": "high"}),
    "form of the finding": says('output_schema = { type = "object", properties = { pears = { type = "number" } } }'),
    "knowledge": says('grounding = "knowledge"'),
    "questions to people": says("ask = true"),
    "description": plans(1, description="Weigh the plums"),
    "attachment": plans(1, attachments=[]),
    "content of an attachment": sets(note="another content"),
    "dependency": plans(1, depends_on=[]),
    "recipe of a dependency": plans(0, description="Count the plums"),
    "prompt of a dependency's role": edits("team.toml", "You do the rest.", "You do it all."),
    "stand-in": sets(begun={"extracts": True}),
    "data of others": sets(from_others=True),
    "another role": plans(1, role="other"),
}
NO_PARTS: dict[str, Edit] = {
    "comment": edits("team.toml", 'name = "crew"', '# a comment\nname = "crew"'),
    "description of the team": edits("team.toml", "Counts.", "Counts and weighs."),
    "words for the planner": edits("team.toml", "Plan well.", "Plan better."),
    "description of the role": edits("team.toml", "Counts pears.", "Counts fruit."),
    "capabilities": says('capabilities = ["sums"]'),
    "label": says('label = "A count"'),
    "limit of turns": says("max_turns = 4"),
    "order of tools": edits("team.toml", '"greet", "calculate"', '"calculate", "greet"'),
    "prompt of a role without work": edits("team.toml", "You tell.", "You tell all."),
    "model of a role without work": sets(roles={"dated": ["large"]}),
    "day": sets(begun={"day": "2026-11-28"}),
    "importance": plans(1, importance="optional"),
    "reasons": plans(1, reasoning="it is wanted"),
    "time": plans(1, timeout_seconds=7.0),
    "id of a dependency": renamed,
    "another subtask": lambda scene: scene.plan.append({"id": "t3", "description": "Taste the pears"}),
    "owner": sets(begun={"owner": "anna"}),
    "goal": sets(begun={"goal_ref": "run/outputs/another"}),
}


@pytest.mark.parametrize("part", PARTS)
async def test_each_part_changed_alone_makes_another_recipe(scene: Scene, part: str) -> None:
    before = await scene.recipe()
    PARTS[part](scene)
    after = await scene.recipe()
    assert None not in (before, after)
    assert before != after


@pytest.mark.parametrize("part", NO_PARTS)
async def test_nothing_else_does(scene: Scene, part: str) -> None:
    before = await scene.recipe()
    NO_PARTS[part](scene)
    assert await scene.recipe() == before


async def test_the_content_and_the_description_of_the_teams_data_are_parts(scene: Scene) -> None:
    """A file that no tool reads is none."""
    path = scene.folder / "teams" / "crew" / "team.toml"
    path.write_text(path.read_text() + FILES)
    scene.edit("team.toml", '"greet", "calculate"', '"query_data", "search"')
    seen = {await scene.recipe()}
    for file, old, new in (
        ("team.toml", "The harvest", "The harvest of 2025"),
        ("data/pears.csv", "20", "21"),
        ("notes/trees.md", "old", "young"),
    ):
        scene.edit(file, old, new)
        seen.add(await scene.recipe())
    assert (len(seen), None in seen) == (4, False)
    scene.edit("unused.txt", "Nobody", "No one")
    assert await scene.recipe() in seen


async def test_the_day_is_a_part_where_a_tool_is_of_the_day(scene: Scene) -> None:
    scene.plan[0]["role"] = "dated"
    friday = await scene.recipe("t1")
    assert await scene.recipe("t1") == friday
    assert (below := await scene.recipe("t2")) is not None
    scene.begun["day"] = "2026-11-28"
    assert await scene.recipe("t1") not in (friday, None)
    assert await scene.recipe("t2") != below, "it rests on the day, too"


STAYS: dict[str, tuple[dict[str, Any], str]] = {
    "without a word": ({"own": True}, "never"),
    "always": ({"own": True, "stays": "always"}, "always"),
    "on a day": ({"own": True, "stays": "day"}, "day"),
    "never": ({"own": True, "stays": "never"}, "never"),
    "with an effect": ({"own": True, "stays": "always", "effects": "write"}, "never"),
    "to the outside": ({"own": True, "stays": "always", "effects": "outward"}, "never"),
    "with a way out": ({"own": True, "stays": "always", "outside": True}, "never"),
    "built in": ({}, "always"),
    "built in, with an effect": ({"effects": "write"}, "never"),
    "built in, of a server": ({"outside": True}, "never"),
    "of an MCP server": (
        {"stays": "always", "pinned": Pinned(name="look", description="Looks.", input_schema={})},
        "never",
    ),
    "of the provider": ({"stays": "always", "provided": {"name": "look"}}, "never"),
}


@pytest.mark.parametrize("kind", STAYS)
async def test_how_long_outputs_stay_is_said_by_authors_of_what_only_reads(kind: str) -> None:
    words, stays = STAYS[kind]
    state = await tool_state(Tool("look", "Looks.", Arguments, _look, **words))
    assert state.stays == stays


async def _look(arguments: Arguments, context: ToolContext) -> str:
    return "pears"


async def test_a_tool_without_readable_data_counts_as_a_live_one() -> None:
    async def version() -> str:
        raise ValueError("the files can't be read")

    state = await tool_state(Tool("look", "Looks.", Arguments, _look, version=version))
    assert state.stays == "never"


def with_tool(definition: str) -> Edit:
    return edits("tools.py", "TOOLS = [", f"TOOLS = [\n    {definition},")


def with_kind(uses: str, more: str = "", name: str = "live") -> Edit:
    entry = f'[[tools]]\nname = "{name}"\nuses = "{uses}"\n{more}\n\n[[tools]]\nname = "calculate"'
    return edits("team.toml", '[[tools]]\nname = "calculate"', entry)


def pinned(scene: Scene) -> None:
    """Gives the team an MCP server that is never asked: its one tool reads, and is pinned."""
    server = '[mcp_servers.store]\ncommand = "no-such-server"\n'
    server += '[mcp_servers.store.tools]\nprice = { effects = "read" }\n'
    path = scene.folder / "teams" / "crew" / "team.toml"
    path.write_text(path.read_text() + server)
    price = Pinned(name="price", description="A price.", input_schema={"type": "object", "properties": {}})
    write_pins(path.parent, {"store": {"price": price}})


LIVE: dict[str, tuple[Edit, str]] = {
    "a tool that writes": (
        with_tool('Tool("live", "Writes.", Greeting, greet, stays="always", effects="write", reads="public")'),
        "live",
    ),
    "a tool that sends": (
        with_tool('Tool("live", "Sends.", Greeting, greet, stays="always", effects="outward", reads="public")'),
        "live",
    ),
    "an author's tool without a word on it": (
        with_tool('Tool("live", "Looks.", Greeting, greet, reads="public")'),
        "live",
    ),
    "a tool with effects by the team file": (with_kind("calculator", 'effects = "outward"'), "live"),
    "a database": (with_kind("sql_query", 'options = { database = "postgres", url = "SALES_DB" }'), "live"),
    "the web": (with_kind("web_fetch", 'options = { hosts = ["example.com"] }'), "live"),
    "the provider's search": (with_kind("provider_web_search", name="web_search"), "web_search"),
    "an MCP server": (pinned, "store__price"),
}


@pytest.mark.parametrize("kind", LIVE)
async def test_what_changes_or_has_effects_has_no_recipe(scene: Scene, kind: str) -> None:
    """Nor has what rests on it."""
    edit, tool = LIVE[kind]
    edit(scene)
    scene.edit("team.toml", 'tools = ["weigh"]', f'tools = ["weigh", "{tool}"]')
    assert await scene.recipe("t1") is None
    assert await scene.recipe("t2") is None
    begun = BegunRun(run_id="run")
    why = why_never(scene.subtasks().subtasks[0], parts_of(begun, await scene.stored(), {}))
    assert why == f"{tool} has effects, or reads what changes"
    scene.plan[1]["depends_on"] = []
    assert await scene.recipe("t2") is not None, "of the same team, without it"


async def test_the_pin_of_a_tool_is_a_part_of_its_state(scene: Scene) -> None:
    pinned(scene)
    scene.edit("team.toml", 'tools = ["weigh"]', 'tools = ["weigh", "store__price"]')
    before = (await scene.stored()).tools["store__price"]
    path = scene.folder / "teams" / "crew"
    price = Pinned(name="price", description="A fair price.", input_schema={"type": "object", "properties": {}})
    write_pins(path, {"store": {"price": price}})
    after = (await scene.stored()).tools["store__price"]
    assert before.sha256 != after.sha256
    assert (before.stays, after.stays) == ("never", "never")


def within(scene: Scene, inner: str, tools: str = "") -> None:
    """Has the role that is first in the plan be a team, of one role and one that is a team itself."""
    scene.edit("team.toml", 'system_prompt = "You do the rest."\ntools = ["weigh"]', 'team = "middle"')
    role = '[[roles]]\nname = "{0}"\ndescription = "Works."\n{1}\n'
    middle = role.format("hand", 'system_prompt = "You are the hand."') + role.format("floor", 'team = "inner"')
    for name, roles, code in (("middle", middle, ""), ("inner", role.format("digger", inner), tools)):
        path = scene.folder / "teams" / name
        path.mkdir()
        (path / "team.toml").write_text(f'name = "{name}"\ngeneralist = "{roles.split(chr(34))[1]}"\n{roles}')
        if code:
            (path / "tools.py").write_text(code)


DIGS = 'system_prompt = "You dig."\ntools = ["weigh"]'


async def test_a_team_within_a_team_is_one_part_with_all_that_is_in_it(scene: Scene) -> None:
    within(scene, DIGS, TOOLS)
    before, above = await scene.recipe("t1"), await scene.recipe("t2")
    assert await scene.recipe("t1") == before
    assert None not in (before, above)
    inner = scene.folder / "teams" / "inner"
    seen = {before}
    for file, old, new in (
        ("team.toml", "You dig.", "You dig deep."),
        ("team.toml", "Works.", "Works in the garden."),
        ("tools.py", "Hello", "Hi"),
    ):
        text = (inner / file).read_text()
        (inner / file).write_text(text.replace(old, new))
        seen.add(await scene.recipe("t1"))
    scene.supervisor = ["large"]
    seen.add(await scene.recipe("t1"))
    scene.models = ["large"]
    seen.add(await scene.recipe("t1"))
    assert (len(seen), None in seen) == (6, False)
    assert await scene.recipe("t2") != above


@pytest.mark.parametrize(
    "inner",
    [
        'person = { who = "a judge" }',
        'system_prompt = "You dig."\nask = true',
        'system_prompt = "You dig."\ntools = ["live"]',
        'team = "no-longer-there"',
    ],
)
async def test_a_team_with_people_or_effects_anywhere_within_it_has_no_recipe(scene: Scene, inner: str) -> None:
    live = TOOLS.replace("TOOLS = [", 'TOOLS = [Tool("live", "Looks.", Greeting, greet, reads="public"),')
    within(scene, inner, live)
    if "no-longer" in inner:
        gone = scene.folder / "teams" / "no-longer-there"
        gone.mkdir()
        (gone / "team.toml").write_text("no team")
    assert await scene.recipe("t1") is None
    assert await scene.recipe("t2") is None


async def test_work_of_people_has_no_recipe(scene: Scene) -> None:
    scene.edit("team.toml", 'system_prompt = "You do the rest."\ntools = ["weigh"]', 'person = { who = "a judge" }')
    assert await scene.recipe("t1") is None
    assert await scene.recipe("t2") is None
