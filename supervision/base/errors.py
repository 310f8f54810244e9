"""Every kind of error that the project anticipates, with its meaning and its consequences.

The names are public: they are `ApplicationError.type` of failed workflows, `error.type` of a subtask, and the type of
a failed activity in the Web UI. A kind is decided once, where the failure is seen; everything else asks this table.
"""

from enum import Flag, StrEnum, auto


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


_CALL = Trait.RETRIED | Trait.OUTAGE
_INFRASTRUCTURE = Trait.STORE | Trait.AWAITED
_PERSON = Trait.ACCOUNT | Trait.FATAL | Trait.RESUMABLE


class ErrorKind(StrEnum):
    """The name of a kind of error, its meaning as the documentation has it, and its consequences.

    A name that is not listed is read as UNEXPECTED.
    """

    meaning: str
    traits: Trait

    def __new__(cls, name: str, meaning: str = "", traits: Trait = Trait.NONE) -> "ErrorKind":
        """Returns a kind."""
        kind = str.__new__(cls, name)
        kind._value_, kind.meaning, kind.traits = name, meaning, traits
        return kind

    # Inputs and plans.
    INVALID_REQUEST = "InvalidRequest", "the input cannot be used; the message names the field", Trait.RUN
    UNKNOWN_TEAM = "UnknownTeam", "no team has that name, or its file cannot be read", Trait.RUN
    NO_SUBTASKS = "NoSubtasks", "the planner returned no subtasks in three tries", Trait.RUN
    INVALID_PLAN = (
        "InvalidPlan",
        "the plan could not be made valid in three tries, or the planner refused the goal",
        Trait.RUN,
    )
    NO_CAPABLE_WORKER = (
        "NoCapableWorker",
        "no role or combination of roles has a capability that the plan needs",
        Trait.RUN,
    )
    PLAN_REJECTED = "PlanRejected", "a person rejected the plan, or nobody decided in time", Trait.RUN
    # How a run ends without a usable answer.
    ALL_SUBTASKS_FAILED = "AllSubtasksFailed", "no subtask succeeded", Trait.RUN
    QUORUM_NOT_MET = "QuorumNotMet", "fewer subtasks succeeded than the success rule asks for", Trait.RUN
    DEADLINE_EXCEEDED = "DeadlineExceeded", "the deadline came before there was any finding", Trait.RUN
    BUDGET_EXHAUSTED = "BudgetExhausted", "the budget ended before there was any finding", Trait.RUN | Trait.RESUMABLE
    # How a subtask ends without a finding.
    TURN_LIMIT = "TurnLimit", "no finding within the turns of an attempt"
    REFUSED = "Refused", "the model refused the subtask"
    CANNOT_DO = "CannotDo", "the worker agent concluded that the subtask cannot be done"
    TIMEOUT = "Timeout", "the subtask's own time, or the time left for a call, was over"
    CONTEXT_OVERFLOW = "ContextOverflow", "the prompt does not fit into the model's window, whatever is left out of it"
    MODEL_UNAVAILABLE = "ModelUnavailable", "a model call failed for good, or gave nothing usable"
    DEPENDENCIES_FAILED = "DependenciesFailed", "none of the subtasks that it depends on succeeded"
    CANCELLED = "Cancelled", "it was stopped"
    NEEDS_PERSON = (
        "NeedsPerson",
        "its attempt waits for a person, and then continues",
        Trait.WAITING | Trait.RESUMABLE,
    )
    PAUSED = (
        "Paused",
        "a person paused the run: it is continued when the run is resumed",
        Trait.WAITING | Trait.RESUMABLE,
    )
    # Model calls.
    RATE_LIMITED = "RateLimited", "the provider asks for fewer calls (429)", Trait.RETRIED | Trait.PACE | Trait.WAITING
    OVERLOADED = "Overloaded", "the provider is overloaded (529)", _CALL | Trait.WAITING
    PROVIDER_ERROR = "ProviderError", "the provider failed (5xx, 408, 409)", _CALL
    PROVIDER_UNREACHABLE = "ProviderUnreachable", "no connection: refused, reset, DNS, TLS", _CALL
    STREAM_BROKEN = "StreamBroken", "the answer broke off", _CALL
    IDLE_TIMEOUT = "IdleTimeout", "no sign of life for too long", _CALL
    BAD_RESPONSE = "BadResponse", "no valid answer: HTML, no content, unreadable JSON", Trait.RETRIED | Trait.ODD
    PROVIDER_AUTHENTICATION = "ProviderAuthentication", "the key is wrong, missing or forbidden", Trait.RUN | _PERSON
    PROVIDER_BILLING = "ProviderBilling", "no credit, or a spend limit is reached", _PERSON
    MODEL_NOT_SERVED = (
        "ModelNotServed",
        "the endpoint is none, or does not know the model or a part of the request",
        _PERSON,
    )
    PROVIDER_REJECTED = (
        "ProviderRejected",
        "the provider rejects the request for what is in it; of a run: it rejects the planner's, or serves no model",
        Trait.RUN,
    )
    CIRCUIT_OPEN = "CircuitOpen", "not sent: the provider is in an outage", Trait.WAITING | Trait.RESUMABLE
    # The artifact store, the Workers, payloads, bugs.
    ARTIFACT_UNAVAILABLE = (
        "ArtifactUnavailable",
        "the artifact store cannot be reached, or is another one",
        _INFRASTRUCTURE,
    )
    ARTIFACT_MISSING = "ArtifactMissing", "the artifact store does not hold what was referred to", Trait.STORE
    ARTIFACT_TOO_LARGE = "ArtifactTooLarge", "more than the artifact store takes", Trait.STORE
    ARTIFACT_CHANGED = "ArtifactChanged", "what the artifact store holds is not what was stored", Trait.STORE
    TEAM_UNAVAILABLE = "TeamUnavailable", "the Worker cannot load the run's team, or lacks a tool of it", Trait.AWAITED
    SERVER_UNAVAILABLE = (
        "ServerUnavailable",
        "the Temporal server did not answer a question of the Worker",
        Trait.AWAITED,
    )
    PAYLOAD_TOO_LARGE = "PayloadTooLarge", "a payload above the size that a workflow's history takes"
    NOT_GRANTED = (
        "NotGranted",
        "the caller does not belong to the run, or asks for more than the run may do",
        Trait.FATAL,
    )
    UNEXPECTED = "Unexpected", "nothing that the project anticipates: the message says which"

    @classmethod
    def _missing_(cls, value: object) -> "ErrorKind":
        return cls.UNEXPECTED


def _with(trait: Trait) -> frozenset[ErrorKind]:
    return frozenset(kind for kind in ErrorKind if trait in kind.traits)


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
