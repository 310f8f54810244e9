"""One attempt of one subtask: model call, tool calls, model call, ... until the finding."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import (
        ToolCallRef,
        ToolInput,
        ToolReply,
        ToolResultRef,
        TurnInput,
        TurnReply,
    )
    from activities.prompts.agent_prompts import DEADLY_CALL, LAST_TURN, NUDGE
    from supervision import limits
    from supervision.agent.tool_loop import LoopState, Next, more_room, next_step
    from supervision.budget.amount import last_call, may_call
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.contract.status import TraceEvent, TracePage
    from supervision.contract.usage import Usage
    from supervision.errors import RESUMABLE, ErrorKind
    from workflows.calls import activity_calls
    from workflows.child_contracts import WorkerAgentInput, WorkerAgentResult
    from workflows.failures import cancelled, model_problem, problem, remaining_seconds, went_silent


@workflow.defn
class WorkerAgentWorkflow:
    """The tool loop of one subtask attempt; fails with TurnLimit, Refused, Timeout, ToolFailed or ModelUnavailable."""

    def __init__(self) -> None:
        self._input: WorkerAgentInput | None = None
        self._events: list[TraceEvent] = []
        self._seq = 0

    @workflow.run
    async def run(self, input: WorkerAgentInput | None = None, *surplus: object) -> WorkerAgentResult:
        """Works until there is a finding; a cancelled worker agent returns what it has."""
        try:
            self._input = WorkerAgentInput.model_validate(input)
        except ValueError as error:
            raise ApplicationError(
                "worker agents are started by a SupervisorWorkflow only",
                type=ErrorKind.INVALID_REQUEST,
                non_retryable=True,
            ) from error
        self._seq = self._input.progress.trace_seq
        try:
            async with asyncio.timeout(self._input.timeout_seconds):
                return await self._work(self._input)
        except TimeoutError:
            raise self._failure(Problem(type=ErrorKind.TIMEOUT, message="the subtask's own time is over")) from None
        except ActivityError as error:
            if cancelled(error):
                return self._stopped()
            raise self._failure(model_problem(error), remaining_seconds(error)) from error
        except asyncio.CancelledError:
            return self._stopped()

    async def _work(self, input: WorkerAgentInput) -> WorkerAgentResult:
        progress = input.progress
        asked_again, note, max_tokens = 0, None, limits.TURN_MAX_TOKENS
        while True:
            progress.turn += 1
            estimate = progress.last_tokens + limits.TURN_GROWTH_TOKENS
            closing = last_call(input.grant, progress.usage, estimate)
            may_have_more = closing and not input.last_grant and progress.usage.model_calls > 0
            if may_have_more or not may_call(input.grant, progress.usage, estimate):
                raise self._failure(
                    Problem(type=ErrorKind.BUDGET_EXHAUSTED, message="its share of the budget is used up")
                )
            last = progress.turn == input.max_turns or (closing and input.last_grant)
            if last and progress.turn > 1:
                note = LAST_TURN
            reply = await self._call_model(input, note, max_tokens)
            state = LoopState(progress.turn, input.max_turns, asked_again, progress.pauses)
            step = next_step(reply.stop_reason, reply.conclusion is not None, len(reply.calls), state)
            if step is Next.ASK_AGAIN:
                asked_again, max_tokens = asked_again + 1, more_room(max_tokens)
                continue
            progress.head, progress.results, note, asked_again = reply.head, [], None, 0
            if step in (Next.FINISH, Next.FINISH_CUT):
                return self._finished(reply, cut=step is Next.FINISH_CUT)
            if step is Next.TOOLS:
                progress.results = await self._run_tools(input, reply)
            elif step is Next.CONTINUE:
                progress.pauses += 1
            elif step is Next.NUDGE:
                note = NUDGE
            else:
                raise self._failure(_loop_problem(step, reply, input.max_turns))
            if workflow.info().is_continue_as_new_suggested():
                progress.trace_seq = self._seq
                workflow.continue_as_new(input)

    async def _call_model(self, input: WorkerAgentInput, note: str | None, max_tokens: int) -> TurnReply:
        progress = input.progress
        reply = await activity_calls.call_model(
            TurnInput(
                run=input.run,
                team_ref=input.team_ref,
                role=input.role.name,
                model=input.role.model,
                step=f"turn.{progress.turn}",
                brief=input.brief if progress.head is None else None,
                head=progress.head,
                results=progress.results,
                note=note,
                max_tokens=max_tokens,
            ),
            progress.turn,
            input.expires_at,
            input.model_queue,
        )
        progress.usage += reply.usage
        progress.last_tokens = reply.usage.tokens
        if reply.preview:
            progress.last_preview = reply.preview
        if reply.conclusion:
            progress.last_text_ref = reply.conclusion.text_ref
        self._note(
            "turn",
            turn=progress.turn,
            stop_reason=reply.stop_reason,
            preview=reply.preview[:200],
            tokens=reply.usage.tokens,
        )
        return reply

    async def _run_tools(self, input: WorkerAgentInput, reply: TurnReply) -> list[ToolResultRef]:
        """All tool calls of a turn in parallel; the results in the order of the calls."""
        running = [self._run_tool(input, reply.head, call) for call in reply.calls[: limits.TOOL_CALLS_PER_TURN]]
        replies = await asyncio.gather(*running)
        surplus = f"at most {limits.TOOL_CALLS_PER_TURN} tool calls are run in one turn: call it again in the next"
        for tool_reply in replies:
            input.progress.usage += Usage(tool_calls=1)
            input.progress.sources = list(dict.fromkeys([*input.progress.sources, *tool_reply.sources]))
            input.progress.artifacts += [
                artifact.model_copy(update={"subtask_id": input.subtask_id}) for artifact in tool_reply.artifacts
            ]
        return [tool_reply.result for tool_reply in replies] + [
            ToolResultRef(call_id=call.call_id, text=surplus, is_error=True)
            for call in reply.calls[limits.TOOL_CALLS_PER_TURN :]
        ]

    async def _run_tool(self, input: WorkerAgentInput, head: str, call: ToolCallRef) -> ToolReply:
        granted = {tool.name: tool for tool in input.role.tools}
        tool_input = ToolInput(
            run=input.run,
            team_ref=input.team_ref,
            role=input.role.name,
            head=head,
            call=call,
            attachments=input.brief.attachments,
        )
        try:
            reply = await activity_calls.run_tool(tool_input, granted.get(call.name), input.tools_queue)
        except ActivityError as error:
            if cancelled(error):
                raise
            what, tool = problem(error), granted.get(call.name)
            text = f"the outcome of this call is unknown ({what.type}): check before you try it again"
            if tool and tool.effects == "read" and went_silent(error):  # in each attempt that it may have
                text = DEADLY_CALL
            reply = ToolReply(
                result=ToolResultRef(call_id=call.call_id, text=text, is_error=True), preview=what.message[:200]
            )
        self._note(
            "tool", name=call.name, arguments=call.preview, is_error=reply.result.is_error, preview=reply.preview[:200]
        )
        return reply

    def _finished(self, reply: TurnReply, cut: bool) -> WorkerAgentResult:
        assert self._input is not None
        assert reply.conclusion is not None
        progress, conclusion = self._input.progress, reply.conclusion
        limitations = list(conclusion.limitations)
        if cut:
            limitations.append(f"the finding is not whole: the model stopped with {reply.stop_reason}")
        finding = Finding(
            summary=reply.preview,
            text_ref=conclusion.text_ref,
            text_bytes=conclusion.bytes,
            confidence=conclusion.confidence,
            sources=progress.sources,
            artifacts=progress.artifacts,
            limitations=limitations,
        )
        return self._result(finding)

    def _result(self, finding: Finding | None, stopped: bool = False) -> WorkerAgentResult:
        assert self._input is not None
        progress = self._input.progress
        turns = progress.turn - progress.turns_told
        return WorkerAgentResult(finding=finding, stopped=stopped, turns=turns, usage=progress.usage)

    def _stopped(self) -> WorkerAgentResult:
        """What a cancelled worker agent has."""
        return self._result(self._so_far(), stopped=True)

    def _so_far(self) -> Finding | None:
        """Its words up to now, if any, as a finding."""
        assert self._input is not None
        progress = self._input.progress
        if not progress.last_text_ref:
            return None
        return Finding(
            summary=progress.last_preview,
            text_ref=progress.last_text_ref,
            sources=progress.sources,
            artifacts=progress.artifacts,
            limitations=["the worker agent was stopped before it had finished"],
        )

    def _failure(self, what: Problem, retry_after: float = 0.0) -> ApplicationError:
        """The error of this attempt; one that it can go on from later carries where it stands."""
        assert self._input is not None
        progress = self._input.progress
        consumed = self._result(None)
        if what.type in RESUMABLE:
            consumed.finding = self._so_far()
            # The turn that could not be made is counted when it is.
            consumed.turns = max(0, consumed.turns - 1)
            consumed.progress = progress.model_copy(update={"turn": progress.turn - 1})
            consumed.retry_after = retry_after
        return ApplicationError(what.message, consumed, type=what.type, non_retryable=True)

    def _note(self, type: str, **data: str | int | bool) -> None:
        self._seq += 1
        subtask_id = self._input.subtask_id if self._input else None
        at = workflow.now().isoformat()
        self._events.append(TraceEvent(seq=self._seq, at=at, type=type, subtask_id=subtask_id, data={**data}))

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """The turns and tool calls of this run of the workflow, after a cursor."""
        events = [event for event in self._events if event.seq > cursor]
        return TracePage(events=events, next_cursor=self._seq)


def _loop_problem(step: Next, reply: TurnReply, max_turns: int) -> Problem:
    if step is Next.REFUSED:
        said = f": {reply.stop_detail}" if reply.stop_detail else ""
        return Problem(type=ErrorKind.REFUSED, message=f"the model refused this subtask{said}")
    if step is Next.TURN_LIMIT:
        return Problem(type=ErrorKind.TURN_LIMIT, message=f"no finding after {max_turns} turns")
    return Problem(
        type=ErrorKind.MODEL_UNAVAILABLE, message=f"the model gave no usable reply (stop reason {reply.stop_reason})"
    )
