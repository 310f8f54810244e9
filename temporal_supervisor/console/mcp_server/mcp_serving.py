"""The command `mcp`: the server over standard input and output, or over HTTP with a token."""

import hashlib
import hmac
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedResourceError
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
    "Long research by a supervisor and its worker agents: `research` starts a run, `wait` follows it, `result` returns "
    "the answer. Runs are kept in Temporal: a run id stays valid after restarts, of this server, too."
)
_TOOLS = {
    **dict.fromkeys(["follow", "status", "show"], "wait"),
    **dict.fromkeys(["approve", "deny"], "decide"),
    **{name: name for name in ("result", "inbox", "reply", "steer", "cancel")},
    "run": "research",
}
"""The tools by the commands of which they do the work."""
_BY_LINKS = frozenset(["verify", "artifacts", "artifact", "report"])
_FORM_SECONDS = 24 * 3600.0  # a person's time to fill in a form
_LEAST_TOKEN_CHARS = 16


async def serve_mcp(access: Access, http: str | None, hosts: Iterable[str], *, decides: bool = True) -> int:
    """Serves until standard input ends or, over HTTP at `http`, until Ctrl-C.

    `hosts` are allowed host names other than loopback. Unless it `decides`, clients have no tools
    for decisions and replies; then a person fills in a form.
    """
    if http is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread waits for input, and holds up any other end
        await _PlainServer(access, decides=decides).run_stdio_async()
        return DONE
    host, colon, port = http.rpartition(":")
    host, hosts = host.strip("[]"), list(hosts)
    if not (host and colon and port.isdecimal() and int(port) < 65536):
        raise CommandFailed(BAD_INPUT, f"--http {http}: write HOST:PORT, such as 127.0.0.1:8765")
    if not hosts and not is_loopback(host):
        why = "is not loopback: name the hosts by which clients call it with --allow-host; their token is sent as it is"
        raise CommandFailed(BAD_INPUT, f"--http {http} {why}, so put TLS in front")
    token = access.settings.secret("mcp_token") or ""
    if len(token) < _LEAST_TOKEN_CHARS:
        why = f"needs at least {_LEAST_TOKEN_CHARS} characters: what `openssl rand -hex 32` prints, for example"
        raise CommandFailed(BAD_INPUT, f"clients send the token in SUPERVISOR_MCP_TOKEN, which {why}")
    names = ["127.0.0.1", "localhost", "[::1]", *hosts]
    rebinding = TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{name}:*" for name in names)],
        allowed_origins=[f"http{s}://{name}{end}" for s in ("", "s") for name in names for end in ("", ":*")],
    )
    print_err(f"MCP at http://{http}/mcp for clients that send the header Authorization: Bearer TOKEN")
    auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://{http}"), resource_server_url=None)
    forms = RequestStateSecurity(keys=[hashlib.sha256(token.encode()).digest()], ttl=_FORM_SECONDS)
    secured = {"auth": auth, "token_verifier": _OneToken(token), "request_state_security": forms}
    server = _PlainServer(access, decides=decides, **secured)
    await server.run_streamable_http_async(host=host, port=int(port), transport_security=rebinding)
    return DONE


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
        self, name: str, arguments: dict[str, Any], context: Context[Access, Any] | None = None
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

    async def read_resource(self, uri: AnyUrl | str, context: Context[Access, Any] | None = None) -> Any:
        """Overrides the SDK's method."""
        try:
            return await super().read_resource(uri, context)
        except UnexpectedResourceError as error:
            cause = error.__cause__ or error
            unknown = isinstance(cause, (CommandFailed, NoRun, ArtifactMissing))
            raise (ResourceNotFoundError if unknown else ResourceError)(_sentence(cause, "uri")) from None


def _tool_of(command: str, *words: str) -> str:
    """Returns the tool or resource that corresponds to a command; empty without one."""
    if command in _BY_LINKS or (command == "result" and {"-o", "--full"} & set(words)):
        return "the links of `result`"
    return f"`{_TOOLS[command]}`" if command in _TOOLS else ""


def _sentence(error: BaseException, root: str) -> str:
    if isinstance(error, NoRun):
        return f"{error}: give the id that `research` returned"
    if isinstance(error, ValidationError):
        return describe_errors(error, root)
    return explain(error).message
