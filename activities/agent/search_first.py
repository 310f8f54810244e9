"""The first search of an agent with a small model that works with documents.

Such a model plans a search in words, or invents what a document says. Where it sees passages and is
asked for the answer alone, it reads them well. So the program makes the first call: it searches
for the words of the subtask, and the model goes on from there.
"""

from collections.abc import Sequence
from hashlib import sha256

from activities.agent.role_turn import RoleTurn
from activities.contracts.turn_contracts import ToolResultRef
from activities.model.text_calls import PROGRAM_ID
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.plan import Subtask

_QUERY_CHARS = 400  # of a description; its words are looked for one by one
AFTER_READING = (
    "Now answer the subtask in one or two sentences, with the facts of this text. "
    "If it has none of them, search with other words."
)


def first_search(turn: RoleTurn, subtask: Subtask) -> JsonObject | None:
    """Returns the call with which a conversation begins; None if the model begins it itself.

    A conversation that goes on from an earlier finding, or that is begun anew, has its passages.
    """
    asked, brief = turn.asked, turn.brief
    is_fresh = not (asked.last or asked.anew_from or brief.previous_ref or brief.feedback)
    tool = turn.search_tool
    if tool is None or not is_fresh:
        return None
    # Further lines tell how to answer.
    first_line = subtask.description.strip().partition("\n")[0]
    query = first_line[:_QUERY_CHARS]
    digest = sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return {
        "type": "tool_use",
        "id": f"{PROGRAM_ID}{digest}",
        "name": tool,
        "input": {"query": query},
    }


def step_after_reading(results: Sequence[ToolResultRef]) -> str:
    """Returns the words below passages or a document; empty where nothing was found or read.

    A call that was made before has a text in place of an output, and no sources: what it returned
    is above.
    """
    if not results:
        return ""
    last = results[-1]
    is_repeated = last.text is not None and not last.is_error
    return AFTER_READING if last.sources or is_repeated else ""
