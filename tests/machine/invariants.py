"""What holds for every run, whatever went wrong in it."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecutionStatus

from supervision.contract.result import RunResult, SubtaskReport, Timing
from tests.machine.playing import Ending

FINAL = {"completed", "failed", "skipped", "cancelled"}
PHASES = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}
RUN_ERRORS = {
    "InvalidRequest", "UnknownTeam", "NoSubtasks", "InvalidPlan", "NoCapableWorker", "PlanRejected",
    "AllSubtasksFailed", "QuorumNotMet", "DeadlineExceeded", "BudgetExhausted", "ProviderAuthentication",
    "ProviderRejected",
}  # fmt: skip
MODEL_CALLS = {"plan", "call_model", "synthesize", "refine", "review", "judge"}


_HARMLESS = {  # it was terminated meanwhile, or something came in
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
}


@dataclass
class Child:
    """A child workflow as its parent's history has it."""

    workflow_id: str
    run_id: str = ""
    ended: bool = False
    value: dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    """What the history of one workflow holds of its children, its model calls, and its failed workflow tasks."""

    children: dict[int, Child] = field(default_factory=dict)
    booked_tokens: int = 0
    booked_calls: int = 0
    unanswered: int = 0
    task_failures: list[str] = field(default_factory=list)


async def broken(client: Client, ending: Ending) -> list[str]:
    """Returns what does not hold for a run that has ended."""
    result = ending.result
    records = await _records(client, ending.run_id)
    if result is None:
        failures = [failure for record in records.values() for failure in record.task_failures]
        return [f"it {ending.kind} with {ending.error}, without a result; {failures[:2]}"]
    wrong = [*_wrong_end(ending, result), *_wrong_states(result), *_wrong_queries(ending, result)]
    wrong += _lost_findings(ending.run_id, result, records)
    for workflow_id, record in records.items():
        wrong += [f"a workflow task of {workflow_id} failed: {failure}" for failure in record.task_failures]
        wrong += [fault async for fault in _open_children(client, record)]
    wrong += _wrong_spending(ending, result, records)
    closed = (await client.get_workflow_handle(ending.run_id).describe()).close_time
    assert closed is not None
    wrong += _late_calls(ending, closed.timestamp())
    return wrong


# --- what the run shows -----------------------------------------------------------------------------------


def _wrong_end(ending: Ending, result: RunResult) -> Iterator[str]:
    acts = {deed.action for deed in ending.case.deeds}
    if ending.kind == "completed" and result.status not in ("completed", "partial"):
        yield f"it completed as {result.status}"
    if ending.kind == "completed" and not result.answer:
        yield "it completed without an answer"
    if ending.kind == "failed" and ending.error not in RUN_ERRORS:
        yield f"it failed with {ending.error}"
    if ending.kind == "cancelled" and "cancel" not in acts:
        yield "it was cancelled by nobody"


def _wrong_states(result: RunResult) -> Iterator[str]:
    ids = [report.id for report in result.subtasks]
    if len(ids) != len(set(ids)):
        yield f"subtasks are listed twice: {ids}"
    for report in result.subtasks:
        if report.state not in FINAL:
            yield f"{report.id} is {report.state} at the end"
        if report.state == "completed" and report.finding is None:
            yield f"{report.id} is completed without a finding"
        if report.state != "completed" and report.error is None:
            yield f"{report.id} is {report.state} without a reason"
    done = {report.id for report in result.subtasks if report.state == "completed"}
    reopened = {gap.subtask_id for gap in result.gaps if "review still finds" in gap.reason or "fix" in gap.reason}
    for gap in result.gaps:
        if gap.subtask_id in done - reopened:
            yield f"{gap.subtask_id} is completed and a gap: {gap.reason}"
    named = {gap.subtask_id for gap in result.gaps}
    for report in result.subtasks:
        if report.state != "completed" and report.replaced_by is None and report.id not in named:
            yield f"{report.id} is {report.state} and no gap"


def _wrong_queries(ending: Ending, result: RunResult) -> Iterator[str]:
    shown, status = ending.shown, ending.status
    assert shown is not None
    assert status is not None
    for path, seen, returned in _differences("", _timeless(shown), _timeless(result)):
        yield f"the query shows {path} as {seen}, {returned} was returned"
    if status.phase != PHASES[ending.kind]:
        yield f"it {ending.kind} and shows the phase {status.phase}"
    if status.usage != result.usage:
        yield "status shows another usage than the result"
    states: dict[str, str] = {report.id: report.state for report in result.subtasks}
    if {report.id: report.state for report in status.subtasks} != states:
        yield "status shows other states than the result"
    counts = status.counts.model_dump()
    for state in FINAL | {"running", "waiting"}:
        if counts[state] != list(states.values()).count(state):
            yield f"status counts {counts[state]} {state} subtasks"
    if status.waiting or any(dict(status.flags).values()):
        yield f"it waits after its end: {status.flags}, {status.waiting}"


def _timeless(result: RunResult) -> dict[str, Any]:
    """Returns a result without its times: after a local activity the SDK's clock is off by a moment on replay."""
    subtasks = [report.model_copy(update={"started_at": None, "finished_at": None}) for report in result.subtasks]
    return result.model_copy(update={"timing": Timing(), "subtasks": subtasks}).model_dump(mode="json")


def _differences(path: str, seen: Any, returned: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(seen, dict) and isinstance(returned, dict) and seen.keys() == returned.keys():
        for name in seen:
            yield from _differences(f"{path}.{name}", seen[name], returned[name])
    elif isinstance(seen, list) and isinstance(returned, list) and len(seen) == len(returned):
        for number, (one, other) in enumerate(zip(seen, returned, strict=True)):
            yield from _differences(f"{path}[{number}]", one, other)
    elif seen != returned:
        yield path, seen, returned


# --- findings -------------------------------------------------------------------------------------------


def _lost_findings(run_id: str, result: RunResult, records: dict[str, Record]) -> Iterator[str]:
    reports = {report.id: report for report in result.subtasks}
    for child in records[run_id].children.values():
        subtask_id = child.workflow_id.removeprefix(f"{run_id}/").split("/")[0]
        report = reports.get(subtask_id)
        if report is None:
            yield f"{subtask_id} was worked on and is not in the result"
        elif child.value.get("finding") and report.finding is None:
            yield f"the finding of {child.workflow_id} is lost: {report.state}, {report.error}"
    for report in result.subtasks:
        if report.finding is not None and not _is_own(report):
            yield f"{report.id} has a finding of another one: {report.finding.summary[:60]}"


def _is_own(report: SubtaskReport) -> bool:
    words = report.finding.summary if report.finding else ""
    return not words.startswith("finding of") or f"finding of {report.id}/" in words


# --- money ----------------------------------------------------------------------------------------------


def _wrong_spending(ending: Ending, result: RunResult, records: dict[str, Record]) -> Iterator[str]:
    """Compares what the run says with the model's ledger; what is missing was in flight when something ended it."""
    ledger = zip(ending.served, ending.calls(), strict=False)
    answered = [served for served, call in ledger if served.tokens and call.answered_at]
    paid, spent = sum(served.tokens for served in answered), result.usage.tokens
    calls, booked = len(answered), sum(record.booked_calls for record in records.values())
    history = sum(record.booked_tokens for record in records.values())
    if not history <= spent <= paid:
        yield f"spent {spent} tokens, its histories have {history}, the model was paid {paid}"
    unbooked = calls - result.usage.model_calls
    repeated = calls - len({served.step.call for served in answered}) if ending.restarted else 0
    in_flight = sum(record.unanswered for record in records.values()) + repeated
    if not booked <= result.usage.model_calls <= calls or unbooked > in_flight:
        yield (
            f"{result.usage.model_calls} calls are booked, the histories have {booked}, the model answered {calls}, "
            f"{in_flight} were in flight at an end"
        )
    if ending.error != "BudgetExhausted" and sum((report.usage.tokens for report in result.subtasks), start=0) > spent:
        yield "the subtasks consumed more than the run"


def _late_calls(ending: Ending, closed_at: float) -> Iterator[str]:
    """Returns calls that began after the end, but for those on their way: a Worker had them, and hears later."""
    late = Counter(call.step.call for call in ending.calls() if call.at > closed_at)
    before = {call.step.call for call in ending.calls() if call.at <= closed_at}
    for call, times in late.items():
        if times > 1 or call in before:
            yield f"{call} was tried again after the end"


# --- histories ------------------------------------------------------------------------------------------


async def _records(client: Client, run_id: str) -> dict[str, Record]:
    """Returns the records of a run and of all below it, by workflow id."""
    records: dict[str, Record] = {}
    waiting = [(run_id, "")]
    while waiting:
        workflow_id, execution = waiting.pop()
        handle = client.get_workflow_handle(workflow_id, run_id=execution or None)
        record = records[workflow_id] = _record([event async for event in handle.fetch_history_events()])
        waiting += [(child.workflow_id, child.run_id) for child in record.children.values() if child.run_id]
    return records


def _record(events: list[HistoryEvent]) -> Record:
    record, model_calls = Record(), dict[int, bool]()
    for event in events:
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                scheduled = event.activity_task_scheduled_event_attributes
                if scheduled.activity_type.name in MODEL_CALLS:
                    model_calls[event.event_id] = False
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                completed = event.activity_task_completed_event_attributes
                if completed.scheduled_event_id in model_calls:
                    model_calls[completed.scheduled_event_id] = True
                    usage = json.loads(completed.result.payloads[0].data)["usage"]
                    record.booked_calls += usage.get("model_calls", 0)
                    record.booked_tokens += usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                failed = event.workflow_task_failed_event_attributes
                if failed.cause in _HARMLESS:
                    continue
                record.task_failures.append(
                    f"{WorkflowTaskFailedCause.Name(failed.cause)}: {failed.failure.message[:300]}"
                )
            case _:
                _note_child(record, event)
    record.unanswered = sum(not answered for answered in model_calls.values())
    return record


def _note_child(record: Record, event: HistoryEvent) -> None:
    match event.event_type:
        case EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            initiated = event.start_child_workflow_execution_initiated_event_attributes
            record.children[event.event_id] = Child(initiated.workflow_id)
        case EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            started = event.child_workflow_execution_started_event_attributes
            record.children[started.initiated_event_id].run_id = started.workflow_execution.run_id
        case EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
            completed = event.child_workflow_execution_completed_event_attributes
            child = record.children[completed.initiated_event_id]
            child.ended, child.value = True, json.loads(completed.result.payloads[0].data)
        case EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
            record.children[event.child_workflow_execution_failed_event_attributes.initiated_event_id].ended = True
        case EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
            record.children[event.child_workflow_execution_canceled_event_attributes.initiated_event_id].ended = True
        case EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
            record.children[event.child_workflow_execution_terminated_event_attributes.initiated_event_id].ended = True


async def _open_children(client: Client, record: Record) -> AsyncIterator[str]:
    for child in record.children.values():
        if child.run_id and not child.ended:
            handle = client.get_workflow_handle(child.workflow_id, run_id=child.run_id)
            if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                yield f"{child.workflow_id} runs after the end"
