"""The messages that a run takes: queries, updates, and the signals between supervisors."""

import asyncio
from typing import Any, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, JsonValue, ValidationError
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.base.text import one_line
    from temporal_supervisor.supervision.contract.plan import Plan
    from temporal_supervisor.supervision.contract.result import RunResult
    from temporal_supervisor.supervision.contract.status import Asked, Status, TracePage
    from temporal_supervisor.supervision.contract.updates import (
        Decide,
        DecidePlan,
        DecideToolCall,
        ExtendLimits,
        Pause,
        Reply,
        Resume,
        RetrySubtask,
        SkipSubtask,
        Steer,
        Update,
        UpdateReply,
        read_update,
    )
    from temporal_supervisor.supervision.results.payload_fit import fit
    from temporal_supervisor.supervision.run.decisions import Instructions
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.run_views import result_of, status_of
    from temporal_supervisor.supervision.run.web_details import markdown

    from workflows.children.child_contracts import NestedInput, NestedReport
    from workflows.messages.update_intake import UpdateIntake
    from workflows.outbox import Outbox


_M = TypeVar("_M", bound=BaseModel)
_BY_SIGNAL = "Decides as the update of this name, where a run takes no more updates."


def _described(kind: type[Update]) -> str:
    """Returns the description of an update, which the Web UI's form shows."""
    return one_line(kind.__doc__ or "", limits.SENTENCE_BYTES)


def _read(kind: type[_M], message: object) -> _M | None:
    """Returns the message in a signal; None if it does not fit: an error would block the run."""
    try:
        return kind.model_validate(message)
    except ValidationError:
        return None


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it.

    The input is `_invalid`, or there is a `_state`, an `_outbox` and what takes `_updates`.
    """

    _invalid: SupervisionError | None
    _state: RunState
    _outbox: Outbox
    _updates: UpdateIntake
    _changed: asyncio.Event
    _nested: NestedInput | None

    @workflow.query
    def status(self, cursor: int = 0, since: str = "") -> Status:
        """The state of the run; subtasks 100 a page, those that changed `since` a version."""
        return status_of(self._run_state(), cursor, since, workflow.info().run_id)

    @workflow.query
    def plan(self) -> Plan:
        """The plan, or the one that waits for approval; empty while it is being made."""
        state = self._run_state()
        return state.proposals.plan or state.plan

    @workflow.query
    def waiting(self, wait_id: str = "") -> Asked:
        """A wait for a person, by an id that `status` shows, with the whole question."""
        state = self._run_state()
        self._updates.check_place(wait_id)
        asked = state.waits.with_content(wait_id)
        estimate = state.proposals.estimate if asked.wait.kind == "plan" else None
        return asked.model_copy(update={"estimate": estimate})

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """The events of the root since a cursor."""
        return self._run_state().trace.page(cursor)

    @workflow.query
    def result(self) -> RunResult:
        """The result so far."""
        return fit(result_of(self._run_state()))

    def details(self) -> str:
        """Returns the Markdown for the Web UI: what the SDK's own query for metadata shows."""
        return self._invalid.message if self._invalid is not None else markdown(self._state)

    # Updates take any JSON, so that their sender gets to know what is wrong with it. For callers of
    # the typed methods the types are open, too: they pass models, to a class derived from this one.

    @workflow.update(description=_described(ExtendLimits))
    def extend_limits(self: Any, update: Any = None) -> UpdateReply:
        """Takes new totals."""
        return Handlers._take(self, ExtendLimits, update)

    @extend_limits.validator
    def _allow_extend_limits(self: Any, update: Any = None) -> None:
        self._require(ExtendLimits, update)

    @workflow.update(description=_described(DecidePlan))
    def decide_plan(self: Any, update: Any = None) -> UpdateReply:
        """Takes a decision about a plan."""
        return Handlers._take(self, DecidePlan, update)

    @decide_plan.validator
    def _allow_decide_plan(self: Any, update: Any = None) -> None:
        self._require(DecidePlan, update)

    @workflow.update(description=_described(Reply))
    def reply(self: Any, update: Any = None) -> UpdateReply:
        """Takes a reply, or a person's finding."""
        return Handlers._take(self, Reply, update)

    @reply.validator
    def _allow_reply(self: Any, update: Any = None) -> None:
        self._require(Reply, update)

    @workflow.update(description=_described(DecideToolCall))
    def decide_tool_call(self: Any, update: Any = None) -> UpdateReply:
        """Takes a decision about a tool call."""
        return Handlers._take(self, DecideToolCall, update)

    @decide_tool_call.validator
    def _allow_decide_tool_call(self: Any, update: Any = None) -> None:
        self._require(DecideToolCall, update)

    @workflow.update(description=_described(Decide))
    def decide(self: Any, update: Any = None) -> UpdateReply:
        """Takes many decisions at once."""
        return Handlers._take(self, Decide, update)

    @decide.validator
    def _allow_decide(self: Any, update: Any = None) -> None:
        self._require(Decide, update)

    @workflow.update(description=_described(Pause))
    def pause(self: Any, update: Any = None) -> UpdateReply:
        """Takes a pause."""
        return Handlers._take(self, Pause, update)

    @pause.validator
    def _allow_pause(self: Any, update: Any = None) -> None:
        self._require(Pause, update)

    @workflow.update(description=_described(Resume))
    def resume(self: Any, update: Any = None) -> UpdateReply:
        """Ends a pause."""
        return Handlers._take(self, Resume, update)

    @resume.validator
    def _allow_resume(self: Any, update: Any = None) -> None:
        self._require(Resume, update)

    @workflow.update(description=_described(Steer))
    def steer(self: Any, update: Any = None) -> UpdateReply:
        """Takes an instruction."""
        return Handlers._take(self, Steer, update)

    @steer.validator
    def _allow_steer(self: Any, update: Any = None) -> None:
        self._require(Steer, update)

    @workflow.update(description=_described(RetrySubtask))
    def retry_subtask(self: Any, update: Any = None) -> UpdateReply:
        """Has a subtask worked on again."""
        return Handlers._take(self, RetrySubtask, update)

    @retry_subtask.validator
    def _allow_retry_subtask(self: Any, update: Any = None) -> None:
        self._require(RetrySubtask, update)

    @workflow.update(description=_described(SkipSubtask))
    def skip_subtask(self: Any, update: Any = None) -> UpdateReply:
        """Ends a subtask."""
        return Handlers._take(self, SkipSubtask, update)

    @skip_subtask.validator
    def _allow_skip_subtask(self: Any, update: Any = None) -> None:
        self._require(SkipSubtask, update)

    def _take(self, kind: type[Update], update: JsonValue) -> UpdateReply:
        """Takes an update that `_require` has let pass, and returns the reply to it."""
        return self._updates.take(read_update(kind, update))

    def _require(self, kind: type[Update], update: JsonValue) -> None:
        """Raises an error if an update cannot be taken: nothing of it is written then."""
        new = read_update(kind, update)
        self._run_state()
        self._updates.require(new)

    # Signals between supervisors take anything, undecoded: one may come before the run has begun.

    @workflow.signal(name="nested_report")
    def hear_nested_run(self, report: object = None, *surplus: object) -> None:
        """A nested run's waits and spending. A report of any other workflow is ignored."""
        news = _read(NestedReport, report)
        if news is None or self._invalid is not None:
            return
        is_known = self._state.nested.report(
            news.workflow_id, news.waits, news.spent, waits_for_people=news.waits_for_people
        )
        if is_known:
            # The dispatch holds the clock if only people can help, or lets it go.
            self._changed.set()
            self._outbox.show()

    @workflow.signal(name="instructions")
    def hear_instructions(self, instructions: object = None, *surplus: object) -> None:
        """Words of people to the runs above, and the root's time. A root takes none."""
        latest = _read(Instructions, instructions)
        if latest is None or self._nested is None or self._invalid is not None:
            return
        self._state.follow(latest)
        self._updates.heed()

    @workflow.signal(name="decide", description=_BY_SIGNAL)
    def decide_by_signal(self, decisions: object = None, *surplus: object) -> None:
        """Takes the body of the update `decide`, where a run takes no more updates."""
        if self._invalid is None:
            self._updates.take_signal(decisions)

    def _run_state(self) -> RunState:
        if self._invalid is not None:
            why = f"its input was not valid: {self._invalid.message}"
            raise ValueError(f"this run did not begin, {why}")
        return self._state
