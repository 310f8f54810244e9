"""Runs one goal, shows its events and prints its answer: `.venv/bin/python docs/examples/run_a_goal.py`."""

import asyncio
import sys

from temporal_supervisor import RunRequest, TraceEvent, connect, follow, start, wait

GOAL = "Which source of electricity grew most in Iowa from 2001 to 2017?"


async def main(run_id: str) -> None:
    """Starts the run and follows it to its answer."""
    client = await connect()
    await start(client, RunRequest(goal=GOAL, max_parallel=4), run_id)
    async for news in follow(client, run_id):
        if isinstance(news, TraceEvent):
            sys.stderr.write(f"{news.at} {news.type} {news.subtask_id or ''}\n")
    sys.stdout.write((await wait(client, run_id)).answer + "\n")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "iowa"))
