"""A run with its nested runs, whose statuses are put together.

A run knows only how many waits of a nested run need people, and what it has spent. So clients query
each nested run and put its waits, breakers and counts under the subtask that it works on.
"""

from contextlib import suppress

from temporalio.client import Client

from temporal_supervisor.messages import Item, UpdateRefused, query
from temporal_supervisor.supervision.contract import Status, SubtaskReport


async def all_pages(client: Client, run_id: str, since: str = "") -> Status:
    """Returns the status of a run with all pages, without the state of nested runs.

    With the version of an earlier status, only subtasks that changed after it are listed.
    """
    asked = (since,) if since else ()  # a Worker of an earlier version knows no such argument
    status = await query(client, run_id, "status", Status, 0, *asked)
    while status.next_cursor is not None:
        page = await query(client, run_id, "status", Status, status.next_cursor, *asked)
        status.subtasks += page.subtasks
        status.waiting += page.waiting
        status.next_cursor = page.next_cursor
    return status


class TreeStatus:
    """The status of a run and its nested runs, for repeated reading.

    Only subtasks that have changed are read again.
    """

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._version = ""
        self._reports: dict[str, SubtaskReport] = {}
        self._nested: dict[str, TreeStatus] = {}

    async def read(self) -> Status:
        """Returns the status of the run with the waits of its open nested runs."""
        status = await all_pages(self._client, self._run_id, self._version)
        if not status.since:  # these are all: it is the first time, or the plan is another one
            self._reports = {}
        self._reports |= {report.id: report for report in status.subtasks}
        self._version = status.version
        # What nested runs show is added to copies: what was read is the ground of the next time.
        status.subtasks = [_own(report) for report in self._reports.values()]
        for report in status.subtasks:
            nested = report.nested
            if nested is None or nested.status != "running" or not report.workflow_id:
                continue
            below = self._nested.setdefault(
                report.workflow_id,
                TreeStatus(self._client, report.workflow_id),
            )
            with suppress(UpdateRefused):  # it is about to start, or has just ended
                _add_nested(status, report, await below.read())
        return status


def _own(report: SubtaskReport) -> SubtaskReport:
    return report.model_copy(deep=True) if report.nested else report


async def tree_status(client: Client, run_id: str) -> Status:
    """Returns the status of a run with the waits of its open nested runs."""
    return await TreeStatus(client, run_id).read()


async def waits_of(client: Client, run_id: str) -> list[Item]:
    """Returns the waits for people in a run, on all levels."""
    status = await tree_status(client, run_id)
    return [Item(run_id, status.goal, wait) for wait in status.waiting if wait.for_person]


def _add_nested(status: Status, report: SubtaskReport, below: Status) -> None:
    """Adds the status of a nested run to its parent's, under the subtask `report`."""
    nested = report.nested
    assert nested is not None
    status.waiting += [wait.as_nested_in(report.id) for wait in below.waiting]
    status.breakers += below.breakers
    status.usage = status.usage - nested.spent + below.usage
    status.flags = status.flags | below.flags
    deeper = [each.nested.counts for each in below.subtasks if each.nested]
    nested.counts = sum(deeper, below.counts)
    nested.spent = below.usage
    nested.waits = sum(wait.for_person for wait in below.waiting)
