"""`make cases COUNT=10000 FIRST=1`: plays so many cases, from that seed on. Exits 1 if anything does not hold."""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.machine.cases import case
from tests.machine.invariants import broken
from tests.machine.playing import Ending, batch, played, say
from tests.scripted_model import scripted_model
from tests.serving import own_server

SIZE = 250
_MEMORY = Path("/dev/shm")


async def main(count: int, first: int, size: int = SIZE) -> int:
    """Plays the cases and prints what does not hold; returns how many cases have such."""
    bad: list[int] = []
    kinds: Counter[str] = Counter()

    async def check(ending: Ending) -> None:
        kinds[
            ending.error or (ending.result.status if ending.result and ending.kind == "completed" else ending.kind)
        ] += 1
        for wrong in await broken(client, ending):
            bad.append(ending.case.seed)
            say(f"seed {ending.case.seed} ({ending.run_id}): {wrong}")

    for start in range(first, first + count, size):
        began = time.monotonic()
        group = batch([case(seed) for seed in range(start, min(start + size, first + count))])
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            async with own_server() as client, scripted_model() as model:
                await played(client, model, Path(folder), group, check)
                calls = len(model.calls)
        say(
            f"seeds {start} to {group.cases[-1].seed}: {calls} calls, {time.monotonic() - began:.0f} s, "
            f"{len(group.restarts)} restarts, a cache of {group.cached_workflows}"
        )
    say(f"{count} cases, {len(set(bad))} in which something does not hold: {sorted(set(bad))}; {dict(kinds)}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(bool(asyncio.run(main(*map(int, sys.argv[1:])))))
