"""What a tool loop comes to: the finding of a conclusion, of a loop that was stopped, or the problem it ends with."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import TurnReply
    from supervision.agent.turn_rules import WINDOW_FULL, Next
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.errors import ErrorKind
    from workflows.child_contracts import LoopProgress


def finding_of(step: Next, reply: TurnReply, progress: LoopProgress) -> Finding | None:
    """Returns the finding of a reply that concludes, or with which the loop has to end; None if it goes on."""
    if step in (Next.FINISH, Next.FINISH_CUT):
        conclusion = reply.conclusion
    else:
        conclusion = reply.earlier if step in (Next.TURN_LIMIT, Next.BROKEN) else None
    if conclusion is None:
        return None
    missing: list[str] = []
    if reply.stop_reason in ("tool_use", "pause_turn") or conclusion is reply.earlier:
        missing.append("the finding is not whole: the turns were over before the worker agent concluded")
    elif step is Next.FINISH_CUT:
        missing.append(f"the finding is not whole: the model stopped with {reply.stop_reason}")
    return Finding(
        outcome="partial" if missing or conclusion.outcome == "partial" else "done",
        summary=conclusion.summary,
        text_ref=conclusion.text_ref,
        text_bytes=conclusion.bytes,
        unsupported=conclusion.unsupported,
        record_ref=conclusion.record_ref,
        confidence=conclusion.confidence,
        sources=progress.grounds.sources,
        artifacts=progress.grounds.artifacts,
        limitations=[*conclusion.limitations, *missing, *progress.grounds.limitations()],
    )


def finding_so_far(progress: LoopProgress) -> Finding | None:
    """Returns the last text of the worker agent, if any, as a finding."""
    if not progress.last_text_ref:
        return None
    return Finding(
        outcome="partial",
        summary=progress.last_preview,
        text_ref=progress.last_text_ref,
        sources=progress.grounds.sources,
        artifacts=progress.grounds.artifacts,
        limitations=["the worker agent was stopped before it had finished", *progress.grounds.limitations()],
    )


def loop_problem(step: Next, reply: TurnReply, max_turns: int) -> Problem:
    """Returns the problem of a loop that ends without a finding."""
    if step is Next.REFUSED:
        detail = f": {reply.stop_detail}" if reply.stop_detail else ""
        return Problem(type=ErrorKind.REFUSED, message=f"the model refused this subtask{detail}")
    if step is Next.TURN_LIMIT:
        return Problem(type=ErrorKind.TURN_LIMIT, message=f"no finding after {max_turns} turns")
    if reply.stop_reason == WINDOW_FULL:
        message = "the conversation does not fit into the model's window, and nothing of it can be left out"
        return Problem(type=ErrorKind.CONTEXT_OVERFLOW, message=message)
    return Problem(
        type=ErrorKind.MODEL_UNAVAILABLE, message=f"the model gave no usable reply (stop reason {reply.stop_reason})"
    )
