"""The door of the page: by which names it is called, which pages may ask, who knows the token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from temporal_supervisor.console.base.command import Access, CommandFailed
from temporal_supervisor.console.page import page_guard
from temporal_supervisor.console.page.page_app import page_app
from temporal_supervisor.console.page.page_guard import Door, PageGuard, host_name
from temporal_supervisor.console.page.page_serving import page_door
from temporal_supervisor.runtime.settings import Settings

HERE = "http://localhost:8234"
TOKEN = "0123456789abcdef0123456789abcdef"


@asynccontextmanager
async def asking(door: Door, base: str = HERE) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser's side of a guarded application that says how many bytes it was sent."""

    async def said(request: Request) -> Response:
        return PlainTextResponse(f"{len(await request.body())}")

    inner = Starlette(routes=[Route("/{path:path}", said, methods=["GET", "POST", "PUT"])])
    transport = httpx2.ASGITransport(app=PageGuard(inner, door))
    async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/runs/x", "/runs/x/stream", "/static/page.js", "/login"])
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8234", "127.0.0.1@evil.example", "", "[::1"])
async def test_another_name_of_this_machine_is_refused_everywhere(path: str, host: str) -> None:
    async with asking(Door.of([])) as client:
        assert (await client.get(path, headers={"Host": host})).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8234", "127.0.0.1:9", "[::1]:8234", "LOCALHOST"])
async def test_the_names_of_loopback_are_taken(host: str) -> None:
    async with asking(Door.of([])) as client:
        assert (await client.get("/", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},  # another server of this machine
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_other_pages_send_nothing(headers: dict[str, str]) -> None:
    async with asking(Door.of([])) as client:
        assert (await client.post("/runs/x/do/cancel", headers=headers)).status_code == 403


async def test_a_link_elsewhere_leads_here_and_a_script_elsewhere_reads_nothing() -> None:
    async with asking(Door.of([])) as client:
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert (await client.get("/", headers=link)).status_code == 200
        for mode in ("cors", "no-cors"):
            read = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
            assert (await client.get("/runs/x/stream", headers=read)).status_code == 403
        assert (await client.get("/", headers={"Origin": "http://evil.example"})).status_code == 403
        assert (await client.post("/", headers={"Origin": HERE})).status_code == 200
        assert (await client.put("/", headers={"Origin": HERE})).status_code == 405


async def test_every_answer_keeps_its_content_in_it() -> None:
    async with asking(Door.of([])) as client:
        for answer in (await client.get("/"), await client.get("/", headers={"Host": "x"})):
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Frame-Options"] == "DENY"
        report = (await client.get("/runs/x/report.html")).headers["Content-Security-Policy"]
        assert "script-src" not in report  # a report that is opened from here runs nothing


async def test_with_a_token_nothing_is_shown_without_it() -> None:
    door = Door.of(["page.example"], TOKEN)
    async with asking(door, "https://page.example") as client:
        for path in ("/", "/runs/x/stream", "/inbox", f"/?token={TOKEN}"):
            assert (await client.get(path)).status_code == 401
        to_login = await client.get("/", headers={"Accept": "text/html"})
        assert (to_login.status_code, to_login.headers["location"]) == (303, "/login")
        for wrong in ("Bearer x", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
            assert (await client.get("/", headers={"Authorization": wrong})).status_code == 401
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/", headers=right)).status_code == 200
        for cookie, code in ((door.cookie, 200), (TOKEN, 401), ("", 401), ("ü", 401)):
            sent = {b"Cookie": f"a=b; supervisor-page={cookie}".encode()}
            assert (await client.get("/", headers=sent)).status_code == code
    assert TOKEN not in door.cookie


async def test_more_than_a_run_may_have_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_guard, "MAX_BODY_BYTES", 1000)

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    async with asking(Door.of([])) as client:
        assert (await client.post("/", content=b"x" * 900)).text == "900"
        assert (await client.post("/", content=b"x" * 1001)).status_code == 413
        # without a length it ends midway
        assert (await client.post("/", content=parts())).status_code == 413


@pytest.mark.parametrize(
    ("host", "hosts", "token", "refused"),
    [
        ("127.0.0.1", [], None, ""),
        ("::1", [], None, ""),
        ("0.0.0.0", [], TOKEN, "--allow-host"),
        ("0.0.0.0", ["page.example"], None, "SUPERVISOR_UI_TOKEN"),
        ("0.0.0.0", ["page.example"], "short", "SUPERVISOR_UI_TOKEN"),
        ("127.0.0.1", ["page.example"], None, "SUPERVISOR_UI_TOKEN"),
        ("127.0.0.1", [], "short", "SUPERVISOR_UI_TOKEN"),
        ("0.0.0.0", ["page.example"], TOKEN, ""),
    ],
)
def test_another_host_needs_a_token(host: str, hosts: list[str], token: str | None, refused: str) -> None:
    access = Access()
    access.settings = Settings.model_validate({"ui_token": token})
    if not refused:
        assert page_door(access, host, hosts).token == (token or "")
        return
    with pytest.raises(CommandFailed, match=refused):
        page_door(access, host, hosts)


def test_a_host_is_a_name_and_a_port() -> None:
    assert host_name("Localhost:80") == "localhost"
    assert host_name("[::1]:80") == "::1"
    for wrong in ("localhost:0x", "localhost:99999", "a@localhost", "localhost/x", "localhost?x"):
        assert host_name(wrong) == ""


@pytest.fixture
def nowhere() -> Access:
    """Access where no server is."""
    access = Access(address="127.0.0.1:1")
    access.settings = Settings()
    return access


async def test_the_token_opens_the_page_and_its_mark_is_needed(nowhere: Access) -> None:
    door = Door.of(["page.example"], TOKEN)
    transport = httpx2.ASGITransport(app=page_app(nowhere, door))
    async with httpx2.AsyncClient(transport=transport, base_url="https://page.example") as client:
        assert door.mark in (await client.get("/login")).text
        unmarked = await client.post("/login", data={"token": TOKEN})
        assert unmarked.status_code == 403
        wrong = await client.post("/login", data={"token": "wrong", "mark": door.mark})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
        right = await client.post("/login", data={"token": TOKEN, "mark": door.mark})
        assert right.status_code == 303
        flags = right.headers["set-cookie"]
        assert all(flag in flags for flag in ("HttpOnly", "Secure", "SameSite=lax"))
        assert TOKEN not in flags
        assert (await client.get("/ask")).status_code == 200


async def test_the_token_leads_to_the_page_that_was_asked_for(nowhere: Access) -> None:
    door = Door.of(["page.example"], TOKEN)
    transport = httpx2.ASGITransport(app=page_app(nowhere, door))
    async with httpx2.AsyncClient(transport=transport, base_url="https://page.example") as client:
        asked = await client.get("/runs/a%20b", headers={"Accept": "text/html"})
        assert asked.headers["location"] == "/login?to=%2Fruns%2Fa%20b"
        assert 'name="to" value="/runs/a b"' in (await client.get(asked.headers["location"])).text
        sent = {"token": TOKEN, "mark": door.mark}
        for to, place in [
            ("/runs/a b", "/runs/a%20b"),
            ("/ask", "/ask"),
            ("", "/"),
            ("https://evil.example/runs/", "/"),
            ("//evil.example", "/"),
        ]:
            came = await client.post("/login", data={**sent, "to": to})
            assert came.headers["location"] == place


@pytest.mark.parametrize("path", ["/ask", "/runs/x/decide", "/runs/x/do/cancel", "/runs/x/do/pause"])
async def test_nothing_is_done_without_the_mark_or_by_a_get(nowhere: Access, path: str) -> None:
    door = Door.of([])
    transport = httpx2.ASGITransport(app=page_app(nowhere, door))
    async with httpx2.AsyncClient(transport=transport, base_url=HERE) as client:
        for fields in ({}, {"mark": "x"}, {"mark": ""}):
            answer = await client.post(path, data=fields, headers={"Origin": HERE})
            assert answer.status_code == 403
        marked = await client.post(path, data={"mark": door.mark}, headers={"Origin": HERE})
        assert marked.status_code in (400, 503)  # it got as far as the form, or the server
        if path != "/ask":
            got = await client.get(f"{path}?mark={door.mark}")
            assert got.status_code in (404, 405, 503)
