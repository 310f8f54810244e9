"""A run with the runs nested in it, each asked for what it shows of itself.

A run knows of a nested one how many of its waits need people and what is spent. So clients put the
whole together: waits, breakers and counts of nested runs, under the subtasks that they work on.
"""

from contextlib import suppress

from temporalio.client import Client

from temporal_supervisor.messages import Item, UpdateRefused, query
from temporal_supervisor.supervision.contract import Status, SubtaskReport


async def all_pages(client: Client, run_id: str, since: str = "") -> Status:
    """Returns the status of a run with all its pages in one, without what nested runs show.

    With a version that it had before, only with the subtasks that have changed since.
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
    """The status of a run and of those nested in it, for who asks again and again.

    Of the subtasks only those that have changed are read again.
    """

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._version = ""
        self._reports: dict[str, SubtaskReport] = {}
        self._nested: dict[str, TreeStatus] = {}

    async def read(self) -> Status:
        """Returns the status of the run with what its open nested runs show of themselves."""
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
    """Returns the status of a run with what its open nested runs show of themselves."""
    return await TreeStatus(client, run_id).read()


async def waits_of(client: Client, run_id: str) -> list[Item]:
    """Returns the waits for people in one run, on all levels."""
    status = await tree_status(client, run_id)
    return [Item(run_id, status.goal, wait) for wait in status.waiting if wait.for_person]


def _add_nested(status: Status, report: SubtaskReport, below: Status) -> None:
    """Adds the status of a nested run to that of the run above, whose subtask `report` is."""
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
