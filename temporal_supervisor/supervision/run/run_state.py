"""The state of a run in its workflow, from which queries and the result are made."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import WITHOUT_ANSWER, ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.budget.ledger import Spending
from temporal_supervisor.supervision.budget.time_and_budget import TimeAndBudget
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import Problem
from temporal_supervisor.supervision.contract.status import Flags
from temporal_supervisor.supervision.contract.updates import NewBudget
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.answer import Answer
from temporal_supervisor.supervision.results.success_rule import (
    explain_rule,
    is_met,
    nothing_missing,
)
from temporal_supervisor.supervision.run.answer_state import AnswerState, OpenPoints, PublishedRefs
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.decisions import (
    Decisions,
    Instructions,
    Proposals,
    Steering,
    UpdateReplies,
)
from temporal_supervisor.supervision.run.events import Trace
from temporal_supervisor.supervision.run.nested_runs import NestedGrant, NestedRuns, NestedShares
from temporal_supervisor.supervision.run.serving_models import ServingModels
from temporal_supervisor.supervision.run.slots import Slots
from temporal_supervisor.supervision.run.waits import FirstFinding, Waits

_REASONS_SHOWN = 5  # of subtasks, in the error of a run without a finding
_OF_A_PLAN = (ErrorKind.INVALID_PLAN, ErrorKind.NO_SUBTASKS, ErrorKind.NO_CAPABLE_WORKER)


class WorkDone:
    """The work of a run's worker agents so far, as its parent run hears of it.

    `labels` are the labels of all their texts, `effects` their calls with effects, and `was_denied`
    is True if a person rejected one of them.
    """

    def __init__(self) -> None:
        self.labels = Labels()
        self.effects: list[str] = []
        self.was_denied = False

    def inherit(self, labels: Labels) -> None:
        """Adopts the labels of a nested run's brief, before there is any work."""
        self.labels = labels

    def add(self, effects: Sequence[str], labels: Labels) -> None:
        """Adds calls with effects by worker agents, and the labels of their texts."""
        self.effects += effects
        self.labels |= labels

    def mark_denied(self) -> None:
        """Marks a call as rejected, so that the parent run asks no other role."""
        self.was_denied = True


class RunState:
    """The whole state of a run; `now` is its clock, and times are aware datetimes in UTC.

    Its parts own their fields, and this class owns the others: workflows change a run only through
    methods. `planned` is the number of subtasks in the first plan.
    """

    def __init__(
        self,
        request: RunRequest,
        now: Callable[[], datetime],
        started_at: datetime,
        grant: NestedGrant | None = None,
    ) -> None:
        """Starts a run; a nested supervisor's `grant` replaces the limits of the request."""
        if grant is not None:
            given = {"max_parallel": grant.slots, "max_subtasks": grant.subtasks}
            request = request.model_copy(update=given)
        self.request = request
        self.goal_bytes = size(request.goal)
        self.now = now
        self.started_at = started_at
        self.finished_at: datetime | None = None

        # The plan, and how far it is.
        self.plan = Plan(goal=request.goal)
        self.planned = 0
        self.phase: Phase = "planning"
        self.waits_for_people = False
        self.error: Problem | None = None

        # The parts, which change by their own methods.
        self.board = Board(self.plan, now)
        self.time_and_budget = TimeAndBudget(request, now, started_at, grant)
        self.spending = Spending()
        self.models = ServingModels(now)
        self.slots = Slots(lambda: self.request.max_parallel)
        self.nested = NestedRuns(self.board)
        self.shares = NestedShares(
            self.board,
            self.nested,
            self.time_and_budget.ledger,
            lambda: self.request.max_subtasks,
        )
        self.waits = Waits(now)
        self.first_finding = FirstFinding(self.board, self.slots)
        self.trace = Trace(now)
        self.decisions = Decisions()
        self.steering = Steering(self.board)
        self.proposals = Proposals()
        self.update_replies = UpdateReplies()
        self.open_points = OpenPoints(self.board)
        self.answer = AnswerState(self.board, self.open_points)
        self.published = PublishedRefs(self.answer)
        self.work_done = WorkDone()

        # For users, beside the answer.
        self.advice = ""  # of the team, where there is no answer
        self.warnings: list[str] = []

        self._numbers: Counter[str] = Counter()

    @property
    def usage(self) -> Usage:
        """The usage of the supervisor's own calls and of all subtasks."""
        return self.time_and_budget.ledger.spent

    @property
    def owner(self) -> str:
        """The owner that the request claims; empty without one."""
        return self.request.owner

    @property
    def flags(self) -> Flags:
        """The conditions beside the phase."""
        paused = self.steering.paused and self.finished_at is None
        return Flags(
            paused=paused,
            waiting_provider=self.waits.for_provider,
            waiting_person=self.people_awaited > 0,
            waiting_store=self.waits.for_store,
        )

    @property
    def ending(self) -> Literal["completed", "partial", "failed", "cancelled"] | None:
        """The status with which the run has ended; None while it is open."""
        if self.phase == "failed" or self.phase == "cancelled":
            return self.phase
        return None if self.outcome == "running" else self.outcome

    @property
    def outcome(self) -> Literal["completed", "partial", "running"]:
        """The status of the result at present."""
        if self.phase not in ("done", "failed", "cancelled"):
            return "running"
        if self.phase != "done" or not self.answer.is_written or self.answer.gaps:
            return "partial"
        return "completed" if nothing_missing(self.board.current()) else "partial"

    @property
    def people_awaited(self) -> int:
        """The number of waits that need people, here and in nested runs."""
        return self.waits.for_people + self.nested.waits

    def begin_nested(
        self,
        labels: Labels,
        instructions: Instructions,
        *,
        has_finding: bool,
    ) -> None:
        """Adopts the labels of a nested run's brief, and the parent's finding and pause."""
        self.work_done.inherit(labels)
        self.first_finding.inherit(exists=has_finding)
        self.follow(instructions)
        self.time_and_budget.hold("paused", self.steering.paused)

    def follow(self, instructions: Instructions) -> None:
        """Adopts the instructions of people to the parent runs, and the root's deadline."""
        if not self.steering.comes_late(instructions):
            self.time_and_budget.follow_root(instructions.deadline_at)
        if self.steering.follow(instructions):
            self.models.retry_all()

    def set_waits_for_people(self, waits: bool) -> None:
        """Sets `waits_for_people`: True while only people can let the run continue."""
        self.waits_for_people = waits

    @property
    def only_people_can_help(self) -> bool:
        """True if all running work, and all that lacks a slot or budget, waits for people.

        A slot or budget that a nested run keeps while it waits for people is free once they have
        decided.
        """
        asks = self.waits.of_subtasks() | self.nested.waiting_for_people
        if not asks and self.proposals.plan is None:
            return False
        if self.slots.held > self.nested.slots_waiting_for_people:
            return False
        stands = asks | self.slots.queued | self.time_and_budget.agents_waiting
        if not stands.issuperset(self.board.running()):
            return False
        return all(wait.for_decision for wait in self.waits.current)

    def take_setup(
        self,
        ceilings: Ceilings | None,
        team: str,
        *,
        advice: str = "",
        warnings: Sequence[str] = (),
        notice: str | None = None,
        extracts: bool = False,
    ) -> None:
        """Adopts the reply of the first activity, and drops the request's content.

        A Worker holds many runs for days. Limits of the request are lowered to the operator's
        `ceilings`. `team` is the team that the run uses if its request names none, and `advice` its
        message to users without an answer.
        """
        self.advice = advice.strip()
        self.request = self.request.without_content()
        if self.request.team is None:
            self.request = self.request.model_copy(update={"team": team})
        if ceilings is not None:
            self.request = ceilings.lowered(self.request)
            self.time_and_budget.keep_within(ceilings)
        self.warnings = list(warnings)
        self.models.describe(notice, extract=extracts)

    def enter(self, phase: Phase) -> None:
        """Begins a phase."""
        self.phase = phase
        self.trace.note("phase", phase=phase)

    def fail(self, problem: Problem) -> None:
        """Sets the reason why the run fails.

        The team's message, if there is one, takes the place of the answer. It is about the goal, so
        it is not used if the caller's own plan can't run.
        """
        self.error = problem
        if self.request.plan and problem.type in _OF_A_PLAN:
            self.advice = ""
        if self.advice:
            self.answer.replace(Answer(text=self.advice))

    def may_complete_without_answer(self, problem: Problem) -> bool:
        """True if a run that a problem ends completes, with the team's message as its answer."""
        return self.request.on_no_answer == "answer" and problem.type in WITHOUT_ANSWER

    def complete_without_answer(self, problem: Problem) -> None:
        """Makes the team's message the answer of a run without one."""
        words = self.advice or f"There is no answer: {problem.message}"
        self.answer.replace_by_nothing(problem, words)
        self.warn(f"there is no answer: {problem.type}: {problem.message}")
        self.trace.note("no_answer", error=problem.type, message=problem.message)

    def finish(self) -> None:
        """Ends the run's own time."""
        self.finished_at = self.now()

    def extend(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Sets new totals of budget and deadline.

        Raises ValueError if a total is below its present use.
        """
        self.time_and_budget.extend(budget, deadline)
        self.trace.note("limits_extended", limits=self.time_and_budget.spent_line())

    def add_spending(self, role: str, model: str, usage: Usage) -> None:
        """Adds booked usage to the sums by role and model.

        Adds a warning once the dollars are no longer known.
        """
        self.spending.add(role, model, usage)
        if usage.usd is None and self.time_and_budget.budget.usd is not None:
            self.warn(f"the dollar budget is not kept: the price of {model} is unknown")

    def model_away(
        self,
        model: str,
        work: object,
        why: str,
        seconds: float | None = None,
        chance: float = 0.0,
    ) -> None:
        """Begins or prolongs an outage of a model.

        It is longer after each failed try, and by a random `chance`. Without `seconds` it lasts
        until a `resume`.
        """
        outage = self.models.went_away(model, work, cut(why, limits.SENTENCE_BYTES))
        if seconds is None:
            outage.last_until(None)
            self.trace.note("waiting_provider", why=why)
        else:
            outage.last_for(seconds, chance, self.now())

    def restart(self) -> None:
        """Starts the deadline again after `temporal workflow reset`."""
        self.decisions.allow_in_advance()
        self.time_and_budget.restart_clock()
        self.trace.note("run_reset", deadline_at=self.time_and_budget.deadline_at.isoformat())

    def timeout_of(self, subtask_id: str) -> float | None:
        """Returns the working time of a subtask's attempt in seconds; None without a limit.

        The plan's timeout overrides the request's.
        """
        own, usual = self.board.subtask(subtask_id).timeout_seconds, self.request.subtask_timeout
        return own if own is not None or usual is None else usual.total_seconds()

    def warn(self, warning: str) -> None:
        """Adds a warning to the result, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    @property
    def revision(self) -> int:
        """The revision of the plan; 0 before there is one."""
        return self.plan.revision if self.plan.subtasks or self.plan.direct_answer else 0

    def adopt(self, plan: Plan) -> None:
        """Adopts a plan, the first one or a later revision: called by the plan in force."""
        self.planned = self.planned or len(plan.named)
        self.plan = plan
        self.board.extend(plan)

    def next_number(self, series: Literal["judge", "synthesis"]) -> int:
        """Returns the number of the next call of a series, from 1, for the call's step."""
        self._numbers[series] += 1
        return self._numbers[series]

    def check_success(self) -> None:
        """Raises SupervisionError if the success rule is not met, or nothing succeeded."""
        if not self.board.usable():
            raise self._no_finding()
        rule, reports, by_id = self.request.success, self.board.current(), self.plan.importance
        if rule != "any" and not is_met(rule, reports, by_id):
            raise SupervisionError(ErrorKind.QUORUM_NOT_MET, explain_rule(rule, reports, by_id))

    def _no_finding(self) -> SupervisionError:
        """Returns the error of a run without a finding, by its first cause."""
        budget = self.time_and_budget
        if budget.ledger.exhausted:
            why = f"no finding within the budget: {budget.spent_line()}"
            return SupervisionError(ErrorKind.BUDGET_EXHAUSTED, why)
        if not budget.time_left:
            why = budget.stopped_because or "the deadline came before there was any finding"
            return SupervisionError(ErrorKind.DEADLINE_EXCEEDED, why)
        why = f"no subtask succeeded ({self._reasons()})"
        return SupervisionError(ErrorKind.ALL_SUBTASKS_FAILED, why)

    def _reasons(self) -> str:
        """Returns the reasons of the first gaps, each once with the ids of its subtasks."""
        ids: dict[str, list[str]] = {}
        for gap in self.answer.gaps[:_REASONS_SHOWN]:
            ids.setdefault(gap.reason, []).append(gap.subtask_id)
        return "; ".join(f"{', '.join(named)}: {reason}" for reason, named in ids.items())
