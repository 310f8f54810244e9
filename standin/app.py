"""The server's routes."""

from datetime import timedelta
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from standin import sse
from standin.faults import BadConfig, Script, parse_config
from standin.ledger import Ledger
from standin.memory import Memory, prefixes, tokens
from standin.messages import Messages
from standin.request import BadRequest, Json, parse

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")


class StandIn:
    """The stand-in's state and its routes. Raises BadConfig and OSError when the config file can't be used."""

    def __init__(self, config: Path | None, ledger: Path | None, latency: timedelta) -> None:
        self._script = Script(config, usual_latency_ms=latency.total_seconds() * 1000)
        self._script.refresh()
        self._ledger = Ledger(ledger)
        self._messages = Messages(self._script, Memory(), self._ledger)

    def app(self) -> Starlette:
        """The ASGI app."""
        return Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/v1/models/{id}", self._model),
                Route("/healthz", self._health),
                Route("/ledger", self._entries),
                Route("/config", self._configure, methods=["POST"]),
                Route("/reset", self._reset, methods=["POST"]),
            ]
        )

    def close(self) -> None:
        """Closes the ledger's file."""
        self._ledger.close()

    async def _count(self, http: HttpRequest) -> JSONResponse:
        try:
            request = parse({"max_tokens": 0, **await http.json()})
        except (BadRequest, ValueError, TypeError) as error:
            return JSONResponse(sse.error("invalid_request_error", str(error), ""), 400)
        return JSONResponse({"input_tokens": tokens(prefixes(request)[-1].size)})

    async def _models(self, http: HttpRequest) -> JSONResponse:
        data = [_described(name) for name in MODELS]
        return JSONResponse({"data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]})

    async def _model(self, http: HttpRequest) -> JSONResponse:
        return JSONResponse(_described(http.path_params["id"]))

    async def _health(self, http: HttpRequest) -> JSONResponse:
        return JSONResponse({"status": "ok", "model": "stand-in: extractive, not intelligent"})

    async def _entries(self, http: HttpRequest) -> JSONResponse:
        return JSONResponse(self._ledger.entries())

    async def _configure(self, http: HttpRequest) -> JSONResponse:
        try:
            self._script.replace(parse_config(await http.body()))
        except BadConfig as error:
            return JSONResponse(sse.error("invalid_request_error", str(error), ""), 400)
        return JSONResponse({"ok": True})

    async def _reset(self, http: HttpRequest) -> JSONResponse:
        self._script.replace(parse_config("{}"))
        self._ledger.clear()
        self._messages.reset()
        return JSONResponse({"ok": True})


def _described(name: str) -> Json:
    return {
        "id": name,
        "type": "model",
        "display_name": f"{name} (stand-in)",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 1_000_000,
        "max_tokens": 128_000,
    }
