"""Reports between the calls of a run and its root about a store that is away. History."""

from activities.contracts.run_contracts import RunRef
from temporal_supervisor.supervision.contract.base import Model, Paragraph


class StoreReport(Model):
    """The word of an activity to the root of its run: it cannot use the store, and `why`.

    `execution_id` is that of its workflow, of which a reset makes a new one.
    """

    workflow_id: str
    execution_id: str
    activity_id: str
    why: Paragraph = ""

    @property
    def key(self) -> tuple[str, str]:
        """Names the activity."""
        return self.execution_id, self.activity_id


class StoreWatch(Model):
    """The activities that a run's store holds up, as they have reported."""

    run: RunRef
    reports: list[StoreReport]
