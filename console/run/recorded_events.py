"""A supervisor's events out of its history: for a run that no Worker answers for, and for those it has dropped."""

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Any

from temporalio.api.common.v1 import Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from activities.contracts.planning_contracts import PlanReply
from console.run.run_handle import RunHandle
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.status import TraceEvent
from supervision.text import cut, one_line

_CALLS = {"plan": "plan_requested", "synthesize": "synthesis_started"}
_CHILD = re.compile(r"/(?P<subtask>[^/]+)/(?P<attempt>\d+)(?:\.\w+)*$")


class _Verdicts(Model):
    verdicts: list[dict[str, Any]] = []
    missing: list[str] = []


class _ChildInput(Model):
    """A worker agent's assignment; a nested supervisor's has no role."""

    role: dict[str, Any] = {}


class _ChildEnd(Model):
    """What a child's result or error says of where it can be read."""

    turns: int = 0
    head: str | None = None
    trace_ref: str | None = None


async def recorded_events(run: RunHandle, workflow_id: str) -> list[TraceEvent]:
    """Returns what the history of a supervisor tells: calls of its own, attempts of subtasks, how they ended."""
    recorder = _Recorder(run.client)
    async for event in run.client.get_workflow_handle(workflow_id).fetch_history_events():
        await recorder.take(event)
    return [event.model_copy(update={"seq": number}) for number, event in enumerate(recorder.events, 1)]


class _Recorder:
    def __init__(self, client: Client) -> None:
        self.events: list[TraceEvent] = []
        self._client = client
        self._activities: dict[int, str] = {}

    async def take(self, event: HistoryEvent) -> None:
        """Adds what a history's event tells, if it tells anything."""
        kind = event.WhichOneof("attributes") or ""
        attributes: Any = getattr(event, kind, None)
        if kind == "activity_task_scheduled_event_attributes":
            self._activities[event.event_id] = name = attributes.activity_type.name
            if name in _CALLS:
                self._note(event, _CALLS[name])
        elif kind == "activity_task_completed_event_attributes":
            await self._completed(event, self._activities.get(attributes.scheduled_event_id, ""), attributes.result)
        elif kind.startswith(("child_workflow", "start_child")):
            await self._child(event, kind, attributes)
        elif kind == "workflow_execution_cancel_requested_event_attributes":
            self._note(event, "cancel_requested")

    async def _completed(self, event: HistoryEvent, name: str, result: Payloads) -> None:
        if name == "plan":
            reply = await self._read(result, PlanReply)
            if reply and reply.plan:
                plan = reply.plan
                self._note(
                    event,
                    "plan_accepted",
                    subtasks=len(plan.subtasks),
                    revision=plan.revision,
                    strategy=reply.strategy,
                    reasoning=one_line(plan.reasoning, limits.SENTENCE_BYTES),
                )
            elif reply and reply.problems:
                self._note(event, "plan_rejected", problems=list(reply.problems))
        elif name == "review":
            review = await self._read(result, _Verdicts) or _Verdicts()
            feedback = {str(item.get("subtask_id")): str(item.get("feedback")) for item in review.verdicts}
            self._note(event, "reviewed", flagged=list(feedback), feedback={**feedback}, missing=[*review.missing])

    async def _child(self, event: HistoryEvent, kind: str, attributes: Any) -> None:
        workflow_id = getattr(attributes, "workflow_id", "") or attributes.workflow_execution.workflow_id
        place = _CHILD.search(workflow_id)
        if place is None:
            return
        subtask = place["subtask"]
        if kind == "start_child_workflow_execution_initiated_event_attributes":
            given = await self._read(attributes.input, _ChildInput) or _ChildInput()
            self._note(event, "subtask_started", subtask, attempt=int(place["attempt"]), role=given.role.get("name"))
        elif kind == "child_workflow_execution_completed_event_attributes":
            attempt = await self._read(attributes.result, _ChildEnd) or _ChildEnd()
            self._note(event, "subtask_completed", subtask, turns=attempt.turns, **dict(_refs(attempt)))
        elif kind == "child_workflow_execution_failed_event_attributes":
            failure = _innermost(attributes.failure)
            details = await self._read(failure.application_failure_info.details, _ChildEnd) or _ChildEnd()
            self._note(
                event,
                "subtask_failed",
                subtask,
                error=failure.application_failure_info.type or "Unexpected",
                message=cut(failure.message, limits.SENTENCE_BYTES),
                **dict(_refs(details)),
            )
        elif kind == "child_workflow_execution_canceled_event_attributes":
            self._note(event, "subtask_cancelled", subtask)

    async def _read(self, payloads: Payloads, model: type[Any]) -> Any:
        """Returns the first value as that model; None if it can't be read."""
        try:
            value, *_ = await self._client.data_converter.decode(payloads.payloads, [model])
        except Exception:  # converters raise whatever they like
            return None
        return value

    def _note(self, event: HistoryEvent, kind: str, subtask_id: str | None = None, **data: Any) -> None:
        at = event.event_time.ToDatetime(tzinfo=UTC).isoformat()
        self.events.append(TraceEvent(seq=0, at=at, type=kind, subtask_id=subtask_id, data=data))


def _refs(attempt: _ChildEnd) -> Iterator[tuple[str, str]]:
    for name in ("head", "trace_ref"):
        if ref := getattr(attempt, name):
            yield name, ref


def _innermost(failure: Failure) -> Failure:
    while failure.HasField("cause"):
        failure = failure.cause
    return failure
