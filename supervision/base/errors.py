"""Every kind of error that the project anticipates, with its meaning and its consequences.

The names are public: they are `ApplicationError.type` of failed workflows, `error.type` of a subtask, and the type of
a failed activity in the Web UI. A kind is decided once, where the failure is seen; everything else asks this table.
"""

from dataclasses import dataclass
from enum import Flag, StrEnum, auto


class ErrorKind(StrEnum):
    """The name of a kind of error. A name that is not listed is read as UNEXPECTED."""

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
    # How a subtask ends without a finding.
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
    RATE_LIMITED = "RateLimited"
    OVERLOADED = "Overloaded"
    PROVIDER_ERROR = "ProviderError"
    PROVIDER_UNREACHABLE = "ProviderUnreachable"
    STREAM_BROKEN = "StreamBroken"
    IDLE_TIMEOUT = "IdleTimeout"
    BAD_RESPONSE = "BadResponse"
    PROVIDER_AUTHENTICATION = "ProviderAuthentication"
    PROVIDER_BILLING = "ProviderBilling"
    MODEL_NOT_SERVED = "ModelNotServed"
    PROVIDER_REJECTED = "ProviderRejected"
    CIRCUIT_OPEN = "CircuitOpen"
    # The artifact store, the Workers, payloads, bugs.
    ARTIFACT_UNAVAILABLE = "ArtifactUnavailable"
    ARTIFACT_MISSING = "ArtifactMissing"
    ARTIFACT_TOO_LARGE = "ArtifactTooLarge"
    ARTIFACT_CHANGED = "ArtifactChanged"
    TEAM_UNAVAILABLE = "TeamUnavailable"
    SERVER_UNAVAILABLE = "ServerUnavailable"
    PAYLOAD_TOO_LARGE = "PayloadTooLarge"
    NOT_GRANTED = "NotGranted"
    UNEXPECTED = "Unexpected"

    @classmethod
    def _missing_(cls, value: object) -> "ErrorKind":
        return cls.UNEXPECTED


class Trait(Flag):
    """A consequence of a kind."""

    NONE = 0
    RUN = auto()  # a run may fail with it
    RETRIED = auto()  # Temporal sends the same call again
    OUTAGE = auto()  # counts against the provider's breaker
    PACE = auto()  # holds the model's other calls back for a while, never opens the breaker
    WAITING = auto()  # expected: the Web UI and the Worker's log show no alarm
    ODD = auto()  # retried a few times only: the endpoint answers, but not as it should
    ACCOUNT = auto()  # a person must act at the provider: fatal before the first finding, waited out later
    FATAL = auto()  # says something about the provider or the account, so other subtasks would fail alike
    RESUMABLE = auto()  # interrupts an attempt, which resumes later; its work has not failed
    STORE = auto()  # the artifact store failed, not the work
    AWAITED = auto()  # the infrastructure is away: retried until it is back, or another Worker has it


@dataclass(frozen=True)
class _KindRow:
    kind: ErrorKind
    meaning: str
    traits: Trait = Trait.NONE


_K, _T = ErrorKind, Trait
_CALL = _T.RETRIED | _T.OUTAGE
_INFRASTRUCTURE = _T.STORE | _T.AWAITED
_PERSON = _T.ACCOUNT | _T.FATAL | _T.RESUMABLE

TABLE: tuple[_KindRow, ...] = (
    _KindRow(_K.INVALID_REQUEST, "the input cannot be used; the message names the field", _T.RUN),
    _KindRow(_K.UNKNOWN_TEAM, "no team has that name, or its file cannot be read", _T.RUN),
    _KindRow(_K.NO_SUBTASKS, "the planner returned no subtasks in three tries", _T.RUN),
    _KindRow(
        _K.INVALID_PLAN, "the plan could not be made valid in three tries, or the planner refused the goal", _T.RUN
    ),
    _KindRow(_K.NO_CAPABLE_WORKER, "no role or combination of roles has a capability that the plan needs", _T.RUN),
    _KindRow(_K.PLAN_REJECTED, "a person rejected the plan, or nobody decided in time", _T.RUN),
    _KindRow(_K.ALL_SUBTASKS_FAILED, "no subtask succeeded", _T.RUN),
    _KindRow(_K.QUORUM_NOT_MET, "fewer subtasks succeeded than the success rule asks for", _T.RUN),
    _KindRow(_K.DEADLINE_EXCEEDED, "the deadline came before there was any finding", _T.RUN),
    _KindRow(_K.BUDGET_EXHAUSTED, "the budget ended before there was any finding", _T.RUN | _T.RESUMABLE),
    _KindRow(_K.TURN_LIMIT, "no finding within the turns of an attempt"),
    _KindRow(_K.REFUSED, "the model refused the subtask"),
    _KindRow(_K.CANNOT_DO, "the worker agent concluded that the subtask cannot be done"),
    _KindRow(_K.TIMEOUT, "the subtask's own time, or the time left for a call, was over"),
    _KindRow(_K.CONTEXT_OVERFLOW, "the prompt does not fit into the model's window, whatever is left out of it"),
    _KindRow(_K.MODEL_UNAVAILABLE, "a model call failed for good, or gave nothing usable"),
    _KindRow(_K.DEPENDENCIES_FAILED, "none of the subtasks that it depends on succeeded"),
    _KindRow(_K.CANCELLED, "it was stopped"),
    _KindRow(_K.NEEDS_PERSON, "its attempt waits for a person, and then continues", _T.WAITING | _T.RESUMABLE),
    _KindRow(_K.PAUSED, "a person paused the run: it is continued when the run is resumed", _T.WAITING | _T.RESUMABLE),
    _KindRow(_K.RATE_LIMITED, "the provider asks for fewer calls (429)", _T.RETRIED | _T.PACE | _T.WAITING),
    _KindRow(_K.OVERLOADED, "the provider is overloaded (529)", _CALL | _T.WAITING),
    _KindRow(_K.PROVIDER_ERROR, "the provider failed (5xx, 408, 409)", _CALL),
    _KindRow(_K.PROVIDER_UNREACHABLE, "no connection: refused, reset, DNS, TLS", _CALL),
    _KindRow(_K.STREAM_BROKEN, "the answer broke off", _CALL),
    _KindRow(_K.IDLE_TIMEOUT, "no sign of life for too long", _CALL),
    _KindRow(_K.BAD_RESPONSE, "no valid answer: HTML, no content, unreadable JSON", _T.RETRIED | _T.ODD),
    _KindRow(_K.PROVIDER_AUTHENTICATION, "the key is wrong, missing or forbidden", _T.RUN | _PERSON),
    _KindRow(_K.PROVIDER_BILLING, "no credit, or a spend limit is reached", _PERSON),
    _KindRow(_K.MODEL_NOT_SERVED, "the endpoint is none, or does not know the model or a part of the request", _PERSON),
    _KindRow(
        _K.PROVIDER_REJECTED,
        "the provider rejects the request for what is in it; of a run: it rejects the planner's, or serves no model",
        _T.RUN,
    ),
    _KindRow(_K.CIRCUIT_OPEN, "not sent: the provider is in an outage", _T.WAITING | _T.RESUMABLE),
    _KindRow(_K.ARTIFACT_UNAVAILABLE, "the artifact store cannot be reached, or is another one", _INFRASTRUCTURE),
    _KindRow(_K.ARTIFACT_MISSING, "the artifact store does not hold what was referred to", _T.STORE),
    _KindRow(_K.ARTIFACT_TOO_LARGE, "more than the artifact store takes", _T.STORE),
    _KindRow(_K.PAYLOAD_TOO_LARGE, "a payload above the size that a workflow's history takes"),
    _KindRow(_K.ARTIFACT_CHANGED, "what the artifact store holds is not what was stored", _T.STORE),
    _KindRow(_K.TEAM_UNAVAILABLE, "the Worker cannot load the run's team, or lacks a tool of it", _T.AWAITED),
    _KindRow(_K.SERVER_UNAVAILABLE, "the Temporal server did not answer a question of the Worker", _T.AWAITED),
    _KindRow(_K.NOT_GRANTED, "the caller does not belong to the run, or asks for more than the run may do", _T.FATAL),
    _KindRow(_K.UNEXPECTED, "nothing that the project anticipates: the message says which"),
)

MEANINGS: dict[ErrorKind, str] = {row.kind: row.meaning for row in TABLE}
"""The meaning of each kind, as the documentation has it."""


def _with(trait: Trait) -> frozenset[ErrorKind]:
    return frozenset(row.kind for row in TABLE if trait in row.traits)


# The kinds of each trait; RUN_KINDS is the contract's list of `ApplicationError.type`.
RUN_KINDS = _with(Trait.RUN)
RETRIED = _with(Trait.RETRIED)
OUTAGES = _with(Trait.OUTAGE)
PACING = _with(Trait.PACE)
WAITING = _with(Trait.WAITING)
ODD = _with(Trait.ODD)
ACCOUNT = _with(Trait.ACCOUNT)
FATAL = _with(Trait.FATAL)
RESUMABLE = _with(Trait.RESUMABLE)
STORE = _with(Trait.STORE)
AWAITED = _with(Trait.AWAITED)

_RUN_KIND = {
    ErrorKind.PROVIDER_BILLING: ErrorKind.PROVIDER_REJECTED,
    ErrorKind.MODEL_NOT_SERVED: ErrorKind.PROVIDER_REJECTED,
    ErrorKind.CONTEXT_OVERFLOW: ErrorKind.INVALID_REQUEST,
    ErrorKind.TIMEOUT: ErrorKind.DEADLINE_EXCEEDED,
    ErrorKind.MODEL_UNAVAILABLE: ErrorKind.PROVIDER_REJECTED,
    ErrorKind.NOT_GRANTED: ErrorKind.INVALID_REQUEST,
}


def run_kind(kind: ErrorKind) -> ErrorKind:
    """Returns the kind that a run fails with if a call of its own failed for good."""
    return _RUN_KIND.get(kind, kind)


def call_kind(kind: ErrorKind) -> ErrorKind:
    """Returns the kind with which a model call that failed with `kind` for good ends the work that needs it.

    Errors that outlived their retries are all reported as MODEL_UNAVAILABLE.
    """
    return ErrorKind.MODEL_UNAVAILABLE if kind in RETRIED or kind is ErrorKind.UNEXPECTED else kind


class SupervisionError(Exception):
    """An anticipated failure of a run; `kind` becomes `ApplicationError.type`."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
