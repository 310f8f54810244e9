"""The commands that errors and `doctor` suggest run as they are printed."""

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from console.commands import doctor
from supervision.base import limits
from tests.console.test_hints import hints
from tests.serving import own_server


async def starts_a_worker(text: str, cwd: Path) -> None:
    """Runs the hints as printed, but for a file of settings that is not there: a Worker would run for ever."""
    commands = hints(text)
    assert commands, text
    for words in commands:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"{words} --env-file nowhere"), cwd=cwd, stderr=subprocess.PIPE
        )
        _, err = await process.communicate()
        assert (process.returncode, err) == (2, b"there is no file nowhere\n"), words


async def test_doctor_warns_before_the_open_workflows_fill_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one(client: Any, queue: str, kind: Any) -> dict[str, datetime]:
        return {"7@host": datetime.now(UTC)}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "pollers", one)
    async with own_server() as client:
        for number in range(4):
            await client.start_workflow("SupervisorWorkflow", id=f"w-{number}", task_queue="supervisor")
        for held, level in ((6, "ok"), (5, "warning")):
            monkeypatch.setattr(limits, "CACHED_WORKFLOWS", held)
            row = await doctor._cached(client)
            assert row is not None
            assert (row.level, row.text) == (level, f"4 on 1 Worker, which holds {held} of them in its cache")
            if row.fix:
                await starts_a_worker(row.fix, tmp_path)
            assert bool(row.fix) == (level == "warning")
