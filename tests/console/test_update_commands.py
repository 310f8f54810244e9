"""Changing a run while it runs, and how a run that waits or nests looks from outside."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from temporalio.client import Client

from temporal_supervisor import UpdateRefused, messages, runs, trees
from temporal_supervisor.console.base.command import CommandFailed, hint
from temporal_supervisor.console.base.terminal import Report, console
from temporal_supervisor.console.commands.people_commands import resume, send_update
from temporal_supervisor.console.run.standstill import waits_of_status
from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.follow import RunPoller, follow
from temporal_supervisor.console.view.live_view import Picture, Screen
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import Status
from temporal_supervisor.supervision.contract.updates import Pause, SkipSubtask, Steer
from tests.console.conftest import GOAL, HOLDS, Cli, Model
from tests.scripted_model import plan, script, text, when
from tests.waiting import until
from tests.workflow.runs import Lab
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import tree


async def test_new_limits_are_totals_and_what_can_not_be_is_refused(cli: Cli, standin: Model) -> None:
    standin.fails("extend-1*turn", **HOLDS)
    assert (await cli("run", GOAL, "--id", "extend-1", "--detach", "--budget-usd", "2")).code == 0
    await cli.until("extend-1", lambda status: bool(status["counts"]["running"]))
    before = await cli.json("status", "extend-1")
    for options, code, expected in [
        (["--deadline", "soon"], 2, "deadline: must be a duration"),
        (["--budget-usd", "-1"], 2, "budget.usd: Input should be greater than 0"),
        (["--budget-tokens", "1"], 1, "budget.tokens must be at least "),
        (["--deadline", "PT0.1S"], 1, "the new deadline has passed already"),
    ]:
        done = await cli("extend", "extend-1", *options)
        assert (done.code, expected in done.sentence) == (code, True), done.err
    done = await cli("extend", "extend-1", "--deadline", "PT2H", "--budget-tokens", "2000000")
    assert re.search(r"; deadline \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", done.out)
    assert done.code == 0
    assert "of 2,000,000 tokens spent" in done.out
    after = await cli.json("status", "extend-1")
    totals = after["limits"]
    assert (totals["budget_tokens"], totals["budget_usd"], totals["deadline_seconds"]) == (2_000_000, 2.0, 7200.0)
    assert after["deadline_at"] > before["deadline_at"]
    shown = (await cli("status", "extend-1")).out
    assert "review up to 3 rounds · deadline " in shown
    assert "of 2,000,000 tokens" in shown
    await cli("cancel", "extend-1")
    assert "has ended (cancelled)" in await cli.refused("extend", "extend-1", "--budget-usd", "9")


async def test_a_run_that_waits_for_its_provider_says_so_and_goes_on_when_told(cli: Cli, standin: Model) -> None:
    standin.fails("resume-1/t3", status=401, message="bad key")
    assert (await cli("run", GOAL, "--id", "resume-1", "--detach")).code == 0

    await cli.until("resume-1", lambda status: bool(status["flags"]["waiting_provider"] and status["waiting"]))
    shown = (await cli("status", "resume-1")).out
    assert "waiting for the provider" in shown
    assert "t3 waits for resume" in shown
    assert "temporal-supervisor resume resume-1`" in " ".join(shown.split())
    standin.usual()
    done = await cli("resume", "resume-1")
    assert (done.code, done.out) == (0, "run 'resume-1': continues\n")
    assert (await cli("result", "resume-1", "--wait")).code == 0
    assert (await cli("resume", "resume-1")).code == 1


async def _is_told(client: Client, workflow_id: str, word: bytes) -> bool:
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    signals = [event.workflow_execution_signaled_event_attributes for event in history.events]
    return any(word in payload.data for signal in signals for payload in signal.input.payloads)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """The runs and cursors of all questions for a status."""
    asked, status = set[tuple[str, int]](), Run.status

    def noted(run: Run, cursor: int = 0) -> Awaitable[Status]:
        asked.add((run.id, cursor))
        return status(run, cursor)

    monkeypatch.setattr(Run, "status", noted)
    return asked


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The most queries of each workflow that were under way at once."""
    most, under_way, query = Counter[str](), Counter[str](), messages.query

    async def counted(client: Client, workflow_id: str, *asked: Any) -> Any:
        under_way[workflow_id] += 1
        most[workflow_id] = max(most[workflow_id], under_way[workflow_id])
        try:
            return await query(client, workflow_id, *asked)
        finally:
            under_way[workflow_id] -= 1

    for module in (runs, trees):
        monkeypatch.setattr(module, "query", counted)
    return most


WHO = (("t1", "storey"), ("t1/t1", "walker"))


async def test_a_person_follows_and_reaches_the_subtasks_of_a_team_below(
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    asked: set[tuple[str, int]],
    at_once: Counter[str],
) -> None:
    hold, client, run_id = asyncio.Event(), lab.client, lab.run_id
    plans = {"": subtasks(item("t1", "storey")), "t1/1": subtasks(item("t1", "walker"), item("t2", "walker"))}
    lab.play(tree(plans, **{"/turn.1": when(hold, text("walked\n\nConfidence: 0.8"))}))
    handle = await lab.start(team="house")
    await until(lab.sent("t1/1/t1/1/turn.1", "t1/1/t2/1/turn.1"))
    run = Run(client, run_id)
    poller, lines = RunPoller(run), list[Line]()
    lines += await poller.poll()
    await run.whole_status()
    hasty = RunPoller(run, patience=timedelta(0))
    is_late, whole_status = asyncio.Event(), Run.whole_status
    await hasty.poll()

    async def late(run: Run) -> Status:
        await is_late.wait()
        return await whole_status(run)

    monkeypatch.setattr(Run, "whole_status", late)
    assert (
        await said(send_update(run, Pause, by="ann")) == f"run '{run_id}': paused: work stops after the turns under way"
    )
    assert not await is_seen_paused(hasty), "a round waits for the run"
    is_late.set()
    await until(partial(is_seen_paused, hasty))
    assert f"resume (it is paused): `{hint('resume', run_id).strip('`')}`" in "".join(
        cause.line for cause in waits_of_status(await run.status(), run_id)
    )
    assert await said(resume(run, "ann")) == f"run '{run_id}': continues"
    for path, problem in [
        ("t9", "the plan has no subtask 't9'"),
        ("t1/t9", "the plan has no subtask 't9'"),
        ("t1/t2/t1", f"subtask 't2' of run '{run_id}/t1/1' has no team below it"),
    ]:
        with pytest.raises((ValueError, UpdateRefused), match=re.escape(problem)):
            await send_update(run, SkipSubtask, path)
    assert (
        await said(send_update(run, Steer, "t1/t1", text="Mind the stairs", by="ann"))
        == f"run '{run_id}/t1/1': said to t1"
    )
    assert await said(send_update(run, SkipSubtask, "t1/t2", by="ann")) == f"run '{run_id}/t1/1': t2 is skipped"
    await until(partial(_is_told, client, f"{run_id}/t1/1/t1/1", b"Mind the"))
    again, afresh = await run.whole_status(), await Run(client, run_id).whole_status()
    assert (bool(again.since), afresh.since) == (True, "")
    assert again.model_copy(update={"since": ""}) == afresh
    hold.set()
    result = await handle.result()

    async def caught_up() -> bool:
        lines.extend(await poller.poll())
        return bool(poller.picture.closed) and poller.caught_up

    await until(caught_up)
    delegated = {(path, f"delegating to {role}: Find out about part {path[-2:]} of garden 1") for path, role in WHO}
    followed = {*delegated, ("t1/t1", "turn 1: walked"), ("", "done")}
    assert followed <= {(line.subject, line.text) for line in lines}
    assert set(at_once.values()) == {1}, "of two queries at once the second may take a second more"
    assert [gap.subtask_id for gap in result.gaps] == ["t1/t2"]
    assert [step for step in lab.steps if "Mind the" in lab.prompt(step)] == ["t1/1/t1/1/turn.2"]
    with pytest.raises(CommandFailed, match="has ended"):
        await send_update(run, Pause)
    at_the_end = RunPoller(run)
    asked.clear()
    monkeypatch.setattr(limits, "STATUS_PAGE", 1)
    while not (at_the_end.picture.closed and at_the_end.caught_up):
        await at_the_end.poll()
    assert asked == {(run_id, 0), (f"{run_id}/t1/1", 0)}, "each page of an ended run is a replay"
    states = {"t1": "completed", "t1/t1": "completed", "t1/t2": "skipped"}
    assert {row.path: row.report.state for row in at_the_end.picture.tree()} == states


async def test_the_last_screen_of_many_pages_is_whole_and_asks_for_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, asked: set[tuple[str, int]]
) -> None:
    lab.play(script(plan({"id": "t1"}, {"id": "t2"}, {"id": "t3"})))
    await lab.run()
    pictures = list[Picture]()
    monkeypatch.setattr(Screen, "update", lambda _, picture: pictures.append(picture))
    monkeypatch.setattr(limits, "STATUS_PAGE", 1)
    await follow(Run(lab.client, lab.run_id), Screen(console()), None)
    assert [report.state for report in pictures[-1].reports.values()] == ["completed"] * 3
    assert asked == {(lab.run_id, 0)}


async def is_seen_paused(poller: RunPoller) -> bool:
    """True if a round of questions shows that the run is paused."""
    await poller.poll()
    status = poller.picture.status
    return status is not None and status.flags.paused


async def said(command: Awaitable[Report]) -> str:
    """What a command prints."""
    (line,) = (await command).rows
    return str(line)
