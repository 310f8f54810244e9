"""Records the histories of a release: `python -m tests.replay.record 0.1.0`. Recorded ones are never changed.

With a folder as second argument they are written there instead, to look at or to replay.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.replay.numbers import record_numbers
from tests.replay.scenarios import SMALL_HISTORIES, play, scenarios
from tests.scripted_model import scripted_model
from tests.serving import own_server, settings_for
from worker_main import serving

HISTORIES = Path(__file__).parent / "histories"


async def record(release: str, histories: Path = HISTORIES) -> None:
    """Plays every scenario on a fresh server and writes down what happened, and the numbers that were read."""
    folder = histories / release
    folder.mkdir(parents=True)
    async with (
        own_server(SMALL_HISTORIES) as client,
        scripted_model() as model,
        serving(client, settings_for(model.url, tempfile.mkdtemp())),
    ):
        for name in scenarios():
            for index, history in enumerate(await play(client, model, name, f"recorded-{name}")):
                (folder / f"{name}.{index}.json").write_text(neutral(history.to_json()), encoding="utf-8")
    record_numbers(folder)


def neutral(history: str) -> str:
    """Returns a history without what a replay does not read and only the recording machine has: paths, host, user."""
    text = json.dumps(json.loads(history, object_hook=_neutral), indent=2)
    return text + "\n"


def _neutral(value: dict[str, Any]) -> dict[str, Any]:
    return {key: "recorded" if key == "identity" else item for key, item in value.items() if key != "stackTrace"}


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], *map(Path, sys.argv[2:])))
