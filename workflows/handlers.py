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
    from supervision.contract.status import Asked, Status, TracePage, WaitKind
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
    from supervision.run.decisions import ALL, Decision, Instructions
    from supervision.run.events import said
    from supervision.run.run_state import RunState
    from supervision.run.web_details import markdown
    from workflows.children.child_contracts import NestedReport, NestedTerms
    from workflows.children.child_links import ChildLinks
    from workflows.children.parent_link import ParentLink
    from workflows.run_context import RunContext

M = TypeVar("M", bound=BaseModel)


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it; `_children` is there if the input was valid.

    Updates take any JSON, so that its sender gets to know what is wrong with it. So do signals, which may come before
    the first workflow task: one that raised an error would block the run for ever.
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

    @workflow.update(
        description='Gives the run new totals, which count from its start: {"deadline": "PT2H", "budget": {"usd": 10, '
        '"tokens": 2000000}}. What is left out stays as it is.'
    )
    def extend_limits(self, update: ExtendLimits | JsonValue = None) -> UpdateReply:
        """New totals for budget and deadline; they apply at once, to a run that waits, too."""
        state, new = self._run_state(), read_update(ExtendLimits, update)
        if state.once(new.request_id):
            state.extend(new.budget, new.deadline)
            self._children.limits_changed()
            self._changed.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=state.time_and_budget.spent_line())

    @extend_limits.validator
    def _extend_limits_valid(self, update: ExtendLimits | JsonValue = None) -> None:
        state, new = self._root_state("its limits are its root's: extend those of"), read_update(ExtendLimits, update)
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
        decision = _on_plan(update)
        state = self._checked(decision, "plan")
        wait = next((wait for wait in state.waits.current if wait.id == decision.id), None)
        if wait is not None and decision.choice not in wait.choices:
            raise ValueError(f"'{wait.id}' cannot be decided so: possible are {', '.join(wait.choices)}")
        if decision.plan is not None and self._context is not None:
            problems = unknown_role_problems(decision.plan, self._context.team)
            # Items of the run's data are known to activities only: a plan with a template is checked there.
            if not any(subtask.for_each for subtask in decision.plan.subtasks):
                attachments = [attachment.name for attachment in self._context.setup.attachments]
                problems += plan_problems(decision.plan, state.request.max_subtasks, attachments)
            if problems:
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
        self._checked(_on_question(update), "question", "finding")

    @workflow.update(
        description='Decides about a tool call: {"id": "t3/1:4.0", "decision": "approve", "arguments_sha256": "..."}, '
        'or "deny" with a "comment" for the model. Id and hash are those in the status.'
    )
    def decide_tool_call(self, update: DecideToolCall | JsonValue = None) -> UpdateReply:
        """A person's decision on a tool call, on any level of nested runs."""
        return self._decide(_on_tool_call(update))

    @decide_tool_call.validator
    def _decide_tool_call_valid(self, update: DecideToolCall | JsonValue = None) -> None:
        self._checked(_on_tool_call(update), "tool")

    def _checked(self, decision: Decision, *kinds: WaitKind) -> RunState:
        """Returns the state of a root in which something of these kinds waits for the decision, or did."""
        state = self._root_state("with the id that is shown there, decide at its root")
        state.decisions.check(decision, kinds, state.waits.current)
        return state

    def _decide(self, decision: Decision) -> UpdateReply:
        state = self._run_state()
        message = "decided before: the first decision stands"
        if state.decisions.take(decision):
            message = f"{decision.id}: {decision.choice}"
            self._changed.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=message)

    # Handlers of what people say only change the state: the work looks at it before it begins anything.

    @workflow.update(
        description="Pauses the run: no work begins, worker agents stop after their turn. {} or "
        '{"now": true}, which stops their calls in flight: these may be paid again.'
    )
    def pause(self, update: Pause | JsonValue = None) -> UpdateReply:
        """Pauses the run, and all below it; its clock stands still."""
        state, new = self._run_state(), read_update(Pause, update)
        if state.once(new.request_id):
            state.steering.pause(now=new.now or state.steering.now)
            self._said(state, "paused", new, now=new.now)
        when = "now, and its calls in flight may be paid again" if state.steering.now else "after the turns under way"
        return UpdateReply(accepted=True, phase=state.phase, message=f"paused: work stops {when}")

    @pause.validator
    def _pause_valid(self, update: Pause | JsonValue = None) -> None:
        self._root_state("pause its root")
        read_update(Pause, update)

    @workflow.update(description="Resumes the run: ends a pause, and the waits for the provider's account. {}")
    def resume(self, update: Resume | JsonValue = None) -> UpdateReply:
        """Ends a pause and the waits for the provider, here and in nested supervisors."""
        state, new = self._run_state(), read_update(Resume, update)
        if state.once(new.request_id):
            was_paused = state.steering.paused
            state.steering.resume()
            state.models.retry_all()
            self._said(state, "resumed", new) if was_paused else self._heed(state)
        return UpdateReply(accepted=True, phase=state.phase)

    @resume.validator
    def _resume_valid(self, update: Resume | JsonValue = None) -> None:
        read_update(Resume, update)
        if self._open_run_state().steering.paused:
            self._root_state("it is paused with its root: resume")

    @workflow.update(
        description='Says a word to the agents of a subtask, or to all and to later prompts: {"text": "...", '
        '"to": "t3"}; "to" is "*" by default.'
    )
    def steer(self, update: Steer | JsonValue = None) -> UpdateReply:
        """Steers agents at work, each in its next turn, and those that begin later."""
        state, new = self._run_state(), read_update(Steer, update)
        if state.once(new.request_id):
            state.steering.say(new.text, new.to)
            self._said(state, "steered", new, None if new.to == ALL else new.to, word=new.text)
        return UpdateReply(accepted=True, phase=state.phase, message=f"said to {new.to}")

    @steer.validator
    def _steer_valid(self, update: Steer | JsonValue = None) -> None:
        state, new = self._open_run_state(), read_update(Steer, update)
        if not state.seen(new.request_id):
            state.steering.check_word(new)

    @workflow.update(
        description='Has a subtask that has ended worked on again: {"subtask_id": "t3", "instruction": "..."}.'
    )
    def retry_subtask(self, update: RetrySubtask | JsonValue = None) -> UpdateReply:
        """Has a subtask worked on again, before the answer is written."""
        state, new = self._run_state(), read_update(RetrySubtask, update)
        if state.once(new.request_id):
            if (wait := state.waits.for_help(new.subtask_id)) is not None:
                state.decisions.take(Decision(id=wait.id, choice="retry", text=new.instruction or "", by=new.by or ""))
            else:
                state.steering.retry(new)
            self._said(state, "retry_asked", new, new.subtask_id, instruction=new.instruction)
        return UpdateReply(accepted=True, phase=state.phase, message=f"{new.subtask_id} is done again")

    @retry_subtask.validator
    def _retry_subtask_valid(self, update: RetrySubtask | JsonValue = None) -> None:
        state, new = self._open_run_state(), read_update(RetrySubtask, update)
        if not state.seen(new.request_id) and state.waits.for_help(new.subtask_id) is None:
            state.steering.check_retry(new, state.phase, has_time=state.time_and_budget.time_left)

    @workflow.update(description='Ends a subtask, with what it has: {"subtask_id": "t3", "comment": "why"}.')
    def skip_subtask(self, update: SkipSubtask | JsonValue = None) -> UpdateReply:
        """Ends a subtask that waits or is worked on."""
        state, new = self._run_state(), read_update(SkipSubtask, update)
        if state.once(new.request_id):
            state.steering.skip(new)
            self._said(state, "skip_asked", new, new.subtask_id)
        return UpdateReply(accepted=True, phase=state.phase, message=f"{new.subtask_id} is skipped")

    @skip_subtask.validator
    def _skip_subtask_valid(self, update: SkipSubtask | JsonValue = None) -> None:
        state, new = self._open_run_state(), read_update(SkipSubtask, update)
        if not state.seen(new.request_id):
            state.steering.check_skip(new)

    def _said(
        self, state: RunState, event: str, update: Update, subtask_id: str | None = None, **data: JsonValue
    ) -> None:
        """Notes what a person said, and has all work look at it."""
        state.trace.note(event, subtask_id, **said(update, **data))
        self._heed(state)

    def _heed(self, state: RunState) -> None:
        """Has all work here and below look at what people said; the clock stands still in a pause."""
        moved = state.time_and_budget.hold("paused", state.steering.paused)
        if moved:
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
            resumes = state.steering.resumes
            state.steering.take(valid)
            if state.steering.resumes != resumes:
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

    def _root_state(self, what: str) -> RunState:
        """Returns the state of an open root; of a nested run it refuses `what`, which belongs there."""
        if self._parent is not None:
            raise ValueError(f"this is a nested run: {what} '{self._parent.root_id}'")
        return self._open_run_state()

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
