"""Grants: data that nobody can change, found by the run that they were issued for and by no other."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from activities.store.artifacts import ArtifactChanged, open_store
from activities.store.grants import Grants, RunGrant
from supervision.base.store_keys import digest_of, is_grant


def grant(**fields: Any) -> RunGrant:
    made = {
        "run_id": "run",
        "workflow_id": "run",
        "depth": 1,
        "models": ["large"],
        "nested_teams": ["crew"],
        "expires_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return RunGrant.model_validate(made | fields)


async def test_a_grant_is_named_by_what_it_grants(store_url: str) -> None:
    grants = Grants(open_store(store_url))
    ref = await grants.write(grant())
    assert is_grant(ref, "run")
    assert await grants.write(grant()) == ref
    more = {
        "workflow_id": "run/t1/1",
        "depth": 2,
        "models": ["large", "small"],
        "nested_teams": [],
        "expires_at": datetime(2027, 1, 1, tzinfo=UTC),
    }
    others = {await grants.write(grant(**{name: value})) for name, value in more.items()}
    assert len(others - {ref}) == len(more)
    assert {digest_of(name) for name in others}.isdisjoint({None, digest_of(ref)})


@pytest.mark.parametrize("change", [b"", b"{}", grant(models=["large", "secret"]).model_dump_json().encode()])
async def test_a_grant_that_was_changed_in_the_store_is_refused(store_url: str, change: bytes) -> None:
    store = open_store(store_url)
    ref = await Grants(store).write(grant())
    await store.put(ref, change)
    with pytest.raises(ArtifactChanged, match="not what was stored"):
        await Grants(store).find("run", ref)


async def test_a_grant_of_another_run_is_none_before_and_after_it_is_known(tmp_path: Path) -> None:
    grants = Grants(open_store(tmp_path))
    ref = await grants.write(grant())
    assert await grants.find("other", ref) is None
    assert await grants.find("run", ref) == grant()
    assert await grants.find("other", ref) is None
    assert await grants.find("run2", ref) is None
