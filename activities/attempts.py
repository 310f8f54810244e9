"""Around every attempt of an activity: heartbeats from its first moment on, and errors that say if it is tried again.

The guard before an activity reads the store already, which may be slow: so this comes first.
"""

from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.heartbeat import Witness, beating
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactTooLarge
from supervision.base import limits
from supervision.base.errors import ErrorKind
from supervision.base.text import cut

MISSING_ATTEMPTS = 3  # a folder that machines share may show a new file a little later

_LASTING = {
    ArtifactMissing: ErrorKind.ARTIFACT_MISSING,
    ArtifactChanged: ErrorKind.ARTIFACT_CHANGED,
    ArtifactTooLarge: ErrorKind.ARTIFACT_TOO_LARGE,
}


class Attempts(Interceptor):
    """The first of a Worker's interceptors: it sees what those after it do and raise, too."""

    def __init__(self, witness: Witness | None = None) -> None:
        self._witness = witness

    def intercept_activity(self, inner: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Returns `inner` with the heartbeats and errors of attempts around it."""
        return _Attempted(inner, self._witness)


class _Attempted(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, witness: Witness | None) -> None:
        super().__init__(inner)
        self._witness = witness

    async def execute_activity(self, call: ExecuteActivityInput) -> Any:
        try:
            async with beating(self._witness):
                return await super().execute_activity(call)
        except Exception as error:
            if (typed := _typed(error, activity.info().attempt)) is None:
                raise
            # Not from the error: it may quote what the store's backend said, and causes travel into history.
            raise typed from None


def _typed(error: Exception, attempt: int) -> ApplicationError | None:
    """Returns the error of its kind that Temporal gets; None for errors that are already of their kind.

    What a Worker or another store may have is tried again. What this run's own store lacks is gone for good, but for
    a moment in which a shared folder does not show yet what another machine wrote.
    """
    if isinstance(error, RPCError):
        return ApplicationError(_message(error), type=ErrorKind.SERVER_UNAVAILABLE)
    kind = _LASTING.get(type(error))
    if kind is None:
        return None
    awaited = kind is ErrorKind.ARTIFACT_MISSING and attempt < MISSING_ATTEMPTS
    return ApplicationError(_message(error), type=kind, non_retryable=not awaited)


def _message(error: Exception) -> str:
    return cut(str(error), limits.ERROR_BYTES)
