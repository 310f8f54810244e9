"""Team files: what is read, when it is read again, and how every mistake names its place."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.teams.team_definition import TEAM_FILE_BYTES, TeamError
from activities.teams.team_files import TeamFiles, team_card
from activities.tools.tool import ToolContext
from supervision.base import limits
from supervision.contract.team import Role, Team, ToolCard, ToolEntry

BUNDLED = Path(__file__).parents[3] / "teams"

TEAM = """
name = "{name}"
generalist = "helper"

[[roles]]
name = "helper"
description = "Helps."
system_prompt = "You help."
tools = ["{tool}"]

[[tools]]
name = "calculate"
uses = "calculator"
"""

OWN_TOOLS = """
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput

class Greeting(Arguments):
    name: str

async def greet(arguments: Greeting, context: ToolContext) -> ToolOutput:
    return ToolOutput(f"{WORD}, {arguments.name}")

WORD = "Hello"
TOOLS = [Tool("greet", "Greets.", Greeting, greet, effects="write")]
"""


def write(
    folder: Path, name: str = "crew", text: str = TEAM, tool: str = "calculate", tools: str | None = None
) -> Path:
    """A team's folder in `folder`."""
    team = folder / name
    team.mkdir(parents=True, exist_ok=True)
    (team / "team.toml").write_text(text.replace("{name}", name).replace("{tool}", tool))
    if tools is not None:
        (team / "tools.py").write_text(tools)
    return team


def inline(*roles: tuple[str, list[str]], **settings: Any) -> Team:
    made = [Role(name=name, description="d", system_prompt="s", tools=tools) for name, tools in roles]
    return Team(name="mine", generalist=made[0].name, roles=made, **settings)


def test_the_default_team_is_complete() -> None:
    files = TeamFiles([BUNDLED])
    assert "default" in files.names()
    loaded = files.load("default")
    assert [role.name for role in loaded.team.roles] == ["researcher", "analyst", "writer"]
    assert loaded.team.generalist == "researcher"
    assert sorted(tool for role in loaded.team.roles for tool in role.tools) == loaded.toolbox.names()
    for role in loaded.team.roles:
        assert role.capabilities


def test_the_card_holds_what_a_workflow_needs() -> None:
    card = team_card(TeamFiles([BUNDLED]).load("default"), ["some-model"])
    analyst = card.role("analyst")
    assert analyst.models == ["some-model"]
    assert analyst.tools == [
        ToolCard(name="list_tables"),
        ToolCard(name="query_data"),
        ToolCard(name="calculate"),
    ]
    assert card.role("nobody").name == "researcher"


def test_a_roles_own_model_wins_over_the_requests_and_the_default(tmp_path: Path) -> None:
    text = TEAM.replace('tools = ["{tool}"]', 'model = "own"') + (
        '[[roles]]\nname = "second"\ndescription = "d"\nsystem_prompt = "s"\n'
    )
    write(tmp_path, text=text)
    loaded = TeamFiles([tmp_path]).load("crew")
    assert [role.model for role in team_card(loaded, ["default"]).roles] == ["own", "default"]
    assert [role.model for role in team_card(loaded, ["default", "spare"]).roles] == ["own", "default"]


def test_the_first_folder_wins(tmp_path: Path) -> None:
    write(tmp_path, "default")
    files = TeamFiles([tmp_path, BUNDLED])
    assert files.load("default").folder == tmp_path / "default"
    assert files.names().count("default") == 1


def test_a_team_is_read_again_only_when_its_file_changed(tmp_path: Path) -> None:
    folder = write(tmp_path)
    files = TeamFiles([tmp_path])
    first = files.load("crew")
    assert files.load("crew") is first
    text = (folder / "team.toml").read_text()
    (folder / "team.toml").write_text(text.replace("You help.", "You help a lot."))
    assert files.load("crew").team.roles[0].system_prompt == "You help a lot."


async def test_tools_of_ones_own_are_added_and_read_again(tmp_path: Path) -> None:
    folder = write(tmp_path, tool="greet", tools=OWN_TOOLS)
    files = TeamFiles([tmp_path])

    async def greeting() -> str:
        loaded = files.load("crew")
        return (await loaded.toolbox.run(loaded.team.roles[0], "greet", {"name": "Ada"}, ToolContext())).text

    assert await greeting() == "Hello, Ada"
    (folder / "tools.py").write_text(OWN_TOOLS.replace('"Hello"', '"Howdy"'))
    assert await greeting() == "Howdy, Ada"
    assert team_card(files.load("crew"), ["m"]).roles[0].tools == [ToolCard(name="greet", effects="write")]


@pytest.mark.parametrize("name", ["nobody", "", "../crew", "/etc", "crew/../crew", "CREW", "c" * 999, "a\x00b"])
def test_an_unknown_name_lists_the_known_ones_and_the_folders(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    with pytest.raises(TeamError) as error:
        TeamFiles([tmp_path, BUNDLED]).load(name)
    assert error.value.kind == "UnknownTeam"
    assert "known teams: crew, default" in error.value.message
    assert str(tmp_path) in error.value.message
    assert str(BUNDLED) in error.value.message


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("generalist =", "generalist"), r"line 3"),
        (('generalist = "helper"', ""), "generalist: Field required"),
        (('generalist = "helper"', 'generalist = "nobody"'), "generalist 'nobody' is not one of the roles: helper"),
        (('name = "{name}"', 'name = "other"'), "name: 'other' must be the folder's name, 'crew'"),
        (('description = "Helps."', ""), "roles.helper.description: Field required"),
        (
            ('description = "Helps."', 'descripton = "x"'),
            "roles.helper.descripton: unknown field, did you mean 'description'?",
        ),
        (('tools = ["{tool}"]', 'tools = ["search"]'), "roles.helper.tools: there is no tool 'search'"),
        (('uses = "calculator"', 'uses = "shell"'), "tools.calculate: there is no kind 'shell'; kinds are: attachment"),
        (('uses = "calculator"', 'uses = "calculator"\noptions = { x = 1 }'), "tools.calculate.options: x: "),
        (('uses = "calculator"', 'uses = "sql_query"\noptions = { tables = "../*" }'), "tools.calculate: '../*' must"),
        (('uses = "calculator"', 'uses = "sql_query"'), "tools.calculate.options: tables: Field required"),
        (('name = "calculate"', 'name = "no name"'), "tools.0.name: "),
        (
            (
                "[[tools]]",
                '[[tools]]\nname = "a"\nuses = "calculator"\n[[tools]]\nname = "a"\nuses = "calculator"\n[[tools]]',
            ),
            "team.toml: tool names must differ: a",
        ),
    ],
)
def test_a_broken_file_names_itself_the_place_and_the_problem(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    assert change[0] in TEAM
    folder = write(tmp_path, text=TEAM.replace(*change, 1))
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        TeamFiles([tmp_path]).load("crew")
    assert error.value.kind == "UnknownTeam"
    assert error.value.message.startswith(f"{folder / 'team.toml'}: ")


MANY_PROBLEMS = """
name = "other"
generalist = "heper"
toolbox = ["hammer"]

[[roles]]
name = "helper"
descripton = "Helps."
tools = ["calculat", "greet", "shared"]
fallback = "nobody"

[[roles]]
name = "second"
description = "d"
system_prompt = "s"
tools = ["shared"]
backup = "second"
team = "ghosts"

[[routes]]
pattern = "hello"
role = "third"

[[tools]]
name = "calculate"
uses = "calculater"

[[tools]]
name = "ask"
uses = "sql_query"
surplus = 1

[[tools]]
name = "query"
uses = "sql_query"
"""
PROBLEMS = [
    "roles.helper.descripton: unknown field, did you mean 'description'?",
    "roles.helper.description: Field required",
    "role 'helper' needs a system_prompt",
    "tools.ask.surplus: unknown field",
    "generalist 'heper' is not one of the roles: helper, second; did you mean 'helper'?",
    "role 'helper': fallback 'nobody' is not one of the roles",
    "role 'second' is its own backup",
    "role 'second' is a team: tools belong to that team's roles",
    "routes: 'third' is not one of the roles",
    "roles share the tools shared",
    "name: 'other' must be the folder's name, 'crew'",
    "tools.calculate: there is no kind 'calculater', did you mean 'calculator'?",
    "tools.query.options: tables: Field required",
    "roles.helper.tools: there is no tool 'calculat', did you mean 'calculate'?; the team has: ask, calculate, greet",
    "toolbox: there is no tool 'hammer'",
    "roles.second.team: there is no team 'ghosts'",
]


def test_all_problems_of_a_teams_files_are_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ERROR_BYTES", 4 * limits.ERROR_BYTES)  # of this many problems the last would be cut
    monkeypatch.setattr(limits, "FIELD_COMPLAINTS", 10)
    folder = write(tmp_path, text=MANY_PROBLEMS, tools=OWN_TOOLS)
    with pytest.raises(TeamError) as error:
        TeamFiles([tmp_path]).load("crew")
    assert [problem for problem in PROBLEMS if error.value.message.count(problem) != 1] == [], error.value.message
    assert error.value.message.count(str(folder / "team.toml")) == 1
    (folder / "tools.py").write_text("x = (\n")
    with pytest.raises(TeamError) as error:
        TeamFiles([tmp_path]).load("crew")
    assert "generalist 'heper'" in error.value.message
    assert f"{folder / 'tools.py'}: line 1: SyntaxError" in error.value.message
    assert "there is no tool" not in error.value.message  # an author's own, for all we know


def test_what_a_broken_part_may_mean_is_not_called_unknown(tmp_path: Path) -> None:
    write(tmp_path, text=TEAM.replace('name = "helper"', 'nmae = "helper"'))
    with pytest.raises(TeamError, match=r"roles\.0\.name: Field required") as error:
        TeamFiles([tmp_path]).load("crew")
    assert "is not one of the roles" not in error.value.message


def test_bytes_that_are_no_text_are_a_broken_file(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "team.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TeamError, match=r"team\.toml: "):
        TeamFiles([tmp_path]).load("crew")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("x = (\n", "line 1: SyntaxError"),
        ("import os\nos.no_such_thing\n", "line 2: AttributeError"),
        ("\n\nimport no_such_module\n", "line 3: ModuleNotFoundError"),
        ("x = 1\n", "it must define TOOLS as a list of Tool"),
        ("TOOLS = [1]\n", "TOOLS[0] is of type int: it must be Tool("),
    ],
)
def test_a_broken_tools_file_names_its_line(tmp_path: Path, code: str, problem: str) -> None:
    folder = write(tmp_path, tools=code)
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        TeamFiles([tmp_path]).load("crew")
    assert error.value.message.startswith(f"{folder / 'tools.py'}: ")


@pytest.mark.parametrize(
    ("text", "tools", "problem"),
    [
        (TEAM + "x = " + "[" * 5000 + "]" * 5000, None, "team.toml: it is nested too deeply"),
        (TEAM + "x" + ".x" * 5000 + " = 1", None, "team.toml: "),
        (TEAM, "import sys\nsys.exit(3)", "tools.py: line 2: SystemExit: 3"),
        (TEAM, "def f(): f()\nf()", "tools.py: line 1: RecursionError"),
        (TEAM, "raise KeyboardInterrupt", "tools.py: line 1: KeyboardInterrupt"),
        (TEAM + "#" * TEAM_FILE_BYTES, None, "the file is larger than"),
    ],
)
def test_one_broken_team_names_itself_and_the_others_work(
    tmp_path: Path, text: str, tools: str | None, problem: str
) -> None:
    write(tmp_path, text=text, tools=tools)
    files = TeamFiles([tmp_path, BUNDLED])
    with pytest.raises(TeamError, match=re.escape(problem)):
        files.load("crew")
    assert files.load("default").toolbox.names()
    assert files.load_inline(inline(("counter", ["calculate"]))).toolbox.names() == ["calculate"]


@pytest.mark.parametrize("code", ["import time\ntime.sleep(60)", "while True: pass"])
async def test_a_team_whose_import_never_ends_is_named_and_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    files = TeamFiles([tmp_path, BUNDLED])
    files.load("default")  # a first time, with all that its tools import: the interpreter is shared with the other team
    monkeypatch.setattr(limits, "TEAM_READ_TIMEOUT", timedelta(milliseconds=300))
    folder = write(tmp_path, tools=code)
    reading = asyncio.create_task(files.read(*files.names()))
    ticks = 0
    while not reading.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 5
    for _ in range(3):  # waited for once only
        with pytest.raises(TeamError, match=r"crew: it cannot be read within 0\.3 s"):
            files.load("crew")
    assert files.load("default").toolbox.names()
    monkeypatch.undo()
    (folder / "tools.py").write_text(OWN_TOOLS)
    assert files.load("crew").toolbox.names() == ["calculate", "greet"]


def test_an_own_tool_may_not_take_the_name_of_another(tmp_path: Path) -> None:
    write(tmp_path, tools=OWN_TOOLS.replace('"greet"', '"calculate"'))
    with pytest.raises(TeamError, match=r"tools\.calculate: two tools have this name"):
        TeamFiles([tmp_path]).load("crew")


async def test_an_inline_team_uses_registered_tools(tmp_path: Path) -> None:
    loaded = TeamFiles([BUNDLED]).load_inline(inline(("counter", ["calculate"]), ("reader", ["read_document"])))
    assert loaded.folder is None
    assert loaded.toolbox.names() == ["calculate", "read_document"]
    ran = await loaded.toolbox.run(loaded.team.role("counter"), "calculate", {"expression": "2*3"}, ToolContext())
    assert ran.text == "2*3 = 6"
    refused = await loaded.toolbox.run(loaded.team.role("reader"), "calculate", {"expression": "2*3"}, ToolContext())
    assert refused.is_error


def test_an_ambiguous_tool_is_named_with_its_team(tmp_path: Path) -> None:
    write(tmp_path)
    files = TeamFiles([tmp_path, BUNDLED])
    with pytest.raises(
        TeamError, match="several teams have a 'calculate', name one: crew/calculate, default/calculate"
    ):
        files.load_inline(inline(("counter", ["calculate"])))
    loaded = files.load_inline(inline(("counter", ["crew/calculate"])))
    assert loaded.team.roles[0].tools == ["calculate"]
    assert loaded.toolbox.get("calculate") is files.load("crew").toolbox.get("calculate")


@pytest.mark.parametrize(
    ("team", "problem"),
    [
        (
            inline(("a", ["shell"])),
            "team.roles.a.tools: no team file has a tool 'shell'; registered are: crew/calculate",
        ),
        (inline(("a", ["default/shell"])), "no team file has a tool 'default/shell'"),
        (inline(("a", ["crew/calculate", "default/calculate"])), "two different tools are named 'calculate'"),
        (inline(("a", ["crew/calculate"]), ("b", ["default/calculate"])), "two different tools are named 'calculate'"),
        (inline(("a", ["list_tables"]), ("b", ["default/list_tables"])), "roles share the tools list_tables"),
        (inline(("a", []), tools=[ToolEntry(name="x", uses="calculator")]), "team.tools: an inline team has no tools"),
    ],
)
def test_a_wrong_inline_team_is_an_invalid_request(tmp_path: Path, team: Team, problem: str) -> None:
    write(tmp_path)
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        TeamFiles([tmp_path, BUNDLED]).load_inline(team)
    assert error.value.kind == "InvalidRequest"


@pytest.mark.parametrize(
    ("wanted", "own"), [("calculate", False), ("crew/calculate", False), ("greet", True), ("crew/greet", True)]
)
async def test_a_tool_for_its_own_team_is_not_given_to_inline_teams(tmp_path: Path, wanted: str, own: bool) -> None:
    closed = 'uses = "calculator"\ninline = false'
    write(
        tmp_path,
        text=TEAM if own else TEAM.replace('uses = "calculator"', closed),
        tools=OWN_TOOLS.replace('effects="write"', "inline=False") if own else OWN_TOOLS,
    )
    files = TeamFiles([tmp_path])
    refused = r"crew/\w+ is for its own team alone, its file says inline = false"
    for team in (inline(("a", [wanted])), inline(("a", []), toolbox=[wanted])):
        with pytest.raises(TeamError, match=refused) as error:
            files.load_inline(team)
        assert error.value.kind == "InvalidRequest"
    with pytest.raises(TeamError, match=f"registered are: {'crew/calculate' if own else 'crew/greet'}$"):
        files.load_inline(inline(("a", ["shell"])))
    assert files.load("crew").toolbox.names() == ["calculate", "greet"]


def test_of_two_tools_an_inline_team_gets_the_one_that_it_may_have(tmp_path: Path) -> None:
    write(tmp_path, text=TEAM.replace('uses = "calculator"', 'uses = "calculator"\ninline = false'))
    loaded = TeamFiles([tmp_path, BUNDLED]).load_inline(inline(("counter", ["calculate"])))
    assert loaded.sources == {"default"}


def test_a_broken_team_file_hides_only_its_own_tools(tmp_path: Path) -> None:
    write(tmp_path, text="name = ")
    loaded = TeamFiles([tmp_path, BUNDLED]).load_inline(inline(("counter", ["calculate"])))
    assert loaded.toolbox.names() == ["calculate"]


def test_an_inline_team_without_tools_needs_no_team_file(tmp_path: Path) -> None:
    assert TeamFiles([tmp_path]).load_inline(inline(("thinker", []))).toolbox.names() == []


@pytest.mark.parametrize(
    ("addition", "problem"),
    [
        (
            '[[roles]]\nname = "crew2"\ndescription = "d"\nteam = "ghosts"',
            "roles.crew2.team: there is no team 'ghosts'",
        ),
        ('[[roles]]\nname = "b"\ndescription = "d"\nsystem_prompt = "s"\nfallback = "c"', "fallback 'c' is not one of"),
    ],
)
def test_a_role_that_leans_on_nothing_is_refused(tmp_path: Path, addition: str, problem: str) -> None:
    write(tmp_path, text=f"{TEAM}\n{addition}\n")
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        TeamFiles([tmp_path]).load("crew")
    assert error.value.kind == "UnknownTeam"


def test_a_toolbox_names_tools_of_the_team(tmp_path: Path) -> None:
    text = TEAM.replace("[[roles]]", 'toolbox = ["TOOL"]\n\n[[roles]]', 1)
    write(tmp_path, text=text.replace("TOOL", "calculate"))
    assert TeamFiles([tmp_path]).load("crew").team.toolbox == ["calculate"]
    write(tmp_path, text=text.replace("TOOL", "hammer"))
    with pytest.raises(TeamError, match="toolbox: there is no tool 'hammer'; the team has: calculate"):
        TeamFiles([tmp_path]).load("crew")


def test_a_role_may_be_another_team(tmp_path: Path) -> None:
    write(tmp_path, "inner")
    write(tmp_path, text=f'{TEAM}\n[[roles]]\nname = "crew2"\ndescription = "d"\nteam = "inner"\n')
    assert TeamFiles([tmp_path]).load("crew").team.role("crew2").team == "inner"


@pytest.mark.parametrize("opened", ["tools.py", ".", ".."])
def test_code_that_others_could_have_written_is_not_run(tmp_path: Path, opened: str) -> None:
    teams = tmp_path / "teams"
    folder = write(
        teams, tool="greet", tools=f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n{OWN_TOOLS}"
    )
    (folder / opened).chmod(0o777)
    with pytest.raises(TeamError, match="is code and is not run.*every user"):
        TeamFiles([teams]).load("crew")
    assert not (tmp_path / "ran").exists()
    (folder / opened).chmod(0o755)
    TeamFiles([teams]).load("crew")
    assert (tmp_path / "ran").exists()


def test_the_definition_of_a_team_is_read_without_running_its_code(tmp_path: Path) -> None:
    write(tmp_path, tool="greet", tools=f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n{OWN_TOOLS}")
    assert TeamFiles([tmp_path]).definition("crew").roles[0].tools == ["greet"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a = " + "{a=" * 20_000], ids=["arrays", "tables"])
def test_a_file_nested_beyond_reason_is_one_broken_team(tmp_path: Path, text: str) -> None:
    write(tmp_path, text=text)
    write(tmp_path, name="good")
    with pytest.raises(TeamError, match="nested too deeply"):
        TeamFiles([tmp_path]).load("crew")
    loaded = TeamFiles([tmp_path]).load_inline(inline(("helper", ["calculate"])))
    assert loaded.toolbox.names() == ["calculate"]


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "raise SystemExit", "f = lambda n: f(n); f(1)"])
def test_a_tools_file_that_ends_the_program_ends_only_its_own_team(tmp_path: Path, code: str) -> None:
    write(tmp_path, tools=code)
    write(tmp_path, name="good")
    with pytest.raises(TeamError, match="line 1"):
        TeamFiles([tmp_path]).load("crew")
    loaded = TeamFiles([tmp_path]).load_inline(inline(("helper", ["calculate"])))
    assert loaded.toolbox.names() == ["calculate"]


def test_an_inline_team_knows_which_team_files_its_tools_come_from(tmp_path: Path) -> None:
    write(tmp_path, "crew")
    write(tmp_path, "farm", tool="greet", tools=OWN_TOOLS)
    files = TeamFiles([tmp_path])
    assert files.load_inline(inline(("a", ["crew/calculate"]))).sources == {"crew"}
    assert files.load_inline(inline(("a", ["crew/calculate"]), ("b", ["greet"]))).sources == {"crew", "farm"}
    assert files.load_inline(inline(("a", []))).sources == frozenset()
