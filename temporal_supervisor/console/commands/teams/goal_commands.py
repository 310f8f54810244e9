"""The command `teams goals`: asks each goal of the teams once, and checks the answers.

An answer must come from the known role and contain the known facts.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from temporalio.client import Client

from activities.files.manifest import MANIFEST_TYPE, put_files
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    DONE,
    FAILED,
    Access,
    CommandFailed,
    hint,
)
from temporal_supervisor.console.base.terminal import (
    Report,
    counted,
    indented,
    print_err,
    safe_line,
)
from temporal_supervisor.console.commands.team_commands import team_files
from temporal_supervisor.console.run.request_options import data_files
from temporal_supervisor.console.run.required_workers import require_workers
from temporal_supervisor.console.run.team_goals import GOALS, TeamGoal, TeamGoals, read_goals
from temporal_supervisor.messages import NoAnswer, UpdateRefused
from temporal_supervisor.outcomes import RunFailed
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.request import Attachment, parse_request

_LOOKS_SECONDS = 0.5  # between two looks whether a run asks a person


async def goals_report(access: Access, team: str | None) -> Report:
    """Asks each goal of a team, or of all teams, once.

    The exit code is 1 if an answer lacks its role or a fact.
    """
    files = team_files(access.settings)
    goals: dict[str, TeamGoals] = {}
    for name in [team] if team else files.names():
        found = read_goals(files.folder(name))
        if found:
            goals[name] = found
    if not goals:
        helps = f"write goals.toml beside the team file, as {hint('teams')} names them"
        raise CommandFailed(BAD_INPUT, f"no goals: {helps}")

    client = await access.client()
    await require_workers(client, otherwise="")
    asked: list[dict[str, Any]] = []
    for name, listed in goals.items():
        data: list[Attachment] = []
        if listed.data:
            data = await _stored_data(access, files.folder(name) / listed.data)
        for goal in listed.goals:
            made = await _goal_outcome(client, name, listed, goal, data)
            asked.append(made)
            print_err(_line(made))

    short = [made for made in asked if made["lacks"]]
    counts = f"{counted(len(asked), 'goal')} of {counted(len(goals), 'team')}"
    rows = [*_rows(short), f"{counts}, {len(short)} of them fall short"]
    return Report(asked, rows, code=FAILED if short else DONE)


async def _stored_data(access: Access, folder: Path) -> list[Attachment]:
    """Stores the files of a folder and returns them as an attachment."""
    ref = await put_files(await access.store(), data_files([folder]))
    return [Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)]


async def _goal_outcome(
    client: Client,
    team: str,
    listed: TeamGoals,
    goal: TeamGoal,
    data: list[Attachment],
) -> dict[str, Any]:
    """Returns the outcome of one goal: its run, its status, and what the answer `lacks`."""
    request = parse_request({**listed.options(goal), "team": team, "attachments": data})
    run = await Run.start(client, request)
    made: dict[str, Any] = {
        "team": team,
        "goal": goal.goal,
        "role": goal.role,
        "run_id": run.id,
    }
    person = asyncio.create_task(_reply(run, goal.reply))
    try:
        result = await run.result()
    except RunFailed as failed:
        why = person.result() if person.done() else str(failed)
        made["status"] = "failed"
        made["lacks"] = [f"an answer: {why}"]
        return made
    finally:
        person.cancel()
    made["status"] = result.status
    made["lacks"] = goal.falls_short(result.model_dump(mode="json"))
    return made


async def _reply(run: Run, text: str) -> str:
    """Answers each question of a run with the reply in the goals file.

    Without such a reply the run would wait for days: it is cancelled, and the reason returned.
    """
    while True:
        await asyncio.sleep(_LOOKS_SECONDS)
        try:
            for item in await run.waiting():
                if not text:
                    await run.cancel()
                    asks = f"{item.wait.subject} asks a person"
                    return f"{asks}, and the goal has no reply in {GOALS}"
                await run.decide(item.wait, "reply", text)
        except (NoAnswer, UpdateRefused):
            continue  # a Worker that is away may be back, and a run that has ended is awaited


def _line(made: dict[str, Any]) -> str:
    mark = "✘" if made["lacks"] else "✔"
    return safe_line(f"{mark} {made['team']}: {made['goal']}", limits.LINE_BYTES)


def _rows(short: list[dict[str, Any]]) -> Iterable[RenderableType]:
    for made in short:
        yield _line(made)
        for lack in made["lacks"]:
            yield indented(safe_line(f"lacks: {lack}", limits.SENTENCE_BYTES), 4)
        yield indented(hint("result", made["run_id"]), 4, "dim")
