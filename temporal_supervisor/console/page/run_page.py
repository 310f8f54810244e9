"""The page of a run: live while it works, then its answer and evidence; one subtask; its files."""

import asyncio
import contextlib
from collections.abc import Iterable

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from temporal_supervisor.console.base.command import UNREACHABLE, CommandFailed, web_address
from temporal_supervisor.console.page.lineage import lineage_text, origins_of
from temporal_supervisor.console.page.page_site import (
    PageSite,
    is_fragment,
    place_of,
    short_id_of,
    shown_command,
    site_of,
)
from temporal_supervisor.console.page.run_actions import RETRY, SKIP, STEER
from temporal_supervisor.console.page.run_watch import Watches, news_of, since_of
from temporal_supervisor.console.report.report_data import ReportData, report_data
from temporal_supervisor.console.report.report_page import report_body, report_page
from temporal_supervisor.console.run.found_runs import recorded_goal
from temporal_supervisor.console.view.answer_text import answer_file
from temporal_supervisor.console.view.live_view import TreeRow, tree_rows
from temporal_supervisor.messages import NoAnswer, NoRun
from temporal_supervisor.outcomes import is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.contract.result import SubtaskReport

_PLAIN = "text/csv; charset=utf-8"


def _watches(request: Request) -> Watches:
    watches: Watches = request.app.state.watches
    return watches


async def run_page(request: Request) -> Response:
    """Shows an open run live, or the end of a run."""
    site = site_of(request)
    run = await site.run(request)
    described = None
    # The store may still have a run that the server has forgotten.
    with contextlib.suppress(NoRun):
        described = await run.require()
    if described is None or not is_open(described):
        return await _ended_page(site, run, is_known=described is not None)

    watch, goal = await asyncio.gather(_watches(request).watch_of(run), recorded_goal(run))
    return site.html(
        "run.html.j2",
        title=goal or run.id,
        goal=goal,
        run_id=run.id,
        place=place_of(run.id),
        board=watch.board,
        is_ready=watch.ready.is_set(),
        state=state_word(described),
        web=web_address(run.client, run.id),
        follow=shown_command("follow", short_id_of(run.id)),
        status_command=shown_command("status", short_id_of(run.id)),
    )


async def _ended_page(site: PageSite, run: Run, *, is_known: bool) -> Response:
    """Returns the page of an ended run: its report, and possible actions.

    A further question needs a run that the server knows, because its request is read again.
    """
    data = await report_data(site.access, run.id)
    place = place_of(run.id)
    # Comparing claims and rendering a thousand findings takes seconds: others go on meanwhile.
    box = _ask_on(site, run) if is_known else ""
    body = await asyncio.to_thread(report_body, data, place, Markup(box))
    origins = await origins_of(run.client, data.result.reuse_from)
    commands = [
        ("the answer again", shown_command("result", short_id_of(run.id))),
        ("the evidence of each claim", shown_command("verify", short_id_of(run.id))),
        ("this report as a file", shown_command("report", short_id_of(run.id))),
        ("all that happened", shown_command("trace", short_id_of(run.id))),
        ("the same plan once more", shown_command("rerun", short_id_of(run.id))),
    ]
    return site.html(
        "ended.html.j2",
        title=data.goal or run.id,
        body=body,
        lineage=lineage_text(site, data.result, origins),
        run_id=run.id,
        place=place,
        goal=data.goal,
        team=data.team,
        commands=commands,
        web=web_address(run.client, run.id),
    )


def _ask_on(site: PageSite, run: Run) -> str:
    """Returns the form for a further question."""
    command = shown_command("run", "--after", short_id_of(run.id), "QUESTION")
    return site.text("ask_on.html.j2", run_id=run.id, command=command)


async def stream(request: Request) -> Response:
    """Sends the news of a run, from the page's version on."""
    run = await site_of(request).run(request)
    await run.require()
    watch = await _watches(request).watch_of(run)
    known = request.headers.get("last-event-id") or request.query_params.get("since", "")
    news = news_of(watch, since_of(watch, known))
    return StreamingResponse(news, media_type="text/event-stream")


async def items_part(request: Request) -> Response:
    """Returns rows of folded items, for our script or as a page of their own."""
    site = site_of(request)
    run = await site.run(request)
    if not is_open(await run.require()):
        return site.redirect_to(request, place_of(run.id))
    watch = await _watches(request).watch_of(run)
    asked = request.query_params
    start = int(asked["from"]) if asked.get("from", "").isdecimal() else 0
    found = watch.board.folded(asked.get("of", ""), asked.get("state", ""), start)
    return _part(request, "items.html.j2", f"Subtasks: {found.name}", run, found=found)


async def events_part(request: Request) -> Response:
    """Returns the events before those on the page of a run."""
    site = site_of(request)
    run = await site.run(request)
    if not is_open(await run.require()):
        return site.redirect_to(request, place_of(run.id))
    watch = await _watches(request).watch_of(run)
    before = request.query_params.get("before", "")
    lines = watch.board.older_lines(int(before) if before.isdecimal() else 0)
    return _part(request, "events.html.j2", "Earlier events", run, lines=lines)


def _part(request: Request, template: str, title: str, run: Run, **values: object) -> Response:
    """Returns a part of a run's page, or for readers without our script a page of its own."""
    site = site_of(request)
    run_id, place = run.id, place_of(run.id)
    text = site.text(template, run_id=run_id, place=place, **values)
    if is_fragment(request):
        return HTMLResponse(text)
    return site.html("part.html.j2", title=title, part=text, run_id=run_id, place=place)


async def report_file(request: Request) -> Response:
    """Returns the report as a file to download."""
    site, run = site_of(request), await site_of(request).run(request)
    page = await asyncio.to_thread(report_page, await report_data(site.access, run.id))
    name = "".join(char if char.isalnum() or char in "-_" else "-" for char in short_id_of(run.id))
    # not ASCII letters would need another header: such a name is replaced
    name = name if name.isascii() else "report"
    headers = {"Content-Disposition": f'attachment; filename="report-{name}.html"'}
    return HTMLResponse(page, headers=headers)


async def table_file(request: Request) -> Response:
    """Returns a table of the answer as CSV with all rows."""
    site, run = site_of(request), await site_of(request).run(request)
    data = await report_data(site.access, run.id)
    at = int(request.path_params["number"])
    if not 1 <= at <= len(data.tables):
        raise HTTPException(404, "There is no such table")
    content = await _table_content(site, data, at - 1)
    headers = {"Content-Disposition": f'attachment; filename="table-{at}.csv"'}
    return Response(content, media_type=_PLAIN, headers=headers)


async def _table_content(site: PageSite, data: ReportData, at: int) -> bytes:
    """Returns a table as `result -o table.csv` writes it."""
    if not data.result.tables:
        return answer_file(data.result, ".csv")
    return await (await site.access.store()).get(data.tables[at].ref)


async def subtask_page(request: Request) -> Response:
    """Shows one subtask of an open run, and the actions on it."""
    site, run = site_of(request), await site_of(request).run(request)
    path = request.query_params.get("path", "")
    row = await _row_of(run, path)
    if row is None:
        raise HTTPException(404, f"Run '{short_id_of(run.id)}' has no subtask '{path}'")
    described = await run.require()
    is_live = is_open(described)
    actions = [STEER, RETRY, SKIP] if is_live else []
    return site.html(
        "subtask.html.j2",
        title=f"{path}: {row.report.role}",
        row=row,
        path=path,
        run_id=run.id,
        place=place_of(run.id),
        actions=actions,
    )


async def _row_of(run: Run, path: str) -> TreeRow | None:
    """Returns the subtask at a path, also in nested runs; None if there is none."""
    above, reports = "", await _reports(run)
    *teams, _ = path.split("/")
    for team in teams:
        nested = next((report for report in reports if report.id == team), None)
        if nested is None or not nested.workflow_id:
            return None
        above += f"{team}/"
        reports = await _reports(Run(run.client, nested.workflow_id))
    return _find_row(tree_rows(reports, above=above), path)


def _find_row(rows: Iterable[TreeRow], path: str) -> TreeRow | None:
    return next((row for row in rows if row.path == path), None)


async def _reports(run: Run) -> list[SubtaskReport]:
    try:
        return (await run.whole_status()).subtasks
    except NoAnswer as error:
        raise CommandFailed(UNREACHABLE, f"no Worker answers for run '{run.id}'") from error
