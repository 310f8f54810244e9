"""How a run ended: its state, its result or the partial one, and the exit code that says so."""

from dataclasses import dataclass

from pydantic import ValidationError
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError, TerminatedError, TimeoutError, is_cancelled_exception

from activities.store.artifacts import ArtifactMissing, ArtifactStore, ArtifactUnavailable
from console.command_errors import CANCELLED, DONE, FAILED
from console.run.run_handle import NoAnswer, Run, readable_memo
from supervision.contract.result import RunResult
from supervision.store_keys import named_key


@dataclass(frozen=True)
class Outcome:
    """`problem` says in one sentence why there is no answer, None when there is one; `notice` of which model it is."""

    code: int
    result: RunResult | None = None
    problem: str | None = None
    notice: str | None = None


async def outcome(run: Run, store: ArtifactStore | None) -> Outcome:
    """Waits for the run's end, as long as that takes; RPCError when the server goes away."""
    try:
        return Outcome(DONE, await run.handle.result())
    except WorkflowFailureError as error:
        cause = error.cause
    if is_cancelled_exception(cause):
        read = f"python starter.py result {run.id}"
        partial = await _partial(run, store)
        return Outcome(CANCELLED, partial, f"the run was cancelled; what it had found: `{read}`")
    if isinstance(cause, ApplicationError):
        return Outcome(FAILED, _in_details(cause), f"{cause.type or 'Error'}: {cause.message}")
    if isinstance(cause, TerminatedError):
        return Outcome(FAILED, await stored_result(run.id, store), f"the run was terminated: {cause}")
    if isinstance(cause, TimeoutError):
        return Outcome(FAILED, None, "the run ran into its Temporal timeout")
    return Outcome(FAILED, None, str(cause))


async def stored_result(run_id: str, store: ArtifactStore | None) -> RunResult | None:
    """The whole result as the run stored it; None when it is not there, or the store is away."""
    if store is None:
        return None
    try:
        return RunResult.model_validate_json(await store.get(named_key(run_id, "result")))
    except (ArtifactMissing, ArtifactUnavailable, ValidationError):
        return None


async def _partial(run: Run, store: ArtifactStore | None) -> RunResult | None:
    """What a cancelled run had: from the store, from a worker, or at least the preview in the memo."""
    if found := await stored_result(run.id, store):
        return found
    try:
        return await run.result()
    except NoAnswer:
        pass
    kept = (await readable_memo(await run.describe())).get("partial")
    if isinstance(kept, dict):
        return RunResult(
            status="partial", answer=str(kept.get("preview") or ""), result_ref=str(kept.get("ref") or "") or None
        )
    return None


def _in_details(error: ApplicationError) -> RunResult | None:
    try:
        return RunResult.model_validate(error.details[0]) if error.details else None
    except ValidationError:
        return None
