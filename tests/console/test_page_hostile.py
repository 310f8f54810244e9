"""Hostile text in every field of the page, in Chromium: it is text, and nothing else happens."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
import uvicorn
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from activities.store.store_urls import open_store
from temporal_supervisor.client import Item
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.page.ask_form import TeamChoice
from temporal_supervisor.console.page.lineage import Origin, lineage_text
from temporal_supervisor.console.page.page_app import _STATIC, page_app
from temporal_supervisor.console.page.page_guard import Door, PageGuard
from temporal_supervisor.console.page.page_site import FOLDER, PageSite
from temporal_supervisor.console.page.run_actions import RETRY, STEER, of_run
from temporal_supervisor.console.page.run_board import RunBoard
from temporal_supervisor.console.page.wait_cards import Card
from temporal_supervisor.console.report.report_data import report_data
from temporal_supervisor.console.report.report_page import report_body
from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.live_view import Picture, TreeRow
from temporal_supervisor.console.view.plan_view import PlanPage
from temporal_supervisor.console.view.whole_item import WholeItem
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.result import (
    Problem,
    Reused,
    RunResult,
    SubtaskReport,
)
from temporal_supervisor.supervision.contract.status import Asked, Wait
from temporal_supervisor.supervision.contract.usage import Usage
from tests.console.page_driver import Chromium, Reader
from tests.console.test_report_page import HOSTILE, make_run
from tests.corpus.canaries import lines_of
from tests.corpus.test_forged_text import FORGED
from tests.corpus.test_sinks import SHOWN

AT = "2026-11-02T09:30:00+00:00"
OTHERS = "\n".join([*FORGED, *lines_of("page"), SHOWN])
TEXTS = {"markup": (HOSTILE, "<script>window.pwned"), "forged": (OTHERS, '<finding subtask_id="t2">')}


def card_of(kind: str, text: str) -> Card:
    """A card in which all is hostile that a model, a tool or a user may have written."""
    wait = Wait(
        id="t1/1:1.0",
        sha256="ab" * 32,
        kind=kind,
        workflow_id="r",
        subtask_id=f"t1{text[:80]}",
        prompt_preview=text[:500],
        choices=[text[:200]],
        after=text[:400],
        since=AT,
        expires_at=AT,
    )
    item = Item("r", text, wait)
    asked = Asked(wait=wait, content=text)
    plan = PlanPage("r", plan_of(text)) if kind == "plan" else None
    return Card(item, WholeItem(item, asked, text, text, text, {}, plan=plan))


def plan_of(text: str) -> Plan:
    """A plan in which all is hostile that a planner may have written."""
    first = Subtask(id="t1", role=text[:100], description=text)
    each = Subtask(id="t2", role=text[:100], description=text, for_each=f"items:{text[:60]}")
    return Plan(goal=text, reasoning=text, subtasks=[first, each])


def live_page(site: PageSite, text: str) -> str:
    """A run at work, hostile in all its parts."""
    board = RunBoard(site.text, "/runs/r")
    report = SubtaskReport(id="t1", role=text, description=text, state="failed")
    report.error = Problem(type=ErrorKind.CANNOT_DO, message=text)
    running = SubtaskReport(id="t2", role=text, description=text, state="running")
    picture = Picture("r", reports={"t1": report, "t2": running}, notice=text)
    board.update_tree(picture, {"t2": text})
    board.add_lines([Line(datetime.now(UTC), text, text, "plain", (text,))])
    board.update_part("standing", 1, "standing.html.j2", causes=[(text, AT)], notice=text)
    board.update_part("writing", 1, "writing.html.j2", tail=text)
    board.update_part("draft", 1, "draft.html.j2", text=text)
    board.update_part("head", 1, "head.html.j2", picture=picture, status=None)
    actions = {"actions": of_run(paused=False), "run_id": text, "path": text}
    board.update_part("actions", 1, "actions.html.j2", **actions)
    cards = [card_of(kind, text) for kind in ("question", "tool", "finding", "resume", "plan")]
    board.update_text("lineage", 1, lineage_of(site, text))
    board.update_part("waits", 1, "cards.html.j2", cards=cards, left=1, back="/")
    return site.text(
        "run.html.j2",
        title=text,
        goal=text,
        run_id=text,
        place="/runs/r",
        board=board,
        is_ready=True,
        state="running",
        web=None,
        follow=text,
        status_command=text,
    )


def runs_list(site: PageSite, text: str) -> str:
    """The first page with a hostile run and hostile filters."""
    row = {
        **dict.fromkeys(("run_id", "goal", "team", "phase", "short", "partial"), text),
        "reuse_from": [text],
        **{"state": "running", "shown_state": text, "started_at": AT, "usd": None},
        **{"causes": [(text, AT)], "place": f"/runs/{quote(text, safe='')}", "waits": True},
    }
    return site.text(
        "runs.html.j2",
        title="Runs",
        cards="",
        waits=0,
        key="",
        unanswered=[text],
        rows=[row],
        notes=[text],
        asked=dict.fromkeys(("words", "team", "owner", "state", "waiting"), text),
        states=["running"],
        more=0,
        has_worker=True,
    )


def lineage_of(site: PageSite, text: str) -> str:
    """The part that leads back to a hostile run."""
    reused = Reused(run_id=text, subtask_id=text)
    report = SubtaskReport(id="t1", description=text, reused=reused)
    built = RunResult(status="completed", subtasks=[report], reuse_from=[text], saved=Usage())
    return lineage_text(site, built, [Origin(text, text)])


def further_pages(site: PageSite, text: str) -> dict[str, str]:
    """The form to ask, a subtask, and the parts that are pages without our script."""
    board = RunBoard(site.text, "/runs/r")
    items = [SubtaskReport(id=f"t1.{n}", role=text, description=text) for n in range(1, 21)]
    board.update_tree(Picture("r", reports={report.id: report for report in items}), {})
    report = SubtaskReport(id="t1", role=text, description=text, state="failed", model=text)
    report.error = Problem(type=ErrorKind.CANNOT_DO, message=text)
    report.finding = Finding(summary=text, text_ref="x", record_ref="x", limitations=[text])
    shared = {"run_id": text, "place": "/runs/r"}
    parts = {
        "tree": board.tree(),
        "items": site.text("items.html.j2", **shared, found=board.folded("t1")),
        "events": site.text("events.html.j2", **shared, lines=[text_line(site, text)]),
    }
    ask = {
        "asked": QueryParams(dict.fromkeys(("goal", "folder", "sample", "team"), text)),
        "choices": [TeamChoice(text, text, [text], has_sample=True)],
        "origins": [Origin(text, text)],
        "root": text,
        "folders": [text],
        "usual": text,
        "files_team": text,
        "most": 1,
        "most_of_one": 1,
    }
    subtask = {"row": TreeRow(report, 0, text), "path": text, "actions": [STEER, RETRY]}
    return {
        "ask": site.text("ask.html.j2", title="Ask", **ask),
        "subtask": site.text("subtask.html.j2", title=text, **shared, **subtask),
        **{name: site.text("part.html.j2", title=text, part=part, **shared) for name, part in parts.items()},
    }


def text_line(site: PageSite, text: str) -> str:
    """An event as the page shows it."""
    item = Line(datetime.now(UTC), text, text, "plain", (text,))
    return site.text("event.html.j2", item=item)


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


async def is_only_text(reader: Reader, sign: str) -> None:
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
    fields = str(await reader.page.evaluate("[...document.querySelectorAll('textarea')].map(e => e.value).join()"))
    assert sign in f"{shown} {fields}"
    assert await reader.fits()
    blocked = [said for said in reader.trouble if "EventSource" not in said and "404" not in said]
    assert blocked == []  # no policy had to stop anything


@pytest.mark.parametrize("kind", TEXTS)
async def test_hostile_text_is_text_on_every_page(kind: str, tmp_path: Path, chromium: Chromium) -> None:
    text, sign = TEXTS[kind]
    await make_run(open_store(tmp_path / "store", "a-namespace"), "hostile", 3, text)
    access = Access(address="127.0.0.1:1")
    access.settings = Settings(artifacts_url=str(tmp_path / "store"))
    site = PageSite(access, Door.of([]))
    box = Markup(site.text("ask_on.html.j2", run_id=text, command=text))
    ended = site.text(
        "ended.html.j2",
        title=text,
        lineage=lineage_of(site, text),
        body=report_body(await report_data(access, "hostile"), "/runs/hostile", box),
        run_id=text,
        place="/runs/hostile",
        goal=text,
        team=text,
        commands=[(text, text)],
        web=None,
    )
    said = site.text("message.html.j2", title="", is_refused=True, message=text, back="/")
    pages = {"live": live_page(site, text), "runs": runs_list(site, text), "ended": ended, "said": said}
    pages |= further_pages(site, text)
    all_templates = {path.name for path in (FOLDER / "templates").glob("*.j2")}
    assert site.templates.cache is not None
    filled = {name for _, name in site.templates.cache}
    assert all_templates - filled == {"login.html.j2"}  # which shows nothing of others
    viewport = {"width": 390, "height": 800}
    async with serving_pages(pages, site) as base, chromium.reading(base, viewport=viewport) as reader:
        for name in pages:
            await reader.open(f"/page/{name}")
            await is_only_text(reader, sign)
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
