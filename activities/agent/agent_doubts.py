"""Doubts about the queries of an agent, also by the others that were written for its subtask."""

import asyncio
from collections.abc import Sequence

from activities.agent.role_turn import RoleTurn
from activities.contracts.turn_contracts import ToolResultRef
from activities.model.conversation import Entry
from activities.model.journalled_call import ModelCalls
from activities.replies.agent_story import arguments_of
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_text
from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.doubts.other_queries import (
    other_query_doubts,
    other_result,
)
from temporal_supervisor.supervision.grounding.doubts.query_doubts import query_doubts
from temporal_supervisor.supervision.grounding.sources import Source


async def read_others(turn: RoleTurn) -> list[Source] | None:
    """Returns the outputs of the other queries, without errors; None before they are made."""
    if not turn.asked.others:
        return None
    sources: list[Source] = []
    for other in turn.asked.others:
        entry = await turn.calls.conversations.entry(other.head)
        sources += await outputs_of(turn.calls.store, entry, [other.result])
    return sources


async def doubts_of(
    calls: ModelCalls,
    head: str,
    question: str,
    sources: Sequence[Source],
    others: Sequence[Source] | None,
    finding: str = "",
) -> list[str]:
    """Returns the doubts about the queries of the conversation at `head`.

    `sources` are what it has read, `others` are those of `read_others`, and `finding` is the text
    that came of it.
    """
    # In threads: many rows beside a long question take a tenth of a second.
    doubts = await asyncio.to_thread(query_doubts, question, sources, finding)
    if others is None:
        return doubts
    first_call = await _first_call(calls, head)
    given = (question, sources, others, first_call, finding)
    return doubts + await asyncio.to_thread(other_query_doubts, *given)


def other_words(others: Sequence[Source] | None) -> str:
    """Returns a sentence on the result of the other queries, or an empty text without any."""
    result = other_result(others or [])
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
        arguments, name = arguments_of(use), str(use.get("name"))
        facts = result.facts or QueryFacts()
        sources.append(Source(output, "data", arguments, name, facts=facts))
    return sources


async def _first_call(calls: ModelCalls, head: str) -> str:
    """Returns the arguments of the first call that led to a reply, as JSON; empty without one."""
    chains = await calls.conversations.all_chains(head)
    for entry in chains[0]:
        for use in entry.reply.tool_uses():
            return arguments_of(use)
    return ""
