"""Doubts about the queries of an agent, also by the others that were written for its subtask."""

import asyncio
import json
from collections.abc import Sequence

from activities.contracts.turn_contracts import ToolResultRef, TurnInput
from activities.model.conversation import Entry
from activities.model.journalled_call import ModelCalls
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_text
from temporal_supervisor.supervision.grounding.asked.other_queries import (
    other_query_doubts,
    other_result,
)
from temporal_supervisor.supervision.grounding.asked.query_doubts import query_doubts
from temporal_supervisor.supervision.grounding.sources import Source


async def doubts_of(
    calls: ModelCalls,
    turn: TurnInput,
    head: str,
    question: str,
    sources: Sequence[Source],
    told: str = "",
) -> list[str]:
    """Returns the doubts about the queries of the conversation at `head`.

    `sources` are what it has read, `told` is the finding that came of it.
    """
    # In a thread: many rows beside a long question take a tenth of a second.
    doubts = await asyncio.to_thread(query_doubts, question, sources, told)
    if not turn.others:
        return doubts
    others = await _others(calls, turn)
    first_call = await _first_call(calls, head)
    return [*doubts, *other_query_doubts(question, sources, others, first_call, told)]


async def other_words(calls: ModelCalls, turn: TurnInput) -> str:
    """Returns a sentence on what the other queries found; empty if they found nothing."""
    result = other_result(await _others(calls, turn))
    return f"But {result}." if result else ""


async def outputs_of(
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


async def _others(calls: ModelCalls, turn: TurnInput) -> list[Source]:
    sources: list[Source] = []
    for other in turn.others:
        entry = await calls.conversations.entry(other.head)
        sources += await outputs_of(calls.store, entry, [other.result])
    return sources


async def _first_call(calls: ModelCalls, head: str) -> str:
    """Returns the arguments of the first call that led to a reply, as JSON; empty without one."""
    chains = await calls.conversations.all_chains(head)
    for entry in chains[0]:
        for use in entry.reply.tool_uses():
            return json.dumps(use.get("input"), ensure_ascii=False)
    return ""
