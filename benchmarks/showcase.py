"""The command `make showcase` records runs of goals with the configured model in docs/showcase/.

The goals are those of the bundled teams, of the examples, and of the ready teams. Without a
model nothing is run, and answers of the stand-in model are never recorded.
"""

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.console.base.command import endpoint
from temporal_supervisor.console.demo import GOAL
from temporal_supervisor.console.run.team_goals import TeamGoal, read_goals
from temporal_supervisor.runtime.settings import Settings, load_settings
from temporal_supervisor.standin.extract.answers import FOOTER
from tests.serving import own_server
from worker_main import serving

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "showcase"
BUDGET_USD = 1.0  # of one goal: several times what a dozen subtasks of the default models cost
_EXAMPLES = {
    "shop": "Why did revenue in the South fall in the second half of 2025, "
    "and which regions missed their targets?",
    "contracts": "Give supplier, service, annual fee in EUR, notice period in months "
    "and liability cap of each contract as a table, with the file of each row.",
    "suppliers": "Which suppliers break which rule of the policy? "
    "Give each with the number of the rule and the value that breaks it.",
}


class Entry(NamedTuple):
    """A goal to record: the name of its page, the options of its run, and facts of a good answer.

    A goal that needs a person's reply is not recorded.
    """

    name: str
    goal: str
    options: tuple[str, ...]
    known: TeamGoal | None = None


def entries() -> list[Entry]:
    """Returns the goals of the bundled teams and of the examples."""
    folder = ROOT / "examples"
    examples = [
        Entry(name, goal, ("--data", str(folder / name / "data")))
        for name, goal in _EXAMPLES.items()
    ]
    goals = sorted(BUILTIN_TEAMS.glob("*/goals.toml"))
    teams = [
        entry
        for file in goals
        for entry in team_entries(file)
        if not (entry.known and entry.known.reply)
    ]
    return [Entry("demo", GOAL, ("--team", "almanac")), *examples, *teams]


def team_entries(file: Path) -> list[Entry]:
    """Returns the goals of a ready team."""
    known, team = read_goals(file.parent), file.parent.name
    assert known is not None
    data = ("--data", str(file.parent / known.data)) if known.data else ()
    found = []
    for number, goal in enumerate(known.goals, 1):
        options = ("--team", team, "--strategy", goal.strategy or known.strategy, *data)
        found.append(Entry(f"{team}-{number}", goal.goal, options, goal))
    return found


def page(entry: Entry, result: Mapping[str, Any], verdict: str) -> str:
    """Returns the page of one run."""
    usd = result["usage"]["usd"]
    cost = "cost unknown" if usd is None else f"{usd:.2f} USD"
    minutes = result["timing"]["wall_seconds"] / 60
    confidence = "none" if result["confidence"] is None else f"{result['confidence']:.0%}"
    facts = [
        f"{result['status']}, confidence {confidence}, {minutes:.1f} minutes, {cost}, "
        f"{result['usage']['model_calls']} model calls, written by {result['answer_model']}",
        f"`verify`: {verdict}",
    ]
    if entry.known:
        missing = ", ".join(entry.known.falls_short(result)) or "nothing"
        facts.append(f"falls short of its goal's facts: {missing}")
    listed = "\n".join(f"- {fact}" for fact in facts)
    return f"# {entry.name}\n\n> {entry.goal}\n\n{listed}\n\n{result['answer'].strip()}\n"


async def record(entry: Entry, environ: Mapping[str, str], folder: Path = FOLDER) -> str:
    """Runs a goal and writes its page. Returns what became of it, in a line."""
    run_id = f"showcase-{entry.name}"
    budget = ("--budget-usd", str(BUDGET_USD))
    code, output = await _starter(
        environ, "run", "--json", "--id", run_id, *budget, *entry.options, entry.goal
    )
    if code:
        return f"{entry.name}: not recorded, the run failed: {output.strip()[-500:]}"
    result = json.loads(output)
    if FOOTER in result["answer"]:
        return f"{entry.name}: not recorded, the stand-in model answered"
    _, verified = await _starter(environ, "verify", run_id)
    target = folder / f"{entry.name}.md"
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(page(entry, result, verified.strip().splitlines()[-1]), encoding="utf-8")
    return f"{entry.name}: {target}"


async def _starter(environ: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Returns the exit code and the output of the command line; its errors if it fails."""
    command = (sys.executable, str(ROOT / "starter.py"), *arguments)
    process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=PIPE, stderr=PIPE)
    output, errors = await process.communicate()
    return process.returncode or 0, (output or errors).decode("utf-8", "replace")


async def showcase(settings: Settings, wanted: list[Entry], folder: Path = FOLDER) -> int:
    """Runs and records goals, with a server and a Worker of its own. Returns the exit code."""
    if settings.model == "standin" or not endpoint(settings):
        sys.stderr.write(
            "no model to record: set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL; nothing was changed\n"
        )
        return 1
    most = BUDGET_USD * len(wanted)
    sys.stdout.write(
        f"{len(wanted)} goals, at most {BUDGET_USD:.2f} USD each, {most:.2f} USD in all\n"
    )
    with tempfile.TemporaryDirectory() as stored:
        local = settings.model_copy(update={"artifacts_url": stored})
        async with own_server() as client, serving(client, local):
            address = client.service_client.config.target_host
            environ = {
                **os.environ,
                "TEMPORAL_ADDRESS": address,
                "SUPERVISOR_ARTIFACTS_URL": stored,
            }
            for entry in wanted:
                sys.stdout.write(f"{await record(entry, environ, folder)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(showcase(load_settings(), entries())))
