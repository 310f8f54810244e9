"""The form that starts a run: goal, files, team, bounds, and the cost of earlier runs."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from activities.store.spending import newest_samples
from activities.teams.team_files import TeamError, TeamFiles
from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed, hint
from temporal_supervisor.console.base.terminal import counted, duration
from temporal_supervisor.console.commands.run_commands import run_goal
from temporal_supervisor.console.commands.team_commands import team_files
from temporal_supervisor.console.page.lineage import Origin, origins_of
from temporal_supervisor.console.page.page_site import PageSite, place_of, site_of, text_of
from temporal_supervisor.console.run.team_goals import read_goals
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.planning.estimate import CandidateUsage, RunSample

MOST_FILE_BYTES = 100 * 1024**2
MOST_BYTES = 1024**3  # of all files of a run
_SAMPLES = 20  # of the newest runs: older ones had other prompts and prices
_GOALS = 3  # shown of each team
_FOLDERS = 200  # named below the operator's root
_FILES_TEAM = "files"
_MOST_EARLIER = 10  # runs that one builds on


@dataclass(frozen=True)
class TeamChoice:
    """A team in the form: its purpose, and example goals."""

    name: str
    description: str
    goals: list[str]
    has_sample: bool = False


def team_choices(files: TeamFiles) -> list[TeamChoice]:
    """Returns the usable teams, from their files alone; no code of theirs runs."""
    choices = []
    for name in files.names():
        try:
            team, goals = files.definition(name), read_goals(files.folder(name))
        except (TeamError, CommandFailed):  # `teams` says what is wrong with it
            continue
        listed = [goal.goal for goal in goals.goals[:_GOALS]] if goals else []
        has_sample = bool(goals and goals.data)
        choices.append(TeamChoice(name, team.description, listed, has_sample))
    return choices


async def ask_page(request: Request) -> Response:
    """Shows the form, filled in from the URL."""
    site, asked = site_of(request), request.query_params
    files = team_files(site.access.settings)
    return site.html(
        "ask.html.j2",
        title="Ask",
        choices=await asyncio.to_thread(team_choices, files),
        most_of_one=MOST_FILE_BYTES,
        most=MOST_BYTES,
        usual=site.access.settings.team,
        files_team=_FILES_TEAM,
        asked=asked,
        origins=await _earlier_runs(site, asked.getlist("after")),
        root=site.root,
        folders=await asyncio.to_thread(folders_below, site.root) if site.root else [],
    )


async def _earlier_runs(site: PageSite, run_ids: Sequence[str]) -> list[Origin]:
    """Returns the runs to build on; without any, no server is asked."""
    if not run_ids:
        return []
    return await origins_of(await site.access.client(), run_ids[:_MOST_EARLIER])


async def estimate_part(request: Request) -> Response:
    """Returns the cost of earlier runs of a team, before anything is spent."""
    site = site_of(request)
    team = request.query_params.get("team") or site.access.settings.team
    samples = (await newest_samples(await site.access.store(), team))[-_SAMPLES:]
    return PlainTextResponse(estimate_words(team, samples))


def estimate_words(team: str, samples: Sequence[RunSample]) -> str:
    """Returns a sentence with the cheapest and most expensive runs of a team."""
    if not samples:
        return (
            f"No run of team {team} has ended yet: it may take what its budget and deadline allow. "
            "With the plan shown first, an estimate comes with it."
        )
    totals = [sample.total for sample in samples]
    calls = _range_words([f"{took.calls:,.0f}" for took in sorted(totals, key=_calls)])
    seconds = _range_words([duration(took.seconds) for took in sorted(totals, key=_seconds)])
    priced = sorted(took.usd for took in totals if took.usd is not None)
    cost = f", {_range_words([money(usd) for usd in priced])}" if priced else ", cost unknown"
    runs = "The last run" if len(samples) == 1 else f"The last {len(samples)} runs"
    return f"{runs} of team {team} took {calls} model calls{cost}, {seconds}."


def _calls(took: CandidateUsage) -> float:
    return took.calls


def _seconds(took: CandidateUsage) -> float:
    return took.seconds


def _range_words(ordered: Sequence[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


async def start_from_form(request: Request) -> Response:
    """Starts a run from the form, as the command `run` does, and leads to its page."""
    site = site_of(request)
    form = await site.form(request)
    place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="supervisor-page-"))
    try:
        uploads = await _write_uploads(form, place)
        data = [*uploads, *_named_folder(site, form), *_sample_folder(site, form)]
        report = await run_goal(site.access, **_options(form, data), detach=True)
    finally:
        await form.close()
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    started: Any = report.data
    return site.redirect_to(request, place_of(started["run_id"]))


def _options(form: FormData, data: list[Path]) -> dict[str, Any]:
    """Returns the options of `run` in a form, without empty ones."""
    if not text_of(form, "goal"):
        raise CommandFailed(BAD_INPUT, "write a question or a task first")
    usd = text_of(form, "budget_usd")
    given = {
        "goal": text_of(form, "goal"),
        "team": text_of(form, "team"),
        "approve_plan": text_of(form, "approve_plan") == "1",
        "budget_usd": _dollars(usd) if usd else None,
        "deadline": text_of(form, "deadline"),
        "data": data,
        "after": [run_id for run_id in form.getlist("after") if run_id],
    }
    options = {name: value for name, value in given.items() if value}
    return options | {"data_from_others": bool(data) and text_of(form, "from_others") == "1"}


def _dollars(text: str) -> float:
    try:
        return float(text.removeprefix("$"))
    except ValueError:
        raise CommandFailed(BAD_INPUT, f"the budget '{text}' is no number of dollars") from None


async def _write_uploads(form: FormData, place: Path) -> list[Path]:
    """Writes the uploads into a folder and returns it, if there are any.

    Raises CommandFailed.
    """
    given = [each for each in form.getlist("files") if isinstance(each, UploadFile)]
    files = [each for each in given if each.filename]
    check_sizes([(each.filename or "", each.size or 0) for each in files])
    for each in files:
        target = place / safe_name(each.filename or "")
        if target.exists():
            raise CommandFailed(BAD_INPUT, f"two files have the name {target.name}")
        await asyncio.to_thread(_copy_upload, each, target)
    return [place] if files else []


def _copy_upload(file: UploadFile, target: Path) -> None:
    with target.open("xb") as out:
        shutil.copyfileobj(file.file, out)


def check_sizes(files: Sequence[tuple[str, int]]) -> None:
    """Raises CommandFailed if a file, or all of them together, are too large."""
    for name, size in files:
        if size > MOST_FILE_BYTES:
            most = MOST_FILE_BYTES >> 20
            raise CommandFailed(BAD_INPUT, f"{name}: {size >> 20:,} MiB, at most {most} are taken")
    total = sum(size for _, size in files)
    if total > MOST_BYTES:
        said = f"{counted(len(files), 'file')} with {total >> 20:,} MiB"
        raise CommandFailed(BAD_INPUT, f"{said}: at most {MOST_BYTES >> 20:,} are taken")


def safe_name(given: str) -> str:
    """Returns the last part of a file name from a browser.

    Raises CommandFailed if it is no valid name.
    """
    name = PurePosixPath(given.replace("\\", "/")).name
    if not name or name.startswith((".", "~$")) or "\0" in name:
        raise CommandFailed(BAD_INPUT, f"'{given}' is no name of a file that is taken")
    return name


def folders_below(root: Path) -> list[str]:
    """Returns the folders in `root`, and those in them, without hidden ones."""
    found = []
    for folder in sorted([*root.glob("*/"), *root.glob("*/*/")]):
        name = folder.relative_to(root)
        is_hidden = any(part.startswith(".") for part in name.parts)
        if not is_hidden and folder.resolve().is_relative_to(root.resolve()):
            found.append(name.as_posix())
    return found[:_FOLDERS]


def folder_below(root: Path | None, given: str) -> Path:
    """Returns a folder that the operator allows readers to name.

    Raises CommandFailed for other folders.
    """
    if root is None:
        helps = hint("ui", "--data-root", "FOLDER")
        why = f"no folder may be named here: {helps} allows those below one"
        raise CommandFailed(BAD_INPUT, why)
    refused = CommandFailed(BAD_INPUT, f"there is no folder '{given}' below the one that is served")
    is_hidden = any(part.startswith(".") for part in PurePosixPath(given).parts)
    if is_hidden or "\0" in given:
        raise refused
    top = root.resolve()
    try:
        folder = (top / given).resolve()
    except (OSError, RuntimeError):  # a link to itself
        raise refused from None
    if not folder.is_relative_to(top) or not folder.is_dir():
        raise refused
    return folder


def _named_folder(site: PageSite, form: FormData) -> list[Path]:
    given = text_of(form, "folder")
    return [folder_below(site.root, given)] if given else []


def _sample_folder(site: PageSite, form: FormData) -> list[Path]:
    """Returns the folder of a team's sample files, if the reader wants it."""
    name = text_of(form, "sample")
    if not name:
        return []
    files = team_files(site.access.settings)
    if name not in files.names():
        raise CommandFailed(BAD_INPUT, f"there is no team '{name}'")
    goals = read_goals(files.folder(name))
    return [files.folder(name) / goals.data] if goals and goals.data else []
