"""The command `examples`: writes the example files of the documents."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from temporal_supervisor.bundled import EXAMPLES
from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed, hint
from temporal_supervisor.console.base.terminal import Report
from temporal_supervisor.supervision.base.text import did_you_mean

_TARGET = Path("examples")
_COMPILED = shutil.ignore_patterns("__pycache__")


async def examples_report(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="only this one, such as shop"),
    ] = None,
) -> Report:
    """Write the files of the documents' examples into ./examples, to try and to change."""
    known = sorted(folder.name for folder in EXAMPLES.iterdir() if folder.is_dir())
    if name is not None and name not in known:
        meant = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise CommandFailed(BAD_INPUT, f"there is no example '{name}'{meant}")
    wanted = [name] if name else known
    there = [str(_TARGET / each) for each in wanted if (_TARGET / each).exists()]
    if there:
        words = f"{', '.join(there)} exists already: remove it, or go to another folder"
        raise CommandFailed(BAD_INPUT, words)
    for each in wanted:
        shutil.copytree(EXAMPLES / each, _TARGET / each, ignore=_COMPILED)
    written = [str(_TARGET / each) for each in wanted]
    tried = hint("run", "--data", "examples/shop/data", "Why do office chairs come back?")
    notes = [f"try: {tried}"] if "shop" in wanted else []
    return Report({"written": written}, [f"wrote {', '.join(written)}"], notes)
