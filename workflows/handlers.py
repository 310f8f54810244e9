"""The messages that a run takes: queries, updates, and the signals between supervisors."""

import asyncio
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, JsonValue, ValidationError

    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.base.text import cut, one_line
    from temporal_supervisor.supervision.contract.plan import Plan, WrittenPlan
    from temporal_supervisor.supervision.contract.result import RunResult
    from temporal_supervisor.supervision.contract.status import Asked, Status, TracePage
    from temporal_supervisor.supervision.contract.updates import (
        UPDATES_USED_UP,
        Decide,
        Decided,
        DecidePlan,
        DecideToolCall,
        DecisionReply,
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
    from temporal_supervisor.supervision.planning.capabilities import teams_without_room
    from temporal_supervisor.supervision.planning.new_roles import unknown_role_problems
    from temporal_supervisor.supervision.planning.plan_graph import plan_problems
    from temporal_supervisor.supervision.results.payload_fit import fit
    from temporal_supervisor.supervision.run.attempt_rules import supervisor_of
    from temporal_supervisor.supervision.run.decisions import ALL, Decision, Instructions, decision_in
    from temporal_supervisor.supervision.run.events import said
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.run_views import result_of, status_of
    from temporal_supervisor.supervision.run.web_details import markdown
    from workflows.children.child_contracts import NestedInput, NestedReport
    from workflows.outbox import Outbox
    from workflows.run_context import RunContext


_REFUSALS_SHOWN = 5  # of a list of decisions of which none can be taken
_M = TypeVar("_M", bound=BaseModel)
_BY_SIGNAL = "Decides as the update of this name, where a run takes no more updates."


def _told(kind: type[Update]) -> str:
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

    There is an `_outbox` if the input was valid.
    """

    _state: RunState | SupervisionError
    _changed: asyncio.Event
    _nested: NestedInput | None
    _outbox: Outbox
    _context: RunContext | None

    @workflow.query
    def status(self, cursor: int = 0) -> Status:
        """Where the run stands; subtasks 100 a page."""
        return status_of(self._run_state(), cursor)

    @workflow.query
    def plan(self) -> Plan:
        """The plan, or the one that waits for approval; empty while it is being made."""
        state = self._run_state()
        return state.proposed or state.plan

    @workflow.query
    def waiting(self, wait_id: str = "") -> Asked:
        """What waits for a person under an id that `status` shows, with all of what is asked."""
        state = self._run_state()
        self._check_place(wait_id)
        asked = state.waits.asked(wait_id)
        return asked.model_copy(update={"estimate": state.estimate if asked.wait.kind == "plan" else None})

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """What happened in the root since a cursor."""
        return self._run_state().trace.page(cursor)

    @workflow.query
    def result(self) -> RunResult:
        """The result so far."""
        return fit(result_of(self._run_state()))

    def details(self) -> str:
        """Returns the Markdown for the Web UI: what the SDK's own query for metadata shows."""
        return markdown(self._state) if isinstance(self._state, RunState) else self._state.message

    # Updates take any JSON, so that their sender gets to know what is wrong with it. For callers of
    # the typed methods the types are open, too: they pass models, to a class derived from this one.

    @workflow.update(description=_told(ExtendLimits))
    def extend_limits(self: Any, update: Any = None) -> UpdateReply:
        """Takes new totals."""
        return Handlers._answer(self, ExtendLimits, update)

    @extend_limits.validator
    def _allow_extend_limits(self: Any, update: Any = None) -> None:
        self._require(ExtendLimits, update)

    @workflow.update(description=_told(DecidePlan))
    def decide_plan(self: Any, update: Any = None) -> UpdateReply:
        """Takes a decision about a plan."""
        return Handlers._answer(self, DecidePlan, update)

    @decide_plan.validator
    def _allow_decide_plan(self: Any, update: Any = None) -> None:
        self._require(DecidePlan, update)

    @workflow.update(description=_told(Reply))
    def reply(self: Any, update: Any = None) -> UpdateReply:
        """Takes a reply, or a person's finding."""
        return Handlers._answer(self, Reply, update)

    @reply.validator
    def _allow_reply(self: Any, update: Any = None) -> None:
        self._require(Reply, update)

    @workflow.update(description=_told(DecideToolCall))
    def decide_tool_call(self: Any, update: Any = None) -> UpdateReply:
        """Takes a decision about a tool call."""
        return Handlers._answer(self, DecideToolCall, update)

    @decide_tool_call.validator
    def _allow_decide_tool_call(self: Any, update: Any = None) -> None:
        self._require(DecideToolCall, update)

    @workflow.update(description=_told(Decide))
    def decide(self: Any, update: Any = None) -> UpdateReply:
        """Takes many decisions at once."""
        return Handlers._answer(self, Decide, update)

    @decide.validator
    def _allow_decide(self: Any, update: Any = None) -> None:
        self._require(Decide, update)

    @workflow.update(description=_told(Pause))
    def pause(self: Any, update: Any = None) -> UpdateReply:
        """Takes a pause."""
        return Handlers._answer(self, Pause, update)

    @pause.validator
    def _allow_pause(self: Any, update: Any = None) -> None:
        self._require(Pause, update)

    @workflow.update(description=_told(Resume))
    def resume(self: Any, update: Any = None) -> UpdateReply:
        """Ends a pause."""
        return Handlers._answer(self, Resume, update)

    @resume.validator
    def _allow_resume(self: Any, update: Any = None) -> None:
        self._require(Resume, update)

    @workflow.update(description=_told(Steer))
    def steer(self: Any, update: Any = None) -> UpdateReply:
        """Takes an instruction."""
        return Handlers._answer(self, Steer, update)

    @steer.validator
    def _allow_steer(self: Any, update: Any = None) -> None:
        self._require(Steer, update)

    @workflow.update(description=_told(RetrySubtask))
    def retry_subtask(self: Any, update: Any = None) -> UpdateReply:
        """Has a subtask worked on again."""
        return Handlers._answer(self, RetrySubtask, update)

    @retry_subtask.validator
    def _allow_retry_subtask(self: Any, update: Any = None) -> None:
        self._require(RetrySubtask, update)

    @workflow.update(description=_told(SkipSubtask))
    def skip_subtask(self: Any, update: Any = None) -> UpdateReply:
        """Ends a subtask."""
        return Handlers._answer(self, SkipSubtask, update)

    @skip_subtask.validator
    def _allow_skip_subtask(self: Any, update: Any = None) -> None:
        self._require(SkipSubtask, update)

    def _answer(self, kind: type[Update], update: JsonValue) -> UpdateReply:
        """Takes an update that `_require` has let pass, and returns the reply to it."""
        state, new = self._run_state(), read_update(kind, update)
        state.count_update()
        if new.request_id and (said := state.requests.get(new.request_id)):
            return UpdateReply(accepted=True, phase=state.phase, message=said)
        if isinstance(new, Decide):
            results = self._take_all(state, new)
            taken = sum(result.accepted for result in results)
            message = self._done(state, new, f"{taken} of {len(results)} decisions taken")
            return UpdateReply(accepted=True, phase=state.phase, message=message, results=results)
        return UpdateReply(accepted=True, phase=state.phase, message=self._take(state, new))

    def _require(self, kind: type[Update], update: JsonValue) -> None:
        """Raises ValueError if an update cannot be taken; see `_check`."""
        new = read_update(kind, update)
        self._check_room(new)
        self._check(new)

    def _check_room(self, update: Update) -> None:
        """Raises an error of a type of its own if a decision has to come as a signal, as few updates are left."""
        if isinstance(update, Decide | Decided) and self._run_state().updates >= limits.UPDATES_FOR_DECISIONS:
            words = (
                f"this run has taken {limits.UPDATES_FOR_DECISIONS} updates and the server allows few more, which are "
                "kept for resume, extend_limits and the like: send this as the signal `decide`"
            )
            raise ApplicationError(words, type=UPDATES_USED_UP, non_retryable=True)

    def _check(self, update: Update) -> None:
        """Raises ValueError with what is current if an update cannot be taken: nothing of it is written then."""
        state = self._run_state()
        if state.phase in ("done", "failed", "cancelled"):
            raise ValueError(f"this run has ended: it is {state.phase}")
        self._check_level(state, update)
        if update.request_id in state.requests:
            return
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                self._check_decision(state, update)
            case Decide():
                self._check_any(state, update)
            case ExtendLimits():
                state.time_and_budget.check(update.budget, update.deadline)
            case Steer():
                state.steering.check_word(update)
            case RetrySubtask() if state.waits.for_help(update.subtask_id) is None:
                state.steering.check_retry(update, state.phase, has_time=state.time_and_budget.time_left)
            case SkipSubtask():
                state.steering.check_open(update.subtask_id)

    def _check_level(self, state: RunState, update: Update) -> None:
        """Raises ValueError if only the root takes such an update."""
        is_of_any_run = isinstance(update, Decide | Decided | Steer | RetrySubtask | SkipSubtask)
        if self._nested is None or is_of_any_run:
            return
        if not isinstance(update, Resume) or state.steering.paused:
            raise ValueError(f"this is a nested run: send this to its root '{self._root_id}'")

    def _check_decision(self, state: RunState, update: Decided) -> None:
        """Raises ValueError if a decision cannot be taken here and now."""
        decision = decision_in(update, self._path)
        self._check_place(decision.id)
        state.decisions.check(decision, state.waits.current)
        if isinstance(update, DecidePlan) and update.plan is not None:
            self._check_plan(state, update.plan)

    def _check_any(self, state: RunState, update: Decide) -> None:
        """Raises ValueError if no decision of a list can be taken."""
        refusals = [self._refusal(state, each) for each in update.decisions]
        if all(refusals):
            raise ValueError("; ".join(dict.fromkeys(filter(None, refusals[:_REFUSALS_SHOWN]))))

    def _refusal(self, state: RunState, update: Decided) -> str | None:
        """Returns the reason why a decision cannot be taken; None if it can."""
        try:
            self._check_decision(state, update)
        except ValueError as error:
            return str(error)
        return None

    def _check_place(self, wait_id: str) -> None:
        """Raises ValueError, with the right run, if a wait of that id stands in another run than this one."""
        there = supervisor_of(self._root_id, wait_id)
        if there != workflow.info().workflow_id:
            raise ValueError(f"'{wait_id}' waits in the run '{there}': send this to it (-w {there})")

    @property
    def _path(self) -> str:
        """The path of this run from the root, with a slash at its end; empty for the root."""
        if self._nested is None:
            return ""
        return workflow.info().workflow_id.removeprefix(f"{self._root_id}/") + "/"

    @property
    def _root_id(self) -> str:
        """The workflow id of the run that the whole tree works for."""
        return self._nested.run.run_id if self._nested else workflow.info().workflow_id

    def _check_plan(self, state: RunState, plan: WrittenPlan) -> None:
        if self._context is not None:
            problems = unknown_role_problems(plan, self._context.team)
            # Items of the run's data are known to activities only: a plan with a template is checked there.
            if not any(subtask.for_each for subtask in plan.subtasks):
                attachments = [attachment.name for attachment in self._context.setup.attachments]
                problems += plan_problems(plan, state.request.max_subtasks, attachments)
                roles = self._context.assignable_roles
                problems += teams_without_room(plan, roles, state.request.max_subtasks)
            if problems:
                why = f"the plan cannot run: {'; '.join(problems)}"
                raise ValueError(cut(why, limits.ERROR_BYTES))

    def _take(self, state: RunState, update: Update) -> str:
        """Takes over what an update says, and returns what its sender reads.

        It only changes the state: the work looks at that before it begins anything.
        """
        steering = state.steering
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                message = state.decisions.take(decision_in(update, self._path), state.waits.current)
            case ExtendLimits():
                state.extend(update.budget, update.deadline)
                deadline_at = state.time_and_budget.deadline_at
                message = f"{state.time_and_budget.spent_line()}; deadline {deadline_at:%Y-%m-%d %H:%M:%S} UTC"
            case Pause():
                steering.pause(now=update.now or steering.now)
                state.trace.note("paused", **said(update, now=update.now))
                when = "after the turns under way"
                if steering.now:
                    when = "now, and its calls in flight may be paid again"
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
                    tried_again = Decision(id=wait.id, choice="retry", about=("finding",), **words)
                    state.decisions.take(tried_again, [wait])
                else:
                    steering.retry(update)
                state.trace.note("retry_asked", update.subtask_id, **said(update, instruction=update.instruction))
                message = f"{update.subtask_id} is done again"
            case SkipSubtask():
                steering.skip(update)
                state.trace.note("skip_asked", update.subtask_id, **said(update))
                message = f"{update.subtask_id} is skipped"
        return self._done(state, update, message)

    def _take_all(self, state: RunState, update: Decide) -> list[DecisionReply]:
        """Takes all decisions of a list that can be taken. Returns a reply to each one."""
        results = []
        for each in update.decisions:
            decision = decision_in(each, self._path)
            refusal = self._refusal(state, each)
            said = refusal or state.decisions.take(decision, state.waits.current)
            results.append(DecisionReply(id=decision.id, accepted=refusal is None, message=said))
        return results

    def _done(self, state: RunState, update: Update, message: str) -> str:
        """Has the work heed an update that was taken, and returns what its sender reads, then and if it comes again."""
        if update.request_id:
            state.remember_reply(update.request_id, message)
        self._heed(state)
        return message

    def _heed(self, state: RunState) -> None:
        """Has all work here and below look at what people said; the clock stands still in a pause."""
        state.time_and_budget.hold("paused", state.steering.paused)
        self._outbox.children.tell()
        self._changed.set()
        self._outbox.show()

    # Signals between supervisors take anything, undecoded: one may come before the run has begun.

    @workflow.signal(name="nested_report")
    def hear_nested_run(self, report: object = None, *surplus: object) -> None:
        """A nested run's waits and spending. A report of any other workflow is ignored."""
        told = _read(NestedReport, report)
        if told is None or not isinstance(self._state, RunState):
            return
        is_known = self._state.nested.report(
            told.workflow_id, told.waits, told.spent, waits_for_people=told.waits_for_people
        )
        if is_known:
            self._changed.set()  # the dispatch holds the clock if only people can help, or lets it go
            self._outbox.show()

    @workflow.signal(name="instructions")
    def hear_instructions(self, instructions: object = None, *surplus: object) -> None:
        """Words of people to the runs above, and the root's time. A root takes none."""
        told = _read(Instructions, instructions)
        if told is None or self._nested is None or not isinstance(self._state, RunState):
            return
        self._state.follow(told)
        self._heed(self._state)

    @workflow.signal(name="decide", description=_BY_SIGNAL)
    def decide_by_signal(self, decisions: object = None, *surplus: object) -> None:
        """Takes the body of the update `decide`, checked alike, for whoever may send no more updates."""
        if not isinstance(self._state, RunState):
            return
        try:
            update = read_update(Decide, decisions)
            self._check(update)
        except ValueError as error:  # nobody reads a reply to a signal
            self._state.trace.note("decision_refused", why=one_line(str(error), limits.SENTENCE_BYTES))
            return
        results = self._take_all(self._state, update)
        for refused in (result for result in results if not result.accepted):
            why = one_line(refused.message, limits.SENTENCE_BYTES)
            self._state.trace.note("decision_refused", id=refused.id, why=why)
        self._done(self._state, update, "taken")

    def _run_state(self) -> RunState:
        if isinstance(self._state, SupervisionError):
            raise ValueError(f"this run did not begin, its input was not valid: {self._state.message}")
        return self._state
