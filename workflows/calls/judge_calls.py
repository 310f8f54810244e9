"""Calls for judgement: which candidate is best, who is right, how a failed subtask should be described."""

from typing import Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import DependencyRef
    from activities.questions.judgement import JUDGE, REFINE, JudgeInput, JudgeReply, RefineInput, RefineReply
    from supervision.base import limits
    from supervision.budget.amount import call_estimate
    from supervision.contract.finding import Finding
    from supervision.contract.result import Contradiction, Problem, SubtaskReport
    from workflows.calls.asking import ask_or_warn
    from workflows.calls.finding_refs import as_refs, estimate
    from workflows.run_context import RunContext


async def select(context: RunContext, subtask_id: str, findings: list[tuple[str, Finding]]) -> int:
    """Returns the index of the best of several candidates' findings, by role; 0 if the judge has no choice."""
    refs = as_refs(
        [SubtaskReport(id=subtask_id, role=role, state="completed", finding=finding) for role, finding in findings]
    )
    choice, reason = await _chosen(context, context.state.board.subtask(subtask_id).description, refs)
    context.state.trace.note("candidate_chosen", subtask_id, choice=choice + 1, of=len(findings), reason=reason)
    return choice


async def choose_answer(context: RunContext, reports: list[SubtaskReport]) -> int:
    """Returns the index of the finding that answers the goal best; 0 if the judge has no choice."""
    question = "Each candidate is an answer to the whole goal. Choose the one that answers it best."
    choice, reason = await _chosen(context, question, as_refs(reports, context.state.board))
    context.state.trace.note("answer_chosen", reports[choice].id, choice=choice + 1, of=len(reports), reason=reason)
    return choice


async def _chosen(context: RunContext, question: str, findings: list[DependencyRef]) -> tuple[int, str]:
    """Returns the index of the judge's choice, and its reason."""
    reply = await _judge(context, "select", question, findings)
    choice = reply.choice if reply and reply.choice is not None and reply.choice < len(findings) else 0
    return choice, reply.resolution if reply else ""


async def resolve(context: RunContext, conflict: Contradiction) -> str:
    """Returns a judge's resolution of findings that disagree; empty when there is none."""
    findings = as_refs([context.state.board[subtask_id] for subtask_id in conflict.subtask_ids])
    reply = await _judge(context, "conflict", conflict.description, findings)
    if reply is None or not reply.resolution:
        return ""
    if reply.choice is None:
        return reply.resolution
    return f"{findings[reply.choice].subtask_id} counts: {reply.resolution}"


async def _judge(
    context: RunContext, question: Literal["select", "conflict"], description: str, findings: list[DependencyRef]
) -> JudgeReply | None:
    call = JudgeInput(
        **context.call_fields,
        number=context.state.next_number("judge"),
        question=question,
        description=description,
        findings=findings,
    )
    reply = await ask_or_warn(context, JUDGE, call, estimate(findings, context.setup), "there was no judgement")
    if reply and reply.problem:
        context.state.warn(f"a judgement could not be read: {reply.problem}")
    return reply


async def refine(
    context: RunContext,
    subtask_id: str,
    role: str,
    description_ref: str | None,
    problem: Problem,
    conversation: str | None,
) -> RefineReply | None:
    """Returns a better description after a failed attempt, by reference; None when there is none.

    `conversation` is the head of the attempt's: it shows what was tried.
    """
    call = RefineInput(
        **{**context.call_fields, "plan_ref": context.described_in[subtask_id]},
        team_ref=context.team_ref,
        subtask_id=subtask_id,
        description_ref=description_ref,
        role=role,
        attempt=context.state.board[subtask_id].attempts + 1,
        error=problem,
        tried_ref=conversation,
    )
    tokens = call_estimate(limits.JUDGEMENT_PROMPT_BYTES)
    reply = await ask_or_warn(context, REFINE, call, tokens, f"{subtask_id} could not be described better")
    return reply if reply and reply.description_ref else None
