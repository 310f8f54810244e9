"""Files that commands write: checked before the work, and reported with their content."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from temporal_supervisor.console.base.command import BAD_INPUT, FAILED, CommandFailed
from temporal_supervisor.console.base.terminal import print_err

STANDARD_OUTPUT = Path("-")
Force = Annotated[bool, typer.Option("--force", help="write over a file that exists")]


def check_output(path: Path, endings: tuple[str, ...] = (), *, force: bool = False) -> None:
    """Raises CommandFailed if a file can't be written, or has none of the `endings`."""
    if path == STANDARD_OUTPUT:
        return
    if path.is_dir():
        raise CommandFailed(BAD_INPUT, f"{path} is a folder: name a file in it")
    if endings and path.suffix.lower() not in endings:
        problem = "its name has no ending"
        if path.suffix:
            problem = f"no file of the kind '{path.suffix}'"
        *others, last = endings
        known = f"{', '.join(others)} or {last}" if others else last
        raise CommandFailed(BAD_INPUT, f"{path}: {problem}: write {known}")
    if not path.parent.is_dir():
        helps = "make it, or name another file"
        raise CommandFailed(BAD_INPUT, f"there is no folder {path.parent}: {helps}")
    if path.exists() and not force:
        helps = "remove it, choose another name, or pass --force"
        raise CommandFailed(FAILED, f"{path} exists already: {helps}")


def write_file(path: Path, data: bytes, content: str = "", *, force: bool = False) -> None:
    """Writes data to a file or to standard output, and prints `content` or its size.

    An existing file is kept unless `force` is set. Raises CommandFailed.
    """
    if path == STANDARD_OUTPUT:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    check_output(path, force=force)
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(data)
    except OSError as error:
        raise CommandFailed(FAILED, f"{path} can't be written: {error.strerror}") from None
    if content:
        print_err(f"wrote {path}: {content}")
    else:
        print_err(f"wrote {path}, {len(data):,} bytes")
