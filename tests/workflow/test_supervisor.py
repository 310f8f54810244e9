"""Runs on the real server, with the real sandbox, the real model client and a scripted model."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import WorkflowAlreadyStartedError

from temporal_supervisor import RunFailed, RunRequest, Status, TraceEvent, follow, run, start, wait
from temporal_supervisor.runtime.settings import Settings
from tests.activity.tools.web_server import WebServer
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools
from tests.serving import TEAMS, own_server
from tests.workflow.runs import GOAL, Lab, found, search_attribute
from tests.workflow.scripts import IMPOSSIBLE, in_order
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow


async def test_a_goal_becomes_a_plan_findings_and_an_answer(lab: Lab) -> None:
    turns = in_order(tools(("lookup", {"query": "swans"})), text("swans are white\n\nConfidence: 0.7"))
    lab.play(script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}), {"t1": turns}, answer("white", ["t1"])))
    handle = await lab.start(metadata={"owner": "pear\n desk", "cost_centre": "7"})
    result = await handle.result()
    assert result.status == "completed"
    assert await search_attribute(handle, "SupervisorStatus") == "completed"
    assert await search_attribute(handle, "SupervisorOwner") == "pear desk"
    assert result.answer == "white About t1 [t1]."
    assert [s.state for s in result.subtasks] == ["completed", "completed"]
    first = found(result)
    assert (first.summary, first.confidence, first.sources) == ("swans are white", 0.7, ["catalogue"])
    assert [c.subtask_ids for c in result.citations] == [["t1"]]
    assert result.usage.model_calls == 5
    systems = [str(call.step.body["system"]) for call in lab.calls]
    assert all(re.search(r"Today is \d{4}-\d\d-\d\d\.", system) for system in systems)
    assert result.usage.tool_calls == 1
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "t2/1/turn.1", "synthesis.1"]
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.counts.completed, shown.review) == ("done", 2, "off")
    assert [subtask.id for subtask in (await handle.query(SupervisorWorkflow.plan)).subtasks] == ["t1", "t2"]
    events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [e.type for e in events if e.subtask_id == "t1"] == ["subtask_started", "subtask_completed"]
    assert (await handle.query(SupervisorWorkflow.trace, events[-1].seq)).events == []


# --- pages of the web --------------------------------------------------------------------------------


NAMED = "https://127.0.0.1/fees?of=1"


@pytest.fixture
async def surfing(lab: Lab, web: WebServer, settings: Settings, tmp_path: Path) -> AsyncIterator[Lab]:
    """A run on a Worker of its own, whose team `surfer` may read that server's pages."""
    team = (TEAMS / "surfer" / "team.toml").read_text()
    (tmp_path / "surfer").mkdir()
    (tmp_path / "surfer" / "team.toml").write_text(team.replace("127.0.0.1:1", web.host))
    async with own_server() as client, serving(client, settings.model_copy(update={"teams_dir": tmp_path})):
        yield lab.on(client)


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server of pages on a free port."""
    with WebServer().serving() as server:
        yield server


async def test_a_page_is_read_and_its_label_reaches_what_builds_on_it(surfing: Lab, web: WebServer) -> None:
    """The URL of a brief is asked for, but for its address, until untrusted text had a part in the brief."""
    page = f"http://{web.host}/page"

    def reading(step: Step) -> Reply:
        if step.number == 1:
            return tools(*(("web_fetch", {"url": url}) for url in (page, NAMED, NAMED + "&more")))
        return text("The fee is 4711 euros.\n\nConfidence: 0.9\nLimitations: none")

    parts: list[dict[str, Any]] = [{"id": "t1", "role": "surfer"}, {"id": "t2", "role": "surfer", "after": ["t1"]}]
    surfing.play(
        script(plan(*({**part, "description": f"Read {NAMED}."} for part in parts)), {"t1": reading, "t2": reading})
    )
    days = {datetime.now(UTC).date()}
    result = await surfing.run(team="surfer")
    assert [path for path, _ in web.asked] == ["/page"]
    days.add(datetime.now(UTC).date())
    assert result.status == "completed"
    first, second = found(result), found(result, 1)
    assert first.unsupported == []
    assert first.sources[0] in {f"{page} (fetched on {day})" for day in days}
    assert first.labels.untrusted == second.labels.untrusted == f"web_fetch {page} in t1"
    first_shown, second_shown = (surfing.prompt(f"{task}/1/turn.2") for task in ("t1", "t2"))
    assert f"{NAMED} is not fetched: 127.0.0.1 is at 127.0.0.1, which is not a public IP" in first_shown
    assert f"{NAMED}&more is not fetched: it stands, exactly so, neither in the subtask" in first_shown
    assert f"{NAMED} is not fetched: the brief, in which it might stand" in second_shown


# --- the package for client programs -----------------------------------------------------------------


REQUEST = RunRequest(goal=GOAL, team="lab", max_reviews=0, max_replans=0)


async def test_a_program_starts_a_run_and_follows_it_to_its_result(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: text("found")}))
    fields = REQUEST.model_dump(exclude_unset=True)
    with pytest.raises(ValueError, match="max_subtasks"):
        await start(lab.client, {**fields, "max_subtasks": "many"}, lab.run_id)
    assert await start(lab.client, fields, lab.run_id) == lab.run_id
    seen = [news async for news in follow(lab.client, lab.run_id)]
    events = [news for news in seen if isinstance(news, TraceEvent)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(seen[-1], Status)
    assert seen[-1].phase == "done"
    assert (await wait(lab.client, lab.run_id)).status == "completed"
    with pytest.raises(WorkflowAlreadyStartedError):
        await run(lab.client, REQUEST, lab.run_id)


async def test_a_run_that_fails_raises_with_what_it_has(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: IMPOSSIBLE}))
    with pytest.raises(RunFailed) as caught:
        await run(lab.client, REQUEST, lab.run_id)
    assert caught.value.type == "AllSubtasksFailed"
    assert caught.value.result is not None
    assert [subtask.state for subtask in caught.value.result.subtasks] == ["failed"]
