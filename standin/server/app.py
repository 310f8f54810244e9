"""The server's routes: those of the API, open to all, and those that control it, which take its token."""

import secrets
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from standin.server.api_reply import Brain
from standin.server.call_log import CallLog
from standin.server.endpoint import Endpoint, error_body
from standin.server.faults import BadConfig, FaultScript, parse_config

TOKEN_VARIABLE = "STANDIN_CONTROL_TOKEN"
"""The environment variable with the token: words on a command line are shown to every user of the machine."""

_Handler = Callable[[HttpRequest], Awaitable[JSONResponse]]


class BrainServer:
    """A brain's server: its state and its routes.

    Loopback is open to every user of the machine: without a `control_token` it can't be scripted or read by HTTP.
    """

    def __init__(self, brain: Brain, log: CallLog, script: FaultScript, control_token: str = "") -> None:
        self._script = script
        self._log = log
        self._token = control_token.encode()
        self._endpoint = Endpoint(brain, self._script, log)

    def app(self) -> Starlette:
        """Returns the ASGI app."""
        return Starlette(
            routes=[
                Route("/v1/messages", self._endpoint, methods=["POST"]),
                Route("/v1/models/{model:path}", self._model),
                Route("/healthz", self._health),
                Route("/ledger", self._controlled(self._entries)),
                Route("/config", self._controlled(self._configure), methods=["POST"]),
                Route("/reset", self._controlled(self._reset), methods=["POST"]),
            ]
        )

    def _controlled(self, handler: _Handler) -> _Handler:
        """Returns the handler for requests with the token; all others are refused."""

        async def handle(http: HttpRequest) -> JSONResponse:
            given = http.headers.get("authorization", "").removeprefix("Bearer ").encode()
            if self._token and secrets.compare_digest(given, self._token):
                return await handler(http)
            problem = f"it takes the token that the server was started with, in {TOKEN_VARIABLE}"
            return JSONResponse(error_body("permission_error", problem), 403)

        return handle

    async def _model(self, http: HttpRequest) -> JSONResponse:
        name = http.path_params["model"]
        listed = self._script.config.listed(name)
        if listed is None:
            return JSONResponse(error_body("not_found_error", f"model: {name}"), 404)
        return JSONResponse(listed)

    async def _health(self, http: HttpRequest) -> JSONResponse:
        return JSONResponse({"status": "ok", "model": "stand-in: it has no model behind it"})

    async def _entries(self, http: HttpRequest) -> JSONResponse:
        return JSONResponse(self._log.entries())

    async def _configure(self, http: HttpRequest) -> JSONResponse:
        try:
            self._script.replace(parse_config(await http.body()))
        except BadConfig as error:
            return JSONResponse(error_body("invalid_request_error", str(error)), 400)
        return JSONResponse({"ok": True})

    async def _reset(self, http: HttpRequest) -> JSONResponse:
        self._script.reset()
        self._log.clear()
        self._endpoint.reset()
        return JSONResponse({"ok": True})
