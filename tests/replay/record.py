"""Records the histories of a release: `python -m tests.replay.record 0.1.0`. Recorded ones are never changed."""

import asyncio
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import worker_main
from runtime import search_attributes
from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer
from runtime.settings import Settings
from runtime.workers import ALL_ROLES
from tests.conftest import LAB
from tests.replay.scenarios import play, scenarios
from tests.scripted_model import scripted_model

HISTORIES = Path(__file__).parent / "histories"


async def record(release: str) -> None:
    """Plays every scenario on a fresh server and writes down what happened."""
    folder = HISTORIES / release
    folder.mkdir(parents=True)
    async with EmbeddedServer(shared=False, headless=True) as server, scripted_model() as model:
        client = await connect(address=server.address)
        settings = Settings(
            _env_file=None, artifacts_url=tempfile.mkdtemp(), teams_dir=LAB, ANTHROPIC_BASE_URL=model.url
        )
        attributes = await search_attributes.ensure(client)
        async with contextlib.AsyncExitStack() as stack:
            for worker in worker_main.compose(client, settings, list(ALL_ROLES), attributes):
                await stack.enter_async_context(worker)
            for name in scenarios():
                for index, workflow_id in enumerate(await play(client, model, name, f"recorded-{name}")):
                    history = await client.get_workflow_handle(workflow_id).fetch_history()
                    (folder / f"{name}.{index}.json").write_text(neutral(history.to_json()), encoding="utf-8")


def neutral(history: str) -> str:
    """Returns a history without what a replay does not read and only the recording machine has: paths, host, user."""
    text = json.dumps(json.loads(history, object_hook=_neutral), indent=2)
    return text + "\n"


def _neutral(value: dict[str, Any]) -> dict[str, Any]:
    return {key: "recorded" if key == "identity" else item for key, item in value.items() if key != "stackTrace"}


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
