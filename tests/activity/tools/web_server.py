"""A server on loopback whose pages are honest, huge, slow, packed, of odd types, or lead elsewhere."""

import contextlib
import gzip
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.office_files import pdf_bytes

PAGE = """<html><head><title>t</title><script>alert(1)</script></head><body><h1>Fees</h1><p>The fee is 4711 euros.</p>
<a href="/next?a=1&amp;b=2#top">next</a> <a href="https://elsewhere.example/x">away</a></body></html>"""
PAGES = {
    "/page": ("text/html; charset=utf-8", PAGE.encode()),
    "/latin": ("text/plain; charset=iso-8859-15", "Preis: 5 €".encode("iso-8859-15")),
    "/odd-charset": ("text/plain; charset=zip", b"plain words"),
    "/data": ("application/json", b'[{"fee": 4711}]'),
    "/paper": ("application/pdf", pdf_bytes(["The fee is 4711 euros."])),
    "/broken-paper": ("application/pdf", b"%PDF-1.7 broken"),
    "/image": ("image/png", b"\x89PNG"),
    "/empty": ("text/html", b"<html><script>x</script></html>"),
    "/binary": ("text/plain", bytes(range(256)) * 100),
    "/deep": ("text/html", b"<div>" * 400_000 + b"deep"),
}
REDIRECTS = {
    "/moved": "/page#part",
    "/loop": "/loop",
    "/to-metadata": "http://169.254.169.254/latest/meta-data",
    "/to-other": "https://elsewhere.example/",
    "/to-file": "file:///etc/passwd",
    "/to-gopher": "gopher://127.0.0.1/x",
    "/to-odd": "http://[broken",
    "/to-user": "http://me@127.0.0.1/",
}


class WebServer:
    """The server: `asked` are the paths with their Host headers, `sent` the bytes of the endless page."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.sent = 0
        self.released = threading.Event()
        self.port = 0
        self.names: list[str] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def serving(self, port: int = 0, certificate: Path | None = None) -> Iterator["WebServer"]:
        """Serves until the end of the block."""
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append((self.path, self.headers.get("Host", "")))
                with contextlib.suppress(OSError):
                    web.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.sni_callback = lambda _socket, name, _context: self.names.append(name or "")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        self.port = server.server_address[1]
        serves = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serves.start()
        try:
            yield self
        finally:
            self.released.set()
            server.shutdown()
            server.server_close()
            serves.join()

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        """Answers by the path."""
        path = asked.path.partition("?")[0]
        if path in REDIRECTS:
            asked.send_response(302)
            asked.send_header("Location", REDIRECTS[path])
            asked.end_headers()
        elif path in PAGES:
            self.page(asked, *PAGES[path])
        elif path == "/bomb":
            self.page(asked, "text/plain", gzip.compress(b"0" * 50_000_000), ("Content-Encoding", "gzip"))
        elif path == "/huge":
            asked.send_response(200)
            asked.send_header("Content-Type", "text/plain")
            asked.end_headers()
            while not self.released.is_set():
                self.sent += asked.wfile.write(b"x" * 65536)
        elif path == "/slow":
            asked.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.released.wait(0.05):
                asked.wfile.write(b"X-More: 1")
        elif path == "/headers":
            asked.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n")
        elif path == "/no-http":
            asked.wfile.write(b"SSH-2.0-OpenSSH\r\n\x1b[31m")
        else:
            asked.send_error(404)

    def page(self, asked: BaseHTTPRequestHandler, kind: str, body: bytes, *more: tuple[str, str]) -> None:
        """Sends a page."""
        asked.send_response(200)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))), *more]:
            asked.send_header(name, value)
        asked.end_headers()
        asked.wfile.write(body)
