"""The process that fetches a page and extracts its text, so that neither can harm the Worker.

`activities.bounded` calls `fetch`, and limits its time and memory. The process has no environment,
so no proxy is used. A host is resolved once, all its addresses are checked, and one of them is
connected to.
"""

import contextlib
import http.client
import re
import socket
import ssl
from collections.abc import Collection, Iterable
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from activities.files.document_files import html_document, pdf_document, plain_document
from activities.tools.web.web_rules import NotFetched, Site, is_allowed, site_of
from temporal_supervisor.supervision.base.json_object import JsonObject

_PAGE_BYTES = 2 * 1024 * 1024
_REDIRECTS = 3
_SOCKET_SECONDS = 15  # the whole call has no more: its process is ended then
# Of a page, beside its links: what is kept of a tool's output is a little more.
_TEXT_CHARS = 150_000
_LINKS = 50
_LOOKED_AT = 2000  # links of a page
_LINK = re.compile(r"""(?i)href\s?=\s?["']?([^"'\s<>#]{1,300})""")
_REDIRECTED = (301, 302, 303, 307, 308)
_READERS = {
    "text/html": html_document,
    "text/plain": plain_document,
    "application/json": plain_document,
    "application/pdf": pdf_document,
}


def fetch(url: str, sites: Iterable[Iterable[Any]], private: bool, folder: str) -> JsonObject:
    """Returns the `text` of a page, and its final `url` after redirects.

    Redirects may lead to the same host, and to `sites`, which alone may be `private`. Raises
    NotFetched.
    """
    listed = {Site(*site) for site in sites}
    own = site_of(url)
    for _ in range(_REDIRECTS + 1):
        here = site_of(url)
        if here not in listed and (here != own or here.scheme != "https"):
            raise NotFetched(f"it leads to {url}, which is of no host that the team lists")
        try:
            connected = contextlib.closing(_connect(here, private and here in listed))
            with connected as connection, _request(connection, here, url) as response:
                if response.status not in _REDIRECTED:
                    body = _body(response)
                    text = _text(response, body, Path(folder))
                    return {"url": url, "text": text + _links(body, url, listed)}
                url = urldefrag(urljoin(url, response.getheader("Location", ""))).url
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotFetched(f"{type(error).__name__}: {error}") from None
    raise NotFetched(f"it leads from page to page more than {_REDIRECTS} times")


def _connect(here: Site, private: bool) -> socket.socket:
    """Returns a connection to the host. Raises NotFetched if any of its addresses is forbidden."""
    try:
        found = socket.getaddrinfo(here.host, here.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NotFetched(f"the host {here.host} is not known") from None
    for *_, address in found:
        if not is_allowed(str(address[0]), private):
            raise NotFetched(f"{here.host} is at {address[0]}, which is not a public IP")
    problem: OSError = ConnectionError("it has no IP")
    for family, kind_of, protocol, _, address in found:
        connection = socket.socket(family, kind_of, protocol)
        connection.settimeout(_SOCKET_SECONDS)
        try:
            connection.connect(address)
            if here.scheme == "https":
                context = ssl.create_default_context()
                return context.wrap_socket(connection, server_hostname=here.host)
        except OSError as error:
            problem = error
            connection.close()
        else:
            return connection
    raise problem


def _request(connection: socket.socket, here: Site, url: str) -> http.client.HTTPResponse:
    """Sends a request over a connection. Returns the response."""
    parts = urlsplit(url)
    asking = http.client.HTTPConnection(here.host, here.port)
    asking.sock = connection
    asking.auto_open = 0  # never connects by itself
    headers = {
        "Host": parts.netloc,
        "User-Agent": "temporal-supervisor",
        "Accept": ", ".join(_READERS),
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    path = parts._replace(scheme="", netloc="", path=parts.path or "/").geturl()
    asking.request("GET", path, headers=headers)
    return asking.getresponse()


def _body(response: http.client.HTTPResponse) -> bytes:
    kind = response.headers.get_content_type()
    packed = response.getheader("Content-Encoding", "identity")
    if response.status != http.client.OK:
        raise NotFetched(f"the server answers {response.status}")
    if kind not in _READERS:
        raise NotFetched(f"it is {kind}; what is read is {', '.join(_READERS)}")
    if packed.strip().lower() != "identity":
        raise NotFetched(f"the server sends it packed ({packed}), which was not asked for")
    body = response.read(_PAGE_BYTES + 1)
    if len(body) > _PAGE_BYTES:
        raise NotFetched(f"it is larger than {_PAGE_BYTES >> 20} MiB")
    return body


def _text(response: http.client.HTTPResponse, body: bytes, folder: Path) -> str:
    page = folder / "page"
    kind = response.headers.get_content_type()
    charset = response.headers.get_content_charset()
    if charset and kind != "application/pdf":
        with contextlib.suppress(LookupError, ValueError):  # else the encoding is found out
            body = body.decode(charset, "replace").encode("utf-8", "replace")
    page.write_bytes(body)
    document = _READERS[kind](page, folder)
    text = Path(document["file"]).read_text(encoding="utf-8").strip()
    if len(text) <= _TEXT_CHARS:
        return text
    return f"{text[:_TEXT_CHARS]}\n[The page is longer: this is its beginning.]"


def _links(body: bytes, url: str, listed: Collection[Site]) -> str:
    """Returns a list of a page's links that can be fetched; empty without any."""
    found: dict[str, None] = {}
    for link in islice(_LINK.finditer(body.decode("utf-8", "replace")), _LOOKED_AT):
        with contextlib.suppress(ValueError, NotFetched):
            leads_to = urldefrag(urljoin(url, unescape(link[1]))).url
            if site_of(leads_to) in listed:
                found[leads_to] = None
    if not found:
        return ""
    return "\n".join(["\n\nIts links that can be fetched:", *islice(found, _LINKS)])
