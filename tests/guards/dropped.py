"""A plugin of pytest that plays a case without one guard: `DROPPED=NAME pytest -p tests.guards.dropped CASE`.

The module with the guard is compiled from a changed text when it is imported. Child processes read it as it is, so the
case of a guard that runs in one calls its function.
"""

import importlib.machinery
import os
from importlib.abc import SourceLoader
from types import CodeType

from tests.guards.table import ROOT, guards

_dropped = guards()[os.environ["DROPPED"]]
_file = str(ROOT / _dropped.file)
_get_code = importlib.machinery.SourceFileLoader.get_code


def _changed(loader: SourceLoader, name: str) -> CodeType | None:
    if loader.get_filename(name) != _file:
        return _get_code(loader, name)
    return compile(_dropped.changed(), _file, "exec", dont_inherit=True)


importlib.machinery.SourceFileLoader.get_code = _changed  # type: ignore[assignment, method-assign]
