"""The state of a run as its workflow keeps it: what the queries show and the result is made of."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from pydantic import JsonValue

from supervision import limits
from supervision.budget.amount import Grant
from supervision.budget.time_and_budget import Allowance
from supervision.contract.ceilings import Ceilings
from supervision.contract.finding import ArtifactRef
from supervision.contract.plan import Plan
from supervision.contract.request import RunRequest
from supervision.contract.result import Citation, Contradiction, Gap, RunResult, SubtaskReport
from supervision.contract.status import Flags, Phase, Status, TraceEvent, TracePage
from supervision.contract.updates import NewBudget
from supervision.contract.usage import Usage
from supervision.run.answer_checks import with_gaps
from supervision.run.board import Board
from supervision.run.payload_fit import fit_page
from supervision.run.role_breaker import RoleBreaker
from supervision.run.timing import timing
from supervision.run.waits import Holds
from supervision.run.web_details import markdown
from supervision.text import cut, one_line, size


class RunState:
    """Everything a run knows. `now` is the run's clock; times are aware datetimes in UTC."""

    def __init__(
        self, request: RunRequest, now: Callable[[], datetime], started_at: datetime, grant: Grant | None = None
    ) -> None:
        """`grant` is a nested supervisor's slice, in place of the request's budget."""
        self.request = request
        self.plan = Plan(goal=cut(request.goal, limits.SUMMARY_BYTES))
        self.board = Board(self.plan, now)
        self.phase: Phase = "planning"
        self.own_usage = Usage()
        self.allowance = Allowance(request, now, started_at, grant)
        self._seen_requests: set[str] = set()
        self._open_points: dict[str, Gap] = {}
        self.resumes = 0
        self.judged = 0
        self.syntheses = 0
        self.holds = Holds(self.board, now)
        self.root_has_finding = False
        self.warnings: list[str] = []
        self.model_notice: str | None = None
        self.error: str | None = None
        self.answer = ""
        self.makeshift = False  # the answer is the findings as they came
        self.answer_json: JsonValue = None
        self.answer_ref: str | None = None
        self.result_ref: str | None = None
        self.confidence: float | None = None
        self.citations: list[Citation] = []
        self.contradictions: list[Contradiction] = []
        self.own_seconds = 0.0
        self.events: list[TraceEvent] = []
        self._seq = 0
        self._now = now
        self.started_at = started_at
        self.finished_at: datetime | None = None

    @property
    def usage(self) -> Usage:
        """What the run consumed: the supervisor's own calls and all subtasks'."""
        return sum((report.usage for report in self.board.reports()), start=self.own_usage)

    @property
    def flags(self) -> Flags:
        """The conditions beside the phase."""
        return Flags(waiting_provider=bool(self.holds.waits))

    @property
    def has_finding(self) -> bool:
        """Whether the run has anything to lose: then it waits for what a person must mend."""
        return self.root_has_finding or self.board.counts().completed > 0

    def breaker(self, role: str) -> RoleBreaker:
        """The breaker of a role."""
        return self.holds.breaker(role)

    def once(self, request_id: str | None) -> bool:
        """Whether a message with that id has not been taken yet; marks it as taken."""
        if request_id is None:
            return True
        fresh = not self.seen(request_id)
        self._seen_requests.add(request_id)
        return fresh

    def seen(self, request_id: str | None) -> bool:
        """Whether a message with that id was taken."""
        return request_id in self._seen_requests

    def keep_within(self, ceilings: Ceilings) -> None:
        """Lowers the request's numbers to the operator's ceilings."""
        self.request = ceilings.lowered(self.request)
        self.allowance.keep_within(ceilings, self.request)

    def extend(self, budget: NewBudget | None, deadline: timedelta | None) -> None:
        """Extends the allowance and notes it; ValueError when that can't be."""
        self.allowance.extend(budget, deadline)
        self.note("limits_extended", limits=self.allowance.spent())

    def recent_events(self, limit: int) -> list[TraceEvent]:
        """The latest events in at most about `limit` bytes of JSON."""
        kept, used = 0, 0
        for event in reversed(self.events):
            used += size(event.model_dump_json())
            if used > limit:
                break
            kept += 1
        return self.events[len(self.events) - kept :]

    def warn(self, warning: str) -> None:
        """Adds a warning to the result, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def open_point(self, subtask_id: str, reason: str) -> None:
        """Sets the gap in a subtask that did complete."""
        self._open_points[subtask_id] = Gap(subtask_id=subtask_id, reason=cut(reason, 600))

    def mended(self, subtask_id: str) -> None:
        """Takes back the gap in a subtask that has a better finding now."""
        self._open_points.pop(subtask_id, None)

    @property
    def gaps(self) -> list[Gap]:
        """What is missing from the answer: subtasks without a finding, and points that stayed open."""
        return [*self.board.gaps(), *self.open_points]

    @property
    def open_points(self) -> list[Gap]:
        """What reviews found fault with and was not mended."""
        return list(self._open_points.values())

    def adopt(self, plan: Plan) -> None:
        """Takes a plan over, the first or a later revision of it."""
        self.plan = plan
        self.board.extend(plan)

    def note(self, type: str, subtask_id: str | None = None, **data: JsonValue) -> None:
        """Adds an event to the trace."""
        self._seq += 1
        self.events.append(
            TraceEvent(seq=self._seq, at=self._now().isoformat(), type=type, subtask_id=subtask_id, data=data)
        )
        del self.events[: -limits.TRACE_EVENTS]

    def trace(self, cursor: int = 0) -> TracePage:
        """The events after `cursor`."""
        cursor = max(0, cursor)
        events = [event for event in self.events if event.seq > cursor]
        first = self.events[0].seq if self.events else 1
        return TracePage(events=events, next_cursor=self._seq, dropped=max(0, first - 1 - cursor))

    def status(self, cursor: int = 0) -> Status:
        """Where the run stands, with the page of subtasks at `cursor`."""
        reports = self.board.reports()
        cursor = max(0, cursor)
        page = reports[cursor : cursor + limits.STATUS_PAGE]
        following = cursor + limits.STATUS_PAGE
        deadline_at = self.allowance.deadline_at.isoformat()
        return Status(
            goal=one_line(self.request.goal, 400),
            team=self.request.team_name,
            phase=self.phase,
            flags=self.flags,
            revision=self.plan.revision if self.plan.subtasks or self.plan.direct_answer else 0,
            counts=self.board.counts(),
            subtasks=fit_page(page),
            next_cursor=following if following < len(reports) else None,
            usage=self.usage,
            limits=self.allowance.card(),
            waiting=[wait.request(deadline_at) for wait in self.holds.asked()],
            breakers=[*self.holds.cards()],
            review=f"up to {self.request.max_reviews} rounds" if self.request.max_reviews else "off",
            deadline_at=deadline_at,
            warnings=self.warnings,
            model_notice=self.model_notice,
            error=self.error,
        )

    def details(self) -> str:
        """The Markdown for the Web UI."""
        revised = f"plan revision {self.plan.revision}" if self.plan.revision > 1 else None
        notes = [note for note in (self.model_notice, revised, *self.holds.notes(), self.error) if note]
        return markdown(
            self.request.goal, self.phase, self.flags, self.board.counts(), self.board.reports(), self.usage, notes
        )

    def result(self) -> RunResult:
        """The result so far; final once the phase is `done`."""
        now = self.finished_at or self._now()
        reports = self.board.reports()
        gaps = self.gaps
        return RunResult(
            status=self._status(),
            answer=with_gaps(self.answer, gaps) if self.answer else "",
            answer_json=self.answer_json,
            answer_ref=self.answer_ref,
            result_ref=self.result_ref,
            confidence=self.confidence,
            gaps=gaps,
            contradictions=self.contradictions,
            citations=self.citations,
            subtasks=reports,
            artifacts=self._artifacts(),
            usage=self.usage,
            timing=timing(
                reports,
                (now - self.started_at).total_seconds(),
                self.own_seconds,
                now,
            ),
            plan_revisions=self.plan.revision if self.plan.subtasks or self.plan.direct_answer else 0,
            warnings=self.warnings,
        )

    def _artifacts(self) -> list[ArtifactRef]:
        return [artifact for report in self.board.usable() if report.finding for artifact in report.finding.artifacts]

    def _status(self) -> Literal["completed", "partial", "running"]:
        if self.phase not in ("done", "failed", "cancelled"):
            return "running"
        return (
            "completed"
            if _complete(self.board.current()) and self.answer and not self.makeshift and self.phase == "done"
            else "partial"
        )


def _complete(reports: list[SubtaskReport]) -> bool:
    """Whether nothing is missing, on any level."""
    return all(r.state == "completed" and _complete(r.subtasks) for r in reports if r.replaced_by is None)
