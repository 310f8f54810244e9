"""Doubts about a query before anything is concluded from it.

A small model that sees the rows of a query reports something of them, whatever was asked: of 800
rows it makes up a mean.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import partial

from activities.agent.grounds import asked, read_grounds
from activities.contracts.turn_contracts import ToolResultRef, TurnInput
from activities.model.conversation import Entry, texts_of
from activities.model.journalled_call import ModelCalls
from activities.prompts.agent_prompts import DOUBTS_A_QUERY
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_text
from activities.teams.toolbox import Toolbox
from temporal_supervisor.supervision.grounding.asked.query_doubts import query_doubts
from temporal_supervisor.supervision.grounding.sources import Source


async def early_doubts(calls: ModelCalls, turn: TurnInput, toolbox: Toolbox) -> list[str]:
    """Returns the doubts about the queries of a conversation, with the outputs that just came.

    There are none where its author has heard of such before: a second time leads in circles.
    """
    if turn.head is None:
        return []
    chain = await calls.conversations.chain(turn.head)
    if _has_heard(chain):
        return []
    latest = await _outputs(calls.store, chain[-1], turn.results)
    if not latest:
        return []

    keep = partial(calls.store.put_output, turn.run.run_id)
    grounds = await read_grounds(calls.conversations, turn.head, toolbox, keep)
    sources = [*grounds.texts, *latest]
    # In a thread: many rows beside a long question take a tenth of a second.
    return await asyncio.to_thread(query_doubts, asked(chain), sources)


def _has_heard(chain: Sequence[Entry]) -> bool:
    texts = (text for entry in chain for text in texts_of(entry.input))
    return any(DOUBTS_A_QUERY in text for text in texts)


async def _outputs(
    store: ArtifactStore,
    entry: Entry,
    results: Sequence[ToolResultRef],
) -> list[Source]:
    """Returns the outputs that answer the calls of a reply, without errors."""
    uses = {str(use["id"]): use for use in entry.reply.tool_uses()}
    sources: list[Source] = []
    for result in results:
        use = uses.get(result.call_id)
        if use is None or result.is_error or not result.ref:
            continue
        output = await read_text(store, result.ref)
        arguments = json.dumps(use.get("input"), ensure_ascii=False)
        sources.append(Source(output, "data", arguments, str(use.get("name"))))
    return sources
