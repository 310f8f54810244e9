"""Expanding a template: once its items are known a subtask for each takes its place, without a model call."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import ExpandInput, ExpandReply
    from supervision.base.errors import ErrorKind
    from supervision.contract.finding import Labels
    from supervision.contract.plan import template_of
    from supervision.contract.result import Problem
    from supervision.planning.expansion import Room, room_for
    from workflows.calls import run_calls
    from workflows.calls.failures import CallFailed
    from workflows.run_context import RunContext


async def expand(context: RunContext, template_id: str) -> None:
    """Adopts the revision that has the items of a template, as many as the budget has room for; else it fails."""
    state = context.state
    board, template = state.board, state.board.subtask(template_id)
    ended = [report.usage for report in board.reports() if report.state == "completed" and report.finding]
    room = room_for(template, board.items, state.time_and_budget.affordable(template.estimated_tokens, ended))
    findings = [
        report.finding
        for report in board.completed_for(template_id)
        if template.names_items_of in (report.id, template_of(report.id))
    ]
    call = ExpandInput(
        run=context.run,
        plan_ref=context.plan_ref,
        template=template_id,
        named_ref=[finding.items_ref for finding in findings if finding and finding.items_ref],
        attachments=context.setup.attachments,
        room=room.items,
    )
    try:
        reply = await run_calls.expand_plan(call)
    except CallFailed as failed:
        _fail(context, template_id, failed.problem)
        return
    if reply.plan is None:
        _fail(context, template_id, _problem(reply, room, template.for_each or ""))
        return
    labels = Labels.of(findings) | context.plan_labels[template_id]
    context.adopt(reply.plan, reply.plan_ref, reply.items_ref, labels)
    count = min(room.items, reply.found)
    board.leave_out(template_id, reply.found - count, room.why)
    state.trace.note("items_planned", template_id, items=count, found=reply.found, revision=reply.plan.revision)
    context.show()


def _problem(reply: ExpandReply, room: Room, for_each: str) -> Problem:
    if reply.found and not reply.problem:
        return Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=f"none of {reply.found} items: {room.why}")
    return Problem(type=ErrorKind.CANNOT_DO, message=reply.problem or f"there are no items in {for_each}")


def _fail(context: RunContext, template_id: str, problem: Problem) -> None:
    board = context.state.board
    board.begin(template_id, board[template_id].role)
    board.fail(template_id, problem)
    context.state.trace.note("subtask_failed", template_id, error=problem.type, message=problem.message)
