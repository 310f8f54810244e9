"""Every kind of error that the project anticipates, and its consequences.

docs/reference.md describes each kind. The names are public: they appear as `ApplicationError.type`
of failed workflows, as `error.type` of subtasks and as the type of failed activities in the Web UI.
A kind is decided once, where the failure is seen; all other code looks it up in these tables.
"""

from enum import StrEnum


class ErrorKind(StrEnum):
    """The name of a kind of error; unknown names are read as UNEXPECTED."""

    # Inputs and plans.
    INVALID_REQUEST = "InvalidRequest"
    UNKNOWN_TEAM = "UnknownTeam"
    NO_SUBTASKS = "NoSubtasks"
    INVALID_PLAN = "InvalidPlan"
    NO_CAPABLE_WORKER = "NoCapableWorker"
    PLAN_REJECTED = "PlanRejected"
    # How a run ends without a usable answer.
    ALL_SUBTASKS_FAILED = "AllSubtasksFailed"
    QUORUM_NOT_MET = "QuorumNotMet"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    BUDGET_EXHAUSTED = "BudgetExhausted"
    # How a subtask ends without a finding, or is interrupted.
    TURN_LIMIT = "TurnLimit"
    REFUSED = "Refused"
    CANNOT_DO = "CannotDo"
    TIMEOUT = "Timeout"
    CONTEXT_OVERFLOW = "ContextOverflow"
    MODEL_UNAVAILABLE = "ModelUnavailable"
    DEPENDENCIES_FAILED = "DependenciesFailed"
    CANCELLED = "Cancelled"
    NEEDS_PERSON = "NeedsPerson"
    PAUSED = "Paused"
    # Model calls.
    RATE_LIMITED = "RateLimited"  # 429
    OVERLOADED = "Overloaded"  # 529
    PROVIDER_ERROR = "ProviderError"  # 5xx, 408, 409
    PROVIDER_UNREACHABLE = "ProviderUnreachable"  # refused, reset, DNS, TLS
    STREAM_BROKEN = "StreamBroken"
    IDLE_TIMEOUT = "IdleTimeout"
    BAD_RESPONSE = "BadResponse"  # HTML, no content, unreadable JSON
    PROVIDER_AUTHENTICATION = "ProviderAuthentication"
    PROVIDER_BILLING = "ProviderBilling"
    MODEL_NOT_SERVED = "ModelNotServed"
    PROVIDER_REJECTED = "ProviderRejected"  # for what is in the request
    CIRCUIT_OPEN = "CircuitOpen"
    # The artifact store, the Workers, payloads, bugs.
    ARTIFACT_UNAVAILABLE = "ArtifactUnavailable"
    ARTIFACT_MISSING = "ArtifactMissing"
    ARTIFACT_TOO_LARGE = "ArtifactTooLarge"
    ARTIFACT_CHANGED = "ArtifactChanged"
    TEAM_UNAVAILABLE = "TeamUnavailable"
    SERVER_UNAVAILABLE = "ServerUnavailable"
    PAYLOAD_TOO_LARGE = "PayloadTooLarge"
    PROCESS_DIED = "ProcessDied"  # of a call, as often as it is tried
    NOT_GRANTED = "NotGranted"
    UNEXPECTED = "Unexpected"

    @classmethod
    def _missing_(cls, value: object) -> "ErrorKind":
        return cls.UNEXPECTED


_K = ErrorKind

# A run may fail with it: the contract's list of `ApplicationError.type`.
RUN_KINDS = frozenset(
    {
        _K.INVALID_REQUEST,
        _K.UNKNOWN_TEAM,
        _K.NO_SUBTASKS,
        _K.INVALID_PLAN,
        _K.NO_CAPABLE_WORKER,
        _K.PLAN_REJECTED,
    }
    | {_K.ALL_SUBTASKS_FAILED, _K.QUORUM_NOT_MET, _K.DEADLINE_EXCEEDED, _K.BUDGET_EXHAUSTED}
    | {_K.PROVIDER_AUTHENTICATION, _K.PROVIDER_REJECTED}
)
# A run has done what it could, and there is no answer: with `on_no_answer: answer` it says so.
WITHOUT_ANSWER = frozenset(
    (
        *(_K.ALL_SUBTASKS_FAILED, _K.QUORUM_NOT_MET, _K.NO_CAPABLE_WORKER),
        *(_K.DEADLINE_EXCEEDED, _K.BUDGET_EXHAUSTED),
    )
)
# Counts against the provider's breaker.
OUTAGES = frozenset(
    {_K.OVERLOADED, _K.PROVIDER_ERROR, _K.PROVIDER_UNREACHABLE, _K.STREAM_BROKEN, _K.IDLE_TIMEOUT}
)
# Temporal sends the same call again; after a BAD_RESPONSE a few times only, as the endpoint
# answers.
RETRIED = OUTAGES | {_K.RATE_LIMITED, _K.BAD_RESPONSE}
# A person must act at the provider: fatal before the first finding, waited out later.
ACCOUNT = frozenset({_K.PROVIDER_AUTHENTICATION, _K.PROVIDER_BILLING, _K.MODEL_NOT_SERVED})
# Says something about the provider, the account or the grant, so other subtasks would fail alike.
FATAL = ACCOUNT | {_K.NOT_GRANTED}
# Interrupts an attempt, which resumes later; its work has not failed.
RESUMABLE = ACCOUNT | {_K.BUDGET_EXHAUSTED, _K.NEEDS_PERSON, _K.PAUSED, _K.CIRCUIT_OPEN}
# Expected: the Web UI and the Worker's log show no alarm.
WAITING = frozenset({_K.NEEDS_PERSON, _K.PAUSED, _K.RATE_LIMITED, _K.OVERLOADED, _K.CIRCUIT_OPEN})
# The artifact store is away, or has lost what the history of a run names: the run waits until it is
# back.
STORE_AWAY = frozenset({_K.ARTIFACT_UNAVAILABLE, _K.ARTIFACT_MISSING})
# The artifact store failed, not the work.
STORE = STORE_AWAY | {_K.ARTIFACT_TOO_LARGE, _K.ARTIFACT_CHANGED}
# The infrastructure is away: retried until it is back, or another Worker has it.
AWAITED = STORE_AWAY | {_K.TEAM_UNAVAILABLE, _K.SERVER_UNAVAILABLE}

_OUTLIVED = RETRIED | {_K.PROCESS_DIED, _K.UNEXPECTED}

_RUN_KIND = {
    ErrorKind.PROVIDER_BILLING: ErrorKind.PROVIDER_REJECTED,
    ErrorKind.MODEL_NOT_SERVED: ErrorKind.PROVIDER_REJECTED,
    ErrorKind.CONTEXT_OVERFLOW: ErrorKind.INVALID_REQUEST,
    ErrorKind.TIMEOUT: ErrorKind.DEADLINE_EXCEEDED,
    ErrorKind.MODEL_UNAVAILABLE: ErrorKind.PROVIDER_REJECTED,
    ErrorKind.NOT_GRANTED: ErrorKind.INVALID_REQUEST,
}


def run_kind(kind: ErrorKind) -> ErrorKind:
    """Returns the kind with which a run fails after one of its own calls failed for good."""
    return _RUN_KIND.get(kind, kind)


def call_kind(kind: ErrorKind) -> ErrorKind:
    """Returns the kind with which work ends after its model call failed for good with `kind`.

    All errors that outlived their retries are reported as MODEL_UNAVAILABLE.
    """
    return ErrorKind.MODEL_UNAVAILABLE if kind in _OUTLIVED else kind


class SupervisionError(Exception):
    """An anticipated failure of a run; `kind` becomes `ApplicationError.type`."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
