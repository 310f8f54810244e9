"""Records the histories of a release: `python -m tests.replay.record 0.1.0`. Recorded ones are never changed."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.replay.scenarios import play, scenarios
from tests.scripted_model import scripted_model
from tests.serving import own_server, settings_for
from worker_main import serving

HISTORIES = Path(__file__).parent / "histories"


async def record(release: str) -> None:
    """Plays every scenario on a fresh server and writes down what happened."""
    folder = HISTORIES / release
    folder.mkdir(parents=True)
    async with (
        own_server() as client,
        scripted_model() as model,
        serving(client, settings_for(model.url, tempfile.mkdtemp())),
    ):
        for name in scenarios():
            for index, workflow_id in enumerate(await play(client, model, name, f"recorded-{name}")):
                history = await client.get_workflow_handle(workflow_id).fetch_history()
                (folder / f"{name}.{index}.json").write_text(history.to_json(), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
