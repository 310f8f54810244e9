"""The application: the routes of all pages, and errors as sentences."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactError
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    UNREACHABLE,
    Access,
    CommandFailed,
    explain,
)
from temporal_supervisor.console.page.ask_form import ask_page, estimate_part, start_from_form
from temporal_supervisor.console.page.page_guard import LOGIN, PLACES, Door, PageGuard, is_same_text
from temporal_supervisor.console.page.page_site import FOLDER, PageSite, site_of, text_of
from temporal_supervisor.console.page.run_actions import act, decide_shown
from temporal_supervisor.console.page.run_page import (
    events_part,
    items_part,
    report_file,
    run_page,
    stream,
    subtask_page,
    table_file,
)
from temporal_supervisor.console.page.run_watch import Watches
from temporal_supervisor.console.page.runs_page import inbox_part, runs_page
from temporal_supervisor.console.report import report_page
from temporal_supervisor.console.run.standstill import explain_silence
from temporal_supervisor.messages import NoAnswer, NoRun, UpdateRefused
from temporal_supervisor.runtime.connection import ConnectionFailed
from temporal_supervisor.supervision.base.errors import SupervisionError

_STATIC = {
    "page.css": FOLDER / "static" / "page.css",
    "page.js": FOLDER / "static" / "page.js",
    "icon.svg": FOLDER / "static" / "icon.svg",
    "report.css": Path(report_page.__file__).parent / "report.css",
}
_EXPLAINED: tuple[type[Exception], ...] = (
    *(CommandFailed, ConnectionFailed, NoAnswer, UpdateRefused, RPCError),
    *(ArtifactError, SupervisionError, ValueError, OSError),
)
"""The errors for which commands have a sentence. Any other one is a fault of this program: 500."""
_STATUS = {BAD_INPUT: 400, UNREACHABLE: 503}


def page_app(access: Access, door: Door, root: Path | None = None) -> PageGuard:
    """Returns the application with all pages, protected by the door."""
    site = PageSite(access, door, root)
    watches = Watches(site)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        watches.close()

    run = "/runs/{run_id:path}"
    routes = [
        Route("/", runs_page),
        Route("/inbox", inbox_part),
        Route("/ask", ask_page, methods=["GET"]),
        Route("/ask", start_from_form, methods=["POST"]),
        Route("/ask/estimate", estimate_part),
        Route(LOGIN, _login_page, methods=["GET"]),
        Route(LOGIN, _login, methods=["POST"]),
        Route("/static/{name}", _static),
        Route(f"{run}/stream", stream),
        Route(f"{run}/items", items_part),
        Route(f"{run}/events", events_part),
        Route(f"{run}/subtask", subtask_page),
        Route(f"{run}/report.html", report_file),
        Route(f"{run}/table/{{number:int}}.csv", table_file),
        Route(f"{run}/decide", decide_shown, methods=["POST"]),
        Route(f"{run}/do/{{action}}", act, methods=["POST"]),
        Route(run, run_page),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _refused, **dict.fromkeys(_EXPLAINED, _failed)},
        lifespan=lifespan,
    )
    app.state.site, app.state.watches = site, watches
    return PageGuard(app, door)  # around all, errors too


async def _static(request: Request) -> Response:
    file = _STATIC.get(request.path_params["name"])
    if file is None:
        raise HTTPException(404, "There is no such file")
    return FileResponse(file)


async def _login_page(request: Request) -> Response:
    to = request.query_params.get("to", "")
    return site_of(request).html("login.html.j2", title="Token", wrong=False, to=to)


async def _login(request: Request) -> Response:
    """Admits a browser whose reader knows the token."""
    site = site_of(request)
    form = await site.form(request)
    if not site.door.token or not is_same_text(text_of(form, "token"), site.door.token):
        to = text_of(form, "to")
        return site.html("login.html.j2", 403, title="Token", wrong=True, to=to)
    response = RedirectResponse(_place_after_login(form), 303)
    site.door.let_in(response, encrypted=request.url.scheme == "https")
    return response


def _place_after_login(form: FormData) -> str:
    """Returns the page that the reader wanted, if it is ours; else the first page."""
    wanted = text_of(form, "to")
    return quote(wanted) if wanted.startswith(PLACES) else "/"


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return site_of(request).message_response(request, error.detail, "/", error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    """Returns the sentence that a command would print for an error."""
    site = site_of(request)
    if isinstance(error, NoAnswer):
        error = await explain_silence(await site.access.client(), error)
    failure = explain(error)
    message = failure.message.replace("`", "")
    status = 404 if isinstance(error, NoRun) else _STATUS.get(failure.code, 409)
    return site.message_response(request, message, "/", status)
