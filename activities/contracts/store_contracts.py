"""Messages about an unavailable store, from the calls of a run to its root. They are history."""

from activities.contracts.run_contracts import RunRef
from temporal_supervisor.supervision.contract.base import Model, Paragraph


class StoreReport(Model):
    """The report of an activity to the root of its run that it cannot use the store, and `why`.

    `execution_id` is the run id of its workflow, which changes with a reset.
    """

    workflow_id: str
    execution_id: str
    activity_id: str
    why: Paragraph = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of the activity."""
        return self.execution_id, self.activity_id


class StoreWatch(Model):
    """The activities that the store holds up, by their reports."""

    run: RunRef
    reports: list[StoreReport]
