"""The updates of a run: checked before anything is written, taken, and answered."""

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
    """Takes the updates of a run.

    An update only changes the state: the work looks at that before it begins anything. `wake` has
    all work here and below look now. The signal `decide` has the body of the update of that name.
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

    def check_plans_by(self, plan: PlanInForce, attachments: list[str]) -> None:
        """Has plans of people checked by the team and the attachments of the run.

        Until then they are checked by an activity alone.
        """
        self._plan = plan
        self._attachments = attachments

    def require(self, update: Update) -> None:
        """Raises ValueError if an update cannot be taken: nothing of it is written then.

        If a decision has to come as a signal, because few updates are left, it is an error of a
        type of its own.
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

    def take(self, update: Update) -> UpdateReply:
        """Takes an update that is allowed, and returns the reply to it.

        One that comes again gets its first reply.
        """
        state = self._state
        state.update_replies.count_update()
        results: list[DecisionReply] = []
        known = state.update_replies.reply_to(update.request_id)
        if known:
            message = known
        elif isinstance(update, Decide):
            results = self._take_all(update)
            taken = sum(result.accepted for result in results)
            message = f"{taken} of {len(results)} decisions taken"
            self._end(update, message)
        else:
            message = self._take_one(update)
            self._end(update, message)
        return UpdateReply(accepted=True, phase=state.phase, message=message, results=results)

    def take_signal(self, decisions: object) -> None:
        """Takes the body of the update `decide`, checked alike.

        Nobody reads a reply to a signal: a refusal is noted in the trace.
        """
        try:
            update = read_update(Decide, decisions)
            self._check(update)
        except ValueError as error:
            why = one_line(str(error), limits.SENTENCE_BYTES)
            self._state.trace.note("decision_refused", why=why)
            return
        results = self._take_all(update)
        for refused in (result for result in results if not result.accepted):
            why = one_line(refused.message, limits.SENTENCE_BYTES)
            self._state.trace.note("decision_refused", id=refused.id, why=why)
        self._end(update, "taken")

    def heed(self) -> None:
        """Has all work here and below look at people's words; a pause holds the clock."""
        self._state.time_and_budget.hold("paused", self._state.steering.paused)
        self._wake()

    def check_place(self, wait_id: str) -> None:
        """Raises ValueError, with the right run, if a wait of that id is not in this run."""
        there = supervisor_of(self._root_id, wait_id)
        if there != workflow.info().workflow_id:
            raise ValueError(
                f"'{wait_id}' waits in the run '{there}': send this to it (-w {there})"
            )

    def _check(self, update: Update) -> None:
        """Raises ValueError with the current state if an update cannot be taken."""
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
        """Raises ValueError if only the root takes such an update."""
        is_of_any_run = isinstance(update, Decide | Decided | Steer | RetrySubtask | SkipSubtask)
        if not self._is_nested or is_of_any_run:
            return
        if not isinstance(update, Resume) or self._state.steering.paused:
            raise ValueError(f"this is a nested run: send this to its root '{self._root_id}'")

    def _check_decision(self, update: Decided) -> None:
        """Raises ValueError if a decision cannot be taken here and now."""
        decision = decision_in(update, self._path)
        self.check_place(decision.id)
        self._state.decisions.check(decision, self._state.waits.current)
        if isinstance(update, DecidePlan) and update.plan is not None:
            self._check_plan(update.plan)

    def _check_any(self, update: Decide) -> None:
        """Raises ValueError if no decision of a list can be taken."""
        refusals = [self._refusal(each) for each in update.decisions]
        if all(refusals):
            first = filter(None, refusals[:_REFUSALS_SHOWN])
            raise ValueError("; ".join(dict.fromkeys(first)))

    def _refusal(self, update: Decided) -> str | None:
        """Returns the reason why a decision cannot be taken; None if it can."""
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

    def _take_one(self, update: Update) -> str:
        """Takes over the content of an update, and returns what its sender reads."""
        state, steering = self._state, self._state.steering
        match update:
            case DecidePlan() | Reply() | DecideToolCall():
                return state.decisions.accept(decision_in(update, self._path), state.waits.current)
            case ExtendLimits():
                state.extend(update.budget, update.deadline)
                budget = state.time_and_budget
                return f"{budget.spent_line()}; deadline {budget.deadline_at:%Y-%m-%d %H:%M:%S} UTC"
            case Pause():
                steering.pause(now=update.now or steering.now)
                state.trace.note("paused", **update_fields(update, now=update.now))
                when = "after the turns under way"
                if steering.now:
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
        """Has a subtask done again; one that waits for help is decided by that."""
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

    def _take_all(self, update: Decide) -> list[DecisionReply]:
        """Takes all decisions of a list that can be taken. Returns a reply to each one."""
        results = []
        for each in update.decisions:
            decision = decision_in(each, self._path)
            refusal = self._refusal(each)
            message = refusal or self._state.decisions.accept(decision, self._state.waits.current)
            result = DecisionReply(id=decision.id, accepted=refusal is None, message=message)
            results.append(result)
        return results

    def _end(self, update: Update, message: str) -> None:
        """Keeps the reply to an update, for when it comes again, and has the work heed it."""
        if update.request_id:
            self._state.update_replies.keep_reply(update.request_id, message)
        self.heed()
