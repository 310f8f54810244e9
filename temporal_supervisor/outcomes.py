"""The end of a run: its state in Temporal, its whole or partial result, and its error."""

from dataclasses import dataclass

from pydantic import ValidationError
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError

from temporal_supervisor.supervision.contract import RunResult
from temporal_supervisor.supervision.contract.base import Undecodable


@dataclass(frozen=True)
class Ending:
    """The reason why a run gave no answer.

    `type` is an error type of runs, or `Cancelled`, `Terminated`, `TimedOut`.
    """

    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True)
class RunOutcome:
    """The end of a run, or its result so far; `state` is the run's state in Temporal.

    `error` is None if there is an answer. `forgotten` is True if the server no longer has the run.
    """

    state: str
    result: RunResult | None = None
    error: Ending | None = None
    forgotten: bool = False

    @property
    def sentence(self) -> str:
        """The state and the reason for a missing answer; empty if there is an answer."""
        if self.error is None:
            return ""
        is_same = self.error.type.lower() == self.state.replace(" ", "")
        return f"{self.state}: {self.error.message if is_same else self.error}"

    def as_json(self, run_id: str) -> dict[str, object]:
        """Returns the fields of the result and the end of the run, for programs."""
        fields = self.result.model_dump(mode="json") if self.result else {}
        return {"run_id": run_id, "state": self.state, "error": self.error, **fields}


WAS_CANCELLED = Ending("Cancelled", "the run was cancelled")


class RunFailed(Exception):
    """A run ended without a usable answer.

    `type` is the error's type, `result` the partial result, if any.
    """

    def __init__(self, type_: str, message: str, result: RunResult | None = None) -> None:
        super().__init__(f"{type_}: {message}")
        self.type = type_
        self.result = result


def is_open(execution: WorkflowExecution) -> bool:
    """True while the run is open."""
    return execution.status is WorkflowExecutionStatus.RUNNING


def state_word(execution: WorkflowExecution) -> str:
    """Returns the run's state in Temporal in lower case, spelled `cancelled` as ours."""
    name = execution.status.name.lower().replace("_", " ") if execution.status else "unknown"
    return "cancelled" if name == "canceled" else name


def failed_outcome(cause: ApplicationError) -> RunOutcome:
    """Returns the outcome of a failed run, with the result in its error's details."""
    kept = cause.details[0] if cause.details else None
    type_ = cause.type or "Error"
    if isinstance(kept, Undecodable):  # encrypted, as the message is
        return RunOutcome("failed", None, Ending(type_, kept.reason))
    why = Ending(type_, cause.message)
    try:
        result = RunResult.model_validate(kept) if kept is not None else None
    except ValidationError:
        result = None
    return RunOutcome("failed", result, why)
