"""A run through MCP, from its start to its report, while server processes and Workers are killed."""

import asyncio
from pathlib import Path

import pytest

from tests.mcp_clients import mcp_environ, over_stdio
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools
from tests.serving import WorkerProcesses
from tests.workflow.runs import Lab
from tests.workflow.subtasks.test_people import asking
from workflows.supervisor import SupervisorWorkflow

PLAN = plan({"id": "t1", "role": "asker"}, {"id": "t2", "role": "sender"})
QUESTION, CALL = "t1/1:1.0", "t2/1:1.0"


def _sending(step: Step) -> Reply:
    if step.number == 1:
        return tools(("send", {"to": "board", "words": "Sell"}))
    return text("It was sent.\n\nConfidence: 0.8\nLimitations: none")


async def test_a_run_continues_with_its_id_whatever_is_killed(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    lone.model.play("*", script(PLAN, {"t1": asking, "t2": _sending}, answer(cites=["t1", "t2"])))
    environ = mcp_environ(lone.client, str(workers.artifacts), tmp_path)
    worker = await workers.start()
    async with over_stdio(environ, tmp_path) as mcp:
        started = await mcp("research", goal="Weigh the pears", team="people", approve_plan=True, max_subtasks=3)
        run_id = started["run_id"]
        (asked,) = (await mcp.until(run_id, "plan.1"))["asked"]
        assert "part t2 of garden 1" in asked["shown"]
        waiting = asyncio.create_task(mcp("wait", run_id=run_id, seconds=50))
        mcp.kill()
        with pytest.raises(Exception, match="(?i)closed"):
            await waiting
    worker.kill()
    async with over_stdio(environ, tmp_path) as mcp:
        assert "a Worker" in await mcp.refused("wait", run_id=run_id, seconds=1)
        worker = workers.launch()  # it takes some seconds, which the call outlasts
        (plan_asked,) = (await mcp("wait", run_id=run_id, seconds=50))["asked"]
        about = {"run_id": run_id, "id": "plan.1", "sha256": plan_asked["sha256"]}
        await mcp("decide", **about, decision="approve")
        refused = await mcp.refused("decide", **about, decision="deny")
        assert refused.endswith("'plan.1' is decided already: approve by tester (MCP). The first decision stands")
        again = await mcp("decide", **about, decision="approve")
        assert again["message"] == "decided before: the first decision stands"
        items = {item["id"]: item for item in (await mcp.until(run_id, QUESTION, CALL))["asked"]}
        assert "Which year is meant?" in items[QUESTION]["shown"]
        assert '"words": "Sell"' in items[CALL]["shown"]
        worker.kill()
        mcp.kill()
    worker = await workers.start()
    async with over_stdio(environ, tmp_path) as mcp:
        assert {item["id"] for item in (await mcp("inbox"))["items"]} >= {QUESTION, CALL}
        await mcp("steer", run_id=run_id, text="Count the quinces", to="t1")
        sha256 = {wait_id: items[wait_id]["sha256"] for wait_id in (QUESTION, CALL)}
        await mcp("reply", run_id=run_id, id=QUESTION, text="2025", sha256=sha256[QUESTION])
        assert "sha256" in await mcp.refused("decide", run_id=run_id, id=CALL, decision="approve")
        await mcp("decide", run_id=run_id, id=CALL, decision="approve", sha256=sha256[CALL])
        ended = await mcp.until(run_id)
        assert (ended["state"], ended["phase"]) == ("completed", "done")
        worker.kill()
    async with over_stdio(environ, tmp_path) as mcp:
        found = await mcp("result", run_id=run_id)
        assert (found["status"], found["problem"]) == ("completed", "")
        assert [citation["subtask_ids"] for citation in found["citations"]] == [["t1"], ["t2"]]
        assert "About t1" in await mcp.read(found["links"][0]["uri"])
    ran = lone.named(run_id)
    assert "Count the quinces" in ran.prompt("t1/1/turn.2")
    assert sorted(set(ran.steps)) == sorted(ran.steps), "a call was sent twice"
    events = await lone.client.get_workflow_handle_for(SupervisorWorkflow.run, run_id).fetch_history()
    said = [e.workflow_execution_update_accepted_event_attributes for e in events.events]
    assert sum(b"tester (MCP)" in args.accepted_request.SerializeToString() for args in said) == 5
