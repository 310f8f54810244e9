"""`make bursts`: three bursts on one Worker, then all at once. Exits 1 if an honest run, memory or loop suffer.

What a burst must not do: an honest run beside it takes at most 1.5 times as long, the Worker has less than 600 MiB, and
its event loop is never silent for more than a second. The figures hold for a machine that does nothing else.
"""

import argparse
import asyncio
import os
import sys

from tests.bursts.playing import Burst, figures_of, scene

BURSTS = {
    "600 wide files of one run": Burst(files=600),
    "12 runs of hostile schemas": Burst(schemas=12),
    "200 runs with SQL": Burst(queries=200),
    "all of them at once": Burst(files=600, schemas=12, queries=200),
}


async def main(only: list[str]) -> int:
    """Plays the bursts and prints the figures; returns how many things do not hold."""
    faults = 0
    for name, burst in BURSTS.items():
        if only and not any(word in name for word in only):
            continue
        async with scene() as played:
            figures = await figures_of(played, burst)
        load = os.getloadavg()[0]
        print(f"{name}: {figures} (load {load:.1f})", flush=True)
        for fault in figures.faults:
            print(f"  too much: {fault}", flush=True)
            faults += 1
    return faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bursts", description=__doc__)
    parser.add_argument("only", nargs="*", help="words of the bursts to play")
    os.environ.setdefault("GOGC", "400")
    sys.exit(bool(asyncio.run(main(parser.parse_args().only))))
