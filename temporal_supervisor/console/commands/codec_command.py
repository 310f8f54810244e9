"""The command `codec`: decrypts payloads for Web UI and `temporal` CLI, on this machine only."""

import hmac

from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payloads
from temporalio.converter import PayloadCodec

from temporal_supervisor.console.base.command import BAD_INPUT, DONE, CommandFailed
from temporal_supervisor.console.base.terminal import print_err
from temporal_supervisor.runtime.encryption import Keys
from temporal_supervisor.runtime.payloads import SealedPayloads

_HOST = "127.0.0.1"
_HEADERS = ["authorization", "content-type", "x-namespace"]


def codec_app(codec: PayloadCodec, ui: str, token: str | None = None) -> Starlette:
    """Returns the server that Temporal's documentation calls a remote codec.

    Only pages of `ui` may use it and, with a `token`, only clients that send that.
    """
    wanted = f"Bearer {token}".encode()

    async def translate(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode("utf-8", "surrogateescape")
        if token and not hmac.compare_digest(given, wanted):
            return PlainTextResponse("send the token of SUPERVISOR_CODEC_TOKEN", status_code=401)
        try:
            payloads = json_format.Parse(await request.body(), Payloads()).payloads
        except (json_format.ParseError, UnicodeDecodeError):
            return PlainTextResponse("write payloads as JSON", status_code=400)
        if request.url.path == "/decode":
            made = await codec.decode(payloads)
        else:
            made = await codec.encode(payloads)
        return JSONResponse(json_format.MessageToDict(Payloads(payloads=made)))

    # A page elsewhere whose name resolves to this machine is refused by its host, any other one by
    # its origin. The Web UI is opened by either name of this machine.
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[_HOST, "localhost"])
    by_address = ui.replace("//localhost:", f"//{_HOST}:")
    by_name = ui.replace(f"//{_HOST}:", "//localhost:")
    origins = Middleware(
        CORSMiddleware,
        allow_origins=[ui, by_address, by_name],
        allow_methods=["POST"],
        allow_headers=_HEADERS,
    )
    routes = [Route(path, translate, methods=["POST"]) for path in ("/decode", "/encode")]
    return Starlette(routes=routes, middleware=[hosts, origins])


async def serve_codec(keys: Keys | None, port: int, ui: str, token: str | None = None) -> int:
    """Serves until Ctrl-C. Raises CommandFailed without keys."""
    import uvicorn

    if keys is None:
        helps = "set SUPERVISOR_KEYS_FILE to the file that the Workers use"
        raise CommandFailed(BAD_INPUT, f"there are no keys: {helps}")
    helps = "name it there as the codec server's endpoint (Ctrl-C ends)"
    print_err(f"decrypts at http://{_HOST}:{port} for {ui}: {helps}")
    if token is None:
        print_err("without SUPERVISOR_CODEC_TOKEN it answers each user of this machine")
    app = codec_app(SealedPayloads(keys), ui, token)
    config = uvicorn.Config(app, host=_HOST, port=port, log_level="warning")
    await uvicorn.Server(config).serve()
    return DONE
