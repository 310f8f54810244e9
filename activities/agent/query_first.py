"""The first message and the next steps of an agent with a small model that queries tables.

Such a model writes a good query where it sees the tables and is asked for nothing else. Many
tools, or an output without words on what to do next, lead it astray: it computes with other tools,
and reports a query that failed as its result.
"""

from collections.abc import Sequence
from typing import Any

from activities.agent.role_turn import RoleTurn
from activities.contracts.turn_contracts import ToolResultRef
from activities.prompts.agent_prompts import QUERY_AGAIN, doubted_query
from activities.teams.stored_teams import StoredTeams
from activities.tools.plain_tools import Calculate
from activities.tools.sql.sql_tools import ListTables, QueryData
from activities.tools.tool import Tool, ToolContext, ToolMisuse
from temporal_supervisor.supervision.base.prompt_marks import (
    FINISH_TOOL,
    NO_TABLES,
    QUERY_WANTED,
)
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.grounding.doubts.question_patterns import asks_for_a_place
from temporal_supervisor.supervision.planning.named_tables import (
    lines_for,
    named_tables,
    table_lines,
)

_AFTER_FAILURE = f"Reply with the corrected query {QUERY_WANTED}."
_NOTHING = "No row has this."
_AFTER_NOTHING = f"Reply with a query with other conditions {QUERY_WANTED}."
_PLACES = (
    "The tables also have rowid, the place of a row in the list: 1, 2, 3 and so on. The last row "
    "has the highest rowid, and the row after another one has that row's rowid + 1."
)
AFTER_DATA = f"Call {FINISH_TOOL} with the answer in one sentence, as this output shows it."


def offered_tools(turn: RoleTurn) -> list[str]:
    """Returns a role's tools by name, without the list of tables and the calculator."""
    tools = turn.toolbox.tools_named(turn.role.tools)
    return [tool.name for tool in tools if tool.arguments not in (ListTables, Calculate)]


async def shown_tables(teams: StoredTeams, turn: RoleTurn, subtask: Subtask) -> str:
    """Returns the tables that a subtask names, else all, with their values, as one output.

    Tables whose text others wrote come as lines of the catalogue, which has none of them.
    """
    run, room = turn.asked.run, turn.window.output_chars
    catalogue = await teams.catalogue(turn.asked.team_ref)
    listing = _listing_tool(turn)
    if listing is None:
        return lines_for(subtask.whole, catalogue, room)

    tables = table_lines(catalogue)
    named = named_tables(subtask.whole, tables) or [""]  # without a name it lists all
    files = teams.files_of(run)
    context = ToolContext(run_id=run.run_id, files=files)
    try:
        listed = [await _listed(listing, name, context) for name in named]
        meant = await listing.named(files, subtask.whole) if listing.named is not None else ""
    except (ToolMisuse, ValueError):
        # A file cannot be read now: the tool returns why when it is called.
        return lines_for(subtask.whole, catalogue, room)

    shown = "\n".join(listed)
    if shown == NO_TABLES:
        return ""
    places = _PLACES if asks_for_a_place(subtask.whole) else ""
    # These lines come last, and whole: they are what the model is to use first.
    lines = "\n".join(filter(None, [places, meant]))
    listed_part = cut(shown, max(0, room - len(lines)))
    return "\n".join(filter(None, [listed_part, lines]))


def next_step(
    results: Sequence[ToolResultRef],
    note: str,
    doubts: Sequence[str] = (),
    other: str = "",
) -> str:
    """Returns the words below the outputs of a turn, with its note: correct the query, or finish.

    A doubted query is asked for again in the words after one that failed: offered a choice, a small
    model repeats its finding, or excuses itself. `doubts` are those about the last output; `other`
    is a sentence on other queries, for an agent whose own query brought nothing.
    """
    if QUERY_AGAIN in note:
        return note.replace(QUERY_AGAIN, _AFTER_FAILURE)

    step = _step_after(results[-1], doubts, other) if results else ""
    return "\n\n".join(filter(None, [step, note]))


def _step_after(last: ToolResultRef, doubts: Sequence[str], other: str) -> str:
    if last.is_error or not last.ref:
        return " ".join(filter(None, [other, _AFTER_FAILURE]))
    # A count of 0 is data, but more often comes of a condition that no row can meet.
    if last.facts is not None and last.facts.nothing:
        return " ".join(filter(None, [_NOTHING, other, _AFTER_NOTHING]))
    return f"{doubted_query(doubts)}\n\n{_AFTER_FAILURE}" if doubts else AFTER_DATA


def _listing_tool(turn: RoleTurn) -> Tool[Any] | None:
    tools = turn.toolbox.tools_named(turn.role.tools)
    query = next(tool for tool in tools if tool.arguments is QueryData)
    listing = next((tool for tool in tools if tool.arguments is ListTables), None)
    if listing is None or listing.returns != "trusted" or query.outside:
        return None
    return listing


async def _listed(listing: Tool[Any], table: str, context: ToolContext) -> str:
    output = await listing.run(listing.arguments(table=table), context)
    return str(output.text)
