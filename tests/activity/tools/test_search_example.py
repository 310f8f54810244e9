"""The example of a search server: any model searches the web by a team's own MCP server, as its page says."""

import shutil
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from activities.teams.team_files import TeamFiles
from activities.tools.tool import ToolContext
from tests.activity.tools.test_mcp import serving

TEAM = "web-researcher"
EXAMPLE = Path(__file__).parents[3] / "examples" / "teams" / TEAM
RELEASE = {
    "title": "Python 3.15",
    "url": "https://docs.python.org/3.15/whatsnew",
    "content": "What is  new",
    "publishedDate": "2026-10-01T00:00:00",
}


async def search(request: Request) -> JSONResponse:
    """Answers as a SearXNG instance does."""
    found = [RELEASE] if request.query_params["q"] == "python release" else []
    assert request.query_params["format"] == "json"
    return JSONResponse({"results": found})


async def test_a_model_without_a_search_of_its_own_searches_by_the_teams_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / TEAM)
    file = folder / "team.toml"
    file.write_text(file.read_text().replace('"python3"', f'"{sys.executable}"'))
    async with serving(Starlette(routes=[Route("/search", search)])) as url:
        monkeypatch.setenv("SEARCH_URL", url)
        # The example's team.lock counts: a server that differs from it would be refused.
        loaded = await TeamFiles([tmp_path]).load(TEAM)
        role = loaded.team.roles[0]
        ran = [
            await loaded.toolbox.run(role, "search__web_search", {"words": words}, ToolContext())
            for words in ("python release", "pears")
        ]
    assert "Python 3.15 | https://docs.python.org/3.15/whatsnew | 2026-10-01 | What is new" in ran[0].text
    assert "nothing was found for: pears" in ran[1].text
    assert [each.is_error for each in ran] == [False, False]
