"""Transcripts of screens, kept beside the tests: what a person sees changes only on purpose.

`python -m tests.console.transcripts` writes them anew; times, ids and durations stand as they always have.
"""

import difflib
import os
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "screens"
RECORD = "RECORD_SCREENS"
_USUAL: tuple[tuple[str, str], ...] = (
    (r"\d\d:\d\d:\d\d\.\d+", "00:00:00.0"),
    (r"\d\d:\d\d:\d\d", "00:00:00"),
    (r"\d{4}-\d\d-\d\d", "2000-01-01"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "01-01 00:00"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:8234"),
    (r"→ [0-9a-f]{8}$", "→ 00000000"),
    (r"\b[0-9a-f]{64}\b", "0" * 64),
    (r"\b\d+(\.\d)? s\b", "0 s"),
    (r"· [\d:]+$", "· 0 s"),  # of a run on a slow machine
    (r"\d+%", "0%"),  # of the cache: calls at once may miss it
    (r", [^,]+ one after the other, speed-up \d+\.\d\d", ""),  # of a run whose agents were faster together
)

_COUNT = re.compile(
    r"\b\d{1,3}(,\d{3})+\b"
)  # of tokens: a plan's prompt names the load of other runs, if there are any


def compare(name: str, lines: list[str]) -> None:
    """Fails if a screen is not the one that is kept; keeps it instead where transcripts are recorded."""
    shown = "\n".join(map(usual, lines)).strip("\n") + "\n"
    file = FOLDER / f"{name.replace(' ', '-')}.txt"
    if os.environ.get(RECORD):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(shown)
    difference = "\n".join(
        difflib.unified_diff(file.read_text().splitlines(), shown.splitlines(), "kept", "shown", n=0)
    )
    assert not difference, f"{file.name} differs; if that is meant: python -m tests.console.transcripts\n{difference}"


def usual(line: str) -> str:
    """Returns a line with the same time, id, duration, share and count as always."""
    for pattern, instead in _USUAL:
        line = re.sub(pattern, instead, line)
    return _COUNT.sub(lambda count: re.sub(r"\d", "0", count[0]), line).rstrip()


if __name__ == "__main__":
    os.environ[RECORD] = "yes"
    sys.exit(pytest.main(["-q", "tests/console/test_hints.py", "tests/console/test_transcripts.py", "-k", "screen"]))
