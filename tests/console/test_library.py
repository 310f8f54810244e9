"""Teams: the one that the documents build, as a reader builds it from the page, and one with an MCP server."""

import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from tests.activity.tools.test_mcp import SERVERS, TEAM
from tests.console.conftest import ROOT, Cli, Model, worker_of

PAGE = (ROOT / "docs/teams-and-tools.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first code of that language on the page."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found, language
    return found[1]


def build(teams: Path) -> None:
    """Builds that team in a folder."""
    (teams / "library" / "documents").mkdir(parents=True)
    (teams / "library" / "team.toml").write_text(block("toml"))
    (teams / "library" / "tools.py").write_text(block("python"))
    (teams / "library" / "documents" / "rules.md").write_text(block("markdown"))


@pytest.fixture(scope="module")
async def library(base: dict[str, str], standin: Model, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cli]:
    """Commands where a Worker has that team."""
    folder: Path = tmp_path_factory.mktemp("library")
    build(folder / "my-teams")
    environ = {**base, "SUPERVISOR_TEAMS_DIR": str(folder / "my-teams")}
    async with EmbeddedServer(shared=False, headless=True) as info:
        environ["TEMPORAL_ADDRESS"] = info.address
        async with worker_of(environ, standin, folder):
            yield Cli(environ, folder)


async def test_its_tool_can_be_tried_without_a_run(library: Cli) -> None:
    tried = await library("tool", "library/find_books", '{"title": "emma"}')
    assert (tried.code, tried.out) == (0, "Emma: shelf 3\n")
    assert tried.err == "sources: catalogue\n"
    misused = await library("tool", "library/find_books", '{"title": "Ulysses"}')
    assert misused.code == 1
    assert misused.err.startswith("the tool failed: ")
    assert "the titles are: Emma" in misused.err
    assert misused.err.count("\n") == 1
    schema = await library("tool", "library/find_books")
    assert '"description": "A word of the title."' in schema.out
    wrong = await library("tool", "library/find_book")
    assert (wrong.code, wrong.err.rpartition("it has ")[2]) == (2, "calculate, find_books, search_rules\n")


async def test_it_is_listed(alone: Cli, tmp_path: Path) -> None:
    build(tmp_path)
    cli = alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))
    listed = await cli("teams")
    assert (listed.code, listed.err) == (0, "")
    assert "library          Answers questions about a small library." in listed.out
    shown = await cli.out("teams", "library")
    assert "librarian (generalist): find_books, search_rules" in shown
    assert "hint: role 'clerk'" not in shown
    assert "librarian" in (await cli("teams", "--json")).out
    unknown = await cli("teams", "librari")
    assert (unknown.code, "did you mean 'library'?" in unknown.err) == (1, True)


async def test_its_two_questions_are_answered(library: Cli) -> None:
    shelf = await library("run", "--team", "library", "On which shelf is Emma?")
    assert shelf.code == 0, shelf.err
    assert "shelf 3" in shelf.out, shelf.out
    misspelled = await library("run", "--team", "libary", "On which shelf is Emma?")
    assert (misspelled.code, "did you mean 'library'?" in misspelled.err) == (2, True)
    fee = await library.out("run", "--team", "library", "What does a book cost that comes back late?")
    assert "0.20 for each day" in fee


LISTED = '[mcp_servers.store.tools]\nprice = { effects = "read" }'


async def test_a_server_is_checked_and_pinned_and_a_change_is_shown(alone: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    args = json.dumps([str(SERVERS / "hostile.py"), "nothing", str(tmp_path / "file")])
    server = f"command = {json.dumps(sys.executable)}\nargs = {args}"
    team = TEAM.format(tools="", server=server, listed="").replace("[mcp_servers.store.tools]", "")
    (folder / "team.toml").write_text(team)
    cli = alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))
    offered = await cli.out("teams", "shop", "--check")
    assert "MCP server store: 1 tool, of which the team file lists none" in offered
    assert '"price" = { effects = "write", approve = "always" }  # store__price: A price.' in offered

    (folder / "team.toml").write_text(team.replace("tools = []", 'tools = ["store__price"]') + LISTED)
    unpinned = await cli("teams", "shop")
    assert unpinned.code == 1
    assert "mcp_servers.store: not pinned: price. `temporal-supervisor teams pin shop`" in unpinned.err
    pinned = await cli.out("teams", "pin", "shop")
    assert "store.price: new" in pinned
    assert '+ "description": "A price."' in pinned
    assert (await cli("tool", "shop/store__price", '{"article": "tea"}')).out.strip() == "12 euros"

    lock = json.loads((folder / "team.lock").read_text())
    (folder / "team.toml").write_text((folder / "team.toml").read_text().replace('"nothing"', '"other"'))
    changed = await cli("teams", "shop", "--check")
    assert changed.code == 1
    assert "1 tool, 1 listed, they differ from team.lock" in changed.out
    assert "store.price: changed" in changed.out
    assert json.loads((folder / "team.lock").read_text()) == lock
    (folder / "team.toml").write_text((folder / "team.toml").read_text().replace(sys.executable, "no-program"))
    gone = await cli("teams", "pin", "shop")
    assert gone.code == 1
    assert "'no-program' can't be run: No such file" in gone.err
    assert json.loads((folder / "team.lock").read_text()) == lock
