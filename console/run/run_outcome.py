"""How a run ended: its state, its result or the partial one, and the exit code that says so."""

from dataclasses import dataclass

from pydantic import ValidationError
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError, TerminatedError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeout

from activities.contracts.run_contracts import Published
from activities.store.artifacts import ArtifactMissing, ArtifactStore, ArtifactUnavailable
from console.command import CANCELLED, DONE, FAILED
from console.run.run_handle import NoAnswer, RunHandle, readable_memo
from console.terminal import command
from supervision.contract.result import RunResult
from supervision.errors import ErrorKind


@dataclass(frozen=True)
class RunOutcome:
    """The end of a run.

    `problem` says in one sentence why there is no answer, None if there is one. `notice` names an unusual model.
    """

    code: int
    result: RunResult | None = None
    problem: str | None = None
    notice: str | None = None


async def run_outcome(run: RunHandle, store: ArtifactStore | None) -> RunOutcome:
    """Waits for the run's end, as long as that takes. Raises RPCError if the server goes away."""
    try:
        return RunOutcome(DONE, await run.handle.result())
    except WorkflowFailureError as error:
        cause = error.cause
    if is_cancelled_exception(cause):
        partial = await _partial(run, store)
        return RunOutcome(
            CANCELLED, partial, f"the run was cancelled; its partial result: `{command('result', run.id)}`"
        )
    if isinstance(cause, ApplicationError):
        return RunOutcome(FAILED, _in_details(cause), f"{cause.type or 'Error'}: {cause.message}")
    if isinstance(cause, TerminatedError):
        return RunOutcome(FAILED, await stored_result(run.id, store), f"the run was terminated: {cause}")
    if isinstance(cause, TemporalTimeout):
        return RunOutcome(FAILED, None, "the run ran into its Temporal timeout")
    return RunOutcome(FAILED, None, str(cause))


async def stored_result(run_id: str, store: ArtifactStore | None) -> RunResult | None:
    """Returns the whole result as the run stored it; None if it is not there, or the store is away."""
    if store is None:
        return None
    try:
        published = await store.latest_ended(run_id)
        return await read_result(store, Published.model_validate_json(published).result_ref) if published else None
    except (ArtifactMissing, ArtifactUnavailable, ValidationError):
        return None


async def read_result(store: ArtifactStore, ref: str) -> RunResult:
    """Returns the whole result at this reference. Raises ArtifactMissing, and ArtifactChanged if it was rewritten."""
    result = RunResult.model_validate_json(await store.get(ref))
    return result.model_copy(update={"result_ref": ref})


def exit_code(result: RunResult) -> int:
    """Returns the exit code for a stored result, for when the server no longer knows how its run ended."""
    if result.answer:
        return DONE
    cancelled = any(r.error and r.error.type == ErrorKind.CANCELLED for r in result.subtasks)
    return CANCELLED if cancelled else FAILED


async def _partial(run: RunHandle, store: ArtifactStore | None) -> RunResult | None:
    """Returns a cancelled run's result: from the store, from a Worker, or at least the preview in the memo."""
    if stored := await stored_result(run.id, store):
        return stored
    try:
        return await run.result()
    except NoAnswer:
        pass
    preview = (await readable_memo(await run.describe())).get("partial")
    if isinstance(preview, dict):
        ref = str(preview.get("ref") or "") or None
        return RunResult(status="partial", answer=str(preview.get("preview") or ""), result_ref=ref)
    return None


def _in_details(error: ApplicationError) -> RunResult | None:
    try:
        return RunResult.model_validate(error.details[0]) if error.details else None
    except ValidationError:
        return None
