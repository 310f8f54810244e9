"""The file by which a Worker shows that it lives."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from runtime.health import is_alive, main, shown_alive
from tests.waiting import until


async def test_a_file_is_renewed_while_the_loop_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.health._HEALTH_BEAT", timedelta(milliseconds=10))
    file = tmp_path / "alive"
    async with shown_alive(file):
        assert is_alive(file)
        os.utime(file, (0, 0))
        await until(lambda: is_alive(file))
        assert main([str(file)]) == 0
    assert not file.exists()
    assert main([str(file)]) == 1
