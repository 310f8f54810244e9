"""`make cases COUNT=10000 FIRST=1`: plays so many cases, from that seed on. Exits 1 if anything does not hold.

With `KEEP=` the histories and the model calls of the cases in which something does not hold are kept in that folder.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.machine.cases import case
from tests.machine.playing import batch, say
from tests.machine.verdict import verdict_on
from tests.scripted_model import scripted_model
from tests.serving import own_server

SIZE = 250
_MEMORY = Path("/dev/shm")


async def main(count: int, first: int, size: int, kept: Path | None) -> int:
    """Plays the cases and prints what does not hold; returns how many cases have such."""
    bad: list[int] = []
    kinds: Counter[str] = Counter()
    for start in range(first, first + count, size):
        began, used = time.monotonic(), time.process_time()
        group = batch([case(seed) for seed in range(start, min(start + size, first + count))])
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            async with own_server() as client, scripted_model() as model:
                verdict = await verdict_on(client, model, group, Path(folder), evidence=kept)
                calls = len(model.calls)
        bad += verdict.faults
        kinds += verdict.kinds
        for line in verdict.lines():
            say(line)
        say(
            f"seeds {start} to {group.cases[-1].seed}: {calls} calls, {time.monotonic() - began:.0f} s, "
            f"{time.process_time() - used:.0f} s of CPU without the server's, {len(group.restarts)} restarts, "
            f"a cache of {group.cached_workflows}, slow: {verdict.slow}"
        )
    say(f"{count} cases, {len(bad)} in which something does not hold: {bad}; {dict(kinds)}")
    return len(bad)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.machine", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("--size", type=int, default=SIZE, help="how many are played together")
    parser.add_argument("--keep", type=Path, help="a folder for the evidence")
    options = parser.parse_args()
    sys.exit(bool(asyncio.run(main(options.count, options.first, options.size, options.keep))))
