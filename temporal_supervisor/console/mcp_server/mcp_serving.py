"""The command `mcp`: the server over standard input and output, or over HTTP with a token."""

import hashlib
import hmac
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
)
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import AnyHttpUrl, AnyUrl, ValidationError

from activities.store.artifacts import ArtifactMissing
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    DONE,
    Access,
    CommandFailed,
    explain,
    tool_hints,
)
from temporal_supervisor.console.base.terminal import print_err
from temporal_supervisor.console.mcp_server.run_tools import add_to
from temporal_supervisor.console.run.standstill import explain_silence
from temporal_supervisor.messages import NoAnswer, NoRun
from temporal_supervisor.supervision.base.trust import is_loopback
from temporal_supervisor.supervision.contract.request import describe_errors

_PROGRAM = "temporal-supervisor"
_INSTRUCTIONS = (
    "Long research by a supervisor and its worker agents: "
    "`research` starts a run, `wait` follows it, `result` returns the answer. "
    "Runs are kept in Temporal: a run id stays valid after restarts, of this server, too."
)
_TOOLS = {
    "run": "research",
    "follow": "wait",
    "status": "wait",
    "show": "wait",
    "approve": "decide",
    "deny": "decide",
    "result": "result",
    "inbox": "inbox",
    "reply": "reply",
    "steer": "steer",
    "cancel": "cancel",
}
"""The tools, by the commands whose work they do."""
_BY_LINKS = frozenset(["verify", "artifacts", "artifact", "report"])
_FORM_SECONDS = 24 * 3600.0  # a person's time to fill in a form
_LEAST_TOKEN_CHARS = 16
_LAST_PORT = 65535


async def serve_mcp(
    access: Access,
    http: str | None,
    hosts: Sequence[str],
    *,
    decides: bool = True,
) -> int:
    """Serves until standard input ends or, over HTTP at `http`, until Ctrl-C.

    `hosts` are allowed host names other than loopback. Unless it `decides`, clients have no tools
    for decisions and replies; then a person fills in a form.
    """
    if http is None:
        # a thread waits for input, and holds up any other end
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        await _PlainServer(access, decides=decides).run_stdio_async()
        return DONE

    host, port = _parsed_place(http)
    if not hosts and not is_loopback(host):
        named = "name the hosts by which clients call it with --allow-host"
        secured = "their token is sent as it is, so put TLS in front"
        raise CommandFailed(BAD_INPUT, f"--http {http} is not loopback: {named}; {secured}")
    token = access.settings.secret("mcp_token") or ""
    if len(token) < _LEAST_TOKEN_CHARS:
        needs = f"needs at least {_LEAST_TOKEN_CHARS} characters"
        example = "what `openssl rand -hex 32` prints, for example"
        sent = "clients send the token in SUPERVISOR_MCP_TOKEN"
        raise CommandFailed(BAD_INPUT, f"{sent}, which {needs}: {example}")

    server = _PlainServer(
        access,
        decides=decides,
        auth=AuthSettings(issuer_url=AnyHttpUrl(f"http://{http}"), resource_server_url=None),
        token_verifier=_OneToken(token),
        request_state_security=RequestStateSecurity(
            keys=[hashlib.sha256(token.encode()).digest()],
            ttl=_FORM_SECONDS,
        ),
    )
    header = "the header Authorization: Bearer TOKEN"
    print_err(f"MCP at http://{http}/mcp for clients that send {header}")
    await server.run_streamable_http_async(
        host=host,
        port=port,
        transport_security=_allowed_callers(hosts),
    )
    return DONE


def _parsed_place(http: str) -> tuple[str, int]:
    """Returns the host and the port in a text. Raises CommandFailed."""
    host, _, port = http.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise CommandFailed(BAD_INPUT, f"--http {http}: write HOST:PORT, such as 127.0.0.1:8765")
    return host, int(port)


def _allowed_callers(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Returns the protection against DNS rebinding: loopback and some hosts are allowed."""
    names = ["127.0.0.1", "localhost", "[::1]", *hosts]
    origins = []
    for name in names:
        for scheme in ("http", "https"):
            origins += [f"{scheme}://{name}", f"{scheme}://{name}:*"]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{name}:*" for name in names)],
        allowed_origins=origins,
    )


class _OneToken:
    """Verifies the token of this server in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Returns the rights of a client; None for another token."""
        if not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            return None
        return AccessToken(token=token, client_id="mcp", scopes=[])


class _PlainServer(MCPServer[Access]):
    """Reports a failed call or read in one sentence, as commands do."""

    def __init__(self, access: Access, *, decides: bool = True, **http: Any) -> None:
        @asynccontextmanager
        async def lifespan(_: MCPServer[Access]) -> AsyncIterator[Access]:
            yield access

        super().__init__(
            _PROGRAM,
            title="Temporal Supervisor",
            instructions=_INSTRUCTIONS,
            version=metadata.version(_PROGRAM),
            log_level="INFO" if access.debug else "WARNING",
            lifespan=lifespan,
            **http,
        )
        self._access = access
        add_to(self, decides=decides)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[Access, Any] | None = None,
    ) -> CallToolResult | InputRequiredResult:
        """Overrides the SDK's method."""
        token = tool_hints.set(_tool_of)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if cause is None:
                raise
            if isinstance(cause, NoAnswer):
                cause = await explain_silence(await self._access.client(), cause)
            raise ToolError(_sentence(cause, name)) from None
        finally:
            tool_hints.reset(token)

    async def read_resource(
        self,
        uri: AnyUrl | str,
        context: Context[Access, Any] | None = None,
    ) -> Any:
        """Overrides the SDK's method."""
        try:
            return await super().read_resource(uri, context)
        except UnexpectedResourceError as error:
            cause = error.__cause__ or error
            sentence = _sentence(cause, "uri")
            if isinstance(cause, CommandFailed | NoRun | ArtifactMissing):
                raise ResourceNotFoundError(sentence) from None
            raise ResourceError(sentence) from None


def _tool_of(command: str, *words: str) -> str:
    """Returns the tool or resource that corresponds to a command; empty without one."""
    writes_whole = command == "result" and ("-o" in words or "--full" in words)
    if writes_whole or command in _BY_LINKS:
        return "the links of `result`"
    return f"`{_TOOLS[command]}`" if command in _TOOLS else ""


def _sentence(error: BaseException, root: str) -> str:
    if isinstance(error, NoRun):
        return f"{error}: give the id that `research` returned"
    if isinstance(error, ValidationError):
        return describe_errors(error, root)
    return explain(error).message
