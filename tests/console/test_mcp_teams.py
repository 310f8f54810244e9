"""The commands around a team's MCP servers: what they offer, what is pinned, what has changed."""

import json
import sys
from pathlib import Path

from tests.activity.tools.test_mcp import SERVERS, TEAM
from tests.console.conftest import Cli

LISTED = '[mcp_servers.store.tools]\nprice = { effects = "read" }'


async def test_a_server_is_checked_and_pinned_and_a_change_is_shown(alone: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    args = json.dumps([str(SERVERS / "hostile.py"), "nothing", str(tmp_path / "file")])
    server = f"command = {json.dumps(sys.executable)}\nargs = {args}"
    team = TEAM.format(tools="", server=server, listed="").replace("[mcp_servers.store.tools]", "")
    (folder / "team.toml").write_text(team)
    cli = alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))
    offered = await cli("teams", "shop", "--check")
    assert offered.code == 0
    assert "MCP server store: 1 tool, of which the team file lists none" in offered.out
    assert 'price = { effects = "write", approve = "always" }  # store__price: A price.' in offered.out

    (folder / "team.toml").write_text(team.replace("tools = []", 'tools = ["store__price"]') + LISTED)
    unpinned = await cli("teams", "shop")
    assert unpinned.code == 1
    assert "mcp_servers.store: not pinned: price. `temporal-supervisor teams pin shop`" in unpinned.err
    pinned = await cli("teams", "pin", "shop")
    assert pinned.code == 0
    assert "store.price: new" in pinned.out
    assert '+ "description": "A price."' in pinned.out
    assert (await cli("tool", "shop/store__price", '{"article": "tea"}')).out.strip() == "12 euros"

    lock = json.loads((folder / "team.lock").read_text())
    (folder / "team.toml").write_text((folder / "team.toml").read_text().replace('"nothing"', '"other"'))
    changed = await cli("teams", "shop", "--check")
    assert changed.code == 1
    assert "1 tool, 1 listed, they differ from team.lock" in changed.out
    assert "store.price: changed" in changed.out
    doctor = await cli("doctor")
    assert "MCP shop/store" in doctor.out
    assert "they differ from team.lock" in doctor.out
    assert json.loads((folder / "team.lock").read_text()) == lock
    (folder / "team.toml").write_text((folder / "team.toml").read_text().replace(sys.executable, "no-program"))
    gone = await cli("teams", "pin", "shop")
    assert gone.code == 1
    assert "'no-program' can't be run: No such file" in gone.err
    assert json.loads((folder / "team.lock").read_text()) == lock
