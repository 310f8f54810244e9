"""Team files: what is read, when it is read again, and how every mistake names its place."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.teams.team_files import TEAM_FILE_BYTES, TeamError, TeamFiles, team_card
from activities.tools.tool import ToolContext
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.team import Role, Team, ToolCard, ToolEntry

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
    text = text.replace("{name}", name).replace("{tool}", tool)
    (team / "team.toml").write_text(text, errors="surrogateescape")
    if tools is not None:
        (team / "tools.py").write_text(tools)
    return team


def inline(*roles: tuple[str, list[str]], **settings: Any) -> Team:
    made = [Role(name=name, description="d", system_prompt="s", tools=tools) for name, tools in roles]
    return Team(name="mine", generalist=made[0].name, roles=made, **settings)


async def test_a_team_is_read_again_only_when_its_file_changed(tmp_path: Path) -> None:
    folder = write(tmp_path)
    files = TeamFiles([tmp_path])
    first = await files.load("crew")
    assert await files.load("crew") is first
    text = (folder / "team.toml").read_text()
    (folder / "team.toml").write_text(text.replace("You help.", "You help a lot."))
    assert (await files.load("crew")).team.roles[0].system_prompt == "You help a lot."


async def test_tools_of_ones_own_are_added_and_read_again(tmp_path: Path) -> None:
    folder = write(tmp_path, tool="greet", tools=OWN_TOOLS)
    files = TeamFiles([tmp_path])

    async def greeting() -> str:
        loaded = await files.load("crew")
        return (await loaded.toolbox.run(loaded.team.roles[0], "greet", {"name": "Ada"}, ToolContext())).text

    assert await greeting() == "Hello, Ada"
    (folder / "tools.py").write_text(OWN_TOOLS.replace('"Hello"', '"Howdy"'))
    assert await greeting() == "Howdy, Ada"
    assert team_card(await files.load("crew"), ["m"]).roles[0].tools == [ToolCard(name="greet")]


@pytest.mark.parametrize("name", ["nobody", "../crew", "CREW", "a\x00b"])
async def test_an_unknown_name_lists_the_known_ones_and_the_folders(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    (tmp_path / "Crew").mkdir()
    (tmp_path / "Crew" / "team.toml").touch()
    with pytest.raises(TeamError) as error:
        await TeamFiles([tmp_path, BUNDLED]).load(name)
    assert error.value.kind == "UnknownTeam"
    assert ("a name is 1 to 48 lower-case letters" in error.value.message) == (name != "nobody")
    assert "known teams: almanac, " in error.value.message
    assert ", crew, " in error.value.message
    assert str(tmp_path) in error.value.message
    assert str(BUNDLED) in error.value.message


async def test_the_former_name_of_a_bundled_team_leads_to_it_unless_a_folder_has_one_of_that_name(
    tmp_path: Path,
) -> None:
    files = TeamFiles([tmp_path, BUNDLED])
    assert (await files.load("default")).team.name == "almanac"
    assert (await files.load("default")) is (await files.load("almanac"))
    write(tmp_path, "default")
    assert (await files.load("default")).team.name == "default"


WRONG_NAMES = """
generalist = "heper"

[[roles]]
name = "helper"
description = "Helps."
system_prompt = "You help."

[[roles]]
name = "second"
description = "d"
system_prompt = "s"

[[routes]]
pattern = "hello"
role = "third"

[[tools]]
name = "ask"
uses = "sql_query"
surplus = 1
"""
PROBLEMS_OF_NAMES = [
    "tools.ask.surplus: unknown field",
    "generalist: 'heper' is not one of the roles: helper, second, did you mean 'helper'?",
    "routes: 'third' is not one of the roles",
]
BROKEN_ROLES = """
name = "crew"
generalist = "helper"

[[roles]]
name = "helper"
descripton = "Helps."
spare = "third"

[[roles]]
name = "third"
description = "d"
"""
PROBLEMS_OF_ROLES = [
    "roles.helper.descripton: unknown field, did you mean 'description'?",
    "roles.helper.description: Field required",
    "roles.helper.spare: unknown field",
    "roles.third: a role needs a system_prompt",
]
WRONG_TOOLS = """
name = "crew"
generalist = "helper"
toolbox = ["hammer"]

[[roles]]
name = "helper"
description = "Helps."
system_prompt = "You help."
tools = ["calculat", "greet"]

[[tools]]
name = "calculate"
uses = "calculater"

[[tools]]
name = "query"
uses = "sql_query"
options = { tables = 3 }

[[tools]]
name = "search"
uses = "document_search"
options = { documents = "none/*.md" }
"""
PROBLEMS_OF_TOOLS = [
    "tools.calculate: there is no kind 'calculater', did you mean 'calculator'?",
    "tools.query.options: tables: ",
    "tools.search: 'none/*.md' matches no file",
    "roles.helper.tools: there is no tool 'calculat', did you mean 'calculate'?; the team has: calculate, greet, query",
    "toolbox: there is no tool 'hammer'",
]


@pytest.mark.parametrize(
    ("text", "problems"),
    [(WRONG_NAMES, PROBLEMS_OF_NAMES), (BROKEN_ROLES, PROBLEMS_OF_ROLES), (WRONG_TOOLS, PROBLEMS_OF_TOOLS)],
)
async def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path, text: str, problems: list[str]) -> None:
    folder = write(tmp_path, text=text, tools=OWN_TOOLS)
    with pytest.raises(TeamError) as error:
        await TeamFiles([tmp_path]).load("crew")
    assert [problem for problem in problems if error.value.message.count(problem) != 1] == [], error.value.message
    assert error.value.message.startswith(f"{folder / 'team.toml'}: ")


BROKEN: list[tuple[str, str | None, str]] = [
    (TEAM + "x = " + "[" * 5000 + "]" * 5000, None, "team.toml: maximum recursion depth exceeded"),
    ("\udcff", None, "team.toml: "),
    (
        TEAM.replace("generalist =", "generalist"),
        None,
        "team.toml: Expected '=' after a key in a key/value pair (at line 3",
    ),
    (TEAM, "import sys\nsys.exit(3)", "tools.py: line 2: SystemExit: 3"),
    (TEAM, "x = (\n", "tools.py: line 1: SyntaxError"),
    (TEAM, "\n\nimport no_such_module\n", "tools.py: line 3: ModuleNotFoundError"),
    (TEAM, "TOOLS = [1]\n", "tools.py: TOOLS[0] is of type int: it must be Tool("),
    (TEAM + "#" * TEAM_FILE_BYTES, None, "the file is larger than"),
]


async def test_broken_teams_name_themselves_and_the_others_work(tmp_path: Path) -> None:
    for number, (text, tools, _) in enumerate(BROKEN):
        write(tmp_path, f"crew{number}", text=text, tools=tools)
    files = TeamFiles([tmp_path, BUNDLED])
    for number, (_, _, problem) in enumerate(BROKEN):
        with pytest.raises(TeamError, match=re.escape(problem)):
            await files.load(f"crew{number}")
    assert (await files.load("almanac")).toolbox.names()
    assert (await files.load_inline(inline(("counter", ["calculate"])))).toolbox.names() == ["calculate"]


async def test_a_team_whose_import_never_ends_is_named_and_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = TeamFiles([tmp_path, BUNDLED])
    await files.load("almanac")  # with all that its tools import: the interpreter is shared with the other team
    monkeypatch.setattr(limits, "TEAM_READ_TIMEOUT", timedelta(milliseconds=300))
    folder = write(tmp_path, tools="while True: pass")
    reading = asyncio.create_task(files.load_inline(inline(("counter", ["crew/calculate"]))))
    ticks = 0
    while not reading.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 1  # a loop that is blocked has none, or one
    assert "cannot be read within" in str(reading.exception())
    with pytest.raises(TeamError, match=r"crew: it cannot be read within 0\.3 s"):
        await files.load("crew")
    assert (await files.load("almanac")).toolbox.names()
    monkeypatch.undo()
    (folder / "tools.py").write_text(OWN_TOOLS)
    assert (await files.load("crew")).toolbox.names() == ["calculate", "greet"]


async def test_without_the_data_of_a_team_its_other_tools_work(tmp_path: Path) -> None:
    search = '\n[[tools]]\nname = "search"\nuses = "document_search"\noptions = { documents = "rules/*.md" }\n'
    write(tmp_path, text=TEAM + search)
    with pytest.raises(TeamError, match=r"tools.search: 'rules/\*.md' matches no file"):
        await TeamFiles([tmp_path]).load("crew")
    toolbox = (await TeamFiles([tmp_path], data=False).load("crew")).toolbox
    roles = inline(("a", ["calculate", "search"])).roles
    assert (await toolbox.run(roles[0], "calculate", {"expression": "2*3"}, ToolContext())).text == "2*3 = 6"
    assert (await toolbox.run(roles[0], "search", {}, ToolContext())).text.startswith("This process does not read")


async def test_an_inline_team_uses_tools_of_team_files_and_those_of_general_by_their_names_alone(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    files = TeamFiles([tmp_path, BUNDLED])
    loaded = await files.load_inline(inline(("counter", ["crew/calculate"]), ("reader", ["read_document"])))
    assert loaded.sources == {"calculate": "crew", "read_document": "general"}
    assert loaded.toolbox.get("calculate") is (await files.load("crew")).toolbox.get("calculate")
    ran = await loaded.toolbox.run(loaded.team.role("counter"), "calculate", {"expression": "2*3"}, ToolContext())
    assert ran.text == "2*3 = 6"
    refused = await loaded.toolbox.run(loaded.team.role("reader"), "calculate", {"expression": "2*3"}, ToolContext())
    assert refused.is_error


WRONG_INLINE: list[tuple[Team, str]] = [
    (inline(("a", ["shell"])), "team.roles.a.tools: team 'general' offers no tool 'shell'; it has: calculate, "),
    (inline(("a", ["crew/calculat"])), "team 'crew' offers no tool 'calculat', did you mean 'calculate'?; it has"),
    (inline(("a", ["cre/calculate"])), "team.roles.a.tools: there is no team 'cre', did you mean 'crew'?"),
    (inline(("a", ["crew/calculate", "general/calculate"])), "two different tools are named 'calculate'"),
    (inline(("a", ["crew/calculate"]), ("b", ["general/calculate"])), "two different tools are named 'calculate'"),
    (inline(("a", ["list_tables"]), ("b", ["general/list_tables"])), "roles share the tools list_tables"),
    (
        inline(("a", []), tools=[ToolEntry(name="x", uses="calculator")]),
        "team: an inline team has no tools or mcp_servers",
    ),
]


async def test_a_wrong_inline_team_is_an_invalid_request(tmp_path: Path) -> None:
    write(tmp_path)
    files = TeamFiles([tmp_path, BUNDLED])
    for team, problem in WRONG_INLINE:
        with pytest.raises(TeamError, match=re.escape(problem)) as error:
            await files.load_inline(team)
        assert error.value.kind == "InvalidRequest"


RIGHTS = """
name = "rights"
generalist = "helper"

[[roles]]
name = "helper"
description = "Helps."
system_prompt = "You help."
tools = ["greet", "read"]

[[tools]]
name = "read"
uses = "attachment"
"""


@pytest.mark.parametrize(
    ("of_read", "of_greet", "problem"),
    [
        ("", 'effects="write"', ""),
        ('returns = "untrusted"', 'effects="write"', "greet reads private data, read returns untrusted text and greet"),
        ('returns = "untrusted"', 'effects="write", approve="always"', ""),
        (
            'effects = "write"\ntargets = { name = ["a.txt"] }',
            'returns="untrusted"',
            "greet returns untrusted text and re",
        ),
        ('returns = "doubtful"', 'effects="write"', "tools.read.returns: Input should be 'trusted' or 'untrusted'"),
        ("", 'effects="deletes"', "tools.greet: effects: Input should be 'read', 'outward' or 'write'"),
        ("", 'approve="Always"', "tools.greet: approve: Input should be 'never', 'tainted' or 'always'"),
    ],
)
async def test_no_role_joins_private_data_untrusted_text_and_effects(
    tmp_path: Path, of_read: str, of_greet: str, problem: str
) -> None:
    tools = OWN_TOOLS.replace('effects="write"', of_greet)
    write(tmp_path, "rights", RIGHTS + of_read, tools=tools)
    if not problem:
        await TeamFiles([tmp_path]).load("rights")
        return
    with pytest.raises(TeamError, match=re.escape(problem)):
        await TeamFiles([tmp_path]).load("rights")
    if " reads private" in problem:  # each has a role of its own there, and a request joins them
        apart = RIGHTS.replace(', "read"]', "]") + of_read
        write(tmp_path, "rights", apart, tools=tools)
        with pytest.raises(TeamError, match=re.escape(f"team.roles.a.tools: {problem}")) as error:
            await TeamFiles([tmp_path]).load_inline(inline(("a", ["rights/greet", "rights/read"])))
        assert error.value.kind == "InvalidRequest"


SEARCHES = TEAM.replace('name = "calculate"', 'name = "{tool}"').replace("calculator", "provider_web_search")


@pytest.mark.parametrize(
    ("named", "more", "problem"),
    [
        ("web_search", 'options = { max_uses = 2, allowed_domains = ["example.com/docs"] }', ""),
        ("search", "", 'tools.search: models know this tool by another name: write name = "web_search"'),
        (
            "web_search",
            'approve = "always"',
            "tools.web_search: the provider calls it, so no person can approve a call",
        ),
        (
            "web_search",
            'options = { allowed_domains = ["https://example.com"] }',
            "allowed_domains.0: must be a domain without https",
        ),
    ],
)
async def test_a_tool_of_the_provider_is_set_up(tmp_path: Path, named: str, more: str, problem: str) -> None:
    write(tmp_path, text=SEARCHES + more, tool=named)
    if problem:
        with pytest.raises(TeamError, match=re.escape(problem)):
            await TeamFiles([tmp_path]).load("crew")
        return
    [tool] = (await TeamFiles([tmp_path]).load("crew")).toolbox.definitions([named])
    domains = {"max_uses": 2, "allowed_domains": ["example.com/docs"]}
    assert tool == {"type": "web_search_20250305", "name": "web_search", **domains}


async def test_a_tool_for_its_own_team_is_not_given_to_inline_teams(tmp_path: Path) -> None:
    closed = 'uses = "calculator"\ninline = false'
    tools = OWN_TOOLS.replace('effects="write"', "inline=False")
    write(tmp_path, text=TEAM.replace('uses = "calculator"', closed), tools=tools)
    files = TeamFiles([tmp_path])
    for tool in ("calculate", "greet"):
        for team in (inline(("a", [f"crew/{tool}"])), inline(("a", []), toolbox=[f"crew/{tool}"])):
            with pytest.raises(TeamError, match=f"team 'crew' offers no tool '{tool}'; it has: none") as error:
                await files.load_inline(team)
            assert error.value.kind == "InvalidRequest"
    assert (await files.load("crew")).toolbox.names() == ["calculate", "greet"]


@pytest.mark.parametrize("opened", ["tools.py", ".."])
async def test_code_that_others_could_have_written_is_not_run(tmp_path: Path, opened: str) -> None:
    teams = tmp_path / "teams"
    folder = write(
        teams, tool="greet", tools=f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n{OWN_TOOLS}"
    )
    (folder / opened).chmod(0o777)
    with pytest.raises(TeamError, match="is code and is not run.*others can write"):
        await TeamFiles([teams]).load("crew")
    assert not (tmp_path / "ran").exists()
    (folder / opened).chmod(0o755)
    await TeamFiles([teams]).load("crew")
    assert (tmp_path / "ran").exists()
