"""Where the files are that are not Python: beside this package in a checkout, below it once it is installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "teams"
BUILTIN_TEAMS = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "teams"
