"""Settings of a run that tests wait for."""

from datetime import timedelta

import pytest

from supervision import limits


@pytest.fixture
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a role whose subtasks fail be tried again after a moment."""
    monkeypatch.setattr(limits, "ROLE_BREAKER_COOLDOWN", timedelta(milliseconds=50))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a failed attempt be followed by the next one at once."""
    monkeypatch.setattr(limits, "ATTEMPT_PAUSE", timedelta())
