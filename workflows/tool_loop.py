"""The tool loop of a worker agent: model call, tool calls, model call, ... until the finding."""

import asyncio
from collections.abc import Sequence

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
    from activities.prompts.agent_prompts import (
        FINISH_TAKEN,
        LAST_ITEMS,
        LAST_TURN,
        NO_ITEMS,
        NOT_RUN,
        NUDGE,
        TURNS_LEFT,
        UNKNOWN_OUTCOME,
        no_outcome,
        objection,
        steering,
    )
    from supervision.agent.turn_rules import WINDOW_FULL, LoopState, Next, more_room, next_step
    from supervision.base import limits
    from supervision.base.errors import RESUMABLE, STORE, ErrorKind
    from supervision.base.prompt_marks import FINISH_TOOL, READ_OUTPUT_TOOL
    from supervision.base.text import cut
    from supervision.budget.amount import NextCall, next_call
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.contract.usage import ToolTally, Usage
    from supervision.run.events import Trace
    from workflows.calls import activity_calls
    from workflows.calls.failures import CallFailed
    from workflows.children.child_contracts import LoopProgress, WorkerAgentInput, WorkerAgentResult

_TURN_GROWTH_TOKENS = 500  # by how much a worker agent's next call is expected to be larger than its last one


class ToolLoop:
    """The loop of one attempt. `agent.progress` is its state: a conversation's head, counts, what was consumed."""

    def __init__(self, agent: WorkerAgentInput, trace: Trace) -> None:
        self._agent = agent
        self._progress = agent.progress
        self._trace = trace
        self._began = workflow.now()
        self._turn_open = False
        self.instructions = agent.instructions

    @property
    def time_left(self) -> float | None:
        """The seconds that the attempt may still take; None without a limit."""
        limit = self._agent.timeout_seconds
        return None if limit is None else max(0.0, limit - self._progress.worked_seconds)

    async def run(self) -> WorkerAgentResult:
        """Returns the finding. Raises the error that ends the attempt, CallFailed, or CancelledError."""
        agent, progress = self._agent, self._progress
        asked_again, insisted = 0, False
        max_tokens = agent.role.max_tokens or limits.TURN_MAX_TOKENS
        await self._run_approved()
        while True:
            last = self._begin_turn()
            # Words that come while the call is under way are for the next one.
            unheard, heard = self._unheard()
            note = "\n\n".join(part for part in (progress.note, unheard) if part)
            reply = await self._call_model(self._with_turns_left(note or None, last), max_tokens, last=last)
            state = LoopState(
                progress.turn,
                agent.max_turns,
                asked_again,
                progress.pauses,
                last=last,
                insisted=insisted,
                can_grow=not reply.fullest and more_room(max_tokens) > max_tokens,
            )
            step = next_step(reply.stop_reason, reply.finding is not None, len(reply.calls), state)
            if step is Next.ASK_AGAIN:
                asked_again, max_tokens = asked_again + 1, more_room(max_tokens)
                continue
            progress.head, progress.results, progress.note, asked_again = reply.head, [], None, 0
            progress.feedback_due, progress.heard = False, heard
            if finding := _finding_of(step, reply, agent.subtask_id):
                if self._goes_on(step, reply):
                    continue
                result = self._result(finding)
                result.finish_call_id = reply.finish_call_id
                return result
            if step is Next.TOOLS:
                await self._run_tools(reply)
            elif step is Next.CONTINUE:
                progress.pauses += 1
            elif step is Next.NUDGE:
                progress.note = NUDGE
            elif step is Next.INSIST:
                insisted, progress.results = True, [_error(call, NOT_RUN) for call in reply.calls]
                continue
            else:
                raise self.failure(_loop_problem(step, reply, agent.max_turns))
            if so_far := self._handed_over():
                return so_far

    def _begin_turn(self) -> bool:
        """Begins a turn: True if it is the last one. Raises the error that ends the agent while the run is paused."""
        if self.instructions.paused:
            raise self.failure(Problem(type=ErrorKind.PAUSED, message="the run is paused"))
        self._progress.turn, self._turn_open = self._progress.turn + 1, True
        return self._must_conclude()

    def _goes_on(self, step: Next, reply: TurnReply) -> bool:
        """True if more follows a conclusion: what people said meanwhile, or an objection."""
        progress = self._progress
        if step is Next.FINISH and self._unheard()[0] and self._has_a_turn_left():
            progress.results = _taken(reply)
            return True
        progress.note = self._objection(reply)
        return progress.note is not None

    def _unheard(self) -> tuple[str, int]:
        """Returns what people said that is not in the conversation yet, as a note, and the number of its last word."""
        words = [word for word in self.instructions.words if word.number > self._progress.heard]
        return steering(word.text for word in words), words[-1].number if words else self._progress.heard

    def _handed_over(self) -> WorkerAgentResult | None:
        """Returns the progress of a worker agent that went first; continues as new if the server suggests it."""
        agent, progress = self._agent, self._progress
        if agent.goes_first:
            result = self._result(None)
            result.progress = self._resumable()
            return result
        if workflow.info().is_continue_as_new_suggested():
            progress.trace_seq = self._trace.last_seq
            progress.worked_seconds = self._worked()
            agent.instructions = self.instructions
            workflow.continue_as_new(agent)
        return None

    def _objection(self, reply: TurnReply) -> str | None:
        """Returns what sends a conclusion back to its author, once and if there is a turn for it.

        Raises the error of an attempt that concluded with `impossible`.
        """
        agent, progress, finding = self._agent, self._progress, reply.finding
        if finding is None:
            return None
        if reply.impossible:
            raise self.failure(Problem(type=ErrorKind.CANNOT_DO, message=cut(finding.summary, limits.ERROR_BYTES)))
        lacks_items = agent.brief.names_items and not finding.items_ref
        misfit = [*reply.misfit, *([NO_ITEMS] if lacks_items else [])]
        if not (finding.unsupported or reply.unclear or misfit) or progress.objected or not self._has_a_turn_left():
            if lacks_items:
                problem = Problem(type=ErrorKind.CANNOT_DO, message=f"its finding names no items: {NO_ITEMS}")
                raise self.failure(problem, keeps_finding=True)
            return None
        progress.objected = True
        progress.results = _taken(reply)
        self._trace.note("finding_returned", agent.subtask_id, unsupported=[*finding.unsupported, *misfit])
        return objection(finding.unsupported, reply.unclear, misfit)

    def stopped(self) -> WorkerAgentResult:
        """Returns what a cancelled worker agent has; a run that is reset continues from there."""
        return self._resumable_result(stopped=True)

    def failure(self, problem: Problem, retry_after: float = 0.0, *, keeps_finding: bool = False) -> ApplicationError:
        """Returns the error of this attempt; one that it can go on from later carries where it stands."""
        if problem.type in RESUMABLE:
            consumed = self._resumable_result()
            consumed.retry_after = retry_after
        else:
            keeps = keeps_finding or problem.type is ErrorKind.TIMEOUT
            consumed = self._result(_finding_so_far(self._progress, self._agent.subtask_id) if keeps else None)
        return ApplicationError(problem.message, consumed, type=problem.type, non_retryable=True)

    def _resumable_result(self, *, stopped: bool = False) -> WorkerAgentResult:
        result = self._result(_finding_so_far(self._progress, self._agent.subtask_id), stopped=stopped)
        # The turn that could not be made is counted when it is.
        result.turns = max(0, result.turns - int(self._turn_open))
        result.progress = self._resumable()
        return result

    def _resumable(self) -> LoopProgress:
        """Returns the progress without the turn that is under way."""
        turn = max(0, self._progress.turn - int(self._turn_open))
        return self._progress.model_copy(update={"turn": turn, "worked_seconds": self._worked()})

    def _worked(self) -> float:
        return self._progress.worked_seconds + (workflow.now() - self._began).total_seconds()

    def _has_a_turn_left(self) -> bool:
        """True if turns and budget allow another call that need not be the last one."""
        return self._progress.turn < self._agent.max_turns and self._allowed() is NextCall.CALL

    def _allowed(self) -> NextCall:
        agent, progress = self._agent, self._progress
        estimate = progress.last_tokens + _TURN_GROWTH_TOKENS
        return next_call(agent.grant, progress.usage, estimate, last_grant=agent.last_grant)

    def _must_conclude(self) -> bool:
        """True if the call that comes now is the last one, by turns or by budget; raises if there can be none."""
        agent, progress = self._agent, self._progress
        allowed = self._allowed()
        if allowed is NextCall.STOP:
            raise self.failure(Problem(type=ErrorKind.BUDGET_EXHAUSTED, message="its share of the budget is used up"))
        return allowed is NextCall.CONCLUDE or progress.turn >= agent.max_turns

    def _with_turns_left(self, note: str | None, last: bool) -> str | None:
        """Returns the note of a turn with the word on the turns that are left: in the last one, and two before it."""
        agent, progress = self._agent, self._progress
        ahead = progress.turn + limits.TURNS_NOTICE == agent.max_turns and progress.head is not None
        turns_left = LAST_TURN if last else TURNS_LEFT if ahead else None
        items = LAST_ITEMS if last and agent.brief.names_items else None
        return "\n\n".join(part for part in (note, turns_left, items) if part) or None

    async def _call_model(self, note: str | None, max_tokens: int, *, last: bool) -> TurnReply:
        agent, progress = self._agent, self._progress
        reply = await activity_calls.model_call(
            "call_model",
            TurnInput(
                run=agent.run,
                team_ref=agent.team_ref,
                role=agent.role.name,
                model=agent.role.model,
                effort=agent.effort,
                step=f"turn.{progress.turn}",
                brief=agent.brief if progress.head is None or progress.feedback_due else None,
                head=progress.head,
                results=progress.results,
                note=note,
                last=last,
                max_turns=agent.max_turns,
                max_tokens=max_tokens,
            ),
            TurnReply,
            agent.expires_at,
            agent.model_queue,
            self._book,
            stopped=lambda: self.instructions.paused and self.instructions.now,
        )
        self._turn_open = False
        progress.last_tokens, progress.labels = reply.usage.tokens, reply.labels
        progress.last_finding = reply.finding or reply.earlier or progress.last_finding
        self._trace.note(
            "turn",
            agent.subtask_id,
            turn=progress.turn,
            stop_reason=reply.stop_reason,
            preview=reply.preview[:200],
            tokens=reply.usage.tokens,
            model=reply.model,
            **reply.model_dump(include={"cleared", "withheld"}, exclude_defaults=True),
        )
        return reply

    def _book(self, usage: Usage) -> None:
        self._progress.usage += usage

    async def _run_tools(self, reply: TurnReply) -> None:
        """Runs the tool calls of a turn. Raises the error of a loop of which some wait for a person."""
        first, rest = reply.calls[: limits.TOOL_CALLS_PER_TURN], reply.calls[limits.TOOL_CALLS_PER_TURN :]
        surplus = f"Not run: one turn runs at most {limits.TOOL_CALLS_PER_TURN} tool calls. Call it in the next one."
        calls, waiting = [[call for call in first if bool(call.waits_for) is waits] for waits in (False, True)]
        await self._run_calls(reply.head, calls, waiting, [_error(call, surplus) for call in rest])

    async def _run_approved(self) -> None:
        """Runs the calls that a person has approved, or replied to; then the last turn's calls are all answered."""
        progress = self._progress
        if not progress.approved or progress.head is None or self.instructions.paused:
            return
        calls, progress.approved = progress.approved, []
        await self._run_calls(progress.head, calls)

    async def _run_calls(
        self,
        head: str,
        calls: list[ToolCallRef],
        waiting: Sequence[ToolCallRef] = (),
        not_run: Sequence[ToolResultRef] = (),
    ) -> None:
        """Runs calls in parallel. Raises the error of a loop of which calls wait for a person: `waiting`, or some."""
        # Progress is changed only after all have ended: a cancellation in between finds it as it was at the reply.
        progress = self._progress
        try:
            replies = await asyncio.gather(*[self._run_tool(head, call) for call in calls])
        except asyncio.CancelledError:
            # The turn was made: the next attempt has to answer its calls.
            stopped = [_error(call, f"This call was stopped. {UNKNOWN_OUTCOME}") for call in [*calls, *waiting]]
            progress.results = [*progress.results, *stopped, *not_run]
            raise
        progress.pending = [*waiting]
        for call, tool_reply in zip(calls, replies, strict=True):
            progress.usage += Usage(tool_calls=1)
            if tool_reply.asks:
                progress.pending.append(_asking(call, tool_reply))
                continue
            progress.results.append(tool_reply.result)
            if call.name != FINISH_TOOL:  # a conclusion that came too early is no failure of a tool
                tally = progress.tools.get(call.name, ToolTally())
                progress.tools[call.name] = tally.counted(tool_reply.preview if tool_reply.result.is_error else None)
        progress.results += not_run
        if progress.pending:
            raise self.failure(Problem(type=ErrorKind.NEEDS_PERSON, message="it waits for a person"))

    async def _run_tool(self, head: str, call: ToolCallRef) -> ToolReply:
        agent, tool = self._agent, self._agent.role.tool(call.name)
        payload = ToolInput(
            run=agent.run,
            team_ref=agent.team_ref,
            role=agent.role.name,
            head=head,
            call=call,
            attachments=agent.brief.attachments,
            findings=agent.brief.dependencies if call.name == READ_OUTPUT_TOOL else [],
            # One that has asked was allowed or approved before, for the same arguments.
            approved_sha256=call.arguments_sha256 if call.waits_for else None,
        )
        try:
            queue = agent.outward_queue if tool.outward else agent.tools_queue
            reply = await activity_calls.run_tool(payload, queue, tool.timeout)
        except CallFailed as failed:
            if failed.problem.type in STORE | {ErrorKind.NOT_GRANTED}:
                raise  # what the run needs is gone, which is no result of the tool
            why = failed.problem.message  # it may have had effects
            reply = ToolReply(result=_error(call, no_outcome(why)), preview=why[:200])
        self._trace.note(
            "tool",
            agent.subtask_id,
            name=call.name,
            arguments=call.preview,
            is_error=reply.result.is_error,
            preview=reply.preview[:200],
            **({"after": self._progress.labels.path} if self._progress.labels.untrusted else {}),
        )
        return reply

    def _result(self, finding: Finding | None, *, stopped: bool = False) -> WorkerAgentResult:
        progress = self._progress
        return WorkerAgentResult(
            finding=finding,
            stopped=stopped,
            turns=progress.turn - progress.turns_booked,
            usage=progress.usage,
            tools=progress.tools,
            head=progress.head,
            heard=progress.heard,
            labels=progress.labels,
        )


def _taken(reply: TurnReply) -> list[ToolResultRef]:
    """Returns the answer to the call that gave a finding, if one did: the conversation continues after it."""
    return [ToolResultRef(call_id=reply.finish_call_id, text=FINISH_TAKEN)] if reply.finish_call_id else []


def _error(call: ToolCallRef, text: str) -> ToolResultRef:
    """Returns the answer to a call that gave no result."""
    return ToolResultRef(call_id=call.call_id, text=text, is_error=True)


def _asking(call: ToolCallRef, reply: ToolReply) -> ToolCallRef:
    """Returns a call that waits for a person's reply to what its tool asks."""
    asked = {"asks": reply.asks, "asked": reply.preview, "asked_ref": reply.result.ref, "choices": reply.choices}
    return call.model_copy(update={"waits_for": "reply", **asked})


def _finding_of(step: Next, reply: TurnReply, subtask_id: str) -> Finding | None:
    """Returns the finding of a reply that concludes, or with which the loop has to end; None if it continues."""
    if step in (Next.FINISH, Next.FINISH_CUT):
        finding = reply.finding
    else:
        finding = reply.earlier if step in (Next.TURN_LIMIT, Next.BROKEN) else None
    if finding is None:
        return None
    missing: list[str] = []
    if reply.stop_reason in ("tool_use", "pause_turn") or finding is reply.earlier:
        missing.append("the finding is not whole: the turns were over before the worker agent concluded")
    elif step is Next.FINISH_CUT:
        missing.append(f"the finding is not whole: the model stopped with {reply.stop_reason}")
    return _lacking(finding, missing, subtask_id)


def _finding_so_far(progress: LoopProgress, subtask_id: str) -> Finding | None:
    """Returns the last text of the worker agent, if any, as a finding."""
    missing = ["the worker agent was stopped before it had finished"]
    return progress.last_finding and _lacking(progress.last_finding, missing, subtask_id)


def _lacking(finding: Finding, missing: list[str], subtask_id: str) -> Finding:
    """Returns a finding of that subtask, which is partial if something is missing."""
    changes = {
        "outcome": "partial" if missing else finding.outcome,
        "artifacts": [item.model_copy(update={"subtask_id": subtask_id}) for item in finding.artifacts],
        "limitations": [*finding.limitations, *missing],
    }
    return finding.model_copy(update=changes)


def _loop_problem(step: Next, reply: TurnReply, max_turns: int) -> Problem:
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
