"""Answers that are a finding word for word: of a route to one role, and of a plan whose findings are rival answers."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import AdoptInput
    from supervision.contract.result import SubtaskReport
    from supervision.contract.strategy import STRATEGIES, StrategyName
    from supervision.results.answer import Answer
    from workflows.calls import run_calls
    from workflows.calls.judge_calls import choose_answer
    from workflows.failures import CallFailed
    from workflows.run_context import RunContext


def sole_finding(context: RunContext, strategy: StrategyName) -> SubtaskReport | None:
    """Returns the subtask whose finding is the answer: that of a route to one role. None if there is no such."""
    reports = context.state.board.reports()
    if STRATEGIES[strategy].answer != "finding" or len(reports) != 1 or context.setup.answer_schema_ref is not None:
        return None
    return reports[0] if reports[0].finding else None


async def answer_word_for_word(context: RunContext, strategy: StrategyName) -> bool:
    """Makes a finding the answer as it stands, where strategy or plan say so. Returns False if one is to be written."""
    report = sole_finding(context, strategy) or await _best_finding(context)
    return report is not None and await _take(context, report)


async def _best_finding(context: RunContext) -> SubtaskReport | None:
    """Returns the subtask whose finding a judge chose as the answer; None if the plan does not ask for a choice."""
    state = context.state
    if state.plan.aggregation != "select" or context.setup.answer_schema_ref is not None:
        return None
    rivals = [report for report in state.board.current() if report.state == "completed" and report.finding]
    return rivals[await choose_answer(context, rivals) if len(rivals) > 1 else 0] if rivals else None


async def _take(context: RunContext, report: SubtaskReport) -> bool:
    """Makes a subtask's finding the answer, under its role's label. Returns False if it could not be read."""
    finding, role = report.finding, context.team.find(report.role)
    if finding is None:
        return False
    label = role.label if role else None
    try:
        reply = await run_calls.adopt_finding(AdoptInput(run=context.run, text_ref=finding.text_ref, label=label))
    except CallFailed as failed:
        context.state.warn(f"the finding of {report.id} could not be taken as the answer: {failed}")
        return False
    context.state.answer = Answer(reply.answer, reply.answer_ref, confidence=finding.confidence)
    context.state.trace.note("finding_adopted", report.id)
    return True
