"""Writes the samples of screens in the documents from real runs: `.venv/bin/python docs/examples/readme_sample.py`.

The demo's is in docs/operate.md. That of own files is in the README, from a Worker with the stand-in model, which has
to run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEMO, OWN_FILES = "the demo", "own files"
PAGES = {DEMO: ROOT / "docs" / "operate.md", OWN_FILES: ROOT / "README.md"}
DATA = "examples/shop/data"
QUESTION = "What happened to deliveries to the South in 2025, and why do office chairs come back?"
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


def shown(name: str) -> list[str]:
    """Returns the lines of a sample as its page has them."""
    text = PAGES[name].read_text(encoding="utf-8")
    return text.split(f"<!-- sample: {name} -->\n```\n")[1].split("```")[0].splitlines()


def extract(output: str) -> str:
    """Returns the lines of a run over own files that the README shows: those of documents, and the last ones."""
    lines = [
        line for line in output.splitlines() if re.search(r"^- .*\[notes/|^(completed|partial): |^_An extract", line)
    ]
    return "".join(f"{line}\n" for line in [f'$ .venv/bin/temporal-supervisor run --data {DATA} "{QUESTION}"', *lines])


def sample(output: str) -> str:
    """Returns the lines of the demo's output that its page shows, in their order, as they fit 80 columns."""
    lines = output.replace(str(Path.home()), "~").splitlines()
    chosen = sorted({at for shown in SHOWN for at in [_first(shown, lines)] if at is not None})
    return "".join(f"{shortened(lines[at])}\n" for at in chosen)


def shortened(line: str) -> str:
    """Returns the line, its end left out where it is longer than the terminal is wide."""
    return line if len(line) <= COLUMNS else line[: COLUMNS - 4].rstrip() + " ..."


def _first(pattern: str, lines: list[str]) -> int | None:
    return next((at for at, line in enumerate(lines) if re.search(pattern, line)), None)


def main() -> None:
    """Runs the demo, then a question of own files, and rewrites their samples."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "SUPERVISOR_"))}
    _write(DEMO, sample(_output(["-m", "console.demo"], kept)))
    _write(OWN_FILES, extract(_output(["starter.py", "run", "--data", DATA, QUESTION], dict(os.environ))))


def _output(words: list[str], environ: dict[str, str]) -> str:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout


def _write(name: str, text: str) -> None:
    block = re.compile(rf"(<!-- sample: {name} -->\n```\n).*?(```\n)", re.DOTALL)
    page = PAGES[name].read_text(encoding="utf-8")
    PAGES[name].write_text(block.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
