"""The messages that a run takes: queries, updates, and the signals between supervisors."""

import asyncio
from typing import TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, JsonValue, ValidationError

    from supervision.base import limits
    from supervision.base.errors import SupervisionError
    from supervision.base.text import cut
    from supervision.contract.plan import Plan
    from supervision.contract.result import RunResult
    from supervision.contract.status import Asked, Status, TracePage
    from supervision.contract.updates import (
        DecidePlan,
        DecideToolCall,
        ExtendLimits,
        Reply,
        Resume,
        UpdateReply,
        read_update,
    )
    from supervision.planning.plan_graph import plan_problems
    from supervision.results.payload_fit import fit
    from supervision.run.decisions import Decision
    from supervision.run.run_state import RunState
    from workflows.children.child_contracts import NestedReport, NestedTerms
    from workflows.children.child_links import ChildLinks
    from workflows.children.parent_link import ParentLink
    from workflows.run_context import RunContext

M = TypeVar("M", bound=BaseModel)


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it.

    Updates take any JSON, so that its sender gets to know what is wrong with it. So do signals, which may come before
    the first workflow task: one that raised an error would block the run for ever.
    """

    _state: RunState | SupervisionError
    _changed: asyncio.Event
    _parent: ParentLink | None
    _children: ChildLinks | None
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
        return self._run_state().waits.asked(wait_id)

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
        return self._state.details() if isinstance(self._state, RunState) else self._state.message

    @workflow.update
    def extend_limits(self, update: ExtendLimits | JsonValue = None) -> UpdateReply:
        """New totals for budget and deadline; they apply at once, to a run that waits, too."""
        state, new = self._run_state(), read_update(ExtendLimits, update)
        if state.once(new.request_id):
            state.extend(new.budget, new.deadline)
            if self._children is not None:
                self._children.limits_changed()
            self._changed.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=state.time_and_budget.spent_line())

    @extend_limits.validator
    def _extend_limits_valid(self, update: ExtendLimits | JsonValue = None) -> None:
        state, new = self._open_run_state(), read_update(ExtendLimits, update)
        if self._parent is not None:
            raise ValueError(
                f"this is a nested run, its limits are its root's: extend those of '{self._parent.root_id}'"
            )
        if not state.seen(new.request_id):
            state.time_and_budget.check(new.budget, new.deadline)

    @workflow.update(
        description='Decides about a plan: {"revision": 1, "decision": "approve"}, or "reject"; "change" with a '
        '"comment" for the planner, "edit" with the "plan".'
    )
    def decide_plan(self, update: DecidePlan | JsonValue = None) -> UpdateReply:
        """A person's decision on the plan that waits for it."""
        return self._decide(_on_plan(update))

    @decide_plan.validator
    def _decide_plan_valid(self, update: DecidePlan | JsonValue = None) -> None:
        state, decision = self._decidable_state(), _on_plan(update)
        state.decisions.check(decision, ("plan",), state.waits.current)
        wait = next((wait for wait in state.waits.current if wait.id == decision.id), None)
        if wait is not None and decision.choice not in wait.choices:
            raise ValueError(f"'{wait.id}' cannot be decided so: possible are {', '.join(wait.choices)}")
        if decision.plan is not None and self._context is not None:
            attachments = [attachment.name for attachment in self._context.setup.attachments]
            if problems := plan_problems(decision.plan, state.request.max_subtasks, attachments):
                raise ValueError(cut("the plan cannot run: " + "; ".join(problems), limits.ERROR_BYTES))

    @workflow.update(
        description='Replies to a question, or hands in a person\'s finding: {"id": "t3/1:4.0", "text": "..."}. The '
        "id is that in the status."
    )
    def reply(self, update: Reply | JsonValue = None) -> UpdateReply:
        """A person's reply, on any level of nested runs."""
        return self._decide(_on_question(update))

    @reply.validator
    def _reply_valid(self, update: Reply | JsonValue = None) -> None:
        state = self._decidable_state()
        state.decisions.check(_on_question(update), ("question", "finding"), state.waits.current)

    @workflow.update(
        description='Decides about a tool call: {"id": "t3/1:4.0", "decision": "approve", "arguments_sha256": "..."}, '
        'or "deny" with a "comment" for the model. Id and hash are those in the status.'
    )
    def decide_tool_call(self, update: DecideToolCall | JsonValue = None) -> UpdateReply:
        """A person's decision on a tool call, on any level of nested runs."""
        return self._decide(_on_tool_call(update))

    @decide_tool_call.validator
    def _decide_tool_call_valid(self, update: DecideToolCall | JsonValue = None) -> None:
        state = self._decidable_state()
        state.decisions.check(_on_tool_call(update), ("tool",), state.waits.current)

    def _decide(self, decision: Decision) -> UpdateReply:
        state = self._run_state()
        message = "decided before: the first decision stands"
        if state.decisions.take(decision):
            message = f"{decision.id}: {decision.choice}"
            self._changed.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=message)

    def _decidable_state(self) -> RunState:
        if self._parent is not None:
            raise ValueError(f"this is a nested run: decide at its root '{self._parent.root_id}', with the id there")
        return self._open_run_state()

    @workflow.update
    def resume(self, update: Resume | JsonValue = None) -> UpdateReply:
        """Ends the waits for the provider, here and in nested supervisors."""
        state = self._run_state()
        if state.once(read_update(Resume, update).request_id):
            self._resume(state)
        return UpdateReply(accepted=True, phase=state.phase)

    @resume.validator
    def _resume_valid(self, update: Resume | JsonValue = None) -> None:
        self._open_run_state()
        read_update(Resume, update)

    # Signals take anything, undecoded as yet: an error raised in a signal would block the run, and a signal may come
    # before the run has begun. What does not fit is ignored.

    @workflow.signal
    async def nested_report(self, report: object = None, *surplus: object) -> None:
        """The report of a nested supervisor."""
        valid = _read(NestedReport, report)
        if valid is not None and self._children is not None and self._children.take(valid):
            self._changed.set()  # of its slots some may be free now, or more may be wanted
            self._show()
            await self._children.fund(valid)

    @workflow.signal
    def nested_terms(self, terms: object = None, *surplus: object) -> None:
        """New terms for this nested supervisor, from the one above it."""
        valid, state = _read(NestedTerms, terms), self._state
        if valid is None or self._parent is None or self._children is None or isinstance(state, SupervisionError):
            return
        before = self._parent.terms
        if self._parent.take(valid):
            if valid.changed != before.changed:
                self._children.limits_changed()
            if valid.resumed_at != before.resumed_at:
                self._resume(state)
            self._changed.set()
            self._show()

    @workflow.signal
    def decided(self, decision: object = None, *surplus: object) -> None:
        """What a person decided at the root about work of this nested supervisor."""
        valid, state = _read(Decision, decision), self._state
        if valid is not None and self._parent is not None and isinstance(state, RunState):
            state.decisions.take(valid)

    def _resume(self, state: RunState) -> None:
        """Ends the waits for a person at the provider, here and on all levels below."""
        state.resumes += 1
        state.models.retry_all()
        if self._children is not None:
            self._children.resumed()

    def _show(self) -> None:
        """Makes a change of the state visible."""
        raise NotImplementedError

    def _run_state(self) -> RunState:
        if isinstance(self._state, SupervisionError):
            raise ValueError(f"this run did not begin, its input was not valid: {self._state.message}")
        return self._state

    def _open_run_state(self) -> RunState:
        state = self._run_state()
        if state.phase in ("done", "failed", "cancelled"):
            raise ValueError(f"this run has ended: it is {state.phase}")
        return state


def _on_plan(update: object) -> Decision:
    new = read_update(DecidePlan, update)
    return Decision(
        id=f"plan.{new.revision}", choice=new.decision, text=new.comment or "", plan=new.plan, by=new.by or ""
    )


def _on_question(update: object) -> Decision:
    new = read_update(Reply, update)
    return Decision(id=new.id, choice="reply", text=new.text, by=new.by or "")


def _on_tool_call(update: object) -> Decision:
    new = read_update(DecideToolCall, update)
    by, text = new.by or "", new.comment or ""
    return Decision(id=new.id, choice=new.decision, text=text, by=by, arguments_sha256=new.arguments_sha256)


def _read(model: type[M], value: object) -> M | None:
    """Returns a signal's argument; None if it is something else."""
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
