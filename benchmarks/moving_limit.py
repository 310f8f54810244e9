"""A provider's hidden limit that moves, under one run on three Worker processes: `python -m benchmarks.moving_limit`.

The limit is the stand-in's; with `--headers` its answers name it, as the provider's own do. A minute is a minute:
the default takes about seven.
"""

import argparse
import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.processes import ProcessFailed
from benchmarks.rows import Row
from benchmarks.scene import measured, scene
from benchmarks.targets import Verdict, at_least, at_most
from runtime.process import exit_now

_PROCESSES = 3
_LATENCY = 1.0
_SEARCH = 60.0  # seconds in which the first limit may be looked for
_WINDOW = 20.0  # over which a recovered rate is seen


@dataclass(frozen=True)
class Phase:
    """A limit in force from `began` to `ended`, in seconds since the first request."""

    per_minute: float
    began: float
    ended: float
    granted: int
    refused: int
    recovered: float | None

    @property
    def goodput(self) -> float:
        """The granted requests, to those that the limit allows."""
        return self.granted / (self.per_minute / 60 * (self.ended - self.began))


@dataclass(frozen=True)
class Requests:
    """When requests were granted and refused, in seconds since the first."""

    granted: list[float]
    refused: list[float]

    @classmethod
    def of(cls, ledger: list[dict[str, Any]], began: float) -> "Requests":
        """Returns the requests in the call log of the model's server."""
        came = {entry["n"]: entry["at"] - began for entry in ledger if entry["event"] == "received"}
        ends = [(came[entry["n"]], entry.get("status")) for entry in ledger if entry["event"] != "received"]
        return cls([at for at, status in ends if status == 200], [at for at, status in ends if status == 429])

    def phase(self, per_minute: float, began: float, ended: float) -> Phase:
        """Returns what happened under one limit."""
        granted, refused = _between(self.granted, began, ended), _between(self.refused, began, ended)
        return Phase(per_minute, began, ended, granted, refused, self._recovery(per_minute, began, ended))

    def _recovery(self, per_minute: float, began: float, ended: float) -> float | None:
        """Returns after how many seconds the limit is used and kept; None if it never is."""
        at = began
        while at + _WINDOW <= ended:
            granted = _between(self.granted, at, at + _WINDOW)
            if granted >= 0.85 * per_minute / 60 * _WINDOW - 1 and _between(self.refused, at, at + _WINDOW) <= 1:
                return at - began
            at += 1
        return None


def _between(moments: list[float], began: float, ended: float) -> int:
    return sum(began <= at < ended for at in moments)


def main() -> None:
    """Exit codes: 0 all targets are met, 1 one is not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving_limit", description=__doc__)
    parser.add_argument("--limits", default="60,20,100", help="requests a minute, one after the other")
    parser.add_argument("--seconds", default="120,60", help="how long each but the last is in force")
    parser.add_argument("--subtasks", type=int, default=200)
    parser.add_argument("--burst", type=float, default=5, help="seconds of requests that may come at once")
    parser.add_argument("--headers", action="store_true", help="answers name the limit")
    options = parser.parse_args()
    rates = [float(part) for part in options.limits.split(",")]
    seconds = [float(part) for part in options.seconds.split(",")]
    row = Row("moving limit", options.subtasks, 1, _LATENCY)
    requests, changes = measured(_run(row, rates, seconds, options.burst, options.headers))
    ends = [*changes[1:], max(requests.granted)]
    phases = [requests.phase(*facts) for facts in zip(rates, changes, ends, strict=False)]
    judged = _verdicts(requests, phases)
    facts = [*map(asdict, phases), *map(asdict, judged)]
    for shown in facts:
        sys.stdout.write(json.dumps(shown) + "\n")
    exit_now(0 if all(verdict.is_met for verdict in judged) else 1)


def _verdicts(requests: Requests, phases: list[Phase]) -> list[Verdict]:
    end = phases[-1].ended
    granted, refused = (_between(moments, _SEARCH, end + 1) for moments in (requests.granted, requests.refused))
    allowed = sum(phase.per_minute / 60 * max(phase.ended - max(phase.began, _SEARCH), 0) for phase in phases)
    recovered = [phase.recovered for phase in phases[1:]]
    slowest = None if None in recovered else max((one for one in recovered if one is not None), default=0.0)
    return [
        at_least("goodput after the first minute, to the limit", 0.85, granted / allowed),
        at_most("429s after the first minute, of all requests", 0.03, refused / max(granted + refused, 1)),
        at_most("recovery after a change, seconds", 60, float("inf") if slowest is None else slowest),
    ]


async def _run(
    row: Row, rates: list[float], seconds: list[float], burst: float, headers: bool
) -> tuple[Requests, list[float]]:
    """Returns the requests, and when each limit came into force."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(scene("limit"))
        fleet = [place.project(f"worker-{n}") for n in range(_PROCESSES)]
        for started in fleet:
            await stack.enter_async_context(started.worker)

        def limit(rate: float) -> float:
            place.model.prepare(
                row.latency, keep=True, limit={"per_minute": rate, "burst_seconds": burst, "headers": headers}
            )
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} {rate:g} requests a minute\n")
            return time.time()

        began = limit(rates[0])
        changes = [0.0]
        work = asyncio.create_task(fleet[0].run(row, "moving-limit"))
        for rate, length in zip(rates[1:], seconds, strict=False):
            await asyncio.sleep(length)
            changes.append(limit(rate) - began)
        runs = await work
        if not all(run.ok for run in runs.runs):
            raise ProcessFailed("the run's answer misses findings")
        return Requests.of(place.model.ledger(), began), changes


if __name__ == "__main__":
    main()
