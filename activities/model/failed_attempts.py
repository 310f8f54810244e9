"""Failed attempts at a model call: what they hand on to the next one, and how Temporal sees them."""

from datetime import timedelta
from secrets import SystemRandom

from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.model.conversation_view import ConversationView
from activities.model.port import Json, ModelFailure
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.usage import Usage
from supervision.errors import ODD, WAITING, ErrorKind
from supervision.text import cut

_jitter = SystemRandom()


class EarlierAttempts(Model):
    """What the attempts at one call hand on: failures by kind, and what those cost that brought no answer.

    `view` is set once the call had to be shortened, so that later attempts send what this one would have sent.
    """

    failures: dict[str, int] = {}
    spent: Usage = Usage()
    view: ConversationView | None = None

    @classmethod
    def of_this_call(cls) -> "EarlierAttempts":
        """Returns what the attempts before this one left behind."""
        details = activity.info().heartbeat_details
        try:
            return cls.model_validate(details[0]) if details else cls()
        except ValidationError:  # the heartbeats of another version
            return cls()


def to_application_error(failure: ModelFailure, failures: int, spent: Json | None = None) -> ApplicationError:
    """Returns the failure as Temporal sees it: its kind, whether and when to try again, what the attempts have cost.

    `failures` counts those of this kind in this call: the wait grows with them if the provider named none.
    """
    retryable = failure.retryable and not (failure.kind in ODD and failures >= limits.ODD_REPLY_ATTEMPTS)
    details: Json = {"status": failure.status, "request_id": failure.request_id, "spent": spent}
    if failure.kind == ErrorKind.CIRCUIT_OPEN:
        details = {"remaining": failure.retry_after, "spent": spent}
    return ApplicationError(
        cut(failure.message, limits.ERROR_BYTES),
        details,
        type=failure.kind,
        non_retryable=not retryable,
        next_retry_delay=_delay(failure.retry_after, failures) if retryable else None,
        category=(ApplicationErrorCategory.BENIGN if failure.kind in WAITING else ApplicationErrorCategory.UNSPECIFIED),
    )


def _delay(retry_after: float | None, failures: int) -> timedelta:
    growth = limits.MODEL_RETRY_FACTOR ** min(max(failures - 1, 0), 20)  # a power of thousands overflows
    wait = (
        timedelta(seconds=retry_after)
        if retry_after
        else min(limits.MODEL_RETRY_INITIAL * growth, limits.MODEL_RETRY_MAX)
    )
    return wait * (1 + limits.RETRY_JITTER * _jitter.random())
