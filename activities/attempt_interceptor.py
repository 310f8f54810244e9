"""An interceptor around every attempt: its step, heartbeats, the guard, and typed errors.

Heartbeats come first, because the guard reads the store, which may be slow. The guard compares an
input with the grant of its run: workflows can be started with any input, and models may obey an
attacker. See docs/decisions/0016.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.activity_telemetry import ParentOf, activity_step
from activities.contracts.eval_contracts import EvalCall, is_eval_id
from activities.contracts.run_contracts import Notice, RunRef, SetupInput
from activities.contracts.store_contracts import StoreWatch
from activities.heartbeat import beating
from activities.store.artifacts import ArtifactStore
from activities.store.grants import RunGrant, find_grant
from activities.store.store_reports import report_away
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import (
    AWAITED,
    RUN_KINDS,
    STORE_AWAY,
    ErrorKind,
    SupervisionError,
)
from temporal_supervisor.supervision.base.store_keys import is_key, is_named, run_prefix
from temporal_supervisor.supervision.base.text import cut

_REFERENCES = ("ref", "head")


async def check_grant(store: ArtifactStore, info: activity.Info, argument: object) -> None:
    """Raises SupervisionError `NotGranted` for an activity that exceeds the grant of its run."""
    refused = await _refusal(store, info.workflow_id, argument)
    if refused is not None:
        activity.logger.warning("refused %s: %s", info.activity_type, refused)
        raise SupervisionError(ErrorKind.NOT_GRANTED, refused)


async def _refusal(store: ArtifactStore, workflow_id: str | None, argument: object) -> str | None:
    """Returns the reason to refuse an activity of a workflow; None if it is allowed."""
    if isinstance(argument, EvalCall):
        return await _refusal_of_eval(store, workflow_id, argument)
    run = _run_of(argument)
    if run is None or workflow_id is None:
        return "only a run itself may do this"
    if _is_about_store(argument):
        return _refusal_unless_root(workflow_id, run)
    if run.store_id:
        await store.require(run.store_id)
    if _begins_root(argument):
        return _refusal_unless_root(workflow_id, run)
    grant = await _covering_grant(store, workflow_id, run)
    if grant is None:
        return f"workflow '{workflow_id}' does not belong to run '{run.run_id}'"
    return excess(grant, argument, datetime.now(UTC))


def _run_of(argument: object) -> RunRef | None:
    """Returns the run that the input of an activity names; None without one."""
    run = getattr(argument, "run", None)
    return run if isinstance(run, RunRef) else None


def _is_about_store(argument: object) -> bool:
    """True for the activities of a run whose store is away, of which they read nothing."""
    if isinstance(argument, Notice):
        return argument.kind == "store"
    return isinstance(argument, StoreWatch)


def _begins_root(argument: object) -> bool:
    """True for the first activity of a root, which writes its grant."""
    return isinstance(argument, SetupInput) and argument.brief is None


def _refusal_unless_root(workflow_id: str, run: RunRef) -> str | None:
    """Returns the reason to refuse a workflow that is not the root of a run."""
    if workflow_id == run.run_id:
        return None
    return f"workflow '{workflow_id}' is not the run '{run.run_id}'"


async def _covering_grant(
    store: ArtifactStore,
    workflow_id: str,
    run: RunRef,
) -> RunGrant | None:
    """Returns the grant of a run if it covers a workflow; None otherwise."""
    if workflow_id != run.run_id and not workflow_id.startswith(f"{run.run_id}/"):
        return None
    grant = await find_grant(store, run.run_id, run.grant_ref)
    if grant is None or not grant.covers(workflow_id):
        return None
    return grant


async def _refusal_of_eval(
    store: ArtifactStore,
    workflow_id: str | None,
    call: EvalCall,
) -> str | None:
    """Returns the reason to refuse an eval that does not read its own objects alone."""
    if call.eval_id != workflow_id or not is_eval_id(call.eval_id):
        return f"workflow '{workflow_id}' is not the eval '{call.eval_id}'"
    if call.store_id:
        await store.require(call.store_id)
        if not call.set_ref.startswith(run_prefix(call.eval_id)):
            return "set_ref belongs to another eval"
    return None


def excess(grant: RunGrant, argument: object, now: datetime) -> str | None:
    """Returns the part of an activity's input that exceeds the grant; None if nothing does."""
    prefix = run_prefix(grant.run_id)
    for name, ref in references(argument):
        if not (is_key(ref) and ref.startswith(prefix)):
            return f"{name} belongs to another run"
    team_ref = getattr(argument, "team_ref", None)
    if team_ref is not None and not is_named("team", team_ref, grant.run_id):
        return "team_ref is no team of this run"
    model = getattr(argument, "model", None)
    if model is not None and model not in grant.models:
        return f"model '{model}' is not one of the run's"
    if isinstance(argument, SetupInput):
        if grant.depth >= limits.MAX_DEPTH:
            return f"nested supervisors end at level {limits.MAX_DEPTH}"
        if argument.request.team not in grant.nested_teams:
            return "its team is not one of the roles of the supervisor above it"
    return "the run's time is over" if now > grant.expires_at else None


def references(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yields the name and the value of each reference in a value, by the names of its fields."""
    if isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from references(getattr(value, field), field)
    elif isinstance(value, list):
        for item in value:
            yield from references(item, name)
    elif isinstance(value, str) and value and (name.endswith("_ref") or name in _REFERENCES):
        yield name, value


_QUIET = RUN_KINDS | {ErrorKind.CANCELLED}  # ends that the Worker's log shows without an alarm


class AttemptInterceptor(Interceptor):
    """Wraps every attempt in its step, heartbeats, the guard and typed errors.

    See `activity_telemetry.activity_step`.
    """

    def __init__(
        self,
        store: ArtifactStore,
        parent_of: ParentOf = lambda *_: None,
        *,
        content: bool = False,
    ) -> None:
        self._store = store
        self._shown = partial(activity_step, parent_of=parent_of, content=content)

    def intercept_activity(self, inner: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Returns `inner` with the wrapping."""
        store, shown = self._store, self._shown

        class Attempted(ActivityInboundInterceptor):
            async def execute_activity(self, call: ExecuteActivityInput) -> Any:
                argument = call.args[0] if call.args else None
                with shown(argument):
                    async with activity_attempt(_run_of(argument)):
                        await check_grant(store, activity.info(), argument)
                        return await super().execute_activity(call)

        return Attempted(inner)


@asynccontextmanager
async def activity_attempt(run: RunRef | None = None) -> AsyncIterator[None]:
    """Heartbeats until the block ends, and turns its errors into typed ApplicationErrors.

    The `run` is told if the store is unavailable.
    """
    report = partial(report_away, run)
    try:
        async with beating(report):
            yield
    # Failures of model calls are typed by `journalled_call`.
    except (SupervisionError, RPCError) as error:
        kind = error.kind if isinstance(error, SupervisionError) else ErrorKind.SERVER_UNAVAILABLE
        words = cut(str(error), limits.ERROR_BYTES)
        if kind in STORE_AWAY and activity.info().attempt >= limits.STORE_REPORTED:
            await report(words)
        # Not from the error: it may quote what the store's backend said, and causes travel into
        # history.
        raise _failure(kind, words) from None


def _failure(kind: ErrorKind, words: str) -> ApplicationError:
    """Returns the error with which an attempt ends.

    Where a Worker or a store lacks something, another attempt follows: another Worker may have it,
    or the store when it is back.
    """
    category = ApplicationErrorCategory.UNSPECIFIED
    if kind in _QUIET:
        category = ApplicationErrorCategory.BENIGN
    return ApplicationError(
        words,
        type=kind,
        non_retryable=kind not in AWAITED,
        category=category,
        next_retry_delay=_pause(activity.info().attempt) if kind in STORE_AWAY else None,
    )


def _pause(attempt: int) -> timedelta:
    """Returns the pause before the next attempt at a call that needs the store."""
    doublings = min(attempt - 1, 10)  # far beyond the longest pause
    grown: timedelta = limits.STORE_RETRY_INITIAL * 2.0**doublings
    return min(grown, limits.STORE_RETRY_MAX)
