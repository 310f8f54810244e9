"""Artifact stores to test against: a local directory, and a bucket of a real S3 API server on loopback."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.activity.supervising import Desk
from tests.bucket import s3_endpoint, s3_environment, s3_url
from tests.scripted_model import ScriptedModel

__all__ = ["s3_endpoint", "s3_environment", "s3_url"]


@pytest.fixture(params=["directory", "s3"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh store of each kind."""
    return str(tmp_path / "artifacts") if request.param == "directory" else str(request.getfixturevalue("s3_url"))


@pytest.fixture
async def desk(model: ScriptedModel, run_id: str, tmp_path: Path) -> AsyncIterator[Desk]:
    """A run's store and teams, and the supervisor's activities on the scripted model."""
    teams = tmp_path / "teams"
    teams.mkdir()
    made = Desk(model, run_id, tmp_path / "artifacts", teams)
    yield made
    await made.close()
