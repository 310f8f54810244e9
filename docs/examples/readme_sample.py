"""Writes the README's sample of the demo from a real run: `.venv/bin/python docs/examples/readme_sample.py`."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"(<!-- sample: the demo -->\n```\n).*?(```\n)", re.DOTALL)
COLUMNS = 80
# of the lines of a run, the first that matches each of these
SHOWN = (
    *(
        r"^server ",
        r"^web ui ",
        r"^model ",
        r"^worker ",
        r"kill it:",
        r" planning$",
        r"asking for a plan",
        r"plan with",
    ),
    *(r" t1 \w+ starts", r" t2 \w+ starts", r" t1 turn ", r" t2 query_data ", r" t2 calculate ", r" t3 \w+ starts"),
    *(r" review, round ", r" writing the answer", r" done$", r"^- ", r"^completed: ", r"^\d.* s wall", r"model calls,"),
)


def sample(output: str) -> str:
    """Returns the lines of the demo's output that the README shows, in their order, as they fit 80 columns."""
    lines = output.replace(str(Path.home()), "~").splitlines()
    chosen = sorted({at for shown in SHOWN for at in [_first(shown, lines)] if at is not None})
    return "".join(f"{shortened(lines[at])}\n" for at in chosen)


def shortened(line: str) -> str:
    """Returns the line, its end left out where it is longer than the terminal is wide."""
    return line if len(line) <= COLUMNS else line[: COLUMNS - 4].rstrip() + " ..."


def _first(pattern: str, lines: list[str]) -> int | None:
    return next((at for at, line in enumerate(lines) if re.search(pattern, line)), None)


def main() -> None:
    """Runs the demo and rewrites the block in the README."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "SUPERVISOR_"))}
    done = subprocess.run(
        [sys.executable, "-m", "console.demo"],
        cwd=README.parent,
        env=kept,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    text = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda block: block[1] + sample(done.stdout) + block[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
