"""A Worker of one's own that serves runs, too.

`python own_worker.py` serves until Ctrl-C; `python own_worker.py "On which shelf is Emma?"` asks
for one briefing and ends. It needs a Temporal server, SUPERVISOR_TEAMS_DIR with the folder that
holds `library/`, and a model: ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL. Without one: `--standin`
behind it.
"""

import asyncio
import os
import sys
from uuid import uuid4

from briefing import QUEUE, Briefing, deliver
from temporalio.client import Client
from temporalio.worker import Worker

from temporal_supervisor import SupervisorPlugin


async def main(question: str, *, standin: bool) -> None:
    """Serves, and asks for one briefing if there is a question."""
    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "localhost:7233"))
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[Briefing],
        activities=[deliver],
        plugins=[SupervisorPlugin(standin=standin)],
    )
    async with worker:
        if not question:
            print("serving", flush=True)
            await asyncio.Event().wait()
        made_id = f"briefing-{uuid4().hex[:8]}"
        mail = await client.execute_workflow(Briefing.run, question, id=made_id, task_queue=QUEUE)
    print(mail)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--standin"]
    asyncio.run(main(" ".join(words), standin=len(words) < len(sys.argv) - 1))
