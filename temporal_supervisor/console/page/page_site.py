"""The parts that all pages share: access to runs, the door, templates, forms."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from temporal_supervisor.console.base.command import Access, hint
from temporal_supervisor.console.base.terminal import revealed
from temporal_supervisor.console.page.page_guard import MARK, Door
from temporal_supervisor.console.report import report_page
from temporal_supervisor.console.run.found_runs import find_run, short_id
from temporal_supervisor.runs import Run

FOLDER = Path(__file__).parent
_REPORT_FOLDER = Path(report_page.__file__).parent
_FRAGMENT = "x-fragment"  # the header of our script, which shows an answer in place
MOST_FILES, MOST_FIELDS = 2000, 100
_FIELD_BYTES = 1024 * 1024


@dataclass
class PageSite:
    """One server of the page; readers may name folders below `root`."""

    access: Access
    door: Door
    root: Path | None = None
    templates: Environment = field(init=False)

    def __post_init__(self) -> None:
        """Reads the templates."""
        self.templates = report_page.templates_in(FOLDER / "templates", _REPORT_FOLDER)
        self.templates.filters["safe_part"] = Markup  # of parts that these templates have made
        self.templates.globals["run_place"] = place_of

    def html(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Renders a template as a page."""
        return HTMLResponse(self.text(template, **values), status)

    def text(self, template: str, **values: Any) -> str:
        """Renders a template as text, for a page or a part of one."""
        shared = {"mark": self.door.mark, "mark_name": MARK, "has_token": bool(self.door.token)}
        return self.templates.get_template(template).render(**shared, **values)

    async def form(self, request: Request) -> FormData:
        """Returns the fields of one of our forms. Raises HTTPException for other forms."""
        bounds = {"max_files": MOST_FILES, "max_fields": MOST_FIELDS}
        given = await request.form(**bounds, max_part_size=_FIELD_BYTES)
        if not self.door.is_ours(given.get(MARK)):
            await given.close()
            raise HTTPException(403, "This form is of an earlier page: load the page again")
        return given

    async def run(self, request: Request) -> Run:
        """Returns the run in the request's path. Raises CommandFailed if there is none."""
        client = await self.access.client()
        return Run(client, await find_run(client, request.path_params["run_id"]))

    def message_response(
        self,
        request: Request,
        message: str,
        back: str,
        status: int = 200,
    ) -> Response:
        """Returns the response to a form: a message for our script, else a page.

        The page has a link to `back`.
        """
        if is_fragment(request):
            return PlainTextResponse(revealed(message), status)
        shown = {"is_refused": status >= 400, "message": message, "back": back}
        return self.html("message.html.j2", status, title="", **shown)

    def redirect_to(self, request: Request, place: str) -> Response:
        """Returns a redirect to another page, which our script follows by itself."""
        if is_fragment(request):
            return Response(json.dumps({"place": place}), 200, media_type="application/json")
        return RedirectResponse(place, 303)


def is_fragment(request: Request) -> bool:
    """True for a request by our script, which shows the response in place."""
    return _FRAGMENT in request.headers


def site_of(request: Request) -> PageSite:
    """Returns the site that a request came to."""
    site: PageSite = request.app.state.site
    return site


def place_of(run_id: str) -> str:
    """Returns the path of a run's page."""
    return f"/runs/{quote(run_id, safe='')}"


def shown_command(*words: str) -> str:
    """Returns a command for a person to copy."""
    return hint(*words).strip("`")


def short_id_of(run_id: str) -> str:
    """Returns the part of a run's id that a command needs."""
    return short_id(run_id)


def text_of(form: FormData, name: str) -> str:
    """Returns the stripped text of a field; empty without one."""
    given = form.get(name)
    return given.strip() if isinstance(given, str) else ""
