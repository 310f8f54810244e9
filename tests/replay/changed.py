"""A supervisor that does something else than any recorded one: the control that must fail."""

from temporalio import workflow


@workflow.defn(name="SupervisorWorkflow")
class Changed:
    """Sleeps first."""

    @workflow.run
    async def run(self, *inputs: object) -> None:
        await workflow.sleep(1)
