"""A program and a Worker with two artifact stores: noticed before anything is put into one of them."""

from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.store.store_urls import open_store
from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.commands.doctor import _other_workers_store
from temporal_supervisor.console.run.pollers import read_pollers
from temporal_supervisor.console.run.required_workers import require_same_store
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.queues import (
    WORKFLOW_QUEUE,
    other_store,
    process_of,
    teams_of,
    worker_identity,
)
from tests.waiting import until


@workflow.defn
class Idle:
    """What a Worker needs to poll a queue."""

    @workflow.run
    async def run(self) -> None:
        """Does nothing."""


def test_the_identity_of_a_worker_says_which_store_it_uses() -> None:
    told = worker_identity("17@host", "ab12cd34ef56ab78")
    assert (process_of(told), process_of("17@host")) == ("17@host", "17@host")
    assert other_store(told, "ab12cd34ef56ab78") == ""
    assert other_store(told, "ffffffffffff0000") == other_store(told, None) == "ab12cd34ef56"
    assert other_store(worker_identity("17@host", None), "ffffffffffff0000") == ""


def test_the_identity_of_a_worker_says_which_folders_of_teams_it_reads(tmp_path: Path) -> None:
    own, other = (Settings(_env_file=None, teams_dir=each).teams_mark for each in tmp_path.parents[:2])
    assert own == Settings(_env_file=None, teams_dir=tmp_path.parent).teams_mark != other
    told = worker_identity("17@host", "ab12cd34ef56ab78", own)
    assert (process_of(told), teams_of(told)) == ("17@host", own)
    assert other_store(told, "ffffffffffff0000") == "ab12cd34ef56"
    assert teams_of(worker_identity("17@host", "ab12cd34ef56ab78")) == ""


async def test_another_store_than_the_workers_is_refused_before_files_are_put_into_it(
    tmp_path: Path,
) -> None:
    theirs, ours = (open_store(str(tmp_path / name), "n") for name in ("theirs", "ours"))
    their_id = await theirs.begin()
    async with EmbeddedServer(shared=False, db=tmp_path / "temporal.db", headless=True) as info:
        client = await connect(address=info.address)
        runner, told = UnsandboxedWorkflowRunner(), worker_identity(client.identity, their_id)
        async with Worker(
            client,
            task_queue=WORKFLOW_QUEUE,
            workflows=[Idle],
            workflow_runner=runner,
            identity=told,
        ):

            async def is_listed() -> bool:
                return bool((await read_pollers(client, WORKFLOW_QUEUE)).workers)

            await until(is_listed)
            await require_same_store(client, theirs)
            with pytest.raises(
                CommandFailed,
                match=rf"ours/n, which is new, the Worker .* another one \({their_id[:12]}",
            ):
                await require_same_store(client, ours)
            row = await _other_workers_store(client, "")
            assert row
            assert (row.level, "SUPERVISOR_ARTIFACTS_URL" in row.fix) == ("problem", True)
            assert await _other_workers_store(client, their_id) is None
