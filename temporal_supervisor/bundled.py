"""The locations of bundled files that are not Python.

They are next to this package in a checkout, and below it once it is installed.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


BUILTIN_TEAMS = _folder("teams")
DOCUMENTS = _folder("docs")
EXAMPLES = _folder("examples")
