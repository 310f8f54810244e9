"""`make examples`: plays the examples of the pattern and writes each transcript as a page of docs/examples.

Their model is scripted, and everything else is real: plans are checked, teams and tools work, figures are looked up.
"""

import argparse
import asyncio
import re
import sys
import tempfile
from pathlib import Path
from shlex import quote

from tests.shown.examples import EXAMPLES, Example
from tests.shown.playing import Shown, lacks, place

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "examples"
_PROGRAM = re.compile(r"[^\s`]*/temporal-supervisor\b")
_MEASURED = re.compile(r"^took .*\n", re.MULTILINE)
_NOTE = (
    "What the model says is [written by hand](../../tests/shown/examples.py), as a real one says it; plan, tools, "
    "checks and files are real. `make examples` plays it again."
)


def page(example: Example, shown: Shown) -> str:
    """Returns the page of an example: its command, and what the terminal has shown."""
    words = " ".join(quote(word) for word in example.words)
    transcript = _MEASURED.sub("", _PROGRAM.sub("temporal-supervisor", shown.text)).strip()
    return (
        f"# {example.title}\n\n{example.about}\n\n"
        f"```sh\ntemporal-supervisor {words}\n```\n\n"
        f"````\n{transcript}\n````\n\n{_NOTE}\n"
    )


def index() -> str:
    """Returns the page that lists the others."""
    lines = [
        "# Examples of the pattern",
        "",
        "What descriptions of supervisors and worker agents begin with, each by one command of an installed program, "
        "from an empty folder. A page shows what the terminal has shown, the time of day and durations left out.",
        "",
        "| example | team | |",
        "|---|---|---|",
        *(f"| [{each.title}]({each.name}.md) | {each.team} | {each.about} |" for each in EXAMPLES),
        "",
        _NOTE.replace("plays it again", "plays them again and writes these pages"),
        "",
        "[Ready teams](../ready-teams.md) has more on each team; [when one agent is better](../one-agent.md) says "
        "when none of this is needed.",
        "",
    ]
    return "\n".join(lines)


async def _write_all(program: Path) -> int:
    """Writes all pages. Returns 1, and names what is wrong, if an example falls short."""
    PAGES.mkdir(exist_ok=True)
    short: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with place(program, Path(folder)) as there:
            for example in EXAMPLES:
                shown = await there.play(example)
                short += [f"{example.name}: {lack}" for lack in lacks(example, shown)]
                (PAGES / f"{example.name}.md").write_text(page(example, shown), encoding="utf-8")
                print(f"{example.name}: {'played' if not shown.code else 'failed'}", file=sys.stderr)
    (PAGES / "README.md").write_text(index(), encoding="utf-8")
    for lack in short:
        print(lack, file=sys.stderr)
    return 1 if short else 0


def main() -> None:
    """Exit codes: 0 all pages written, 1 an example falls short."""
    parser = argparse.ArgumentParser(prog="python -m tests.shown", description="Play the examples, write their pages.")
    usual = Path(sys.executable).parent / "temporal-supervisor"
    parser.add_argument(
        "program", nargs="?", type=Path, default=usual, help="the temporal-supervisor to play them with"
    )
    sys.exit(asyncio.run(_write_all(parser.parse_args().program)))


if __name__ == "__main__":
    main()
