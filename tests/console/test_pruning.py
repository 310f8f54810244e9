"""Deleting what nobody uses any more from a store that others may share."""

import hashlib
import os
from functools import partial
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from activities.store.store_urls import open_store
from temporal_supervisor.console.base.command import Access, CommandFailed
from temporal_supervisor.console.commands import store_commands
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import connect, namespace_id
from temporal_supervisor.supervision.base.store_keys import encode, named_key, output_key, run_prefix
from tests.console.conftest import GOAL, Cli
from tests.waiting import until


def _stored(part: Path, run_id: str, content: bytes = b"{}") -> Path:
    """Writes what a run left long ago into a namespace's part of the store; returns its folder."""
    for key_of, data in ((partial(named_key, "grant"), b"{}"), (output_key, content)):
        file = part / key_of(run_id, hashlib.sha256(data).hexdigest())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (1, 1))
    return part / run_prefix(run_id)


@pytest.fixture
def pruning(alone: Cli, tmp_path: Path) -> Cli:
    """Commands with a store of their own, where no Worker serves and open runs stay open."""
    return alone.with_environ(SUPERVISOR_ARTIFACTS_URL=str(tmp_path / "artifacts"))


@pytest.fixture
async def own(pruning: Cli) -> Path:
    """The part of the store that is the namespace's."""
    client = await Client.connect(pruning.environ["TEMPORAL_ADDRESS"])
    return Path(pruning.environ["SUPERVISOR_ARTIFACTS_URL"]) / encode(await namespace_id(client))


async def _open(cli: Cli, run_id: str, *options: str) -> None:
    assert (await cli("run", GOAL, "--id", run_id, "--detach", "--queue-anyway", *options)).code == 0


async def test_pruning_takes_old_ended_runs_of_the_own_namespace_and_nothing_else(pruning: Cli, own: Path) -> None:
    too_long = "ü" * 100  # for a key
    stays = ("open/1", f"open-{too_long}", "young-1")
    for run_id in stays[:2]:
        await _open(pruning, run_id)
    stay = [_stored(own.parent / "other", "1"), *(_stored(own, run_id) for run_id in stays)]
    os.utime(next(stay[3].rglob("grant.*")))
    gone = [_stored(own, run_id) for run_id in ("ended-1", f"ended-{too_long}")]

    unreachable = await pruning("--address", "127.0.0.1:1", "prune", "--older-than", "30d", "--yes")
    assert unreachable.code == 3
    listed = await pruning("prune", "--older-than", "30d")
    assert listed.code == 0, listed.err
    assert sorted(line.split()[-1][:7] for line in listed.out.splitlines()) == ["ended-1", "ended-ü"], listed.err
    assert all(folder.exists() for folder in gone)
    await pruning.out("prune", "--older-than", "30d", "--yes")
    assert not any(folder.exists() for folder in gone)
    assert all(folder.exists() for folder in stay)


async def test_pruning_takes_old_uploads_that_nobody_uses(pruning: Cli, own: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.txt" for name in ("unused", "young", "copied")}
    uploads = {}
    for name, file in files.items():
        file.write_text(f"the text {name}")
        uploads[name] = own / (await pruning("put", str(file))).out.strip()
        if name != "young":
            os.utime(uploads[name], (1, 1))
    os.utime(next(_stored(own, "young-2", files["copied"].read_bytes()).rglob("grant.*")))
    _stored(own, "ended-2", files["unused"].read_bytes())
    await _open(pruning, "begins", "--data", str(files["copied"]))
    client = await Client.connect(pruning.environ["TEMPORAL_ADDRESS"])

    async def begins() -> bool:
        return "the open run 'begins' has read its own" in (await pruning("prune", "--older-than", "30d")).err

    await until(begins, 20)
    assert all(file.exists() for file in uploads.values())
    async for run in client.list_workflows("ExecutionStatus = 'Running'"):
        await client.get_workflow_handle(run.id).terminate()

    async def none_begins() -> bool:
        return uploads["unused"].name in (await pruning("prune", "--older-than", "30d")).out

    await until(none_begins, 20)
    await pruning.out("prune", "--older-than", "30d", "--yes")
    assert {name for name, file in uploads.items() if file.exists()} == {"young", "copied"}
    (await pruning("put", str(files["copied"]))).out.strip()  # stored again, it is young again
    assert uploads["copied"].stat().st_mtime > 1


async def test_an_ended_run_is_deleted_with_its_objects_and_an_open_one_never(pruning: Cli, own: Path) -> None:
    await _open(pruning, "it's open")
    kept = [_stored(own, "it's open"), _stored(own, "gone-2")]
    folder = _stored(own, "gone")
    assert "is open" in await pruning.refused("delete", "it's open", "--yes")
    assert (await pruning("delete", "gone")).code == 1
    assert folder.exists()
    done = await pruning("delete", "gone", "--yes")
    assert (done.code, folder.exists(), [each.exists() for each in kept]) == (0, False, [True, True]), done.err
    assert (await pruning("delete", "gone", "--yes")).code == 1
    client = await Client.connect(pruning.environ["TEMPORAL_ADDRESS"])
    await client.get_workflow_handle("it's open").terminate()

    async def known() -> bool:
        done = await pruning("delete", "it's open", "--yes")
        return "; the server is deleting 1 workflow, which" in done.err  # so it says again until that is done

    await until(known, 20)
    assert not kept[0].exists()


async def test_a_run_that_is_started_again_while_the_question_is_open_keeps_its_objects(
    pruning: Cli, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _stored(own, "again")
    client = await connect(address=pruning.environ["TEMPORAL_ADDRESS"])

    def starts_again(question: str, yes: bool) -> bool:
        asked.append(question)
        return True

    asked: list[str] = []

    class Opened(Access):
        async def store(self) -> ArtifactStore:
            return open_store(own.parent, await namespace_id(client))

    closed = store_commands._is_closed
    looks = 0

    async def closed_until_asked(client: Client, run_id: str) -> bool:
        nonlocal looks
        looks += 1
        if asked and looks == 2:
            await _open(pruning, "again")
        return await closed(client, run_id)

    monkeypatch.setattr(store_commands, "_confirm", starts_again)
    monkeypatch.setattr(store_commands, "_is_closed", closed_until_asked)
    with pytest.raises(CommandFailed, match="run 'again' is open"):
        await store_commands.delete_run(Run(client, "again"), Opened())
    assert len(asked) == 1
    assert list(folder.rglob("grant.*"))
