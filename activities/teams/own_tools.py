"""The tools that a team's author wrote: loading a team's `tools.py`, which is code and trusted as such."""

import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from activities.teams.author_checks import tool_list
from activities.teams.team_definition import TeamError, naming
from activities.tools.tool import Tool
from supervision import limits
from supervision.errors import ErrorKind
from supervision.text import one_line
from supervision.trust import distrust


def own_tools(file: Path) -> list[Tool[Any]]:
    """Returns the tools of a team's `tools.py`. Raises TeamError with the line if it cannot be imported."""
    if not file.is_file():
        return []
    for path in (file, file.parent, file.parent.parent):  # who may write to a folder may exchange what is in it
        if why := distrust(path.stat(), os.getuid()):
            raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file} is code and is not run: {path} is open to others, {why}")
    try:
        tools = getattr(_imported(file), "TOOLS", None)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        problem = f"line {line}: {type(error).__name__}: {one_line(str(error), limits.ERROR_BYTES)}"
        raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file}: {problem}") from error
    with naming(file):
        return tool_list(tools)


def _imported(file: Path) -> ModuleType:
    name = f"supervisor_team_{file.parent.name.replace('-', '_')}_tools"
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # dataclasses and pydantic look their module up there
    # Not importlib's loader: its bytecode cache takes two writes within a second for one.
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return module
