"""What holds for a run that was reset: which calls of the executions before are in no book, and nothing is done twice.

Children that the last execution neither took over nor joined work to their end unread: their plan was not made again.
"""

from collections.abc import Iterator

from tests.machine.records import Record, Tree


def abandoned_calls(last: Record, before: dict[str, Record]) -> int:
    """Returns how many model calls of the executions `before` the books of the `last` one do not have.

    What history was copied at a reset is the same in both, to the moment.
    """
    return sum(
        last.workflow_id != record.workflow_id or not _is_copied(number, record, last)
        for record in before.values()
        for number in record.model_calls
    )


def _is_copied(number: int, record: Record, last: Record) -> bool:
    call, copy = record.model_calls[number], last.model_calls.get(number)
    return copy is not None and call.done_at is not None and copy.done_at == call.done_at


def doubled_children(last: Record, before: Tree) -> Iterator[str]:
    """Returns the children that the last execution started though an execution before it had, and it did not ask."""
    executions = [record for record in before.records.values() if record.workflow_id == last.workflow_id]
    earlier = {child.run_id for record in executions for child in record.children.values()}
    known = {child.run_id for child in last.children.values()}
    started = {
        child.workflow_id
        for child in last.children.values()
        if child.run_id and not child.joined and child.run_id not in earlier
    }
    for record in executions:
        for child in record.children.values():
            if child.run_id and child.run_id not in known and child.workflow_id in started:
                yield f"{child.workflow_id} was started again, though it was started before the reset"
