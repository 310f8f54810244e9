"""A workflow of a program's own with a run as its child; in a module of its own for the SDK's sandbox."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor import RunRequest, run_as_child, run_failure


@workflow.defn
class Briefing:
    """One question."""

    @workflow.run
    async def run(self, run_id: str, team: str) -> str:
        """Returns the answer, or the error's type."""
        request = RunRequest(goal="How many pears?", team=team, max_reviews=0)
        try:
            result = await run_as_child(request, run_id=run_id)
        except ChildWorkflowError as error:
            kind, partial = run_failure(error)
            raise ApplicationError(f"{partial.status if partial else None}", type=kind) from error
        return f"{result.status}: {result.answer}"
