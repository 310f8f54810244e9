"""The message handlers of a run: queries, updates, and the signals between supervisors."""

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
    from temporal_supervisor.supervision.run.status_and_result import result_of, status_of
    from temporal_supervisor.supervision.run.web_details import markdown

    from workflows.children.child_contracts import NestedInput, NestedReport
    from workflows.messages.update_intake import UpdateIntake
    from workflows.outbox import Outbox


_M = TypeVar("_M", bound=BaseModel)
_BY_SIGNAL = "Decides as the update of this name, where a run takes no more updates."


def _description(kind: type[Update]) -> str:
    """Returns the description of an update for the form in the Web UI."""
    return one_line(kind.__doc__ or "", limits.SENTENCE_BYTES)


def _parsed(kind: type[_M], message: object) -> _M | None:
    """Returns the message of a signal; None if it is invalid, as an error would block the run."""
    try:
        return kind.model_validate(message)
    except ValidationError:
        return None


class Handlers:
    """Message handlers that work on the state of a SupervisorWorkflow.

    Either the run's input is `_invalid`, or `_state`, `_outbox` and `_updates` are set.
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
        """Returns the Markdown for the Web UI, in reply to the SDK's own query for metadata."""
        return self._invalid.message if self._invalid is not None else markdown(self._state)

    # Updates take any JSON, so that their sender gets to know what is wrong with it. Callers of the
    # typed methods pass models.

    @workflow.update(description=_description(ExtendLimits))
    def extend_limits(self, update: Any = None) -> UpdateReply:
        """Takes new totals."""
        return self._accept(ExtendLimits, update)

    @extend_limits.validator
    def _allow_extend_limits(self, update: Any = None) -> None:
        self._check(ExtendLimits, update)

    @workflow.update(description=_description(DecidePlan))
    def decide_plan(self, update: Any = None) -> UpdateReply:
        """Takes a decision about a plan."""
        return self._accept(DecidePlan, update)

    @decide_plan.validator
    def _allow_decide_plan(self, update: Any = None) -> None:
        self._check(DecidePlan, update)

    @workflow.update(description=_description(Reply))
    def reply(self, update: Any = None) -> UpdateReply:
        """Takes a reply, or a person's finding."""
        return self._accept(Reply, update)

    @reply.validator
    def _allow_reply(self, update: Any = None) -> None:
        self._check(Reply, update)

    @workflow.update(description=_description(DecideToolCall))
    def decide_tool_call(self, update: Any = None) -> UpdateReply:
        """Takes a decision about a tool call."""
        return self._accept(DecideToolCall, update)

    @decide_tool_call.validator
    def _allow_decide_tool_call(self, update: Any = None) -> None:
        self._check(DecideToolCall, update)

    @workflow.update(description=_description(Decide))
    def decide(self, update: Any = None) -> UpdateReply:
        """Takes many decisions at once."""
        return self._accept(Decide, update)

    @decide.validator
    def _allow_decide(self, update: Any = None) -> None:
        self._check(Decide, update)

    @workflow.update(description=_description(Pause))
    def pause(self, update: Any = None) -> UpdateReply:
        """Takes a pause."""
        return self._accept(Pause, update)

    @pause.validator
    def _allow_pause(self, update: Any = None) -> None:
        self._check(Pause, update)

    @workflow.update(description=_description(Resume))
    def resume(self, update: Any = None) -> UpdateReply:
        """Ends a pause."""
        return self._accept(Resume, update)

    @resume.validator
    def _allow_resume(self, update: Any = None) -> None:
        self._check(Resume, update)

    @workflow.update(description=_description(Steer))
    def steer(self, update: Any = None) -> UpdateReply:
        """Takes an instruction."""
        return self._accept(Steer, update)

    @steer.validator
    def _allow_steer(self, update: Any = None) -> None:
        self._check(Steer, update)

    @workflow.update(description=_description(RetrySubtask))
    def retry_subtask(self, update: Any = None) -> UpdateReply:
        """Has a subtask worked on again."""
        return self._accept(RetrySubtask, update)

    @retry_subtask.validator
    def _allow_retry_subtask(self, update: Any = None) -> None:
        self._check(RetrySubtask, update)

    @workflow.update(description=_description(SkipSubtask))
    def skip_subtask(self, update: Any = None) -> UpdateReply:
        """Ends a subtask."""
        return self._accept(SkipSubtask, update)

    @skip_subtask.validator
    def _allow_skip_subtask(self, update: Any = None) -> None:
        self._check(SkipSubtask, update)

    def _accept(self, kind: type[Update], update: JsonValue) -> UpdateReply:
        """Accepts an update that passed `_check`. Returns the reply to it."""
        return self._updates.accept(read_update(kind, update))

    def _check(self, kind: type[Update], update: JsonValue) -> None:
        """Raises an error, before anything is written, if an update cannot be accepted."""
        new = read_update(kind, update)
        self._run_state()
        self._updates.require(new)

    # Signals between supervisors take anything, undecoded: one may come before the run has begun.

    @workflow.signal(name="nested_report")
    def hear_nested_run(self, report: object = None, *surplus: object) -> None:
        """The waits and the spending of a nested run. Reports of other workflows are ignored."""
        news = _parsed(NestedReport, report)
        if news is None or self._invalid is not None:
            return
        is_known = self._state.nested.report(
            news.workflow_id, news.waits, news.spent, waits_for_people=news.waits_for_people
        )
        if is_known:
            # The dispatch holds the clock if only people can help, or lets it go.
            self._changed.set()
            self._outbox.issue_soon()

    @workflow.signal(name="instructions")
    def hear_instructions(self, instructions: object = None, *surplus: object) -> None:
        """People's words to the runs above, and the root's time. A root takes none."""
        latest = _parsed(Instructions, instructions)
        if latest is None or self._nested is None or self._invalid is not None:
            return
        self._state.follow(latest)
        self._updates.notify_work()

    @workflow.signal(name="decide", description=_BY_SIGNAL)
    def decide_by_signal(self, decisions: object = None, *surplus: object) -> None:
        """Takes the body of the update `decide`, for a run that takes no more updates."""
        if self._invalid is None:
            self._updates.accept_signal(decisions)

    def _run_state(self) -> RunState:
        if self._invalid is not None:
            why = f"its input was not valid: {self._invalid.message}"
            raise ValueError(f"this run did not begin, {why}")
        return self._state
