"""Each attempt of an activity as a log line, a span in the trace of its run, and metrics.

A replay adds nothing, because no workflow code writes them. Texts of people, models and tools are
in spans only if the setting for message content asks for them, and never in the log.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opentelemetry import context, metrics, trace
from opentelemetry.context import Context
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.contracts.run_contracts import RunFacts, RunRef, SupervisorCall
from activities.contracts.turn_contracts import ToolInput, TurnInput
from temporal_supervisor.supervision.base import spans
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.usage import Usage

log = logging.getLogger("supervisor.steps")

Facts = dict[str, Any]
ParentOf = Callable[[str, str, str], Context | None]
_PROVIDER = "anthropic"
_TOKEN_BUCKETS = [4.0**power for power in range(14)]  # these two are the conventions' own
_SECOND_BUCKETS = [0.01 * 2**power for power in range(14)]
_RUN_BUCKETS = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600]
_SHOWN = {
    spans.PLACE: "subtask",
    spans.CALL: "call",
    spans.REQUEST_MODEL: "model",
    spans.TOOL: "tool",
    spans.ATTEMPT: "attempt",
    spans.INPUT_TOKENS: "input_tokens",
    spans.OUTPUT_TOKENS: "output_tokens",
    spans.JOURNAL: "from_journal",
    spans.ERROR: "error",
}

_meter = metrics.get_meter(spans.SCOPE)
_tokens = _meter.create_histogram(
    spans.TOKEN_USAGE,
    "{token}",
    "tokens of model calls",
    explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
)
_seconds = _meter.create_histogram(
    spans.OPERATION_DURATION,
    "s",
    "time of model and tool calls",
    explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
)
_run_seconds = _meter.create_histogram(
    spans.RUN_DURATION,
    "s",
    "time from start to end of runs",
    explicit_bucket_boundaries_advisory=_RUN_BUCKETS,
)
_usd = _meter.create_counter(
    spans.USD, "{USD}", "dollars of model calls, as far as prices are known"
)
_retries = _meter.create_counter(
    spans.RETRIES, "{attempt}", "attempts of activities after the first, by operation"
)


@dataclass
class _Step:
    """An attempt under way: its known facts, and the figures of the model call.

    `content` is True if spans may contain texts.
    """

    run: RunRef
    operation: str
    parent_of: ParentOf
    content: bool
    facts: Facts

    def log(self, end: str, **more: object) -> None:
        """Writes a line to the log: `model call done`."""
        words = {spans.CHAT: "model call", spans.EXECUTE_TOOL: "tool call"}.get(
            self.operation, self.operation
        )
        shown = {word: self.facts[name] for name, word in _SHOWN.items() if name in self.facts}
        if shown.get("attempt") == 1:
            del shown["attempt"]
        log.info(f"{words} {end}", extra={"fields": {"run": self.run.run_id, **shown, **more}})


_step: ContextVar[_Step] = ContextVar("step")


@contextmanager
def activity_step(argument: object, parent_of: ParentOf, *, content: bool) -> Iterator[None]:
    """Records an attempt: a log line, a span and metrics. An attempt of no run is not recorded.

    The span contains only the type of an error, because a message may quote foreign text.
    `parent_of(run_id, first_run_id, place)` returns the context of the parent span, None without
    traces; `content` puts texts into spans.
    """
    info, run = activity.info(), getattr(argument, "run", None)
    if not isinstance(run, RunRef) or not run.run_id:
        yield
        return
    name, operation, facts = _step_of(info.activity_type, argument)
    workflow_id = info.workflow_id or ""
    facts |= {
        spans.OPERATION: operation,
        spans.CONVERSATION: run.run_id,
        spans.ATTEMPT: info.attempt,
    }
    if place := workflow_id.removeprefix(run.run_id).strip("/"):
        facts[spans.PLACE] = place
    step, began = _Step(run, operation, parent_of, content, facts), time.monotonic()
    token = _step.set(step)
    if operation == spans.CHAT:
        step.log("begins")
    if info.attempt > 1:
        _retries.add(1, {spans.OPERATION: operation})
    parent = parent_of(run.run_id, run.first_run_id, spans.place_of(workflow_id, run.run_id))
    kind = trace.SpanKind.CLIENT if operation == spans.CHAT else trace.SpanKind.INTERNAL
    span = (
        trace.INVALID_SPAN
        if parent is None
        else trace.get_tracer(spans.SCOPE).start_span(name, parent, kind)
    )
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield
    except BaseException as error:
        facts[spans.ERROR] = (isinstance(error, ApplicationError) and error.type) or type(
            error
        ).__name__
        raise
    finally:
        _step.reset(token)
        if span.is_recording():
            span.set_attributes(facts)
            if spans.ERROR in facts:
                span.set_status(trace.StatusCode.ERROR)
            span.end()
        seconds = time.monotonic() - began
        if operation in (spans.CHAT, spans.EXECUTE_TOOL) and spans.JOURNAL not in facts:
            named = (spans.OPERATION, spans.PROVIDER, spans.REQUEST_MODEL, spans.TOOL, spans.ERROR)
            _seconds.record(seconds, {name: facts[name] for name in named if name in facts})
        step.log("failed" if spans.ERROR in facts else "done", seconds=round(seconds, 3))


def _step_of(activity_type: str, argument: object) -> tuple[str, str, Facts]:
    """Returns the name, the operation and the facts of the step that an input asks for."""
    name, operation, facts = activity_type, activity_type, Facts()
    if isinstance(argument, SupervisorCall | TurnInput):
        name, operation = f"{spans.CHAT} {argument.model}", spans.CHAT
        facts = {
            spans.PROVIDER: _PROVIDER,
            spans.REQUEST_MODEL: argument.model,
            spans.CALL: argument.terms.step,
        }
    elif isinstance(argument, ToolInput):
        name, operation = f"{spans.EXECUTE_TOOL} {argument.call.name}", spans.EXECUTE_TOOL
        facts = {spans.TOOL: argument.call.name, spans.TOOL_CALL: argument.call.call_id}
    if isinstance(argument, TurnInput | ToolInput):
        facts[spans.AGENT] = argument.role
    return name, operation, facts


# --- What activities add --------------------------------------------------------------------------


def add_facts(facts: Facts) -> None:
    """Adds facts about this attempt, named as in `temporal_supervisor.supervision.base.spans`."""
    if step := _step.get(None):
        step.facts |= facts


def count_usage(model: str, usage: Usage) -> None:
    """Counts the usage of a model's answer, or of the part of it that arrived."""
    step = _step.get(None)
    if step is None or not usage.tokens:
        return
    facts = step.facts
    counted = {
        spans.INPUT_TOKENS: usage.prompt_tokens,
        spans.OUTPUT_TOKENS: usage.output_tokens,
        spans.CACHE_READ_TOKENS: usage.cache_read_tokens,
        spans.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
    }
    facts |= {name: facts.get(name, 0) + tokens for name, tokens in counted.items() if tokens}
    named = {spans.OPERATION: spans.CHAT, spans.PROVIDER: _PROVIDER, spans.REQUEST_MODEL: model}
    _tokens.record(usage.prompt_tokens, {**named, spans.TOKEN_TYPE: "input"})
    _tokens.record(usage.output_tokens, {**named, spans.TOKEN_TYPE: "output"})
    if usage.usd is not None:
        facts[spans.USD] = facts.get(spans.USD, 0.0) + usage.usd
        _usd.add(usage.usd, {spans.REQUEST_MODEL: model})


def show_text(name: str, text: object) -> None:
    """Adds a text to the span of this attempt, if spans may contain texts."""
    span, step = trace.get_current_span(), _step.get(None)
    if step and step.content and span.is_recording():
        span.set_attribute(
            name, text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        )


def record_run_end(
    run: RunRef, of_run: RunFacts | None, result: RunResult, workflow_id: str, ended_at: datetime
) -> None:
    """Writes the spans of a supervisor's subtasks; for a root also the span of the run."""
    place, end = spans.place_of(workflow_id, run.run_id), ended_at.isoformat()
    for report in result.subtasks:
        if report.workflow_id and report.started_at:
            facts: Facts = {
                spans.AGENT: report.role,
                spans.ATTEMPTS: report.attempts,
                spans.STATUS: report.state,
            }
            facts |= {spans.ERROR: report.error.type} if report.error else {}
            times = (report.started_at, report.finished_at or end)
            at = spans.place_of(report.workflow_id, run.run_id)
            _write_span(run, spans.INVOKE_AGENT, report.role, at, place, facts, times)
    if of_run is None or workflow_id != run.run_id:
        return
    team, status = of_run.team, result.status if of_run.phase == "done" else of_run.phase
    facts, began = {spans.WORKFLOW: team, spans.STATUS: status}, of_run.began_at or end
    seconds = round((ended_at - datetime.fromisoformat(began)).total_seconds(), 3)
    _run_seconds.record(seconds, facts)
    fields: Facts = {"run": run.run_id, "status": status, "seconds": seconds}
    if of_run.error:
        facts[spans.ERROR] = fields["error"] = of_run.error.type
    _write_span(run, spans.INVOKE_WORKFLOW, team, place, None, facts, (began, end))
    log.info("run ended", extra={"fields": fields})


def _write_span(
    run: RunRef,
    operation: str,
    name: str,
    place: str,
    above: str | None,
    facts: Facts,
    times: tuple[str, str],
) -> None:
    """Writes a span whose id its children already know."""
    step = _step.get(None)
    parent = step.parent_of(run.run_id, run.first_run_id, above or place) if step else None
    if parent is None:
        return
    began, ended = (int(datetime.fromisoformat(at).timestamp() * 1e9) for at in times)
    ids = context.set_value(spans.TRACE_ID_KEY, spans.trace_id(run.run_id, run.first_run_id))
    token = context.attach(
        context.set_value(spans.SPAN_ID_KEY, spans.span_id(run.first_run_id, place), ids)
    )
    try:
        span = trace.get_tracer(spans.SCOPE).start_span(
            f"{operation} {name}", parent if above else Context(), start_time=began
        )
    finally:
        context.detach(token)
    span.set_attributes({spans.OPERATION: operation, spans.CONVERSATION: run.run_id, **facts})
    if spans.ERROR in facts:
        span.set_status(trace.StatusCode.ERROR)
    span.end(max(began, ended))
