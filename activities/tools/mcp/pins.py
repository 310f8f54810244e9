"""Pinned definitions of MCP tools, stored in `team.lock` next to the team file."""

import difflib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from temporal_supervisor.supervision.agent.pinned import Pinned as Pinned
from temporal_supervisor.supervision.base.text import clean

LOCK = "team.lock"

Pins = dict[str, dict[str, Pinned]]
"""By server and by the server's own name of the tool."""


def read_pins(folder: Path) -> Pins:
    """Returns the pinned definitions of a team; none without the file.

    Raises ValueError if the file is broken.
    """
    file = folder / LOCK
    if not file.is_file():
        return {}
    pins: Pins = {}
    try:
        for server, tools in json.loads(file.read_text(encoding="utf-8")).items():
            for name, entry in tools.items():
                pinned = Pinned.model_validate({**entry, "name": name})
                if entry.get("sha256") != pinned.sha256:
                    raise ValueError(f"{server}.{name} does not fit its hash")
                pins.setdefault(server, {})[name] = pinned
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        why = "it is not what was written" if isinstance(error, ValidationError) else str(error)
        raise ValueError(f"{file} can't be used, {why}: {pin_command(folder)} writes it") from None
    return pins


def write_pins(folder: Path, pins: Pins) -> None:
    """Writes the definitions that a team's tools have from now on."""
    entries: dict[str, Any] = {}
    for server, tools in sorted(pins.items()):
        entries[server] = {}
        for name, tool in sorted(tools.items()):
            definition = tool.model_dump(exclude={"name"})
            entries[server][name] = {"sha256": tool.sha256, **definition}
    text = json.dumps(entries, indent=1, ensure_ascii=False)
    (folder / LOCK).write_text(f"{text}\n", encoding="utf-8")


def pin_command(folder: Path) -> str:
    """Returns the command that pins the definitions of a team."""
    return f"`temporal-supervisor teams pin {folder.name}`"


def differences(server: str, pinned: dict[str, Pinned], live: dict[str, Pinned]) -> Iterator[str]:
    """Yields lines that show the differences between a server's definitions and the pinned ones."""
    for name in sorted(pinned.keys() | live.keys()):
        before, after = pinned.get(name), live.get(name)
        if before != after:
            yield f"{server}.{name}: {_change_word(before, after)}"
            compared = difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=1)
            yield from islice(compared, 2, None)


def _change_word(before: Pinned | None, after: Pinned | None) -> str:
    """Returns a word for the change of a definition: `new`, `gone` or `changed`."""
    if before is None:
        return "new"
    return "gone" if after is None else "changed"


def _lines(definition: Pinned | None) -> list[str]:
    if definition is None:
        return []
    return clean(json.dumps(definition.model_dump(exclude={"name"}), indent=1)).split("\n")
