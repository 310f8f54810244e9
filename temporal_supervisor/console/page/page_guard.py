"""The rules of access: the host asked for, the asking page, the token, the mark of forms.

A page elsewhere can send requests to this machine through the reader's browser. If its own name
resolves to this machine, the host is wrong. Otherwise its requests have its own origin, and it
can't read the mark in each of our forms.
"""

import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LOGIN = "/login"
PLACES = ("/runs/", "/ask")
"""The beginnings of paths to which a reader is led once the token is known."""
MARK = "mark"
"""The field of a form that says that it is ours."""
MAX_BODY_BYTES = 1024**3 + 1024**2  # the files of one run, and the fields beside them
_TOO_MUCH = "More than 1 GB is sent at once"
_READS = ("GET", "HEAD")
_COOKIE = "supervisor-page"
_COOKIE_SECONDS = 12 * 3600
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_REPORT_POLICY = (
    # of a file that is opened from here: it has its styles in it, and runs nothing
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without any referrer a browser calls the origin of our own forms "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Door:
    """The rules of one server: its allowed host names, and the token, if there is one."""

    hosts: frozenset[str]
    token: str = ""
    mark: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @classmethod
    def of(cls, hosts: Iterable[str], token: str = "") -> "Door":
        """Returns the door of a server with these host names and those of loopback."""
        return cls(frozenset(name.lower() for name in (*LOOPBACK, *hosts)), token)

    @property
    def cookie(self) -> str:
        """The cookie of a browser with access, which can't be made without the token."""
        return hmac.new(self.token.encode(), b"page", sha256).hexdigest()

    def refusal(self, method: str, headers: Headers) -> Response | None:
        """Returns the response to a forbidden request; None if it is allowed."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) not in self.hosts:
            named = "name further ones with --allow-host"
            return PlainTextResponse(f"This server is not called that: {named}", 421)
        if method not in (*_READS, "POST"):
            return PlainTextResponse("Only GET and POST are taken", 405)
        if not _is_same_page(method, hosts[0], headers):
            return PlainTextResponse("This request comes from another page", 403)
        return None

    def has_token(self, headers: Headers, cookies: Mapping[str, str]) -> bool:
        """True if no token is needed, or the request has it: as bearer token or in our cookie."""
        if not self.token:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and is_same_text(given, self.token):
            return True
        return is_same_text(cookies.get(_COOKIE, ""), self.cookie)

    def is_ours(self, mark: object) -> bool:
        """True if a form has the mark of this server."""
        return isinstance(mark, str) and is_same_text(mark, self.mark)

    def let_in(self, response: Response, *, encrypted: bool) -> None:
        """Sets the cookie of a browser whose reader has sent the token."""
        response.set_cookie(
            _COOKIE,
            self.cookie,
            max_age=_COOKIE_SECONDS,
            httponly=True,
            secure=encrypted,
            samesite="lax",
        )


def is_same_text(given: str, wanted: str) -> bool:
    """True if two texts are equal, compared in constant time."""
    encoded = given.encode("utf-8", "surrogateescape")
    return hmac.compare_digest(encoded, wanted.encode("utf-8", "surrogateescape"))


def host_name(host: str) -> str:
    """Returns the name in a Host header, without the port; empty if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        return ""
    is_plain = parts.netloc == host and parts.username is None
    return (parts.hostname or "") if is_plain and port_is_one else ""


def _is_same_page(method: str, host: str, headers: Headers) -> bool:
    """True if a request comes from a page of this server, or from no page.

    Bookmarks, links and programs send no origin.
    """
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc.lower() == host.lower()
    site = headers.get("sec-fetch-site", "none")
    if site in ("same-origin", "none"):
        return True
    # A link elsewhere may lead here. Nothing else of another page may, and never to an effect.
    return method in _READS and headers.get("sec-fetch-mode") == "navigate"


class PageGuard:
    """The middleware that applies a door's rules and limits the size of requests."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Rejects a request, or passes it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            return

        headers = Headers(scope=scope)
        path = str(scope["path"])
        refused = self._door.refusal(scope["method"], headers) or self._unknown(path, headers)
        if refused is not None:
            await refused(scope, receive, _with_headers(send, _POLICY))
            return
        if _length(headers) > MAX_BODY_BYTES:
            too_large = PlainTextResponse(_TOO_MUCH, 413)
            await too_large(scope, receive, _with_headers(send, _POLICY))
            return
        policy = _REPORT_POLICY if path.endswith("/report.html") else _POLICY
        await self._app(scope, _bounded(receive), _with_headers(send, policy))

    def _unknown(self, path: str, headers: Headers) -> Response | None:
        """Returns the response to a request without the token; None if it may pass."""
        is_open = path == LOGIN or path.startswith("/static/")
        if is_open or self._door.has_token(headers, _cookies(headers)):
            return None
        if "text/html" in headers.get("accept", ""):
            asked = f"?to={quote(path, safe='')}" if path.startswith(PLACES) else ""
            return RedirectResponse(f"{LOGIN}{asked}", 303)
        return PlainTextResponse("Send the token of SUPERVISOR_UI_TOKEN", 401)


def _cookies(headers: Headers) -> dict[str, str]:
    cookies = {}
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        cookies[name] = value
    return cookies


def _length(headers: Headers) -> int:
    given = headers.get("content-length", "0")
    return int(given) if given.isdecimal() else 0


def _bounded(receive: Receive) -> Receive:
    """Returns a `receive` that raises HTTPException for a body above MAX_BODY_BYTES."""
    got = 0

    async def bounded() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > MAX_BODY_BYTES:
            raise HTTPException(413, _TOO_MUCH)
        return message

    return bounded


def _with_headers(send: Send, policy: str) -> Send:
    """Returns a `send` that adds headers which restrict a page's content."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {"Content-Security-Policy": policy, **_HEADERS}
            added = [(name.lower().encode(), text.encode()) for name, text in given.items()]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sending
