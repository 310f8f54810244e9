"""A workflow that ends while a message is being handled: the control of the tests' warning filter."""

from temporalio import workflow


@workflow.defn
class EndsTooEarly:
    """Ends when it is told so, whatever its handlers do."""

    def __init__(self) -> None:
        self._ended = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._ended)

    @workflow.signal
    def end(self) -> None:
        """Ends the workflow."""
        self._ended = True

    @workflow.update
    async def endless_update(self) -> None:
        """Never returns."""
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    async def endless_signal(self) -> None:
        """Never returns."""
        await workflow.wait_condition(lambda: False)
