"""The state of a run as its workflow keeps it: what the queries show and the result is made of."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from graphlib import TopologicalSorter
from typing import Literal

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.text import cut, one_line, size
from temporal_supervisor.supervision.budget.ledger import Amount, Spending
from temporal_supervisor.supervision.budget.time_and_budget import TimeAndBudget
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Labels
from temporal_supervisor.supervision.contract.plan import Estimate, Plan
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import (
    Contradiction,
    Gap,
    Problem,
    RunResult,
    SubtaskReport,
    Timing,
)
from temporal_supervisor.supervision.contract.status import Flags, Status, Wait
from temporal_supervisor.supervision.contract.updates import NewBudget
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.answer import (
    ANSWER,
    ANSWER_JSON,
    Answer,
    findings_as_answer,
    grounding_of,
    with_gaps,
)
from temporal_supervisor.supervision.results.confidence import ceiling, unsupported_in
from temporal_supervisor.supervision.results.payload_fit import PAYLOAD_ROOM_BYTES, cut_to
from temporal_supervisor.supervision.results.success_rule import explain, met, nothing_missing
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.decisions import Decisions, Steering
from temporal_supervisor.supervision.run.events import Trace
from temporal_supervisor.supervision.run.nested_runs import NestedRuns
from temporal_supervisor.supervision.run.serving_models import ServingModels
from temporal_supervisor.supervision.run.slots import Slots
from temporal_supervisor.supervision.run.waits import Waits

_OWNER_BYTES = 200  # databases that lists are kept in take 255
PLAN_GAP = "plan"  # in place of a subtask's id


class RunState:
    """Everything a run knows. `now` is the run's clock; times are aware datetimes in UTC.

    The parts own their fields. `proposed` is a plan that waits for approval, `approved_roles` those of approved
    ones; `estimate` is what was shown with the last of them. `planned` is how many subtasks the first plan had.
    `requests` are what updates were replied by their ids, `labels` those of all that worker agents wrote, findings and
    failures, `refused` the subtasks that are refused for all alike and wait for the run's first finding. A run that
    `extracts` is the stand-in model's, and has no confidence. `effects` are the calls with effects that its worker
    agents made.
    """

    def __init__(
        self, request: RunRequest, now: Callable[[], datetime], started_at: datetime, grant: Amount | None = None
    ) -> None:
        """`grant` is a nested supervisor's slice, in place of the request's budget."""
        self.request = request
        self.goal_bytes = size(request.goal)
        self.plan = Plan(goal=request.goal)
        self.board = Board(self.plan, now)
        self.time_and_budget = TimeAndBudget(request, now, started_at, grant)
        self.spending = Spending()
        self.models = ServingModels(now)
        self.nested = NestedRuns(self.board)
        self.waits = Waits(now, self.nested.waits)
        self.trace = Trace(now)
        self.decisions = Decisions()
        self.steering = Steering(self.board)
        self.proposed: Plan | None = None
        self.approved_roles: set[str] = set()
        self.planned = 0
        self.estimate: Estimate | None = None
        self.answer = Answer()
        self.tables: list[ArtifactRef] = []  # of templates, a row for each item
        self.phase: Phase = "planning"
        self.slots = Slots(lambda: self.request.max_parallel)
        self.refused: set[str] = set()
        self.root_has_finding = False
        self.labels = Labels()
        self.own_seconds = 0.0
        self.warnings: list[str] = []
        self.model_notice: str | None = None
        self.extracts = False
        self.error: Problem | None = None
        self.result_ref: str | None = None
        self.trace_ref: str | None = None
        self.started_at = started_at
        self.finished_at: datetime | None = None
        self.requests: dict[str, str] = {}
        self.updates = 0  # that were taken: the server allows so many
        self.plans_asked = 0  # the number of the last plan that a person was asked about
        self.effects: list[str] = []
        self._now = now
        self._open_points: dict[str, Gap] = {}
        self._lacks: list[Gap] = []
        self.contradictions: list[Contradiction] = []
        self._numbers: Counter[str] = Counter()

    @property
    def usage(self) -> Usage:
        """What the run consumed: the supervisor's own calls and all subtasks'."""
        return self.time_and_budget.ledger.spent

    @property
    def owner(self) -> str:
        """Whose run it is, as the request claims; empty if it does not."""
        return one_line(self.request.metadata.get("owner", ""), _OWNER_BYTES)

    @property
    def flags(self) -> Flags:
        """The conditions beside the phase."""
        paused = self.steering.paused and self.finished_at is None
        return Flags(
            paused=paused,
            waiting_provider=self.waits.for_provider,
            waiting_person=self.waits.for_person,
            waiting_store=self.waits.for_store,
        )

    @property
    def ending(self) -> Literal["completed", "partial", "failed", "cancelled"] | None:
        """How the run has ended; None while it is open."""
        if self.phase == "failed" or self.phase == "cancelled":
            return self.phase
        status = self._status()
        return None if status == "running" else status

    @property
    def has_finding(self) -> bool:
        """True once there is a finding on any level: then the run waits for `resume` instead of failing."""
        return self.root_has_finding or self.board.has_finding or self.nested.has_finding

    @property
    def finding_may_come(self) -> bool:
        """True while work is under way that is not refused."""
        return self.slots.held > 0 or not self.refused.issuperset(self.board.running())

    def prepared(self, ceilings: Ceilings | None) -> None:
        """Drops the request's content, as a Worker holds many runs for days, and keeps to the operator's ceilings."""
        self.request = self.request.without_content()
        if ceilings is not None:
            self.request = ceilings.lowered(self.request)
            self.time_and_budget.keep_within(ceilings)

    def extend(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Sets new totals of budget and deadline; raises ValueError if they are below what is used."""
        self.time_and_budget.extend(budget, deadline)
        self.trace.note("limits_extended", limits=self.time_and_budget.spent_line())

    def note_spending(self, role: str, model: str, usage: Usage) -> None:
        """Adds to the sums by role and model what the ledger has; warns when the dollars are no longer known."""
        self.spending.add(role, model, usage)
        if usage.usd is None and self.time_and_budget.budget.usd is not None:
            self.warn(f"the dollar budget is not kept: the price of {model} is unknown")

    def model_away(self, model: str, work: object, why: str, seconds: float | None = None, chance: float = 0.0) -> None:
        """Notes that a model is away, longer after each failed try and by a random `chance`; None: until a `resume`."""
        outage = self.models.went_away(model, work, cut(why, limits.SENTENCE_BYTES))
        if seconds is None:
            outage.until = None
            self.trace.note("waiting_provider", why=why)
            return
        own = limits.PROVIDER_PAUSE * limits.PROVIDER_PAUSE_FACTOR ** min(outage.rounds, 20)  # no date holds more
        least = max(timedelta(seconds=seconds), min(own, limits.PROVIDER_PAUSE_MAX))
        until = self._now() + least * (1 + limits.RETRY_JITTER * chance)
        outage.until = max(outage.until or until, until)

    def restart(self) -> None:
        """Begins the deadline again after `temporal workflow reset`."""
        self.decisions.in_advance = True
        self.time_and_budget.restart_clock()
        self.trace.note("run_reset", deadline_at=self.time_and_budget.deadline_at.isoformat())

    def timeout_of(self, subtask_id: str) -> float | None:
        """Returns the seconds of work that an attempt of a subtask may take: the plan's, else the request's."""
        own, usual = self.board.subtask(subtask_id).timeout_seconds, self.request.subtask_timeout
        return own if own is not None or usual is None else usual.total_seconds()

    def warn(self, warning: str) -> None:
        """Adds a warning to the result, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def open_point(self, subtask_id: str, reason: str) -> None:
        """Sets the gap in a subtask that did complete."""
        known = self.board.subtask(subtask_id).description if subtask_id in self.board else ""
        self._open_points[subtask_id] = Gap(subtask_id=subtask_id, description=known, reason=reason)

    def plan_lacks(self, points: Sequence[str]) -> None:
        """Sets the gaps of the plan itself: what the goal asks for and no subtask covers."""
        reason = "no subtask of the plan covers it"
        self._lacks = [Gap(subtask_id=PLAN_GAP, description=point, reason=reason) for point in points]

    def close_point(self, subtask_id: str) -> None:
        """Takes back the gap in a subtask that has a better finding now."""
        self._open_points.pop(subtask_id, None)

    @property
    def gaps(self) -> list[Gap]:
        """What is missing from the answer: whole subtasks or parts of their findings, and points that stayed open."""
        partial = [gap for gap in self.board.partial_findings() if gap.subtask_id not in self._open_points]
        return [*self.board.gaps(), *partial, *self.open_points, *self._lacks]

    @property
    def open_points(self) -> list[Gap]:
        """What reviews found fault with and was not fixed."""
        return list(self._open_points.values())

    @property
    def revision(self) -> int:
        """The revision of the plan; 0 before there is one."""
        return self.plan.revision if self.plan.subtasks or self.plan.direct_answer else 0

    def adopt(self, plan: Plan) -> None:
        """Takes over a plan, the first or a later revision."""
        self.planned = self.planned or len(plan.named)
        self.plan = plan
        self.board.extend(plan)

    def next_plan_number(self, revision: int) -> int:
        """Returns the number of the next plan that a person is asked about: its revision, unless that is used up."""
        self.plans_asked = max(self.plans_asked + 1, revision)
        return self.plans_asked

    def next_number(self, series: Literal["judge", "synthesis"]) -> int:
        """Returns the number of the next call of that kind, from 1: it is part of the call's step."""
        self._numbers[series] += 1
        return self._numbers[series]

    def check_success(self) -> None:
        """Raises SupervisionError if what succeeded is not enough for the rule, or is nothing at all."""
        budget = self.time_and_budget
        if not self.board.usable():
            if budget.ledger.exhausted:
                raise SupervisionError(
                    ErrorKind.BUDGET_EXHAUSTED, f"no finding within the budget: {budget.spent_line()}"
                )
            if not budget.time_left:
                why = budget.stopped_because or "the deadline came before there was any finding"
                raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, why)
            reasons = "; ".join(f"{gap.subtask_id}: {gap.reason}" for gap in self.gaps[:5])
            raise SupervisionError(ErrorKind.ALL_SUBTASKS_FAILED, f"no subtask succeeded ({reasons})")
        rule, reports, by_id = self.request.success, self.board.current(), self.plan.importance
        if rule != "any" and not met(rule, reports, by_id):
            raise SupervisionError(ErrorKind.QUORUM_NOT_MET, explain(rule, reports, by_id))

    def answer_by_findings(self, why: str) -> None:
        """Makes the findings stand in for an answer that could not be written, unless there is one already."""
        if not self.answer.text:
            self.answer = Answer(text=findings_as_answer(self.board.usable(), why), is_findings=True)
            self.open_point(ANSWER, f"no answer could be written: {why}")

    def add_contradiction(self, contradiction: Contradiction) -> None:
        """Adds a contradiction; the first between the same subtasks stands."""
        if all({*known.subtask_ids} != {*contradiction.subtask_ids} for known in self.contradictions):
            self.contradictions.append(contradiction)

    def status(self, cursor: int = 0) -> Status:
        """Returns the status, with the page at `cursor` of the subtasks and of the waits."""
        reports, waiting, cursor = self.board.reports(), self.waits.current, max(0, cursor)
        following = cursor + limits.STATUS_PAGE
        status = Status(
            goal=one_line(self.request.goal, 400),
            team=self.request.team_name,
            phase=self.phase,
            flags=self.flags,
            revision=self.revision,
            counts=self.board.counts(),
            subtasks=reports[cursor:following],
            next_cursor=following if following < max(len(reports), len(waiting)) else None,
            usage=self.usage + self.nested.usage,
            spend=self.spending.rows(),
            limits=self.time_and_budget.card(self.request),
            waiting=[self._until_deadline(wait) for wait in waiting[cursor:following]],
            breakers=[*self.waits.cards()[: limits.STATUS_PAGE]],
            review=f"up to {self.request.max_reviews} rounds" if self.request.max_reviews else "off",
            deadline_at=self.time_and_budget.deadline_at.isoformat(),
            updates=self.updates,
            warnings=self.warnings,
            model_notice=self.model_notice,
            error=self.error,
        )
        return cut_to(status, PAYLOAD_ROOM_BYTES)

    def _until_deadline(self, wait: Wait) -> Wait:
        """Returns a wait with the end that the run's deadline sets it, if that comes first and the clock runs."""
        if self.time_and_budget.held or wait.expires_at is None:
            return wait
        deadline = self.time_and_budget.work_until
        if datetime.fromisoformat(wait.expires_at) <= deadline:
            return wait
        return wait.model_copy(update={"expires_at": deadline.isoformat()})

    def result(self) -> RunResult:
        """Returns the result so far; final once the phase is `done`."""
        now = self.finished_at or self._now()
        reports = [self._timed(report, now) for report in self.board.reports()]
        gaps, answer = self.gaps, self.answer
        wall, held = now - self.started_at, self.time_and_budget.held_time(self.started_at, now)
        return RunResult(
            status=self._status(),
            answer=with_gaps(answer.text, gaps) if answer.text else "",
            answer_json=answer.as_json,
            answer_ref=answer.ref,
            answer_model=answer.model,
            result_ref=self.result_ref,
            trace_ref=self.trace_ref,
            confidence=self._confidence(),
            grounding=grounding_of(answer, self.board.current()),
            gaps=gaps,
            contradictions=self.contradictions,
            citations=answer.citations,
            unsupported=unsupported_in(answer, self.board.current()),
            subtasks=reports,
            artifacts=[*self.tables, *(each for r in reports if r.finding for each in r.finding.artifacts)],
            usage=self.usage,
            spend=self.spending.rows(),
            timing=timing(reports, wall.total_seconds(), self.own_seconds, now, held.total_seconds()),
            plan_revisions=self.revision,
            warnings=self.warnings,
            truncated=answer.json_ref is not None,
        )

    def _timed(self, report: SubtaskReport, now: datetime) -> SubtaskReport:
        if report.started_at is None:
            return report
        end = datetime.fromisoformat(report.finished_at) if report.finished_at else now
        held = self.time_and_budget.held_time(datetime.fromisoformat(report.started_at), end).total_seconds()
        return report.model_copy(update={"held_seconds": round(held, 3)}) if held else report

    def _confidence(self) -> float | None:
        """Returns what the answer says of itself, never above the bound of its basis; the bound if it says nothing.

        None without an answer, and for an extract.
        """
        if self.extracts or not self.answer.text or self.phase == "failed":
            return None

        points = [point for point in (*self.open_points, *self._lacks) if point.subtask_id not in (ANSWER, ANSWER_JSON)]
        by_id = self.plan.importance
        bound = ceiling(self.answer, self.board.current(), by_id, self.contradictions, points)
        return bound if self.answer.confidence is None else min(self.answer.confidence, bound)

    def _status(self) -> Literal["completed", "partial", "running"]:
        if self.phase not in ("done", "failed", "cancelled"):
            return "running"
        written = self.phase == "done" and bool(self.answer.text) and not self.answer.is_findings
        complete = written and not self.gaps and nothing_missing(self.board.current())
        return "completed" if complete else "partial"


def timing(reports: list[SubtaskReport], wall: float, own: float, now: datetime, held: float = 0.0) -> Timing:
    """Returns the times of a run with `held` seconds of `wall` for people; the supervisor's `own` are on every path."""
    times = {report.id: _time(report, now) for report in reports}
    sequential = own + sum(times.values(), timedelta()).total_seconds()
    return Timing(
        wall_seconds=round(wall, 3),
        held_seconds=round(held, 3),
        sequential_seconds=round(sequential, 3),
        critical_path_seconds=round(own + longest_chain(reports, now)[0].total_seconds(), 3),
        speedup=round(sequential / (wall - held), 2) if wall > held else 0.0,
    )


def _time(report: SubtaskReport, now: datetime) -> timedelta:
    if report.started_at is None:
        return timedelta()
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else now
    held = timedelta(seconds=report.held_seconds)
    return max(timedelta(), end - datetime.fromisoformat(report.started_at) - held)


def longest_chain(reports: Sequence[SubtaskReport], now: datetime) -> tuple[timedelta, list[str]]:
    """Returns the time and the subtasks of the chain of dependencies that took longest."""
    times = {report.id: _time(report, now) for report in reports}
    depends_on = {report.id: [d for d in report.depends_on if d in times] for report in reports}
    chains: dict[str, tuple[timedelta, list[str]]] = {}
    for subtask_id in TopologicalSorter(depends_on).static_order():
        time, before = max((chains[d] for d in depends_on[subtask_id]), default=(timedelta(), []))
        own = times[subtask_id]
        chains[subtask_id] = time + own, [*before, subtask_id] if own else before
    return max(chains.values(), default=(timedelta(), []))
