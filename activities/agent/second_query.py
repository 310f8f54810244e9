"""Doubts about the queries of an agent, also by the query that it wrote once more."""

import asyncio
import json
from collections.abc import Sequence

from activities.contracts.turn_contracts import ToolResultRef, TurnInput
from activities.model.conversation import Entry
from activities.model.journalled_call import ModelCalls
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_text
from temporal_supervisor.supervision.grounding.asked.query_doubts import query_doubts
from temporal_supervisor.supervision.grounding.asked.second_query import (
    second_query_doubts,
    second_result,
)
from temporal_supervisor.supervision.grounding.sources import Source


async def doubts_of(
    calls: ModelCalls,
    turn: TurnInput,
    question: str,
    sources: Sequence[Source],
    told: str = "",
) -> list[str]:
    """Returns the doubts about the queries among `sources`; `told` is the finding that came of them."""
    # In a thread: many rows beside a long question take a tenth of a second.
    doubts = await asyncio.to_thread(query_doubts, question, sources, told)
    second = await _second(calls, turn)
    if second is not None:
        doubts += second_query_doubts(question, sources, second, told)
    return doubts


async def second_words(calls: ModelCalls, turn: TurnInput) -> str:
    """Returns a sentence on the rows of the second query; empty if it has none."""
    second = await _second(calls, turn)
    result = second_result(second) if second is not None else ""
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


async def _second(calls: ModelCalls, turn: TurnInput) -> Source | None:
    """Returns the output of the query that was written once more; None if there is none."""
    if turn.second is None:
        return None
    entry = await calls.conversations.entry(turn.second.head)
    outputs = await outputs_of(calls.store, entry, [turn.second.result])
    return outputs[0] if outputs else None
