"""Who holds what: a Worker process that goes out has the secret, neither the model's key nor the team's files."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from activities.teams.team_files import TeamFiles
from activities.tools.mcp.pins import write_pins
from temporal_supervisor.console.commands.doctor import queue_rows
from tests.activity.tools.test_mcp import SECRET, SERVERS
from tests.scripted_model import plan, script, text, tools
from tests.serving import WorkerProcesses
from tests.waiting import until
from tests.workflow.runs import Lab

TEAM = f"""
name = "shop"
generalist = "clerk"
[[roles]]
name = "clerk"
description = "Finds prices."
system_prompt = "Find prices."
tools = ["rows", "report", "store__price"]
[[tools]]
name = "rows"
uses = "sql_query"
options = {{ tables = "data/*.csv" }}
[mcp_servers.store]
command = {json.dumps(sys.executable)}
args = {json.dumps([str(SERVERS / "benign.py"), "/dev/null"])}
env = ["SHOP_TOKEN"]
[mcp_servers.store.tools]
price = {{ effects = "read", returns = "trusted" }}
"""
TOOLS = """
import os

from activities.tools.tool import Arguments, Tool

def report(arguments, context):
    return {name: name in os.environ for name in ("ANTHROPIC_API_KEY", "SHOP_TOKEN")}

TOOLS = [Tool("report", "Says what its process holds.", Arguments, report, effects="outward")]
"""


async def _team(folder: Path) -> None:
    shop = folder / "shop"
    (shop / "data").mkdir(parents=True)
    (shop / "team.toml").write_text(TEAM)
    (shop / "tools.py").write_text(TOOLS)
    (shop / "data" / "sales.csv").write_text("article,pieces\ntea,41\n")
    files = TeamFiles([folder])
    connection = files.servers(files.definition("shop"))["store"]
    write_pins(shop, {"store": {each.name: each for each in await connection.tools()}})
    connection.close()


async def _ran_by(lone: Lab) -> dict[str, str]:
    """The process that ran each activity of the worker agent, by its queue."""
    queues, ran = dict[int, str](), dict[str, str]()
    async for event in lone.client.get_workflow_handle(f"{lone.run_id}/t1/1").fetch_history_events():
        if event.HasField("activity_task_scheduled_event_attributes"):
            queues[event.event_id] = event.activity_task_scheduled_event_attributes.task_queue.name
        if event.HasField("activity_task_started_event_attributes"):
            begun = event.activity_task_started_event_attributes
            ran[queues[begun.scheduled_event_id]] = begun.identity.split("@")[0]
    return ran


async def _named_by_the_doctor(lone: Lab, *expected: tuple[str, str]) -> None:
    """Returns once it names these queues, each with the options of the command that helps."""

    async def named() -> bool:
        rows = [row async for row in queue_rows(lone.client) if row.level != "ok"]
        return [(row.name, row.fix.partition(" worker ")[2]) for row in rows] == list(expected)

    await until(named, 60)


async def test_an_outward_tool_runs_where_its_secret_is_and_no_key(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    await _team(tmp_path / "teams")
    shutil.copytree(tmp_path / "teams", tmp_path / "bare", ignore=shutil.ignore_patterns("data"))
    base = {name: value for name, value in workers.environ.items() if name != "SHOP_TOKEN"}
    workers.environ = {**base, "SUPERVISOR_TEAMS_DIR": str(tmp_path / "teams"), "ANTHROPIC_API_KEY": "a-key"}
    inside = await workers.start("--roles", "workflows,model,tools")
    workers.environ = {**base, "SUPERVISOR_TEAMS_DIR": str(tmp_path / "bare"), "SHOP_TOKEN": SECRET}
    del workers.environ["ANTHROPIC_BASE_URL"]
    await _named_by_the_doctor(lone, ("queue supervisor-outward", "--roles outward`"))
    outside = await workers.start("--roles", "outward")
    await _named_by_the_doctor(lone)
    calls = tools(("rows", {"sql": "SELECT pieces FROM sales"}), ("report", {}), ("store__price", {"article": "tea"}))
    turns = {"t1": lambda step: calls if step.number == 1 else text("Seen.")}
    lone.play(script(plan({"id": "t1", "role": "clerk"}), turns))
    result = await lone.run(team="shop")
    assert result.status == "completed"
    shown = lone.prompt("t1/1/turn.2")
    assert "41" in shown
    assert '{"ANTHROPIC_API_KEY": false, "SHOP_TOKEN": true}' in shown
    assert "tea costs 12 euros" in shown
    assert await _ran_by(lone) == {
        "supervisor": str(inside.pid),
        "supervisor-model": str(inside.pid),
        "supervisor-outward": str(outside.pid),
    }
