"""Ctrl-C while a program still imports: it ends at once, quietly, and as interrupted."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import imports

ROOT = Path(__file__).resolve().parents[2]
SLOW = "import time\nprint('importing', flush=True)\ntime.sleep(60)\n"


@pytest.mark.parametrize(
    "words",
    [["starter.py", "list"], ["worker_main.py"], [".venv/bin/temporal-supervisor", "list"], ["-m", "runtime.server"]],
    ids=" ".join,
)
async def test_a_program_that_still_imports_ends_without_a_traceback(words: list[str], tmp_path: Path) -> None:
    for name in ("typer", "pydantic", "temporalio"):
        (tmp_path / f"{name}.py").write_text(SLOW)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"importing\n"
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert (process.returncode, err) == (130, b"")


def test_the_signal_of_other_programs_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    imports.begin_imports()
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.setattr(sys, "argv", ["/somewhere/starter.py"])
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts what runs in the background
        imports.begin_imports()
        imports.end_imports()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        imports.begin_imports()
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        imports.end_imports()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_garbage_is_looked_for_after_the_imports_and_among_what_came_later(tmp_path: Path) -> None:
    program = tmp_path / "worker_main.py"
    program.write_text(
        "import gc, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from runtime.imports import begin_imports, end_imports\n"
        "begin_imports()\n"
        "import json, asyncio\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 0)\n"
        "end_imports()\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000, gc.get_threshold()[0])\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True", "10000"]
