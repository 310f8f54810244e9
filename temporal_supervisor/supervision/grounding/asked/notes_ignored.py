"""Notes below a query's rows that its author has not heeded.

A tool notes what cannot be seen in the rows: a row that LIMIT leaves out ties with the last one
shown, or a row that was added up is itself the sum of the others.
"""

from collections.abc import Iterator

from temporal_supervisor.supervision.base.prompt_marks import ADDED_UP_TOTAL, TIED
from temporal_supervisor.supervision.grounding.asked.asked_and_read import AskedAndRead


def notes_ignored(asked: AskedAndRead) -> Iterator[str]:
    """Yields a doubt for each such note below the query that the finding rests on."""
    query = asked.only_query
    if query is None:
        return
    if TIED in query.notes:
        yield f"{TIED}, which may be meant as well"
    if ADDED_UP_TOTAL in query.notes:
        yield "the query counts in a row that is the sum of the others"
