"""Programs in processes forked from one that has imported what they need.

Imports are two thirds of a short command, and nine tenths of a Worker until it serves.
"""

import asyncio
import importlib
import io
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

if "DROPPED" in os.environ:  # `make guards` plays programs, too, without a guard
    importlib.import_module("tests.guards.dropped")

_IMPORTED = ["tests.forked", "starter", "worker_main"]
_LIMIT = 90.0
_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(_IMPORTED)


def started(
    module: str, words: Sequence[str], environ: Mapping[str, str], folder: Path, files: Sequence[Path | str]
) -> BaseProcess:
    """Starts a module as a program; `files` are its standard input, output and error."""
    process = _forkserver.Process(target=_main, args=(module, words, environ, folder, files))
    process.start()
    return process


async def ended(module: str, words: Sequence[str], environ: Mapping[str, str], folder: Path, files: list[Path]) -> int:
    """Returns the exit code of a module run as a program."""
    process = started(module, words, environ, folder, files)
    try:
        return await end_of(process, _LIMIT)
    finally:
        if process.exitcode is None:
            process.kill()


async def end_of(process: BaseProcess, seconds: float) -> int:
    """Returns the exit code of a process, once it has ended."""
    async with asyncio.timeout(seconds):
        await asyncio.to_thread(wait, [process.sentinel])
    process.join()  # in this thread, as `start` looks at all processes: whoever reads a status second reads 255
    assert process.exitcode is not None
    return process.exitcode


def _main(
    module: str, words: Sequence[str], environ: Mapping[str, str], folder: Path, files: Sequence[Path | str]
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # it may have another TMPDIR
    os.chdir(folder)
    os.setsid()
    for number, (file, flags) in enumerate(zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        os.dup2(os.open(file, flags | os.O_NOCTTY), number)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(number, "rb" if number == 0 else "wb"), "utf-8", line_buffering=number == 2)
        for number in range(3)
    )
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
