"""The state of a run as its workflow keeps it: what the queries show and the result is made of."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from pydantic import JsonValue

from supervision import limits
from supervision.board import Board
from supervision.details import markdown
from supervision.finding import ArtifactRef
from supervision.fitting import fit_page
from supervision.honesty import with_gaps
from supervision.plan import Plan
from supervision.request import RunRequest
from supervision.result import Citation, Contradiction, RunResult
from supervision.status import Flags, Phase, RunLimits, Status, TraceEvent, TracePage
from supervision.text import cut, one_line
from supervision.timing import timing
from supervision.usage import Usage


class RunState:
    """Everything a run knows. `now` is the run's clock; times are aware datetimes in UTC."""

    def __init__(self, request: RunRequest, now: Callable[[], datetime], started_at: datetime) -> None:
        self.request = request
        self.plan = Plan(goal=cut(request.goal, limits.SUMMARY_BYTES))
        self.board = Board(self.plan, now)
        self.phase: Phase = "planning"
        self.flags = Flags()
        self.own_usage = Usage()
        self.warnings: list[str] = []
        self.model_notice: str | None = None
        self.error: str | None = None
        self.answer = ""
        self.confidence: float | None = None
        self.citations: list[Citation] = []
        self.contradictions: list[Contradiction] = []
        self.planning_seconds = 0.0
        self.synthesis_seconds = 0.0
        self.events: list[TraceEvent] = []
        self._seq = 0
        self._now = now
        self.started_at = started_at
        self.finished_at: datetime | None = None

    @property
    def team_name(self) -> str:
        """The team's name, also of an inline one."""
        return self.request.team if isinstance(self.request.team, str) else self.request.team.name

    @property
    def deadline_at(self) -> datetime:
        """When the run must have answered."""
        return self.started_at + self.request.deadline

    @property
    def reserve(self) -> timedelta:
        """The part of the deadline kept back for the synthesis."""
        return min(limits.SYNTHESIS_RESERVE, self.request.deadline * limits.SYNTHESIS_RESERVE_SHARE)

    @property
    def usage(self) -> Usage:
        """What the run consumed: the supervisor's own calls and all subtasks'."""
        return sum((report.usage for report in self.board.reports()), start=self.own_usage)

    def adopt(self, plan: Plan) -> None:
        """Takes a plan over."""
        self.plan = plan
        self.board = Board(plan, self._now)

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
        return Status(
            goal=one_line(self.request.goal, 400),
            team=self.team_name,
            phase=self.phase,
            flags=self.flags,
            revision=self.plan.revision if self.plan.subtasks or self.plan.direct_answer else 0,
            counts=self.board.counts(),
            subtasks=fit_page(page),
            next_cursor=following if following < len(reports) else None,
            usage=self.usage,
            limits=RunLimits(
                max_subtasks=self.request.max_subtasks,
                max_parallel=self.request.max_parallel,
                max_turns=self.request.max_turns,
                deadline_seconds=self.request.deadline.total_seconds(),
                budget_tokens=self.request.budget.tokens,
                budget_usd=self.request.budget.usd,
            ),
            deadline_at=self.deadline_at.isoformat(),
            warnings=self.warnings,
            model_notice=self.model_notice,
            error=self.error,
        )

    def details(self) -> str:
        """The Markdown for the Web UI."""
        notes = [*([self.model_notice] if self.model_notice else []), *([self.error] if self.error else [])]
        return markdown(
            self.request.goal, self.phase, self.flags, self.board.counts(), self.board.reports(), self.usage, notes
        )

    def result(self) -> RunResult:
        """The result so far; final once the phase is `done`."""
        now = self.finished_at or self._now()
        reports = self.board.reports()
        gaps = self.board.gaps()
        return RunResult(
            status=self._status(),
            answer=with_gaps(self.answer, gaps) if self.answer else "",
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
                self.planning_seconds,
                self.synthesis_seconds,
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
        complete = all(report.state == "completed" for report in self.board.reports())
        return "completed" if complete and self.answer and self.phase == "done" else "partial"
