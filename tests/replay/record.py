"""Records the histories of a release: `python -m tests.replay.record 0.1.0`. Recorded ones are never changed."""

import asyncio
import sys
import tempfile
from pathlib import Path

from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer
from runtime.settings import Settings
from tests.conftest import LAB
from tests.replay.scenarios import play, scenarios
from tests.scripted_model import scripted_model
from worker_main import serving

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
        async with serving(client, settings):
            for name in scenarios():
                for index, workflow_id in enumerate(await play(client, model, name, f"recorded-{name}")):
                    history = await client.get_workflow_handle(workflow_id).fetch_history()
                    (folder / f"{name}.{index}.json").write_text(history.to_json(), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
