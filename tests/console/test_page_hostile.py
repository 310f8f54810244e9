"""Hostile text in every field of the page, in Chromium: it is text, and nothing else happens."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from activities.store.artifacts import open_store
from temporal_supervisor.client import Item
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.commands.people_commands import WholeItem
from temporal_supervisor.console.page.page_app import _STATIC, page_app
from temporal_supervisor.console.page.page_guard import Door, PageGuard
from temporal_supervisor.console.page.page_site import PageSite
from temporal_supervisor.console.page.run_actions import of_run
from temporal_supervisor.console.page.run_board import RunBoard
from temporal_supervisor.console.page.wait_cards import Card
from temporal_supervisor.console.report.report_data import report_data
from temporal_supervisor.console.report.report_page import report_body
from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.live_view import Picture
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
from temporal_supervisor.supervision.contract.status import Asked, Wait
from tests.console.page_driver import Chromium, Reader
from tests.console.test_report_page import HOSTILE, make_run

AT = "2026-11-02T09:30:00+00:00"


def card_of(kind: str) -> Card:
    """A card in which all is hostile that a model, a tool or a user may have written."""
    wait = Wait(
        id="t1/1:1.0",
        sha256="ab" * 32,
        kind=kind,
        workflow_id="r",
        subtask_id=f"t1{HOSTILE[:80]}",
        prompt_preview=HOSTILE[:500],
        choices=[HOSTILE[:200]],
        after=HOSTILE[:400],
        since=AT,
        expires_at=AT,
    )
    item = Item("r", HOSTILE, wait)
    whole = WholeItem(item, Asked(wait=wait, content=HOSTILE), HOSTILE, HOSTILE, HOSTILE, {})
    return Card(item, whole)


def live_page(site: PageSite) -> str:
    """A run at work, hostile in all its parts."""
    board = RunBoard(site.text, "/runs/r")
    report = SubtaskReport(id="t1", role=HOSTILE, description=HOSTILE, state="failed")
    report.error = Problem(type=ErrorKind.CANNOT_DO, message=HOSTILE)
    running = SubtaskReport(id="t2", role=HOSTILE, description=HOSTILE, state="running")
    picture = Picture("r", reports={"t1": report, "t2": running}, notice=HOSTILE)
    board.take_tree(picture, {"t2": HOSTILE})
    board.take_lines([Line(datetime.now(UTC), HOSTILE, HOSTILE, "plain", (HOSTILE,))])
    board.put("standing", 1, "standing.html.j2", causes=[HOSTILE], notice=HOSTILE)
    board.put("writing", 1, "writing.html.j2", tail=HOSTILE)
    board.put("draft", 1, "draft.html.j2", text=HOSTILE)
    board.put("head", 1, "head.html.j2", picture=picture, status=None)
    actions = {"actions": of_run(paused=False), "run_id": HOSTILE, "path": HOSTILE}
    board.put("actions", 1, "actions.html.j2", **actions)
    cards = [card_of(kind) for kind in ("question", "tool", "finding", "resume")]
    board.put("waits", 1, "cards.html.j2", cards=cards, left=1, back="/")
    return site.text(
        "run.html.j2",
        title=HOSTILE,
        goal=HOSTILE,
        run_id=HOSTILE,
        place="/runs/r",
        board=board,
        state="running",
        web=None,
        follow=HOSTILE,
        status_command=HOSTILE,
    )


def runs_list(site: PageSite) -> str:
    """The first page with a hostile run and hostile filters."""
    row = {
        **dict.fromkeys(("run_id", "goal", "team", "phase", "short", "partial"), HOSTILE),
        **{"state": "running", "shown_state": HOSTILE, "started_at": AT, "usd": None},
        **{"causes": [HOSTILE], "place": f"/runs/{quote(HOSTILE, safe='')}", "waits": True},
    }
    return site.text(
        "runs.html.j2",
        title="Runs",
        cards="",
        waits=0,
        key="",
        unanswered=[HOSTILE],
        rows=[row],
        notes=[HOSTILE],
        asked=dict.fromkeys(("words", "team", "owner", "state", "waiting"), HOSTILE),
        states=["running"],
        more=0,
        has_worker=True,
    )


@asynccontextmanager
async def serving_pages(pages: Mapping[str, str], site: PageSite) -> AsyncIterator[str]:
    """Serves pages as the program does, behind its door, beside its own form to ask."""

    async def page(request: Request) -> Response:
        return HTMLResponse(pages[request.path_params["name"]])

    async def static(request: Request) -> Response:
        return FileResponse(_STATIC[request.path_params["name"]])

    app = Starlette(routes=[Route("/static/{name}", static), Route("/page/{name}", page)])
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(PageGuard(app, site.door), log_level="critical")
    async with running(uvicorn.Server(config), listener) as base:
        yield base


@asynccontextmanager
async def running(server: uvicorn.Server, listener: socket.socket) -> AsyncIterator[str]:
    """Serves for the time of the block; gives the address."""
    import asyncio

    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server._serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


async def is_only_text(reader: Reader) -> None:
    """Fails if the page ran, loaded or holds anything that it should not."""
    assert await reader.page.evaluate("window.pwned === undefined")
    scripts = await reader.page.evaluate("[...document.scripts].map(script => script.src)")
    assert [script.rpartition("/")[2] for script in scripts] == ["page.js"]
    names = await reader.page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]")
    assert {"img", "iframe", "object", "embed", "base"}.isdisjoint(names)
    handlers = await reader.page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(name => name.startsWith('on'))"
    )
    assert handlers == []
    schemes = await reader.page.evaluate("[...document.links].map(link => link.protocol)")
    assert set(schemes) <= {"http:", "https:", "mailto:"}
    shown = str(await reader.page.evaluate("document.body.innerText"))
    assert "<script>window.pwned" in shown
    assert await reader.fits()
    blocked = [said for said in reader.trouble if "EventSource" not in said and "404" not in said]
    assert blocked == []  # no policy had to stop anything


async def test_hostile_text_is_text_on_every_page(tmp_path: Path, chromium: Chromium) -> None:
    await make_run(open_store(tmp_path / "store", "a-namespace"), "hostile", 3, HOSTILE)
    access = Access(address="127.0.0.1:1")
    access.settings = Settings(artifacts_url=str(tmp_path / "store"))
    site = PageSite(access, Door.of([]))
    ended = site.text(
        "ended.html.j2",
        title=HOSTILE,
        body=report_body(await report_data(access, "hostile"), "/runs/hostile"),
        run_id=HOSTILE,
        place="/runs/hostile",
        goal=HOSTILE,
        team=HOSTILE,
        commands=[(HOSTILE, HOSTILE)],
        web=None,
    )
    said = site.text("message.html.j2", title="", message=HOSTILE, back="/")
    pages = {"live": live_page(site), "runs": runs_list(site), "ended": ended, "said": said}
    viewport = {"width": 390, "height": 800}
    async with serving_pages(pages, site) as base, chromium.reading(base, viewport=viewport) as reader:
        for name in pages:
            await reader.open(f"/page/{name}")
            await is_only_text(reader)
        await reader.page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert await reader.fits()


async def test_what_an_address_says_is_only_text(tmp_path: Path, chromium: Chromium) -> None:
    access = Access(address="127.0.0.1:1")
    access.settings = Settings(artifacts_url=str(tmp_path / "store"))
    config = uvicorn.Config(page_app(access, Door.of([])), log_level="critical")
    listener = socket.create_server(("127.0.0.1", 0))
    async with running(uvicorn.Server(config), listener) as base, chromium.reading(base) as reader:
        given = quote(HOSTILE, safe="")
        await reader.open(f"/ask?goal={given}&team={given}&sample={given}&folder={given}")
        assert await reader.page.evaluate("window.pwned === undefined")
        assert "<script>" in await reader.page.input_value("#goal")
        await reader.page.click("#ask button.main")
        await reader.sees("#said.bad-news")
        assert await reader.page.evaluate("window.pwned === undefined")
        assert await reader.page.evaluate("document.images.length") == 0
