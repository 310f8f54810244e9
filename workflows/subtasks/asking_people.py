"""What the work on a subtask asks people: its worker agent's questions and tool calls, or the finding itself."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import WordsInput
    from activities.contracts.turn_contracts import PersonReply, ToolCallRef, ToolResultRef
    from activities.prompts.agent_prompts import denied, unanswered
    from supervision.base import limits
    from supervision.base.errors import ErrorKind
    from supervision.base.text import cut, one_line
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.contract.status import Wait
    from supervision.contract.team import Person
    from supervision.run.decisions import Decision
    from workflows.calls import run_calls
    from workflows.children.child_contracts import LoopProgress, WorkerAgentResult
    from workflows.run_context import RunContext
    from workflows.subtasks.assignment import Assignment


async def ask_about_calls(context: RunContext, subtask_id: str, attempt: str, progress: LoopProgress) -> LoopProgress:
    """Returns the progress of a worker agent once people have decided about all calls of its last turn.

    What they replied and denied are results; what they approved is to be run. Raises SupervisionError
    `DeadlineExceeded` if the run's time is over first.
    """
    timeout = context.state.request.approval_timeout
    waits = [_wait(subtask_id, f"{attempt}:{progress.turn}.{call.index}", call) for call in progress.pending]
    asking = [context.decision(wait, timeout, call.asked) for wait, call in zip(waits, progress.pending, strict=True)]
    decisions = await asyncio.gather(*asking, return_exceptions=True)
    results, approved = [*progress.results], [*progress.approved]
    for call, decision in zip(progress.pending, decisions, strict=True):
        if isinstance(decision, BaseException):
            raise decision
        if decision is not None and decision.choice == "approve":
            approved.append(call)
        elif decision is not None and call.waits_for == "reply":
            reply = PersonReply(asked=call.asks, text_ref=(await kept(context, decision)).text_ref)
            approved.append(call.model_copy(update={"replies": [*call.replies, reply]}))
        else:
            results.append(await _result(context, call, decision))
    return progress.model_copy(update={"pending": [], "results": results, "approved": approved})


def _wait(subtask_id: str, place: str, call: ToolCallRef) -> Wait:
    is_tool = call.waits_for == "tool"
    again = f".{len(call.replies)}" if call.waits_for == "reply" else ""
    return Wait(
        id=f"{subtask_id}/{place}{again}",
        kind="tool" if is_tool else "question",
        workflow_id=workflow.info().workflow_id,
        subtask_id=subtask_id,
        prompt_preview=f"{call.name} {call.preview}" if is_tool else (call.asks and call.asked) or call.preview,
        arguments_sha256=call.arguments_sha256 if is_tool else None,
        choices=["approve", "deny"] if is_tool else call.choices,
        content_ref=call.asked_ref,
        after=call.after,
        since=workflow.now().isoformat(),
    )


async def _result(context: RunContext, call: ToolCallRef, decision: Decision | None) -> ToolResultRef:
    """Returns the output of a call that is not run: a person's reply, or why there is none."""
    if decision is None:
        return ToolResultRef(call_id=call.call_id, text=unanswered(call.waits_for != "tool"), is_error=True)
    if decision.choice == "deny":
        return ToolResultRef(call_id=call.call_id, text=denied(decision.text), is_error=True)
    words = await kept(context, decision)
    return ToolResultRef(call_id=call.call_id, ref=words.text_ref, sources=words.sources)


async def ask_for_finding(assignment: Assignment, attempt: int, person: Person) -> WorkerAgentResult:
    """Returns what a person hands in as the finding of a subtask."""
    context, report = assignment.context, assignment.report
    parts = [context.state.board.subtask(assignment.subtask_id).whole]
    if assignment.feedback:
        parts.append(f"A review of the finding so far says: {assignment.feedback}")
    for dependency in context.state.board.completed_for(assignment.subtask_id):
        if dependency.finding is not None:
            parts.append(f"{dependency.id} ({dependency.role}) found: {dependency.finding.summary}")
    wait = _finding_wait(assignment.subtask_id, attempt, f"{report.role} ({person.who}): {parts[0]}")
    decision = await context.decision(wait, person.expires, _joined(parts))
    if decision is not None:
        return WorkerAgentResult(finding=await kept(context, decision))
    why = f"{person.who} gave no finding in time"
    return WorkerAgentResult(problem=Problem(type=ErrorKind.TIMEOUT, message=why))


async def ask_for_help(assignment: Assignment, problem: Problem) -> Decision | None:
    """Returns what a person says about a subtask that failed for good; None if the time is over first.

    A `reply` is its finding; with `retry` it is tried again, by what the text says.
    """
    report = assignment.report
    failed = f"failed for good after {report.attempts} attempts ({problem.type}): {problem.message}"
    description = assignment.context.state.board.subtask(assignment.subtask_id).whole
    content = _joined([description, f"It {failed}", *([] if not assignment.so_far else [assignment.so_far.summary])])
    wait = _finding_wait(assignment.subtask_id, report.attempts, f"{failed}: {description}")
    wait.choices = ["reply", "retry", "skip"]
    return await assignment.context.decision(wait, assignment.context.state.request.approval_timeout, content)


def _finding_wait(subtask_id: str, attempt: int, preview: str) -> Wait:
    return Wait(
        id=f"{subtask_id}/{attempt}",
        kind="finding",
        workflow_id=workflow.info().workflow_id,
        subtask_id=subtask_id,
        prompt_preview=one_line(preview, limits.PARAGRAPH_BYTES),
        since=workflow.now().isoformat(),
    )


def _joined(parts: list[str]) -> str:
    return cut("\n\n".join(parts), limits.PAYLOAD_AIM_BYTES)


async def kept(context: RunContext, decision: Decision) -> Finding:
    """Returns a person's words, stored, as a finding. Raises CallFailed."""
    source = f"person {decision.by}" if decision.by else "a person"
    return await run_calls.keep_words(WordsInput(run=context.run, text=decision.text, source=source))
