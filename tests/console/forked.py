"""Commands in processes forked from one that has imported what they need: two thirds of a short command are imports."""

import asyncio
import io
import multiprocessing
import os
import runpy
import sys
from multiprocessing.connection import wait
from pathlib import Path

_IMPORTED = ["tests.console.forked", "starter", "worker_main"]
_LIMIT = 90.0
_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(_IMPORTED)


async def ended(module: str, words: tuple[str, ...], environ: dict[str, str], folder: Path, files: list[Path]) -> int:
    """Returns the exit code of a module run as a program; `files` are its standard input, output and error."""
    process = _forkserver.Process(target=_main, args=(module, words, environ, folder, files))
    process.start()
    try:
        async with asyncio.timeout(_LIMIT):
            await asyncio.to_thread(wait, [process.sentinel])
        process.join()  # in this thread, as `start` looks at all processes: whoever reads a status second reads 255
    finally:
        if process.exitcode is None:
            process.kill()
    assert process.exitcode is not None
    return process.exitcode


def _main(module: str, words: tuple[str, ...], environ: dict[str, str], folder: Path, files: list[Path]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    for number, (file, flags) in enumerate(zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        os.dup2(os.open(file, flags), number)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(number, "rb" if number == 0 else "wb"), "utf-8") for number in range(3)
    )
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
