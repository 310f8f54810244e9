"""The command behind `make large`."""

import argparse
import json
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from benchmarks.large.crossing import Crossing, cross
from benchmarks.large.sizes import SIZES, Size, scaled
from benchmarks.scene import measured, scene
from runtime.process import exit_now

_PATIENCE_MINUTES = 15


def main() -> None:
    """Exit codes: 0 all sizes hold, 1 one does not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description="Run the largest sizes.")
    parser.add_argument("--only", action="append", choices=[size.name for size in SIZES], help="may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the subtasks, for a shorter run")
    parser.add_argument("--patience", type=float, default=_PATIENCE_MINUTES, help="minutes for one size")
    parser.add_argument("--keep", type=Path, help="keep database, logs and store in that folder")
    options = parser.parse_args()
    sizes = [scaled(size, options.scale) if options.scale != 1 else size for size in SIZES]
    sizes = [size for size in sizes if not options.only or size.name in options.only]
    seen = measured(_run(sizes, timedelta(minutes=options.patience), options.keep))
    exit_now(0 if all(crossing.holds for crossing in seen) else 1)


async def _run(sizes: list[Size], patience: timedelta, keep: Path | None) -> list[Crossing]:
    async with scene("large", kept=keep) as place:
        seen = []
        for size in sizes:
            crossing = await cross(place.client, place.project(), place.model, size, f"large-{size.name}", patience)
            seen.append(crossing)
            sys.stdout.write(json.dumps({**asdict(crossing), "holds": crossing.holds}) + "\n")
            sys.stdout.flush()
        return seen


if __name__ == "__main__":
    main()
