"""Questions to people about a subtask: for its finding, or for help after it failed."""

from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.base.text import cut, one_line
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.team import Person
    from temporal_supervisor.supervision.run.decisions import Decision

    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.subtasks.assignment import Assignment


async def finding_by(person: Person, work: Assignment) -> WorkerAgentResult:
    """Returns the finding that a person submits for a subtask, or a `Timeout` problem.

    Raises SupervisionError `DeadlineExceeded` if the run's time is over first, and CallFailed if
    the finding could not be stored.
    """
    board, report = work.context.state.board, work.report
    description = board.subtask(work.subtask_id).whole
    parts = [description]
    if work.feedback:
        parts.append(f"A review of the finding so far says: {work.feedback}")
    for dependency in board.completed_for(work.subtask_id):
        if dependency.finding is not None:
            author = f"{dependency.id} ({dependency.role})"
            parts.append(f"{author} found: {dependency.finding.summary}")
    preview = f"{report.role} ({person.who}): {description}"
    attempt = f"{work.subtask_id}/{report.attempts}"
    decision = await _ask_person(work, attempt, preview, parts, person.expires)
    if decision is not None:
        return WorkerAgentResult(finding=await work.context.waiting.stored_words(decision))
    why = f"{person.who} gave no finding in time"
    return WorkerAgentResult(problem=Problem(type=ErrorKind.TIMEOUT, message=why))


async def help_after(problem: Problem, work: Assignment, so_far: Finding | None) -> Decision | None:
    """Returns a person's decision about a subtask that failed for good; None without one.

    Raises SupervisionError `DeadlineExceeded` if the run's time is over first.
    """
    state, report = work.context.state, work.report
    why = f"({problem.type}): {problem.message}"
    failed = f"failed for good after {report.attempts} attempts {why}"
    description = state.board.subtask(work.subtask_id).whole
    parts = [description, f"It {failed}"]
    if so_far is not None:
        parts.append(so_far.summary)
    # A person who gave no finding in time was asked under the attempt's own id.
    suffix = ":failed" if work.role.person else ""
    place = f"{work.subtask_id}/{report.attempts}{suffix}"
    timeout, choices = state.request.approval_timeout, ("reply", "retry", "skip")
    return await _ask_person(work, place, f"{failed}: {description}", parts, timeout, choices)


async def _ask_person(
    work: Assignment,
    place: str,
    preview: str,
    parts: list[str],
    timeout: timedelta,
    choices: Sequence[str] = (),
) -> Decision | None:
    """Returns a person's decision about the subtask, or their finding; None after the `timeout`."""
    content = "\n\n".join(parts)
    waiting = work.context.waiting
    wait = waiting.new_wait(
        place,
        "finding",
        content,
        work.context.plan.described_in[work.subtask_id],
        subtask_id=work.subtask_id,
        prompt_preview=one_line(preview, limits.PARAGRAPH_BYTES),
        choices=[*choices],
    )
    return await waiting.decision(wait, timeout, cut(content, limits.PAYLOAD_AIM_BYTES))
