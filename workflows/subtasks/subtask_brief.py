"""The brief of a subtask: everything that an agent needs to know of the run, by reference.

A nested run also gets a request, whose goal is the subtask.
"""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import SubtaskBrief, as_refs, shown_gaps
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.text import cut
    from temporal_supervisor.supervision.contract.finding import Labels
    from temporal_supervisor.supervision.contract.request import RunRequest

    from workflows.subtasks.assignment import Assignment


def brief_of(work: Assignment) -> SubtaskBrief:
    """Returns the brief for the next agent that works on a subtask."""
    plan, setup, board = work.context.plan, work.context.terms.setup, work.context.state.board
    subtask = board.subtask(work.subtask_id)
    wanted = subtask.attachments
    return SubtaskBrief(
        plan_ref=plan.described_in[work.subtask_id],
        subtask_id=work.subtask_id,
        dependencies=as_refs(board.completed_for(work.subtask_id), board),
        missing=shown_gaps(board.missing_for(work.subtask_id)),
        attachments=[item for item in setup.attachments if item.name in wanted],
        description_ref=work.description_ref,
        feedback=work.feedback,
        previous_ref=work.previous.text_ref if work.previous else None,
        names_items=board.names_items(work.subtask_id),
        # Sorted, as those of candidates come in any order: after a reset the brief is the same.
        effects=sorted(work.effects[-limits.EFFECTS_TOLD :]),
        labels=_labels(work),
    )


def nested_request(work: Assignment, team: str | None) -> RunRequest:
    """Returns the request of a team's run, whose goal is the subtask."""
    state = work.context.state
    # Its deadline comes with its instructions, unless the clock stands still when it starts.
    longest = state.time_and_budget.deadline_at - workflow.now()
    description = state.board.subtask(work.subtask_id).description
    own: dict[str, object] = {
        "goal": cut(description, limits.GOAL_BYTES),
        "team": team,
        "strategy": "auto",
        "plan": None,
        "approve_plan": False,
        "success": "any",
        "deadline": max(longest, limits.MIN_DEADLINE),
        "incremental_synthesis": 0,
        "answer_schema": None,
        "attachments": [],
    }
    return state.request.model_copy(update=own)


def _labels(work: Assignment) -> Labels:
    """Returns the labels of all texts that the brief refers to."""
    context, board = work.context, work.context.state.board
    subtask = board.subtask(work.subtask_id)
    completed = board.completed_for(work.subtask_id)
    labels = Labels.of(report.finding for report in completed)
    labels |= context.plan.labels[work.subtask_id]
    has_gaps = bool(board.missing_for(work.subtask_id))
    if has_gaps or work.feedback or work.description_ref or work.effects:
        # Words of others on the work so far.
        labels |= context.state.work_done.labels
    if subtask.attachments or subtask.template:
        labels |= context.terms.setup.data_labels
    return labels
