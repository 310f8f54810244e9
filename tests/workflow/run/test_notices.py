"""Notices of runs to the operator's command or URL: what they say, and that no run waits for them before its end."""

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import Notice, RunRef
from activities.run.notices import NoticeActivities, NotSent, line_of
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.request import describe_errors
from tests.activity.model.http_fixture import Exchange, model_server
from tests.scripted_model import Reply, Step, plan, script
from tests.serving import own_server
from tests.waiting import until
from tests.workflow.plan.test_approval import asked, decide
from tests.workflow.runs import Lab, failure
from tests.workflow.subtasks.test_people import asking, reply
from worker_main import serving

KEEPING = (
    "import os, sys; open(sys.argv[1], 'a').write(sys.stdin.read().strip() + '\\t' + ' '.join(os.environ) + '\\n')"
)


@pytest.fixture(scope="module")
async def elsewhere() -> AsyncIterator[Client]:
    """A client of a server of this module's own."""
    async with own_server() as client:
        yield client


def telling(settings: Settings, target: str) -> Settings:
    return settings.model_copy(update={"notify": SecretStr(target)})


def nested_asking(step: Step) -> Reply:
    """A team below asks a question."""
    if step.kind == "turn":
        return asking(step)
    is_root = step.call == f"{step.run_id}/plan.1.1"
    return script(plan({"id": "t1", "role": "group"} if is_root else {"id": "n1", "role": "asker"}))(step)


async def test_a_command_gets_a_line_for_each_wait_on_any_level_and_each_end(
    lab: Lab, settings: Settings, elsewhere: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("NOTIFY_TOKEN", "for the command")
    file, other = tmp_path / "notices", lab.named(f"{lab.run_id}-2").on(elsewhere)
    lab, target = lab.on(elsewhere), f'{sys.executable} -c "{KEEPING}" {file}'
    lab.play(nested_asking)
    other.play(script(plan({"id": "t1"})))
    async with serving(elsewhere, telling(settings, target)):
        handle = await lab.start(team="people", approve_plan=True, metadata={"owner": "ann"})
        await asked(handle)
        await handle.execute_update("pause", {})
        await handle.execute_update("resume", {})
        await decide(handle, 1, "approve")
        question = await asked(handle, "t1/1/n1/1:1.0")
        await reply(elsewhere.get_workflow_handle(question.workflow_id), question.id, "2026")
        confidence = (await handle.result()).confidence
        rejected = await other.start(approve_plan=True)
        await asked(rejected)
        await decide(rejected, 1, "reject")
        await failure(rejected)
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    notices: list[dict[str, Any]] = [json.loads(line) for line, _ in lines]
    told = [(n["event"], n["kind"], n["id"], n["status"], n["error"], n["confidence"]) for n in notices]
    assert sorted(told[:4]) == [
        ("ended", "ended", None, "completed", None, confidence),
        ("waiting", "paused", None, "running", None, None),
        ("waiting", "plan", "plan.1", "running", None, None),
        ("waiting", "question", "t1/1/n1/1:1.0", "running", None, None),
    ]
    assert sorted(told[4:]) == [  # each is an activity of its own, and may come after the next
        ("failed", "ended", None, "failed", "PlanRejected", None),
        ("waiting", "plan", "plan.1", "running", None, None),
    ]
    assert [n["owner"] for n in notices] == ["ann"] * 4 + [""] * 2
    assert len({n["key"] for n in notices}) == 6
    first = {notice["kind"]: notice for notice in notices[:4]}  # in any order, too
    assert first["plan"]["show"] == f"temporal-supervisor show {lab.run_id} plan.1"
    assert first["plan"]["text"] == f"{lab.run_id} waits for a decision on the plan ({first['plan']['show']})"
    assert first["ended"]["text"].endswith(f"has ended: completed (temporal-supervisor result {lab.run_id})")
    assert "year" not in file.read_text()
    assert {"PATH", "NOTIFY_TOKEN"} <= set(lines[0][1].split())
    assert "ANTHROPIC_API_KEY" not in lines[0][1]


async def test_a_run_waits_only_at_its_end_for_a_url_that_is_slow_and_fails(
    lab: Lab, settings: Settings, elsewhere: Client
) -> None:
    released, paths = asyncio.Event(), dict[str, list[str]]()

    async def answered(exchange: Exchange) -> None:
        tries = paths.setdefault(exchange.body["key"], [])
        tries.append(exchange.path)
        if exchange.body["kind"] == "ended":
            await exchange.head(200, content_length="0")
        elif len(tries) == 2:
            await exchange.head(307, location="/elsewhere", content_length="0")
        else:
            await released.wait()
            await exchange.head(500, content_length="0")

    lab = lab.on(elsewhere)
    lab.play(script(plan({"id": "t1"})))
    async with model_server(answered) as server, serving(elsewhere, telling(settings, f"{server.url}/hook")):
        handle = await lab.start(approve_plan=True)
        await server.arrived.wait()
        await decide(handle, 1, "approve")
        await until(lab.sent("synthesis.1"))  # all its work, beside the first try
        released.set()
        result = await handle.result()
    assert result.status == "completed"
    assert list(paths.values()) == [["/hook"] * 3, ["/hook"]]


def test_a_notice_calls_nobody_and_links_nowhere() -> None:
    """A model that starts a run by a client names it so that a chat would show a link of the attacker's."""
    run_id = "<!channel> <https://evil.example/?q=SECRET|Approve here>\nnow"
    notice = Notice(run=RunRef(run_id=run_id), event="waiting", kind="plan", id="plan.1", status="running", at="")
    said = json.loads(line_of(notice, "key"))
    assert "<" not in said["text"]
    assert "\n" not in said["text"]
    assert said["run_id"] == run_id


async def test_a_try_is_bounded_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NOTICE_TIME", timedelta(seconds=1))
    notice = Notice(run=RunRef(run_id="run"), event="waiting", kind="provider", status="running", at="")
    program, beat = f"{sys.executable} -c", tmp_path / "beat"
    endless = f"{program} \"import pathlib, time\nwhile 1: pathlib.Path('{beat}').touch(); time.sleep(0.01)\""
    async with model_server(lambda exchange: exchange.until_client_leaves()) as server:
        for target in (endless, server.url):
            with pytest.raises(NotSent, match=r"longer than 1 s|can't be reached"):
                await ActivityEnvironment().run(NoticeActivities(shlex.split(target)).notify, notice)
    beat.unlink()
    await asyncio.sleep(0.1)  # in which it would beat again, had it not ended
    assert not beat.exists()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", []),
        ("curl -d @- https://chat.example/hook", ["curl", "-d", "@-", "https://chat.example/hook"]),
        ("https://chat.example/hook", ["https://chat.example/hook"]),
        ("http://127.0.0.1:8080/", ["http://127.0.0.1:8080/"]),
        ("http://chat.example/hook", None),
        ("ftp://chat.example/hook", None),
        ("https:///hook", None),
        ("https://chat.example/hook --fast", None),
        ("sh -c 'no end", None),
    ],
)
def test_the_setting_is_a_command_or_one_private_url(value: str, words: list[str] | None) -> None:
    if words is not None:
        assert Settings(_env_file=None, notify=SecretStr(value)).notice_words == words
        return
    with pytest.raises(ValidationError) as caught:
        Settings(_env_file=None, notify=SecretStr(value))
    assert "chat.example" not in describe_errors(caught.value)


def test_a_worker_without_the_command_does_not_start() -> None:
    with pytest.raises(ValueError, match="no program 'no-such-program'"):
        NoticeActivities(["no-such-program"])
