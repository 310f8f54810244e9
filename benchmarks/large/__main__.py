"""The command behind `make large`."""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from benchmarks.large.crossing import Crossing, cross
from benchmarks.large.sizes import SIZES, Size, scaled
from benchmarks.model_control import ModelControl
from benchmarks.processes import ProcessFailed
from benchmarks.systems import Project
from runtime.connection import ConnectionFailed, connect
from runtime.process import exit_now
from runtime.server.embedded_server import EmbeddedServer, ServerFailed
from runtime.server.temporal_binary import TemporalNotFound
from supervision import limits

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
    try:
        seen = asyncio.run(_run(sizes, timedelta(minutes=options.patience), options.keep))
    except (TemporalNotFound, ServerFailed, ConnectionFailed, ProcessFailed) as error:
        sys.stderr.write(f"{error}\n")
        exit_now(1)
    exit_now(0 if all(crossing.holds for crossing in seen) else 1)


async def _run(sizes: list[Size], patience: timedelta, keep: Path | None) -> list[Crossing]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="large-", ignore_cleanup_errors=True)))
        if keep:
            folder = keep.absolute()
            folder.mkdir(parents=True, exist_ok=True)
        server = EmbeddedServer(shared=False, db=folder / "temporal.db", headless=True)
        info = await stack.enter_async_context(server)
        model = ModelControl(folder, None)
        await stack.enter_async_context(model.process)
        client = await connect(address=info.address, wait=limits.WORKER_CONNECT_WAIT)
        seen = []
        for size in sizes:
            project = Project(folder, client, info.address, model.url)
            crossing = await cross(client, project, model, size, f"large-{size.name}", patience)
            seen.append(crossing)
            sys.stdout.write(json.dumps({**asdict(crossing), "holds": crossing.holds}) + "\n")
            sys.stdout.flush()
        return seen


if __name__ == "__main__":
    main()
