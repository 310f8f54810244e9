"""Writing the answer from the findings, and deciding whether there is anything to write it from."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import DependencyRef, RunRef, RunSetup, SynthesisInput
    from supervision import limits
    from supervision.base import SupervisionError
    from supervision.run_state import RunState
    from supervision.turns import more_room
    from workflows import calls
    from workflows.failures import cancelled, model_problem, run_error


async def write_answer(state: RunState, setup: RunSetup, run: RunRef, plan_ref: str) -> str | None:
    """Puts the answer into `state`; returns the reference of its whole text.

    SupervisionError when there is no finding at all, or when no answer could be written.
    """
    usable = state.board.usable()
    if not usable:
        raise _nothing(state)
    max_tokens = limits.SYNTHESIS_MAX_TOKENS
    for number in range(1, limits.CUT_RETRIES + 2):
        state.note("synthesis_started", number=number, findings=len(usable))
        synthesis = SynthesisInput(
            run=run,
            goal_ref=setup.goal_ref,
            plan_ref=plan_ref,
            model=setup.supervisor_model,
            findings=[
                DependencyRef(
                    subtask_id=report.id,
                    role=report.role,
                    text_ref=report.finding.text_ref,
                    complete=report.state == "completed",
                )
                for report in usable
                if report.finding
            ],
            missing=state.board.gaps(),
            number=number,
            max_tokens=max_tokens,
        )
        try:
            reply = await calls.synthesize(synthesis, state.deadline_at)
        except ActivityError as error:
            if cancelled(error):
                raise
            what = model_problem(error)
            raise SupervisionError(run_error(what.type), what.message) from error
        state.own_usage += reply.usage
        if reply.answer is not None:
            state.answer, state.confidence = reply.answer, reply.confidence
            state.citations, state.contradictions = reply.citations, reply.contradictions
            return reply.answer_ref
        if reply.stop_reason == "refusal":
            raise SupervisionError("ProviderRejected", "the model refused to write the answer")
        max_tokens = more_room(max_tokens)
    raise SupervisionError("ProviderRejected", f"the model gave no whole answer in {number} tries")


def _nothing(state: RunState) -> SupervisionError:
    if workflow.now() >= state.deadline_at - state.reserve:
        return SupervisionError("DeadlineExceeded", "the deadline came before there was any finding")
    reasons = "; ".join(f"{gap.subtask_id}: {gap.reason}" for gap in state.board.gaps()[:5])
    return SupervisionError("AllSubtasksFailed", f"no subtask succeeded ({reasons})")
