"""Around every attempt of an activity: heartbeats from its first moment on, and errors that say if it is tried again.

The guard before an activity reads the store already, which may be slow: so this comes first.
"""

from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.heartbeat import Witness, beating
from supervision.base import limits
from supervision.base.errors import AWAITED, RUN_KINDS, ErrorKind, SupervisionError
from supervision.base.text import cut

MISSING_ATTEMPTS = 3  # a folder that machines share may show a new file a little later

_QUIET = RUN_KINDS | {ErrorKind.CANCELLED}  # ends that the Worker's log shows without an alarm


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
        except (SupervisionError, RPCError) as error:
            # Not from the error: it may quote what the store's backend said, and causes travel into history.
            raise _typed(error, activity.info().attempt) from None


def _typed(error: SupervisionError | RPCError, attempt: int) -> ApplicationError:
    """Returns an anticipated error as Temporal gets it; failures of model calls are typed by `journalled_call`.

    What a Worker or another store may have is tried again. What this run's own store lacks is gone for good, but for
    a moment in which a shared folder does not show yet what another machine wrote.
    """
    kind = error.kind if isinstance(error, SupervisionError) else ErrorKind.SERVER_UNAVAILABLE
    retried = kind in AWAITED or (kind is ErrorKind.ARTIFACT_MISSING and attempt < MISSING_ATTEMPTS)
    category = ApplicationErrorCategory.BENIGN if kind in _QUIET else ApplicationErrorCategory.UNSPECIFIED
    return ApplicationError(
        cut(str(error), limits.ERROR_BYTES), type=kind, non_retryable=not retried, category=category
    )
