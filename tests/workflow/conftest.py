"""Settings of a run that tests wait for, and the replay of all runs at the end."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHistory

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from tests.replay.replaying import OURS, kept, refused
from tests.serving import store_of

OF_ONE_RUN = 1  # beside its own
_NO_PAUSE = timedelta()
_AS_TESTED = {**vars(limits), "ATTEMPT_PAUSE": _NO_PAUSE}
_replayed_later: set[str] = set()


@pytest.fixture
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a role whose subtasks fail be tried again after a moment."""
    monkeypatch.setattr(limits, "ROLE_BREAKER_COOLDOWN", timedelta(milliseconds=50))


@pytest.fixture
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a run that can do nothing until its deadline have one of two seconds."""
    monkeypatch.setattr(limits, "MIN_DEADLINE", timedelta(seconds=2))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a failed attempt be followed by the next one at once."""
    monkeypatch.setattr(limits, "ATTEMPT_PAUSE", _NO_PAUSE)


@pytest.fixture
def time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps most of a deadline for the answer: work may end soon, and the answer still has its time."""
    monkeypatch.setattr(limits, "SYNTHESIS_RESERVE_SHARE", 0.8)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: Any) -> Iterator[None]:
    """Notes the run of a test, unless it had other limits than those that it would be replayed with."""
    if (run_id := item.funcargs.get("run_id")) and vars(limits) == _AS_TESTED:
        _replayed_later.add(run_id)
    return (yield)


@pytest.fixture(scope="session", autouse=True)
async def replayed(client: Client) -> AsyncIterator[None]:
    """Replays histories that this folder's tests made on the session's server, at their end."""
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ATTEMPT_PAUSE", _NO_PAUSE)
        refusals = [
            f"{history.workflow_id} does not replay: {failure}\n{kept(history)}"
            async for history, failure in refused(_histories(client))
        ]
    assert not refusals, "\n\n".join(refusals)


async def _histories(client: Client) -> AsyncIterator[WorkflowHistory]:
    """Gives some histories of each run: most worker agents of a wide one went the same way."""
    types = ", ".join(f"'{workflow.__name__}'" for workflow in OURS)
    left = dict.fromkeys(_replayed_later, OF_ONE_RUN)
    async for run in client.list_workflows(f"WorkflowType IN ({types})"):
        root = run.id.partition("/")[0]
        if left.get(root, 0) > 0 or run.id in left:
            left[root] -= 1
            yield await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()


@pytest.fixture
async def store(client: Client, settings: Settings) -> ArtifactStore:
    """The store of the session's Worker."""
    return await store_of(client, settings.artifacts_url)


@pytest.fixture
def own_models(run_id: str) -> dict[str, str]:
    """Models of this test's own: a provider's breaker belongs to a model and outlives the run."""
    return {"supervisor": f"{run_id}-supervisor", "workers": f"{run_id}-workers"}


@pytest.fixture
def short_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tenths of seconds in place of half minutes; an outage of half a second is long."""
    monkeypatch.setattr(limits, "BREAKER_COOLDOWN", timedelta(seconds=0.4))
    monkeypatch.setattr(limits, "CIRCUIT_RETRY_BELOW", timedelta(seconds=0.5))
    monkeypatch.setattr(limits, "PROVIDER_PAUSE", timedelta(seconds=0.3))
    monkeypatch.setattr(limits, "PROVIDER_PAUSE_MAX", timedelta(seconds=0.5))
    monkeypatch.setattr(limits, "MODEL_RETRY_INITIAL", timedelta(seconds=0.1))
