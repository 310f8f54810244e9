"""What is wrong is expected in one sentence, with the right exit code, and nothing is started; odd rows hide none."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Memo, Payload, Payloads, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import Client

from tests.console.conftest import GOAL, Cli
from tests.waiting import until


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run"], "no goal"),
        (["run", GOAL, "--deadline", "soon"], "deadline"),
        (["run", GOAL, "--answer-schema", "list.json"], "must hold an object"),
        (["run", "--request", "missing.json"], "No such file"),
        (["run", GOAL, "--request", "broken.json"], "not JSON"),
        (["run", "--request", "unknown.json"], "unknown field"),
        (["run", GOAL, "--attach", "binary.bin"], "not UTF-8 text"),
        (["put", "binary.bin"], "not UTF-8 text"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_bad_input_ends_with_2(alone: Cli, words: list[str], expected: str) -> None:
    (alone.folder / "list.json").write_text("[1, 2]")
    (alone.folder / "broken.json").write_text("{")
    (alone.folder / "unknown.json").write_text(json.dumps({"goal": GOAL, "colour": "red"}))
    (alone.folder / "binary.bin").write_bytes(b"\x00\xff\xfe")
    done = await alone(*words)
    assert done.code == 2
    assert expected in done.sentence
    assert done.out == ""


async def test_a_goal_of_5_mb_ends_with_2(alone: Cli) -> None:
    done = await alone("run", "-", stdin=b"x" * 5_000_000)
    assert (done.code, "more than 49152 bytes" in done.sentence) == (2, True)


@pytest.mark.parametrize("words", [["run", GOAL], ["status", "x"]])
async def test_without_a_server_commands_end_with_3(alone: Cli, words: list[str]) -> None:
    done = await alone("--address", "127.0.0.1:1", *words)
    assert done.code == 3
    assert "no Temporal server at 127.0.0.1:1" in done.sentence


async def test_a_namespace_that_does_not_exist_is_named(alone: Cli) -> None:
    done = await alone("--namespace", "nowhere", "run", GOAL)
    assert done.code == 3
    assert "no namespace 'nowhere'" in done.sentence


async def test_without_a_worker_no_run_is_started(alone: Cli) -> None:
    done = await alone("run", GOAL, "--id", "nobody-there")
    assert done.code == 3
    assert " worker`" in done.sentence
    assert "ANTHROPIC_API_KEY" in done.sentence
    assert (await alone("status", "nobody-there")).code == 1


@pytest.mark.parametrize("command", ["follow", "result", "cancel"])
async def test_an_unknown_run_ends_with_1(alone: Cli, command: str) -> None:
    done = await alone(command, "no-such-run")
    assert done.code == 1
    assert "there is no run 'no-such-run'" in done.sentence


async def test_a_broken_team_is_shown_with_the_reason_beside_the_good_ones(alone: Cli, tmp_path: Path) -> None:
    (tmp_path / "bent").mkdir()
    (tmp_path / "bent" / "team.toml").write_text("name = [")
    done = await alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))("teams")
    assert done.code == 1
    assert "analyst" in done.out
    assert "team 'bent' can't be used" in done.err
    assert len(done.err.strip().splitlines()) == 1
    done = await alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path / "tems"))("teams")
    assert done.err == f"SUPERVISOR_TEAMS_DIR names {tmp_path / 'tems'}, which is no folder\n"


async def test_a_wrong_setting_is_named(alone: Cli) -> None:
    done = await alone.with_environ(SUPERVISOR_MODEL_RPM="fast")("put", "x")
    assert done.code == 2
    assert "error: SUPERVISOR_MODEL_RPM: " in done.sentence


ODD = {
    "unknown encoding": Payload(metadata={"encoding": b"binary/evil"}, data=b"x"),
    "no encoding": Payload(data=b"\xff"),
    "no JSON": Payload(metadata={"encoding": b"json/plain"}, data=b"{"),
    "deep": Payload(metadata={"encoding": b"json/plain"}, data=b"[" * 1500 + b"]" * 1500),
    "escapes": Payload(metadata={"encoding": b"json/plain"}, data=b'"\\u001b]0;evil\\u0007\\u202e"'),
}


@pytest.fixture
async def rows(alone: Cli) -> AsyncIterator[list[str]]:
    """The ids of open runs with such memos, beside ordinary ones; nobody serves their queue."""
    client = await Client.connect(alone.environ["TEMPORAL_ADDRESS"])
    ids = [f"odd-{uuid4().hex[:8]}" for _ in ODD]
    for run_id, odd in zip(ids, ODD.values(), strict=True):
        await client.workflow_service.start_workflow_execution(
            StartWorkflowExecutionRequest(
                namespace="default",
                request_id=run_id,
                workflow_id=run_id,
                workflow_type=WorkflowType(name="SupervisorWorkflow"),
                task_queue=TaskQueue(name="nobody-polls"),
                input=Payloads(payloads=[odd]),
                memo=Memo(fields={"phase": odd, "team": odd, "partial": odd}),
            )
        )

    async def are_listed() -> bool:
        return {run.id async for run in client.list_workflows()}.issuperset(ids)

    await until(are_listed)
    yield ids
    for run_id in ids:
        await client.get_workflow_handle(run_id).terminate()


async def test_commands_survive_any_row(alone: Cli, rows: list[str]) -> None:
    of_one = [(command, run_id) for command in ("status", "result") for run_id in rows]
    listed, doctor, *others = await asyncio.gather(*(alone(*words) for words in [("list",), ("doctor",), *of_one]))
    for words, done in zip(["list", "doctor", *of_one], [listed, doctor, *others], strict=True):
        assert "unexpected" not in done.err, (words, done.err)
        assert "\x1b" not in done.out + done.err, words
    assert listed.code == 0
    assert [run_id for run_id in rows if run_id not in listed.out] == []
    assert "open run" in doctor.out
