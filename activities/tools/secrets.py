"""Secrets of tools by name, from the environment of this process or a folder of private files."""

import os
from pathlib import Path

from temporal_supervisor.supervision.base.trust import unshared


class Secrets:
    """The secrets that team files name. Their values go only to the servers that name them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def value(self, name: str) -> str:
        """Returns the value of a secret; a file comes before the environment.

        Raises ValueError if there is none, or if other users can read the file.
        """
        file = self._folder / name if self._folder else None
        if file is None or not file.is_file():
            value = os.environ.get(name, "")
            if value:
                return value
            missing = f"the environment of this process has no {name}"
            where = file or "in SUPERVISOR_SECRETS_DIR"
            raise ValueError(f"{missing}: set it there, or as a file {where}")
        unshared(file, file.stat(), os.getuid(), secret=True)
        try:
            value = file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ValueError(f"{file} can't be read: {type(error).__name__}") from None
        if not value:
            raise ValueError(f"{file} is empty: it holds the value of {name}")
        return value
