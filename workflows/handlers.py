"""The messages that a run takes: queries, updates, and the signals between supervisors."""

import asyncio
from typing import Any, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, JsonValue, ValidationError

    from supervision.base import limits
    from supervision.base.errors import SupervisionError
    from supervision.base.text import cut, one_line
    from supervision.contract.plan import Plan, WrittenPlan
    from supervision.contract.result import RunResult
    from supervision.contract.status import Asked, Status, TracePage
    from supervision.contract.updates import (
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
    from supervision.planning.new_roles import unknown_role_problems
    from supervision.planning.plan_graph import plan_problems
    from supervision.results.payload_fit import fit
    from supervision.run.decisions import ALL, Decision, Instructions, decision_in
    from supervision.run.events import said
    from supervision.run.run_state import RunState
    from supervision.run.web_details import markdown
    from workflows.children.child_contracts import NestedReport, NestedTerms
    from workflows.children.links import ChildLinks, ParentLink
    from workflows.run_context import RunContext

M = TypeVar("M", bound=BaseModel)


def _update(kind: type[Update]) -> Any:
    """Returns the handler of the update that is named as its type. Its validator is `_check`."""

    # Any JSON is taken, so that its sender gets to know what is wrong with it.
    def handle(self: Any, update: JsonValue = None) -> UpdateReply:
        state, new = self._run_state(), read_update(kind, update)
        message = "taken before" if new.request_id in state.requests else self._take(state, new)
        return UpdateReply(accepted=True, phase=state.phase, message=message)

    def validate(self: Any, update: JsonValue = None) -> None:
        self._check(read_update(kind, update))

    description = one_line(kind.__doc__ or "", limits.SENTENCE_BYTES)
    handler: Any = workflow.update(name=kind.name(), description=description)(handle)
    handler.validator(validate)
    return handler


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it; `_children` is there if the input was valid.

    Updates and signals take any JSON. Signals may come before the first workflow task: one that raised an error would
    block the run for ever.
    """

    _state: RunState | SupervisionError
    _changed: asyncio.Event
    _parent: ParentLink | None
    _children: ChildLinks
    _context: RunContext | None

    @workflow.query
    def status(self, cursor: int = 0) -> Status:
        """Where the run stands; subtasks 100 a page."""
        return self._run_state().status(cursor)

    @workflow.query
    def plan(self) -> Plan:
        """The plan, or the one that waits for approval; empty while it is being made."""
        state = self._run_state()
        return state.proposed or state.plan

    @workflow.query
    def waiting(self, wait_id: str = "") -> Asked:
        """What waits for a person under an id that `status` shows, with all of what is asked."""
        state = self._run_state()
        asked = state.waits.asked(wait_id)
        asked.estimate = state.estimate if asked.wait.kind == "plan" else None
        return asked

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """What happened in the root since a cursor."""
        return self._run_state().trace.page(cursor)

    @workflow.query
    def result(self) -> RunResult:
        """The result so far."""
        return fit(self._run_state().result())

    def details(self) -> str:
        """Returns the Markdown for the Web UI: what the SDK's own query for metadata shows."""
        return markdown(self._state) if isinstance(self._state, RunState) else self._state.message

    extend_limits = _update(ExtendLimits)
    decide_plan = _update(DecidePlan)
    reply = _update(Reply)
    decide_tool_call = _update(DecideToolCall)
    pause = _update(Pause)
    resume = _update(Resume)
    steer = _update(Steer)
    retry_subtask = _update(RetrySubtask)
    skip_subtask = _update(SkipSubtask)

    def _check(self, update: Update) -> None:
        """Raises ValueError with what is current if an update cannot be taken: nothing of it is written then."""
        state = self._run_state()
        if state.phase in ("done", "failed", "cancelled"):
            raise ValueError(f"this run has ended: it is {state.phase}")
        is_own = isinstance(update, Steer | RetrySubtask | SkipSubtask) or (
            isinstance(update, Resume) and not state.steering.paused
        )
        if self._parent is not None and not is_own:
            raise ValueError(f"this is a nested run: send this to its root '{self._parent.root_id}'")
        if update.request_id in state.requests:
            return
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                state.decisions.check(decision_in(update), update.waits, state.waits.current)
                if isinstance(update, DecidePlan) and update.plan is not None:
                    self._check_plan(state, update.plan)
            case ExtendLimits():
                state.time_and_budget.check(update.budget, update.deadline)
            case Steer():
                state.steering.check_word(update)
            case RetrySubtask() if state.waits.for_help(update.subtask_id) is None:
                state.steering.check_retry(update, state.phase, has_time=state.time_and_budget.time_left)
            case SkipSubtask():
                state.steering.check_open(update.subtask_id)

    def _check_plan(self, state: RunState, plan: WrittenPlan) -> None:
        if self._context is not None:
            problems = unknown_role_problems(plan, self._context.team)
            # Items of the run's data are known to activities only: a plan with a template is checked there.
            if not any(subtask.for_each for subtask in plan.subtasks):
                attachments = [attachment.name for attachment in self._context.setup.attachments]
                problems += plan_problems(plan, state.request.max_subtasks, attachments)
            if problems:
                raise ValueError(cut("the plan cannot run: " + "; ".join(problems), limits.ERROR_BYTES))

    def _take(self, state: RunState, update: Update) -> str:
        """Takes over what an update says, and returns what its sender reads.

        It only changes the state: the work looks at that before it begins anything.
        """
        steering = state.steering
        state.requests.update(filter(None, [update.request_id]))
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                message = state.decisions.take(decision_in(update))
            case ExtendLimits():
                state.extend(update.budget, update.deadline)
                self._children.limits_changed()
                deadline_at = state.time_and_budget.deadline_at
                message = f"{state.time_and_budget.spent_line()}; deadline {deadline_at:%Y-%m-%d %H:%M:%S} UTC"
            case Pause():
                steering.pause(now=update.now or steering.now)
                state.trace.note("paused", **said(update, now=update.now))
                when = "now, and its calls in flight may be paid again" if steering.now else "after the turns under way"
                message = f"paused: work stops {when}"
            case Resume():
                steering.resume()
                state.trace.note("resumed", **said(update))
                state.models.retry_all()
                message = "continues"
            case Steer():
                steering.say(update.text, update.to)
                state.trace.note("steered", None if update.to == ALL else update.to, **said(update, word=update.text))
                message = f"said to {update.to}"
            case RetrySubtask():
                if (wait := state.waits.for_help(update.subtask_id)) is not None:
                    words = {"text": update.instruction or "", "by": update.by or ""}
                    state.decisions.take(Decision(id=wait.id, choice="retry", **words))
                else:
                    steering.retry(update)
                state.trace.note("retry_asked", update.subtask_id, **said(update, instruction=update.instruction))
                message = f"{update.subtask_id} is done again"
            case SkipSubtask():
                steering.skip(update)
                state.trace.note("skip_asked", update.subtask_id, **said(update))
                message = f"{update.subtask_id} is skipped"
        self._heed(state)
        return message

    def _heed(self, state: RunState) -> None:
        """Has all work here and below look at what people said; the clock stands still in a pause."""
        if state.time_and_budget.hold("paused", state.steering.paused):
            self._children.limits_changed()
        self._children.send_instructions()
        self._changed.set()
        self._show()

    # Signals take anything, undecoded as yet: an error raised in a signal would block the run, and a signal may come
    # before the run has begun. What does not fit is ignored.

    @workflow.signal
    async def nested_report(self, report: object = None, *surplus: object) -> None:
        """The report of a nested supervisor."""
        valid = _read(NestedReport, report)
        if valid is not None and isinstance(self._state, RunState) and self._children.take(valid):
            self._changed.set()  # of its slots some may be free now, or more may be wanted
            self._show()
            await self._children.fund(valid)

    @workflow.signal
    def nested_terms(self, terms: object = None, *surplus: object) -> None:
        """New terms for this nested supervisor, from the one above it."""
        valid, parent = _read(NestedTerms, terms), self._parent
        if valid is None or parent is None:
            return
        deadline_at = parent.terms.deadline_at
        if parent.take(valid):
            if valid.deadline_at != deadline_at:
                self._children.limits_changed()
            self._changed.set()
            self._show()

    @workflow.signal
    def instructions(self, instructions: object = None, *surplus: object) -> None:
        """Instructions of people to the run above."""
        valid, state = _read(Instructions, instructions), self._state
        if valid is not None and self._parent is not None and isinstance(state, RunState):
            if state.steering.take(valid):
                state.models.retry_all()
            self._heed(state)

    @workflow.signal
    def decided(self, decision: object = None, *surplus: object) -> None:
        """What a person decided at the root about work of this nested supervisor."""
        valid, state = _read(Decision, decision), self._state
        if valid is not None and self._parent is not None and isinstance(state, RunState):
            state.decisions.take(valid)

    def _show(self) -> None:
        """Makes a change of the state visible."""
        raise NotImplementedError

    def _run_state(self) -> RunState:
        if isinstance(self._state, SupervisionError):
            raise ValueError(f"this run did not begin, its input was not valid: {self._state.message}")
        return self._state


def _read(model: type[M], value: object) -> M | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
