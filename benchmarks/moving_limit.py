"""A provider's hidden limit that moves, under many runs on three Worker processes: `python -m benchmarks.moving_limit`.

The limit is the stand-in's, with 5 seconds' worth at once and `retry-after` in its 429s. A minute is a minute: the
default takes four.
"""

import argparse
import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack

from benchmarks.processes import ProcessFailed
from benchmarks.rows import Row
from benchmarks.scene import measured, scene
from runtime.process import exit_now

_PROCESSES = 3
_CALLS = Row("moving limit", 30, 2, 1.0, runs=25, at_once=8)
_GOODPUT = 0.7  # the share of a limit that must be used after the first minute
_FIRST = 60.0  # seconds that are not judged: the first limit is met


def main() -> None:
    """Exit codes: 0 the target is met, 1 it is not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving_limit", description=__doc__)
    parser.add_argument("--limits", default="600,200,1000", help="requests a minute, one after the other")
    parser.add_argument("--seconds", default="90,60,60", help="how long each is in force")
    options = parser.parse_args()
    rates = [float(part) for part in options.limits.split(",")]
    seconds = [float(part) for part in options.seconds.split(",")]
    phases = measured(_run(rates, seconds))
    least = min(phase["goodput"] for phase in phases)
    for shown in [*phases, {"name": "least goodput of a limit", "bound": _GOODPUT, "measured": least}]:
        sys.stdout.write(json.dumps(shown) + "\n")
    exit_now(0 if least >= _GOODPUT else 1)


async def _run(rates: list[float], seconds: list[float]) -> list[dict[str, float]]:
    """Returns for each limit what was granted of it. Raises ProcessFailed if a run fails."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(scene("limit"))
        fleet = [place.project(f"worker-{number}") for number in range(_PROCESSES)]
        for started in fleet:
            await stack.enter_async_context(started.worker)
        place.model.prepare(_CALLS.latency, limit={"per_minute": rates[0]})
        work = asyncio.create_task(fleet[0].run(_CALLS, "moving-limit"))
        changes = [time.time()]
        for rate, length in zip(rates, seconds, strict=True):
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {rate:g} requests a minute\n")
            place.model.prepare(_CALLS.latency, keep=True, limit={"per_minute": rate})
            await asyncio.sleep(length)
            changes.append(time.time())
        if work.done():
            raise ProcessFailed("there was not enough to do for that time")
        place.model.prepare(0.0, keep=True)
        if not all(run.ok for run in (await work).runs):
            raise ProcessFailed("a run's answer misses findings")
        ledger = place.model.ledger()
    came = {entry["n"]: entry["at"] for entry in ledger if entry["event"] == "received"}
    ends = [(came[entry["n"]], entry.get("status")) for entry in ledger if entry["event"] != "received"]
    phases = []
    for number, rate in enumerate(rates):
        began, ended = max(changes[number], changes[0] + _FIRST), changes[number + 1]
        granted, refused = (sum(began <= at < ended and status == code for at, status in ends) for code in (200, 429))
        goodput = granted / (rate / 60 * (ended - began))
        phases.append({"per_minute": rate, "granted": granted, "refused": refused, "goodput": round(goodput, 3)})
    return phases


if __name__ == "__main__":
    main()
