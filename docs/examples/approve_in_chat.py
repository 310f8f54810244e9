"""Decisions in a chat: posts what waits, and takes `approve RUN ID`, `deny RUN ID why` and `reply RUN ID text`.

Standard input and output stand for the chat: put its calls in their place.
"""

import asyncio
import sys

from temporal_supervisor import NoAnswer, UpdateRefused, connect, decide, inbox


async def main() -> None:
    """Looks into the inbox every two seconds, and at each message."""
    client, posted = await connect(), {}
    message = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    while not message.done() or message.result():
        if message.done():
            try:
                word, run_id, wait_id, *text = message.result().split(maxsplit=3)
                said = (await decide(client, posted[run_id, wait_id], word, *text, by="chat")).message
            except (KeyError, ValueError, UpdateRefused, NoAnswer) as error:
                said = f"not done: {error}"
            sys.stdout.write(f"{said}\n")
            message = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        for item in (await inbox(client)).items:
            if (item.run_id, item.wait.id) not in posted:
                asks = f"{item.goal}\n{item.wait.prompt_preview}"
                word = "approve" if item.wait.kind in ("plan", "tool") else "reply"
                sys.stdout.write(f"{asks}\nanswer: {word} {item.run_id} {item.wait.id}\n")
            posted[item.run_id, item.wait.id] = item
        sys.stdout.flush()
        await asyncio.wait({message}, timeout=2)


asyncio.run(main())
