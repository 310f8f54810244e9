"""Deleting what nobody uses any more from a store that others may share."""

import hashlib
import os
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from supervision.base.store_keys import home_key, output_key, run_prefix
from tests.console.conftest import GOAL, Cli


def _stored(store: Path, run_id: str, *namespace_ids: str, content: bytes = b"{}") -> Path:
    """Writes what a run of those namespaces left long ago; returns its folder."""
    keys = [home_key(run_id, namespace_id) for namespace_id in namespace_ids]
    for key in [*keys, output_key(run_id, hashlib.sha256(content).hexdigest())]:
        file = store / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(run_id.encode() if key in keys else content)
        os.utime(file, (1, 1))
    return store / run_prefix(run_id)


@pytest.fixture
def pruning(alone: Cli, tmp_path: Path) -> Cli:
    """Commands with a store of their own, where no Worker serves and open runs stay open."""
    return alone.with_environ(SUPERVISOR_ARTIFACTS_URL=str(tmp_path / "artifacts"))


async def _open(cli: Cli, run_id: str, *options: str) -> None:
    assert (await cli("run", GOAL, "--id", run_id, "--detach", "--queue-anyway", *options)).code == 0


async def _namespace_id(cli: Cli) -> str:
    client = await Client.connect(cli.environ["TEMPORAL_ADDRESS"])
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    return described.namespace_info.id


async def test_pruning_takes_old_ended_runs_and_nothing_else(pruning: Cli, tmp_path: Path) -> None:
    store, own, long_id = tmp_path / "artifacts", await _namespace_id(pruning), "open-" + "ü" * 100
    await _open(pruning, "open/1")
    await _open(pruning, long_id)
    stay = [_stored(store, "open/1", own), _stored(store, long_id, own), _stored(store, "young-1", own)]
    os.utime(next(stay[2].rglob(f"{home_key('young-1', own).split('/')[1]}")))
    goes = [_stored(store, "ended-1", own), _stored(store, "ended-" + "ü" * 100, own)]

    unreachable = await pruning("--address", "127.0.0.1:1", "prune", "--older-than", "30d", "--yes")
    assert unreachable.code == 3
    listed = await pruning("prune", "--older-than", "30d")
    assert listed.code == 0, listed.err
    assert [line.split()[-1].partition("%")[0] for line in listed.out.splitlines()] == ["ended-1", "ended-"], listed.err
    assert all(folder.exists() for folder in goes)
    done = await pruning("prune", "--older-than", "30d", "--yes")
    assert done.code == 0
    assert "left alone" not in done.err
    assert not any(folder.exists() for folder in goes)
    assert all(folder.exists() for folder in stay)


async def test_pruning_leaves_and_counts_what_others_may_use(pruning: Cli, tmp_path: Path) -> None:
    store, own = tmp_path / "artifacts", await _namespace_id(pruning)
    stay = [
        _stored(store, "of-another-server", "another-id"),
        _stored(store, "of-both", own, "another-id"),
        _stored(store, "of-nobody"),
    ]
    done = await pruning("prune", "--older-than", "0m", "--yes")
    assert done.code == 0
    assert "left alone: 3 old runs that another namespace or server may use" in done.err
    assert all(folder.exists() for folder in stay)


async def test_pruning_takes_old_uploads_that_nobody_uses(pruning: Cli, tmp_path: Path) -> None:
    store, own = tmp_path / "artifacts", await _namespace_id(pruning)
    files = {name: tmp_path / f"{name}.txt" for name in ("unused", "young", "requested", "copied")}
    uploads = {}
    for name, file in files.items():
        file.write_text(f"the text {name}")
        uploads[name] = store / (await pruning("put", str(file))).out.strip()
        if name != "young":
            os.utime(uploads[name], (1, 1))
    _stored(store, "of-another-server", "another-id", content=files["copied"].read_bytes())
    await _open(pruning, "asks-for-one", "--attach", str(files["requested"]))
    os.utime(uploads["requested"], (1, 1))
    _stored(store, "ended-2", own, content=files["unused"].read_bytes())

    done = await pruning("prune", "--older-than", "30d", "--yes")
    assert done.code == 0
    assert {name for name, file in uploads.items() if file.exists()} == {"young", "requested", "copied"}
    (await pruning("put", str(files["copied"]))).out.strip()  # stored again, it is young again
    assert uploads["copied"].stat().st_mtime > 1


async def test_a_run_marks_its_objects_as_its_namespaces(cli: Cli, place: Path) -> None:
    assert (await cli("run", GOAL, "--id", "marked-1")).code == 0
    mark = place / "artifacts" / home_key("marked-1", await _namespace_id(cli))
    assert mark.read_text() == "marked-1"
