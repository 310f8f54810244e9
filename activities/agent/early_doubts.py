"""Doubts about a query before anything is concluded from it.

A small model that sees the rows of a query reports something of them, whatever was asked: of 800
rows it makes up a mean.
"""

from collections.abc import Sequence

from activities.agent.agent_doubts import doubts_of, outputs_of
from activities.agent.grounds import subtask_of
from activities.agent.role_turn import RoleTurn
from activities.model.conversation import Entry, texts_of
from activities.prompts.agent_prompts import DOUBTS_A_QUERY
from temporal_supervisor.supervision.grounding.sources import Source


async def early_doubts(turn: RoleTurn, others: Sequence[Source] | None) -> list[str]:
    """Returns the doubts about the queries of a conversation, with the outputs that just came.

    There are none where its author has heard of such before: a second time leads in circles.
    """
    calls, head = turn.calls, turn.asked.head
    if head is None:
        return []
    chain = await calls.conversations.chain(head)
    if _has_heard(chain):
        return []
    latest = await outputs_of(calls.store, chain[-1], turn.asked.results)
    if not latest:
        return []

    grounds = await turn.grounds(head)
    sources = [*grounds.texts, *latest]
    return await doubts_of(calls, head, subtask_of(chain), sources, others)


def _has_heard(chain: Sequence[Entry]) -> bool:
    texts = (text for entry in chain for text in texts_of(entry.input))
    return any(DOUBTS_A_QUERY in text for text in texts)
