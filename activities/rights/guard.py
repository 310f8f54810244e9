"""The guard before every activity: a caller must belong to the run that its input speaks of.

Activities can be scheduled by name from any workflow of the namespace, and workflows can be started with any input.
So the input is compared with the run's grant, which is found by the server's word on the caller.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from opentelemetry import metrics
from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from activities.contracts.run_contracts import RunRef, RunSetup, SetupInput
from activities.rights.callers import Caller, Callers
from activities.rights.grants import Grants, RunGrant
from supervision import limits
from supervision.contract.model_choice import chain_of
from supervision.errors import ErrorKind
from supervision.store_keys import is_key, is_team, run_prefix

WORKER_AGENT = "WorkerAgentWorkflow"
_REFERENCES = ("ref", "head")
_NOTICE = "temporal-supervisor.callers.notice"

_refusals = metrics.get_meter("temporal-supervisor").create_counter(
    "supervisor.refused_calls", description="activities that were scheduled without a right to them"
)


class Guard(Interceptor):
    """Issues a run's grant at its first activity, and refuses every later one that goes beyond it."""

    def __init__(self, callers: Callers, grants: Grants, worker_model: str) -> None:
        """`worker_model` is the model, or the fallback chain, of roles that a plan defines."""
        self._callers = callers
        self._grants = grants
        self._worker_model = worker_model

    def intercept_activity(self, inner: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Returns `inner` with this guard before it."""
        return _Guarded(inner, self)

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - the SDK's name
    ) -> type[WorkflowInboundInterceptor]:
        """Returns the class that lets this guard know of each workflow that begins in its process."""
        input.unsafe_extern_functions[_NOTICE] = self._callers.notice
        return _Noticed

    async def check(self, info: activity.Info, argument: object) -> None:
        """Raises NotGranted if the caller may not have this done."""
        run = getattr(argument, "run", None)
        if not isinstance(run, RunRef):
            _require_local(info)
            return
        await self._grants.require(run.store_id)
        caller = await self._callers.of(info)
        chain_id = caller.parent_chain_id if caller.workflow_type == WORKER_AGENT else caller.chain_id
        grant = await self._grants.find(run.run_id, chain_id) if chain_id else None
        if grant is None:
            raise NotGranted(f"workflow '{caller.workflow_id}' does not belong to run '{run.run_id}'")
        if beyond := excess(grant, argument, datetime.now(UTC)):
            raise NotGranted(beyond)

    async def admit(self, info: activity.Info, setup: SetupInput) -> tuple[Caller, RunGrant | None]:
        """Returns who begins a run, and for a nested supervisor its parent's grant. Raises NotGranted."""
        _require_local(info)
        caller, run = await self._callers.of(info), setup.run
        await self._grants.require(run.store_id)
        if setup.brief is None and run.run_id == caller.workflow_id:
            await self._grants.settle(run.run_id, await self._callers.namespace_id())
            return caller, None
        parent = await self._grants.find(run.run_id, caller.parent_chain_id) if caller.parent_chain_id else None
        if parent is None:
            raise NotGranted(f"workflow '{caller.workflow_id}' is not part of run '{run.run_id}'")
        if parent.depth >= limits.MAX_DEPTH:
            raise NotGranted(f"nested supervisors end at level {limits.MAX_DEPTH}")
        if setup.request.team not in parent.nested_teams:
            raise NotGranted("its team is not one of the roles of the supervisor above it")
        if beyond := excess(parent, setup.brief, datetime.now(UTC)):
            raise NotGranted(beyond)
        return caller, parent

    async def issue(self, caller: Caller, parent: RunGrant | None, setup: SetupInput, prepared: RunSetup) -> None:
        """Writes down what the prepared run may do."""
        models = {prepared.supervisor_model, *prepared.supervisor_fallbacks}
        models |= {model for role in prepared.team.roles for model in role.models}
        own = RunGrant(
            run_id=setup.run.run_id,
            workflow_id=caller.workflow_id,
            depth=parent.depth + 1 if parent else 1,
            models=sorted({*models, *(setup.request.models.workers or chain_of(self._worker_model))}),
            nested_teams=sorted({role.team for role in prepared.team.roles if role.team}),
            expires_at=parent.expires_at if parent else datetime.now(UTC) + limits.GRANT_LIFETIME,
        )
        await self._grants.write(caller.chain_id, own)


class NotGranted(Exception):
    """The caller has no right to what it asks for."""


def _require_local(info: activity.Info) -> None:
    """The server knows nothing of local activities: only workflow code of this process can schedule them."""
    if not info.is_local:
        raise NotGranted("only a run itself may do this")


class _Guarded(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, guard: Guard) -> None:
        super().__init__(inner)
        self._guard = guard

    async def execute_activity(self, call: ExecuteActivityInput) -> Any:
        info, argument = activity.info(), call.args[0] if call.args else None
        try:
            if isinstance(argument, SetupInput):
                caller, parent = await self._guard.admit(info, argument)
                prepared = await super().execute_activity(call)
                await self._guard.issue(caller, parent, argument, prepared)
                return prepared
            await self._guard.check(info, argument)
        except NotGranted as refused:
            _refusals.add(1, {"activity": info.activity_type})
            activity.logger.warning("refused %s: %s", info.activity_type, refused)
            raise ApplicationError(str(refused), type=ErrorKind.NOT_GRANTED, non_retryable=True) from None
        return await super().execute_activity(call)


class _Noticed(WorkflowInboundInterceptor):
    async def execute_workflow(self, call: ExecuteWorkflowInput) -> Any:
        workflow.extern_functions()[_NOTICE](workflow.info())
        return await super().execute_workflow(call)


def excess(grant: RunGrant, argument: object, now: datetime) -> str | None:
    """Returns what in an activity's input goes beyond the grant; None if nothing does."""
    prefix = run_prefix(grant.run_id)
    for name, ref in references(argument):
        if not (is_key(ref) and ref.startswith(prefix)):
            return f"{name} belongs to another run"
    team_ref = getattr(argument, "team_ref", None)
    if team_ref is not None and not is_team(team_ref, grant.run_id):
        return "team_ref is no team of this run"
    model = getattr(argument, "model", None)
    if model is not None and model not in grant.models:
        return f"model '{model}' is not one of the run's"
    return "the run's time is over" if now > grant.expires_at else None


def references(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yields every reference in a value, found by the names that fields for references have."""
    if isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from references(getattr(value, field), field)
    elif isinstance(value, list):
        for item in value:
            yield from references(item, name)
    elif isinstance(value, str) and value and (name.endswith("_ref") or name in _REFERENCES):
        yield name, value
