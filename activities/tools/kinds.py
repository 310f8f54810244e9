"""The tool kinds that a team file may set up by `uses`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from activities.tools.tool import Tool

ToolFactory = Callable[[str, dict[str, Any], Path], Tool[Any]]
"""(tool name, options of the team file, folder of the team file) -> tool; ValueError on bad options."""
