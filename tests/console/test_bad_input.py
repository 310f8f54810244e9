"""What is wrong is expected in one sentence, with the right exit code, and nothing is started; odd rows hide none."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue

from tests.console.conftest import GOAL, Cli
from tests.waiting import until


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["run"], 2, "no goal"),
        (["run", GOAL, "--deadline", "soon"], 2, "deadline"),
        (["run", GOAL, "--answer-schema", "list.json"], 2, "must hold an object"),
        (["run", "--request", "missing.json"], 2, "No such file"),
        (["run", GOAL, "--request", "broken.json"], 2, "not JSON"),
        (["run", "--request", "unknown.json"], 2, "unknown field"),
        (["run", GOAL, "--attach", "binary.bin"], 2, "not UTF-8 text"),
        (["run", "-"], 2, "more than 49152 bytes"),
        (["put", "binary.bin"], 2, "not UTF-8 text"),
        (["--address", "127.0.0.1:1", "run", GOAL], 3, "no Temporal server at 127.0.0.1:1"),
        (["--address", "127.0.0.1:1", "status", "x"], 3, "no Temporal server at 127.0.0.1:1"),
        (["--namespace", "nowhere", "run", GOAL], 3, "no namespace 'nowhere'"),
        (["follow", "no-such-run"], 1, "there is no run 'no-such-run'"),
        (["result", "no-such-run"], 1, "there is no run 'no-such-run'"),
        (["cancel", "no-such-run"], 1, "there is no run 'no-such-run'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_what_is_wrong_is_said_in_one_sentence(alone: Cli, words: list[str], code: int, expected: str) -> None:
    (alone.folder / "list.json").write_text("[1, 2]")
    (alone.folder / "broken.json").write_text("{")
    (alone.folder / "unknown.json").write_text(json.dumps({"goal": GOAL, "colour": "red"}))
    (alone.folder / "binary.bin").write_bytes(b"\x00\xff\xfe")
    done = await alone(*words, stdin=b"x" * 5_000_000)
    assert (done.code, expected in done.sentence, done.out) == (code, True, "")


async def test_without_a_worker_no_run_is_started(alone: Cli) -> None:
    said = await alone.refused("run", GOAL, "--id", "nobody-there", code=3)
    assert " worker`" in said
    assert "ANTHROPIC_API_KEY" in said
    assert (await alone("status", "nobody-there")).code == 1


async def test_a_broken_team_is_shown_with_the_reason_beside_the_good_ones(alone: Cli, tmp_path: Path) -> None:
    (tmp_path / "bent").mkdir()
    (tmp_path / "bent" / "team.toml").write_text("name = [")
    done = await alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path))("teams")
    assert done.code == 1
    assert "Why do octopuses have three hearts?" in done.out
    assert "team 'bent' can't be used" in done.err
    assert len(done.err.strip().splitlines()) == 1
    done = await alone.with_environ(SUPERVISOR_TEAMS_DIR=str(tmp_path / "tems"))("teams")
    assert done.err == f"SUPERVISOR_TEAMS_DIR names {tmp_path / 'tems'}, which is no folder\n"


async def test_a_wrong_setting_is_named(alone: Cli) -> None:
    for name, value in {"RPM": "fast", "IDLE_SECONDS": "inf"}.items():
        said = await alone.with_environ(**{f"SUPERVISOR_MODEL_{name}": value}).refused("put", "x", code=2)
        assert said.startswith(f"error: SUPERVISOR_MODEL_{name}: ")
    assert "'--port'" in (await alone("serve", "--port", "99999")).err


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
        memo = {name: RawValue(odd) for name in ("phase", "team", "partial")}
        await client.start_workflow(
            "SupervisorWorkflow", RawValue(odd), id=run_id, task_queue="nobody-polls", memo=memo
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
