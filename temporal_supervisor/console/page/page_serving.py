"""The command `ui`: serves the page on this machine or, with a token, to others."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import uvicorn

from temporal_supervisor.console.base.command import BAD_INPUT, DONE, Access, CommandFailed
from temporal_supervisor.console.base.terminal import print_err, print_out
from temporal_supervisor.console.page.page_app import page_app
from temporal_supervisor.console.page.page_guard import Door
from temporal_supervisor.supervision.base.trust import is_loopback

PORT = 8240
_LEAST_TOKEN_CHARS = 16
_ENDS_AFTER = 1  # seconds: open streams are dropped then


def page_door(access: Access, host: str, hosts: Iterable[str]) -> Door:
    """Returns the door of a server at an address. Raises CommandFailed if it needs a token."""
    names = list(hosts)
    token = access.settings.secret("ui_token") or ""
    if is_loopback(host) and not names and not token:
        return Door.of([])
    if not is_loopback(host) and not names:
        helps = "name the hosts by which browsers call it with --allow-host, and put TLS in front"
        raise CommandFailed(BAD_INPUT, f"--host {host} is not loopback: {helps}")
    if len(token) < _LEAST_TOKEN_CHARS:
        example = "what `openssl rand -hex 32` prints, for example"
        needs = f"which needs at least {_LEAST_TOKEN_CHARS} characters: {example}"
        raise CommandFailed(BAD_INPUT, f"readers send the token in SUPERVISOR_UI_TOKEN, {needs}")
    return Door.of(names, token)


async def serve_page(
    access: Access,
    host: str,
    port: int | None,
    hosts: Iterable[str],
    root: Path | None,
) -> int:
    """Serves the page until Ctrl-C."""
    if root is not None and not root.is_dir():
        raise CommandFailed(BAD_INPUT, f"--data-root {root} is no folder")
    door = page_door(access, host, hosts)
    listener = listening(host, port)
    await access.client()  # a wrong address is said now, and not by the first page
    print_out(f"page  {address_of(listener)}")
    if not door.token:
        print_err("without SUPERVISOR_UI_TOKEN it answers each user of this machine (Ctrl-C ends)")
    await page_server(access, door, root).serve(sockets=[listener])
    return DONE


def page_server(access: Access, door: Door, root: Path | None = None) -> uvicorn.Server:
    """Returns the server of the page, which needs a listening socket."""
    config = uvicorn.Config(
        page_app(access, door, root),
        log_level="warning",
        timeout_graceful_shutdown=_ENDS_AFTER,
        server_header=False,
        proxy_headers=False,  # whatever a client says of itself is not believed
    )
    return uvicorn.Server(config)


class _PartServer(uvicorn.Server):
    """A server within another program, which handles the signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def page_beside(access: Access, listener: socket.socket) -> AsyncIterator[None]:
    """Serves the page on this machine for the time of an `async with` block."""
    server = _PartServer(page_server(access, page_door(access, "127.0.0.1", [])).config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


def listening(host: str, port: int | None) -> socket.socket:
    """Returns a listening socket; without a port the usual one, or another if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, PORT if port is None else port), family=family)
    except OSError as error:
        if port is not None:
            said = f"{host}:{port} can't be used ({error.strerror}): choose another --port"
            raise CommandFailed(BAD_INPUT, said) from None
    return socket.create_server((host, 0), family=family)


def address_of(listener: socket.socket) -> str:
    """Returns the URL that a reader opens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
