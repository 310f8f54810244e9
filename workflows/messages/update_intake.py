"""The updates of a run: checked before anything is written, then accepted and answered."""

from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.text import cut, one_line
    from temporal_supervisor.supervision.contract.plan import WrittenPlan
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
    from temporal_supervisor.supervision.run.attempt_rules import supervisor_of
    from temporal_supervisor.supervision.run.decisions import ALL, Decision, decision_in
    from temporal_supervisor.supervision.run.events import update_fields
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.children.child_contracts import NestedInput
    from workflows.run.plan_in_force import PlanInForce

_REFUSALS_SHOWN = 5  # of a list of decisions of which none can be taken


class UpdateIntake:
    """Checks and accepts the updates of a run.

    An update only changes the state, which the work looks at before it begins anything. `wake` has
    all work here and below look at once. The signal `decide` has the body of the update `decide`.
    """

    def __init__(
        self, state: RunState, nested: NestedInput | None, wake: Callable[[], None]
    ) -> None:
        self._state = state
        self._is_nested = nested is not None
        self._wake = wake
        own_id = workflow.info().workflow_id
        self._root_id = nested.run.run_id if nested else own_id
        # The path of this run from the root.
        self._path = f"{own_id.removeprefix(f'{self._root_id}/')}/" if nested else ""
        self._plan: PlanInForce | None = None
        self._attachments: list[str] = []

    def check_plans_against(self, plan: PlanInForce, attachments: list[str]) -> None:
        """Has people's plans checked against the team and the attachments of the run.

        Before this is called, only an activity checks them.
        """
        self._plan = plan
        self._attachments = attachments

    def require(self, update: Update) -> None:
        """Raises ValueError, before anything is written, if an update cannot be accepted.

        Raises an ApplicationError of type UPDATES_USED_UP for a decision if few updates are left:
        it has to come as a signal.
        """
        is_decision = isinstance(update, Decide | Decided)
        if is_decision and self._state.update_replies.taken >= limits.UPDATES_FOR_DECISIONS:
            words = (
                f"this run has taken {limits.UPDATES_FOR_DECISIONS} updates and the server allows "
                "few more, which are kept for resume, extend_limits and the like: send this as the "
                "signal `decide`"
            )
            raise ApplicationError(words, type=UPDATES_USED_UP, non_retryable=True)
        self._check(update)

    def accept(self, update: Update) -> UpdateReply:
        """Accepts an update that was checked. Returns the reply to it.

        An update with a known `request_id` gets its first reply again.
        """
        state = self._state
        state.update_replies.count_update()
        results: list[DecisionReply] = []
        first_reply = state.update_replies.reply_to(update.request_id)
        if first_reply:
            message = first_reply
        elif isinstance(update, Decide):
            results = self._accept_all(update)
            taken = sum(result.accepted for result in results)
            message = f"{taken} of {len(results)} decisions taken"
            self._finish(update, message)
        else:
            message = self._accept_one(update)
            self._finish(update, message)
        return UpdateReply(accepted=True, phase=state.phase, message=message, results=results)

    def accept_signal(self, decisions: object) -> None:
        """Accepts the body of the update `decide` that came as a signal.

        It is checked like the update. A refusal is noted in the trace, because a signal has no
        reply.
        """
        try:
            update = read_update(Decide, decisions)
            self._check(update)
        except ValueError as error:
            why = one_line(str(error), limits.SENTENCE_BYTES)
            self._state.trace.note("decision_refused", why=why)
            return
        results = self._accept_all(update)
        for refused in (result for result in results if not result.accepted):
            why = one_line(refused.message, limits.SENTENCE_BYTES)
            self._state.trace.note("decision_refused", id=refused.id, why=why)
        self._finish(update, "taken")

    def notify_work(self) -> None:
        """Wakes all work here and below to see the change; a pause holds the clock."""
        self._state.time_and_budget.hold("paused", self._state.steering.paused)
        self._wake()

    def check_place(self, wait_id: str) -> None:
        """Raises ValueError, which names the right run, if a wait does not belong to this run."""
        run_id = supervisor_of(self._root_id, wait_id)
        if run_id != workflow.info().workflow_id:
            raise ValueError(
                f"'{wait_id}' waits in the run '{run_id}': send this to it (-w {run_id})"
            )

    def _check(self, update: Update) -> None:
        """Raises ValueError, which names the current state, if an update cannot be accepted."""
        state = self._state
        if state.phase in ("done", "failed", "cancelled"):
            raise ValueError(f"this run has ended: it is {state.phase}")
        self._check_level(update)
        if state.update_replies.reply_to(update.request_id) is not None:
            return
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                self._check_decision(update)
            case Decide():
                self._check_any(update)
            case ExtendLimits():
                state.time_and_budget.check(update.budget, update.deadline)
            case Steer():
                state.steering.check_word(update)
            case RetrySubtask() if state.waits.for_help(update.subtask_id) is None:
                has_time = state.time_and_budget.time_left
                state.steering.check_retry(update, state.phase, has_time=has_time)
            case SkipSubtask():
                state.steering.check_open(update.subtask_id)

    def _check_level(self, update: Update) -> None:
        """Raises ValueError for an update to a nested run that only the root accepts."""
        is_of_any_run = isinstance(update, Decide | Decided | Steer | RetrySubtask | SkipSubtask)
        if not self._is_nested or is_of_any_run:
            return
        if not isinstance(update, Resume) or self._state.steering.paused:
            raise ValueError(f"this is a nested run: send this to its root '{self._root_id}'")

    def _check_decision(self, update: Decided) -> None:
        """Raises ValueError if a decision cannot be accepted here and now."""
        decision = decision_in(update, self._path)
        self.check_place(decision.id)
        self._state.decisions.check(decision, self._state.waits.current)
        if isinstance(update, DecidePlan) and update.plan is not None:
            self._check_plan(update.plan)

    def _check_any(self, update: Decide) -> None:
        """Raises ValueError if none of the decisions in a list can be accepted."""
        refusals = [self._refusal(decision) for decision in update.decisions]
        if all(refusals):
            first = filter(None, refusals[:_REFUSALS_SHOWN])
            raise ValueError("; ".join(dict.fromkeys(first)))

    def _refusal(self, update: Decided) -> str | None:
        """Returns the reason to refuse a decision; None if it is acceptable."""
        try:
            self._check_decision(update)
        except ValueError as error:
            return str(error)
        return None

    def _check_plan(self, plan: WrittenPlan) -> None:
        """Raises ValueError if a person's plan cannot run."""
        if self._plan is None:
            return
        problems = unknown_role_problems(plan, self._plan.team)
        # Items of the run's data are known to activities only: a plan with a template is checked
        # there.
        if not any(subtask.for_each for subtask in plan.subtasks):
            most = self._state.request.max_subtasks
            problems += plan_problems(plan, most, self._attachments)
            problems += teams_without_room(plan, self._plan.assignable_roles, most)
        if problems:
            why = f"the plan cannot run: {'; '.join(problems)}"
            raise ValueError(cut(why, limits.ERROR_BYTES))

    def _accept_one(self, update: Update) -> str:
        """Applies an update to the state. Returns the message for its sender."""
        state, steering = self._state, self._state.steering
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                return state.decisions.accept(decision_in(update, self._path), state.waits.current)
            case ExtendLimits():
                state.extend(update.budget, update.deadline)
                budget = state.time_and_budget
                return f"{budget.spent_line()}; deadline {budget.deadline_at:%Y-%m-%d %H:%M:%S} UTC"
            case Pause():
                steering.pause(at_once=update.now or steering.at_once)
                state.trace.note("paused", **update_fields(update, now=update.now))
                when = "after the turns under way"
                if steering.at_once:
                    when = "now, and its calls in flight may be paid again"
                return f"paused: work stops {when}"
            case Resume():
                steering.resume()
                state.trace.note("resumed", **update_fields(update))
                state.models.retry_all()
                return "continues"
            case Steer():
                steering.add_word(update.text, update.to)
                subtask_id = None if update.to == ALL else update.to
                state.trace.note("steered", subtask_id, **update_fields(update, word=update.text))
                return f"said to {update.to}"
            case RetrySubtask():
                self._retry(update)
                return f"{update.subtask_id} is done again"
            case SkipSubtask():
                steering.skip(update)
                state.trace.note("skip_asked", update.subtask_id, **update_fields(update))
                return f"{update.subtask_id} is skipped"
        raise TypeError(f"no update of this type is taken: {type(update).__name__}")

    def _retry(self, update: RetrySubtask) -> None:
        """Has a subtask redone; if it waits for help, the retry is the decision about that wait."""
        state = self._state
        wait = state.waits.for_help(update.subtask_id)
        if wait is None:
            state.steering.retry(update)
        else:
            words = {"text": update.instruction or "", "by": update.by or ""}
            tried_again = Decision(id=wait.id, choice="retry", about=("finding",), **words)
            state.decisions.accept(tried_again, [wait])
        instruction = update_fields(update, instruction=update.instruction)
        state.trace.note("retry_asked", update.subtask_id, **instruction)

    def _accept_all(self, update: Decide) -> list[DecisionReply]:
        """Accepts all acceptable decisions of a list. Returns a reply to each decision."""
        results = []
        for given in update.decisions:
            decision = decision_in(given, self._path)
            refusal = self._refusal(given)
            message = refusal or self._state.decisions.accept(decision, self._state.waits.current)
            result = DecisionReply(id=decision.id, accepted=refusal is None, message=message)
            results.append(result)
        return results

    def _finish(self, update: Update, message: str) -> None:
        """Keeps the reply to an update, in case it is sent again, and wakes the work."""
        if update.request_id:
            self._state.update_replies.keep_reply(update.request_id, message)
        self.notify_work()
