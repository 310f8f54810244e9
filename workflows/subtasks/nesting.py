"""A role that is a team: its subtask is a run of a supervisor of its own, one level deeper."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import SubtaskBrief
    from supervision import limits
    from supervision.budget.amount import Amount
    from supervision.contract.request import RunRequest
    from supervision.contract.team import RoleCard
    from supervision.text import cut
    from workflows.child_contracts import NestedInput
    from workflows.run_context import RunContext


def nested_input(
    context: RunContext, subtask_id: str, role: RoleCard, brief: SubtaskBrief, grant: Amount
) -> tuple[RunRequest, NestedInput]:
    """Returns a nested supervisor's inputs: the subtask as its goal, a slice of budget and deadline, one level less."""
    state = context.state
    left = (state.time_and_budget.work_until - workflow.now()) * limits.NESTED_DEADLINE_SHARE
    deadline = max(left, limits.MIN_DEADLINE)
    request = state.request.model_copy(
        update={
            "goal": cut(state.board.subtask(subtask_id).description, limits.GOAL_BYTES),
            "team": role.team,
            "strategy": "auto",
            "success": "any",
            "deadline": deadline,
            "incremental_synthesis": 0,
            "answer_schema": None,
            "attachments": [],
        }
    )
    nested = NestedInput(
        root_id=context.run.run_id,
        store_id=context.run.store_id,
        subtask_id=subtask_id,
        depth=context.depth + 1,
        brief=brief,
        grant=grant,
        root_has_finding=state.has_finding,
    )
    return request, nested
