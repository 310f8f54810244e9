"""Starts a run, shows its events, and prints its answer with its gaps."""

import asyncio
import sys

from temporal_supervisor import Run, RunFailed, RunRequest, TraceEvent, connect


async def main(goal: str) -> None:
    """Asks the library."""
    client = await connect()
    run = await Run.start(client, RunRequest(goal=goal, team="library"))
    async for news in run.follow():
        if isinstance(news, TraceEvent):
            print(news.at, news.type, news.subtask_id or "", file=sys.stderr)
    try:
        result = await run.result()
    except RunFailed as failed:
        sys.exit(f"no answer: {failed}")
    print(result.answer)
    for gap in result.gaps:
        print(f"missing: {gap.description} ({gap.reason})")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "On which shelf is Emma?"))
