"""Writing the answer from the findings, in several steps when they are too many for one prompt."""

from typing import Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.judgement_contracts import SynthesisInput, SynthesisReply
    from activities.contracts.run_contracts import DependencyRef
    from supervision import limits
    from supervision.agent.finding_budget import groups
    from supervision.agent.tool_loop import more_room
    from supervision.errors import ErrorKind, SupervisionError
    from supervision.run.answer_checks import unwritten
    from workflows.answer.drafts import Drafts
    from workflows.calls import activity_calls
    from workflows.calls.finding_refs import as_refs, estimate
    from workflows.run_context import RunContext


_OUT_OF_MEANS = (ErrorKind.DEADLINE_EXCEEDED, ErrorKind.BUDGET_EXHAUSTED)


async def write_answer(context: RunContext, drafts: Drafts) -> None:
    """Puts the answer into the run's state; SupervisionError when none could be written.

    When time or budget do not suffice for it, the findings as they came are the answer, unless it should be JSON.
    """
    state, began = context.state, workflow.now()
    await drafts.stop()
    findings = as_refs(state.board.usable(), state.board)
    if drafts.draft_ref:
        findings = [finding for finding in findings if finding.subtask_id not in drafts.folded]
    try:
        reply = await _final(context, await _reduced(context, findings), drafts.draft_ref)
    except SupervisionError as error:
        if error.kind not in _OUT_OF_MEANS or context.setup.answer_schema_ref:
            raise
        state.answer, state.makeshift = unwritten(state.board.usable(), error.message), True
        state.warn(f"no answer could be written: {error.message}")
        return
    state.answer, state.answer_ref, state.answer_json = reply.answer or "", reply.answer_ref, reply.answer_json
    state.confidence, state.citations = reply.confidence, reply.citations
    for found in reply.contradictions:
        if not any(set(found.subtask_ids) == set(known.subtask_ids) for known in state.contradictions):
            state.contradictions.append(found)
    state.own_seconds += (workflow.now() - began).total_seconds()


async def _reduced(context: RunContext, findings: list[DependencyRef]) -> list[DependencyRef]:
    """Condenses groups of findings, in rounds, until all fit into one prompt."""
    while sum(finding.bytes for finding in findings) > limits.CONTEXT_CHARS and len(findings) > 1:
        condensed = []
        for group in groups([finding.bytes for finding in findings], limits.CONTEXT_CHARS):
            members = [findings[index] for index in group]
            if len(members) == 1:
                condensed += members
                continue
            reply = await _call(context, members, "digest")
            if reply.answer_ref is None:
                return findings  # the prompt cuts what does not fit
            condensed.append(
                DependencyRef(
                    subtask_id=members[0].subtask_id,
                    role="digest",
                    text_ref=reply.answer_ref,
                    bytes=reply.answer_bytes,
                )
            )
        if len(condensed) >= len(findings):
            return findings
        findings = condensed
    return findings


async def _final(context: RunContext, findings: list[DependencyRef], draft_ref: str | None) -> SynthesisReply:
    """The answer; asked again with more room when it was cut, sent back once when its JSON does not fit."""
    reply = await _call(context, findings, "final", draft_ref=draft_ref)
    if reply.problems:
        reply = await _call(context, findings, "final", draft_ref, reply.head, reply.problems)
        if reply.problems:
            raise SupervisionError(
                ErrorKind.PROVIDER_REJECTED, "answer_json does not fit answer_schema: " + "; ".join(reply.problems)
            )
    return reply


async def _call(
    context: RunContext,
    findings: list[DependencyRef],
    mode: Literal["final", "digest"],
    draft_ref: str | None = None,
    head: str | None = None,
    problems: list[str] | None = None,
) -> SynthesisReply:
    state, setup = context.state, context.setup
    max_tokens = limits.SYNTHESIS_MAX_TOKENS
    for _ in range(limits.CUT_RETRIES + 1):
        state.syntheses += 1
        input = SynthesisInput(
            run=context.run,
            goal_ref=setup.goal_ref,
            plan_ref=context.plan_ref,
            model=setup.supervisor_model,
            findings=findings,
            missing=state.board.gaps() if mode == "final" else [],
            open_points=state.open_points if mode == "final" else [],
            contradictions=state.contradictions,
            mode=mode,
            draft_ref=draft_ref,
            answer_schema_ref=setup.answer_schema_ref if mode == "final" else None,
            head=head,
            problems=problems or [],
            number=state.syntheses,
            max_tokens=max_tokens,
        )
        state.note("synthesis_started", number=input.number, findings=len(findings), mode=mode)
        reply = await context.ask(
            "the answer",
            estimate(findings),
            lambda by, input=input: activity_calls.synthesize(input, by),  # type: ignore[misc]
            last=True,
        )
        if reply.answer is not None:
            return reply
        if reply.stop_reason == "refusal":
            raise SupervisionError(ErrorKind.PROVIDER_REJECTED, "the model refused to write the answer")
        max_tokens = more_room(max_tokens)
    raise SupervisionError(ErrorKind.PROVIDER_REJECTED, "the model gave no whole answer")
