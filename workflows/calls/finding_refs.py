"""Findings of a board as activities take them: by reference, with size and weight."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import DependencyRef, RunSetup, WorkNote
    from supervision.base import limits
    from supervision.base.text import cut, one_line
    from supervision.budget.amount import call_estimate
    from supervision.contract.plan import template_of
    from supervision.contract.result import Gap, SubtaskReport
    from supervision.run.board import Board


def as_refs(reports: list[SubtaskReport], board: Board | None = None) -> list[DependencyRef]:
    """Returns the findings of those reports that have one, weighted by the board."""
    return [
        DependencyRef(
            subtask_id=report.id,
            role=report.role,
            text_ref=report.finding.text_ref,
            bytes=report.finding.text_bytes,
            weight=board.subtask(report.id).weight if board else 0.5,
            complete=report.state == "completed",
            partial=report.finding.outcome == "partial",
            stale=report.stale,
            record_ref=report.finding.record_ref,
            output_ref=report.finding.output_ref,
        )
        for report in reports
        if report.finding
    ]


def shown(gaps: list[Gap]) -> list[Gap]:
    """Returns the gaps for a prompt: as much of the reasons as it shows, of the others the ids alone."""
    return [
        Gap(
            subtask_id=gap.subtask_id,
            description=gap.description if place < limits.GAPS_SHOWN else "",
            reason=cut(gap.reason, limits.SENTENCE_BYTES) if place < limits.GAPS_SHOWN else "",
        )
        for place, gap in enumerate(gaps)
    ]


def estimate(findings: list[DependencyRef], setup: RunSetup) -> int:
    """Returns the tokens of a call with those findings in its prompt, which holds as many as the model has room for."""
    shown = min(sum(finding.bytes for finding in findings), setup.prompt_bytes)
    return call_estimate(shown + limits.JUDGEMENT_PROMPT_BYTES)


def notes(board: Board) -> list[WorkNote]:
    """Returns one note a subtask for the planner, within one payload however many there are."""
    reports = [report for report in board.reports() if template_of(report.id) is None]
    room = max(limits.NOTE_LEAST_BYTES, limits.NOTES_BYTES // max(1, len(reports)))
    return [
        WorkNote(
            subtask_id=r.id, role=r.role, state=r.state, note=one_line(_note_text(r), min(room, limits.PARAGRAPH_BYTES))
        )
        for r in reports
    ]


def _note_text(report: SubtaskReport) -> str:
    if report.counts:
        return f"{report.counts.completed} of {report.counts.total} items completed"
    if report.error:
        tries = f" (after {report.attempts} attempts)" if report.attempts > 1 else ""
        return f"{report.error.type}: {report.error.message}{tries}"
    return report.finding.summary if report.finding else report.description
