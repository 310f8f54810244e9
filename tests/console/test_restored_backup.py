"""A store restored from an older backup: what the history names and the store lacks is waited for, never believed."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import Status
from tests.console.conftest import Cli
from tests.scripted_model import Reply, ScriptedModel, Step, answer, plan, script, scripted_model, text, tools, when
from tests.serving import address_of, own_server, settings_for
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Handle, status_of
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

RUN = "restored"
LOOK = tools(("lookup", {"query": "pears"}))


@dataclass
class Workshop:
    """A server, a model whose second turns wait for `go`, a store, and commands."""

    client: Client
    cli: Cli
    model: ScriptedModel
    settings: Settings
    store: Path
    go: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def steps(self) -> list[str]:
        """The calls of the run that the model got."""
        return self.model.steps(RUN)

    async def paused_after_a_backup(self) -> Handle:
        """Returns a paused run whose agent's first turn was stored after the backup; its Worker has ended."""
        shape = plan({"id": "t1"})
        self.model.play(RUN, script(when(self.go, shape), {"t1": self._turn}, answer()))
        async with serving(self.client, self.settings, strict_sandbox=False):
            handle = await runs.start(self.client, RUN, team="lab")
            await until(lambda: "plan.1.1" in self.steps)
            shutil.copytree(self.store, self.store.with_name("backup"))
            self.go.set()
            await until(lambda: "t1/1/turn.2" in self.steps)
            await handle.execute_update("pause", {})
            self.finish.set()
            await until(lambda: runs.is_answered(self.client, RUN))
        return handle

    finish: asyncio.Event = field(default_factory=asyncio.Event)

    def _turn(self, step: Step) -> Reply:
        if step.number == 1:
            return LOOK
        if step.number == 2:
            return when(self.finish, LOOK)
        return text("found it\n\nConfidence: 0.8\nLimitations: none")

    def restore(self) -> None:
        """Puts the backup in the place of the store."""
        self.store.rename(self.store.with_name("true"))
        shutil.copytree(self.store.with_name("backup"), self.store)

    def bring_back(self) -> None:
        """Puts the true store back."""
        shutil.rmtree(self.store)
        self.store.with_name("true").rename(self.store)


@pytest.fixture
async def workshop(base: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workshop]:
    """See `Workshop`."""
    monkeypatch.setattr(limits, "GRACEFUL_SHUTDOWN", timedelta(milliseconds=100))
    monkeypatch.setattr(limits, "STORE_RETRY_MAX", timedelta(seconds=0.5))
    monkeypatch.setattr(limits, "STORE_WATCH_MAX", timedelta(seconds=0.5))
    async with own_server() as client, scripted_model() as model:
        store = tmp_path / "artifacts"
        environ = {**base, "TEMPORAL_ADDRESS": address_of(client), "SUPERVISOR_ARTIFACTS_URL": str(store)}
        yield Workshop(client, Cli(environ, tmp_path), model, settings_for(model.url, store), store)


async def lost(handle: Handle) -> Status:
    """Returns the status of a run that has noticed what is gone."""

    async def waits() -> bool:
        return (await status_of(handle)).flags.waiting_store

    await until(waits, 40)
    return await status_of(handle)


@pytest.mark.timeout(180)
async def test_a_run_names_what_a_backup_lacks_and_goes_on_when_the_true_store_is_back(workshop: Workshop) -> None:
    handle = await workshop.paused_after_a_backup()
    workshop.restore()
    async with serving(workshop.client, workshop.settings, strict_sandbox=False):
        await handle.execute_update("resume", {})
        (wait,) = [wait for wait in (await lost(handle)).waiting if wait.kind == "store"]
        assert "has no object 'restored/" in wait.prompt_preview
        paid = list(workshop.steps)
        workshop.bring_back()
        result = await asyncio.wait_for(handle.result(), 60)
    assert (result.status, result.gaps) == ("completed", [])
    assert workshop.steps[: len(paid)] == paid
    assert len(set(workshop.steps)) == len(workshop.steps)


@pytest.mark.timeout(180)
async def test_what_is_lost_for_good_is_paid_again_when_a_person_says_so(workshop: Workshop) -> None:
    handle = await workshop.paused_after_a_backup()
    workshop.restore()
    async with serving(workshop.client, workshop.settings, strict_sandbox=False):
        await handle.execute_update("resume", {})
        await lost(handle)
        paid = len(workshop.steps)
        done = await workshop.cli("repair", RUN)
        assert "nothing to repair" in done.out
        assert len(workshop.steps) == paid
        elsewhere = workshop.cli.with_environ(SUPERVISOR_ARTIFACTS_URL=str(workshop.store.with_name("elsewhere")))
        assert "has no id, the run uses the store" in await elsewhere.refused("repair", RUN, "--pay-again", code=3)
        assert len(workshop.steps) == paid, "in another store nothing counts as lost"
        done = await workshop.cli("repair", RUN, "--pay-again")
        assert done.code == 0, done.err
        assert "names an object that the store has lost" in done.out
        handle = workshop.client.get_workflow_handle_for(SupervisorWorkflow.run, RUN)
        result = await asyncio.wait_for(handle.result(), 60)
        assert not (await status_of(handle)).flags.waiting_store
    assert (result.status, result.gaps) == ("completed", [])
    assert "t1/1/turn.1" in workshop.steps[paid:]
    again = await workshop.cli("repair", RUN, "--pay-again")
    assert "has ended" in again.err
