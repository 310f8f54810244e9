"""A workflow that asks a supervisor, and hands on the answer by an activity of its own."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor import RunRequest, run_as_child, run_failure

QUEUE = "briefings"


@activity.defn
async def deliver(text: str) -> str:
    """Delivers a briefing: here it returns the mail."""
    return f"Dear reader,\n\n{text}"


@workflow.defn
class Briefing:
    """One question, one mail."""

    @workflow.run
    async def run(self, question: str) -> str:
        """Returns the mail. Fails as the run does, with the words of its error."""
        try:
            result = await run_as_child(RunRequest(goal=question, team="library"))
        except ChildWorkflowError as error:
            kind, partial = run_failure(error)
            known = partial.answer if partial else ""
            raise ApplicationError(f"no answer ({kind}): {known}", type=kind) from error
        return await workflow.execute_activity(
            deliver, result.answer, start_to_close_timeout=timedelta(seconds=10)
        )
