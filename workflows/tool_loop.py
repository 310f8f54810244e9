"""The tool loop of a worker agent: model call, tool calls, model call, ... until the finding."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import (
        ToolCallRef,
        ToolInput,
        ToolReply,
        ToolResultRef,
        TurnInput,
        TurnReply,
    )
    from activities.prompts.agent_prompts import LAST_TURN, NUDGE, UNKNOWN_OUTCOME
    from supervision import limits
    from supervision.agent.turn_rules import LoopState, Next, more_room, next_step
    from supervision.budget.amount import NextCall, next_call
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.contract.usage import Usage
    from supervision.errors import RESUMABLE, STORE, ErrorKind
    from supervision.run.trace import Trace
    from workflows.calls import activity_calls
    from workflows.child_contracts import WorkerAgentInput, WorkerAgentResult
    from workflows.failures import CallFailed


class ToolLoop:
    """The loop of one attempt. `agent.progress` is its state: a conversation's head, counts, what was consumed."""

    def __init__(self, agent: WorkerAgentInput, trace: Trace) -> None:
        self._agent = agent
        self._progress = agent.progress
        self._trace = trace

    async def run(self) -> WorkerAgentResult:
        """Returns the finding. Raises the error that ends the attempt, CallFailed, or CancelledError."""
        agent, progress = self._agent, self._progress
        asked_again, note, max_tokens = 0, None, agent.role.max_tokens or limits.TURN_MAX_TOKENS
        while True:
            progress.turn += 1
            if self._must_conclude() and progress.turn > 1:
                note = LAST_TURN
            reply = await self._call_model(note, max_tokens)
            state = LoopState(progress.turn, agent.max_turns, asked_again, progress.pauses)
            step = next_step(reply.stop_reason, reply.conclusion is not None, len(reply.calls), state)
            if step is Next.ASK_AGAIN:
                asked_again, max_tokens = asked_again + 1, more_room(max_tokens)
                continue
            progress.head, progress.results, note, asked_again = reply.head, [], None, 0
            if step in (Next.FINISH, Next.FINISH_CUT):
                return self._result(self._finding(reply, cut=step is Next.FINISH_CUT))
            if step is Next.TOOLS:
                progress.results = await self._run_tools(reply)
            elif step is Next.CONTINUE:
                progress.pauses += 1
            elif step is Next.NUDGE:
                note = NUDGE
            else:
                raise self.failure(_loop_problem(step, reply, agent.max_turns))
            if workflow.info().is_continue_as_new_suggested():
                progress.trace_seq = self._trace.last_seq
                workflow.continue_as_new(agent)

    def stopped(self) -> WorkerAgentResult:
        """Returns what a cancelled worker agent has."""
        return self._result(self._finding_so_far(), stopped=True)

    def failure(self, problem: Problem, retry_after: float = 0.0) -> ApplicationError:
        """Returns the error of this attempt; one that it can go on from later carries where it stands."""
        progress = self._progress
        consumed = self._result(None)
        if problem.type in RESUMABLE:
            consumed.finding = self._finding_so_far()
            # The turn that could not be made is counted when it is.
            consumed.turns = max(0, consumed.turns - 1)
            consumed.progress = progress.model_copy(update={"turn": progress.turn - 1})
            consumed.retry_after = retry_after
        return ApplicationError(problem.message, consumed, type=problem.type, non_retryable=True)

    def _must_conclude(self) -> bool:
        """True if the call that comes now is the last one, by turns or by budget; raises if there can be none."""
        agent, progress = self._agent, self._progress
        estimate = progress.last_tokens + limits.TURN_GROWTH_TOKENS
        allowed = next_call(agent.grant, progress.usage, estimate, last_grant=agent.last_grant)
        if allowed is NextCall.STOP:
            raise self.failure(Problem(type=ErrorKind.BUDGET_EXHAUSTED, message="its share of the budget is used up"))
        return allowed is NextCall.CONCLUDE or progress.turn == agent.max_turns

    async def _call_model(self, note: str | None, max_tokens: int) -> TurnReply:
        agent, progress = self._agent, self._progress
        reply = await activity_calls.call_model(
            TurnInput(
                run=agent.run,
                team_ref=agent.team_ref,
                role=agent.role.name,
                model=agent.role.model,
                step=f"turn.{progress.turn}",
                brief=agent.brief if progress.head is None else None,
                head=progress.head,
                results=progress.results,
                note=note,
                max_tokens=max_tokens,
            ),
            progress.turn,
            agent.expires_at,
            agent.model_queue,
        )
        progress.usage += reply.usage
        progress.last_tokens = reply.usage.tokens
        if reply.preview:
            progress.last_preview = reply.preview
        if reply.conclusion:
            progress.last_text_ref = reply.conclusion.text_ref
        self._trace.note(
            "turn",
            agent.subtask_id,
            turn=progress.turn,
            stop_reason=reply.stop_reason,
            preview=reply.preview[:200],
            tokens=reply.usage.tokens,
        )
        return reply

    async def _run_tools(self, reply: TurnReply) -> list[ToolResultRef]:
        """Runs all tool calls of a turn in parallel; returns the results in the order of the calls."""
        agent, progress = self._agent, self._progress
        running = [self._run_tool(reply.head, call) for call in reply.calls[: limits.TOOL_CALLS_PER_TURN]]
        # Progress is changed only after all have ended: a cancellation in between finds it as it was at the reply.
        replies = await asyncio.gather(*running)
        for tool_reply in replies:
            progress.usage += Usage(tool_calls=1)
            progress.sources = list(dict.fromkeys([*progress.sources, *tool_reply.sources]))
            progress.artifacts += [
                artifact.model_copy(update={"subtask_id": agent.subtask_id}) for artifact in tool_reply.artifacts
            ]
        surplus = f"at most {limits.TOOL_CALLS_PER_TURN} tool calls are run in one turn: call it again in the next"
        return [tool_reply.result for tool_reply in replies] + [
            ToolResultRef(call_id=call.call_id, text=surplus, is_error=True)
            for call in reply.calls[limits.TOOL_CALLS_PER_TURN :]
        ]

    async def _run_tool(self, head: str, call: ToolCallRef) -> ToolReply:
        agent = self._agent
        granted = {tool.name: tool for tool in agent.role.tools}
        payload = ToolInput(
            run=agent.run,
            team_ref=agent.team_ref,
            role=agent.role.name,
            head=head,
            call=call,
            attachments=agent.brief.attachments,
        )
        try:
            reply = await activity_calls.run_tool(payload, granted.get(call.name), agent.tools_queue)
        except CallFailed as failed:
            if failed.problem.type in STORE | {ErrorKind.NOT_GRANTED}:
                raise  # what the run needs is gone, which is no result of the tool
            reply = _no_outcome(call, failed)
        self._trace.note(
            "tool",
            agent.subtask_id,
            name=call.name,
            arguments=call.preview,
            is_error=reply.result.is_error,
            preview=reply.preview[:200],
        )
        return reply

    def _finding(self, reply: TurnReply, cut: bool) -> Finding | None:
        """Returns the finding of a reply that concludes."""
        if reply.conclusion is None:
            return None
        limitations = list(reply.conclusion.limitations)
        if cut:
            limitations.append(f"the finding is not whole: the model stopped with {reply.stop_reason}")
        return Finding(
            summary=reply.preview,
            text_ref=reply.conclusion.text_ref,
            text_bytes=reply.conclusion.bytes,
            confidence=reply.conclusion.confidence,
            sources=self._progress.sources,
            artifacts=self._progress.artifacts,
            limitations=limitations,
        )

    def _finding_so_far(self) -> Finding | None:
        """Returns the last text of the worker agent, if any, as a finding."""
        progress = self._progress
        if not progress.last_text_ref:
            return None
        return Finding(
            summary=progress.last_preview,
            text_ref=progress.last_text_ref,
            sources=progress.sources,
            artifacts=progress.artifacts,
            limitations=["the worker agent was stopped before it had finished"],
        )

    def _result(self, finding: Finding | None, *, stopped: bool = False) -> WorkerAgentResult:
        progress = self._progress
        turns = progress.turn - progress.turns_booked
        return WorkerAgentResult(finding=finding, stopped=stopped, turns=turns, usage=progress.usage)


def _no_outcome(call: ToolCallRef, failed: CallFailed) -> ToolReply:
    """Returns what the model gets to know of a tool call that gave no result, though it may have had effects."""
    return ToolReply(
        result=ToolResultRef(call_id=call.call_id, text=UNKNOWN_OUTCOME, is_error=True),
        preview=failed.problem.message[:200],
    )


def _loop_problem(step: Next, reply: TurnReply, max_turns: int) -> Problem:
    if step is Next.REFUSED:
        detail = f": {reply.stop_detail}" if reply.stop_detail else ""
        return Problem(type=ErrorKind.REFUSED, message=f"the model refused this subtask{detail}")
    if step is Next.TURN_LIMIT:
        return Problem(type=ErrorKind.TURN_LIMIT, message=f"no finding after {max_turns} turns")
    return Problem(
        type=ErrorKind.MODEL_UNAVAILABLE, message=f"the model gave no usable reply (stop reason {reply.stop_reason})"
    )
