"""`make cases COUNT=10000 FIRST=1`: plays so many cases, from that seed on. Exits 1 if anything does not hold.

With `KEEP=` the histories and the model calls of the cases in which something does not hold are kept in that folder.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from pathlib import Path

from temporal_supervisor.runtime.process import search_later_objects_only
from tests.machine.playing import batches, say
from tests.machine.quick_server import quick_server
from tests.machine.verdict import verdict_on
from tests.scripted_model import scripted_model
from tests.serving import light_folder

SERVED = 250  # cases by one server, which keeps all their histories in memory


async def main(count: int, first: int, kept: Path | None) -> int:
    """Plays the cases and prints what does not hold; returns how many cases have such."""
    bad: list[int] = []
    kinds: Counter[str] = Counter()
    for start in range(first, first + count, SERVED):
        async with quick_server() as client, scripted_model() as model:
            for group in batches(start, min(SERVED, first + count - start)):
                model.calls.clear()
                began = time.monotonic()
                with light_folder() as folder:
                    verdict = await verdict_on(client, model, group, folder, evidence=kept)
                bad += verdict.faults
                kinds += verdict.kinds
                for line in verdict.lines():
                    say(line)
                say(
                    f"seeds {group.cases[0].seed} to {group.cases[-1].seed}: {len(model.calls)} calls, "
                    f"{time.monotonic() - began:.0f} s, {group.surroundings}"
                )
    say(f"{count} cases, {len(bad)} in which something does not hold: {bad}; {dict(kinds)}")
    return len(bad)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.machine", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("--keep", type=Path, help="a folder for the evidence")
    options = parser.parse_args()
    os.environ.setdefault("GOGC", "400")  # a server that never collected garbage took a seventh less CPU
    search_later_objects_only()  # as a Worker does: a quarter of a case's CPU went into looking for garbage
    sys.exit(bool(asyncio.run(main(options.count, options.first, options.keep))))
