"""The tool loop of a worker agent: model call, tool calls, model call, ... until the finding."""

import asyncio
from contextlib import suppress

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
    from activities.prompts import agent_prompts as prompts
    from temporal_supervisor.supervision.agent.better_finding import better
    from temporal_supervisor.supervision.agent.empty_words import Emptiness
    from temporal_supervisor.supervision.agent.turn_rules import (
        WINDOW_FULL,
        LoopState,
        Next,
        more_room,
        next_step,
    )
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import RESUMABLE, STORE, ErrorKind
    from temporal_supervisor.supervision.base.prompt_marks import DEADLY, READ_OUTPUT_TOOL
    from temporal_supervisor.supervision.budget.ledger import NextCall, next_call
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.usage import Usage
    from temporal_supervisor.supervision.run.events import Trace

    from workflows.background import let_ready_tasks_finish
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.children.child_contracts import WorkerAgentInput, WorkerAgentResult

_NO_FINDING: dict[Emptiness, str] = {
    "says_nothing": "its last words are no finding",
    "failed_call": "its last call failed, and no other one brought data",
    "no_rows": "its last words are a query, and no row met the one before it",
}
_TURN_GROWTH_TOKENS = (
    500  # by how much a worker agent's next call is expected to be larger than its last one
)


class ToolLoop:
    """The loop of one attempt.

    `agent.progress` is its state: a conversation's head, counts, and usage.
    """

    def __init__(self, agent: WorkerAgentInput) -> None:
        self._agent = agent
        self._progress = agent.progress
        self.trace = Trace(workflow.now, agent.progress.trace_seq)
        self._began = workflow.now()
        self.instructions = agent.instructions

    @property
    def time_left(self) -> float | None:
        """The seconds that the attempt may still take; None without a limit."""
        limit = self._agent.timeout_seconds
        return None if limit is None else max(0.0, limit - self._progress.worked_seconds)

    async def run(self) -> WorkerAgentResult:
        """Returns the finding.

        Raises the error that ends the attempt, CallFailed, or CancelledError.
        """
        agent, progress = self._agent, self._progress
        loop = LoopState(progress.turn, agent.max_turns)
        most = agent.role.max_tokens
        max_tokens = most or limits.TURN_MAX_TOKENS
        await self._run_approved()
        while True:
            loop.last = self._is_last()
            # Words that come while the call is under way are for the next one.
            unheard, heard = self._unheard()
            note = self._note(unheard, loop.last)
            reply = await self._call_model(note, max_tokens, last=loop.last)

            loop.turn = progress.turn
            loop.pauses = progress.pauses
            loop.can_grow = not reply.fullest and more_room(max_tokens, most) > max_tokens
            has_finding = reply.finding is not None
            step = next_step(reply.stop_reason, has_finding, len(reply.calls), loop)
            if step is Next.ASK_AGAIN:
                loop.asked_again += 1
                max_tokens = more_room(max_tokens, most)
                continue

            loop.asked_again = 0
            self._go_on_from(reply, heard)
            finding = _finding_of(step, reply, agent.subtask_id)
            if finding is not None:
                if self._goes_on(step, reply, finding):
                    continue
                return self._conclusion(finding, reply)
            if step is Next.INSIST:
                loop.insisted = True
                progress.results = [call.without_result(prompts.NOT_RUN) for call in reply.calls]
                continue

            await self._follow(step, reply)
            so_far = self._handed_over()
            if so_far is not None:
                return so_far

    def _go_on_from(self, reply: TurnReply, heard: int) -> None:
        """Makes a reply the head of the conversation: what was due before it is in it now."""
        progress = self._progress
        progress.head = reply.head
        progress.results = []
        progress.note = None
        progress.anew_from = ""
        progress.feedback_due = False
        progress.heard = heard

    async def _follow(self, step: Next, reply: TurnReply) -> None:
        """Does the work between two turns.

        Raises the error of the attempt if the reply leads to no next turn.
        """
        progress = self._progress
        if step is Next.TOOLS:
            self._take_calls(reply.calls)
            await self._run_calls()
        elif step is Next.CONTINUE:
            progress.pauses += 1
        elif step is Next.NUDGE:
            progress.note = prompts.NUDGE
            self._begin_anew_if_repeated(reply)
        else:
            raise self.failure(_loop_problem(step, reply, self._agent.max_turns))

    def _conclusion(self, finding: Finding, reply: TurnReply) -> WorkerAgentResult:
        """Returns the result of an attempt that concluded with a reply."""
        result = self._result(self._best(finding, reply))
        result.finish_call_id = reply.finish_call_id
        result.repeats = reply.repeats
        return result

    def _is_last(self) -> bool:
        """True if the turn that comes now is the last one, by turns or by budget.

        Raises the error of the attempt if there can be no turn at all.
        """
        if self.instructions.paused:
            raise self.failure(Problem(type=ErrorKind.PAUSED, message="the run is paused"))
        allowed = self._allowed()
        if allowed is NextCall.STOP:
            why = "its share of the budget is used up"
            raise self.failure(Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=why))
        return allowed is NextCall.CONCLUDE or self._progress.turn + 1 >= self._agent.max_turns

    def _goes_on(self, step: Next, reply: TurnReply, finding: Finding) -> bool:
        """True if more follows a conclusion: what people said meanwhile, or an objection.

        Raises the error of an attempt that has come to nothing.
        """
        progress = self._progress
        if step is Next.FINISH and self._unheard()[0] and self._has_a_turn_left():
            progress.results = _taken(reply)
            return True
        if reply.empty:
            progress.note = self._asked_for_a_finding(reply)
        else:
            progress.note = self._objection(reply, finding)
        return progress.note is not None

    def _asked_for_a_finding(self, reply: TurnReply) -> str | None:
        """Returns the note that sends empty words back, twice at most.

        None if an earlier finding takes their place.

        Raises the error of an attempt that has none.
        """
        progress, why = self._progress, reply.empty
        assert why is not None
        self.trace.note("finding_returned", self._agent.subtask_id, why=_NO_FINDING[why])
        if progress.empty_replies < limits.EMPTY_REPLIES and self._has_a_turn_left():
            progress.empty_replies += 1
            progress.results = _taken(reply)
            self._begin_anew_if_repeated(reply)
            return prompts.empty_note(why)
        if progress.returned is not None:
            return None
        raise self.failure(
            Problem(type=ErrorKind.CANNOT_DO, message=f"{_NO_FINDING[why]}: {reply.preview}")
        )

    def _begin_anew_if_repeated(self, reply: TurnReply) -> None:
        """Begins a conversation that goes in circles anew.

        Its own words are the strongest example that the model has.
        """
        if not reply.repeats:
            return

        # The new one has the brief, what tools returned, and all that people said.
        progress = self._progress
        progress.head = None
        progress.results = []
        progress.heard = 0
        progress.anew_from = reply.head
        self.trace.note("begun_anew", self._agent.subtask_id)

    def _best(self, finding: Finding, reply: TurnReply) -> Finding:
        """Returns the conclusion that counts: the last one, unless an earlier one is better."""
        earlier = self._progress.returned
        if earlier is None:
            return finding

        kept = earlier if reply.empty or reply.impossible else better(earlier, finding)
        which = "earlier" if kept is earlier else "last"
        self.trace.note("finding_kept", self._agent.subtask_id, which=which)
        return kept

    def _unheard(self) -> tuple[str, int]:
        """Returns a note with the new words of people, and the number of all their words."""
        words = self.instructions.words
        return prompts.steering(words[self._progress.heard :]), len(words)

    def _handed_over(self) -> WorkerAgentResult | None:
        """Returns the progress of a worker agent that went first.

        Continues as new if the server suggests it.
        """
        agent, progress = self._agent, self._progress
        if agent.goes_first:
            return self._result(None, resumable=True)
        if workflow.info().is_continue_as_new_suggested():
            progress.trace_seq = self.trace.last_seq
            progress.worked_seconds = self._worked()
            agent.instructions = self.instructions
            workflow.continue_as_new(agent)
        return None

    def _objection(self, reply: TurnReply, finding: Finding) -> str | None:
        """Returns the note that sends a conclusion back, once and if there is a turn for it.

        Raises the error of an attempt that concluded with `impossible`.
        """
        agent, progress = self._agent, self._progress
        if reply.finding is None:
            return None
        if reply.impossible:
            if progress.returned is not None and progress.returned.supported:
                return None
            raise self.failure(Problem(type=ErrorKind.CANNOT_DO, message=finding.summary))
        lacks_items = agent.brief.names_items and not finding.items_ref
        misfit = [*reply.misfit, *([prompts.NO_ITEMS] if lacks_items else [])]
        is_faulty = (
            finding.unsupported or finding.doubts or reply.unclear or reply.ungrounded or misfit
        )
        if not is_faulty or progress.objected or not self._has_a_turn_left():
            if lacks_items:
                why = f"its finding names no items: {prompts.NO_ITEMS}"
                raise self.failure(
                    Problem(type=ErrorKind.CANNOT_DO, message=why), keeps_finding=True
                )
            return None
        progress.objected = True
        # Its form is not what was asked for: such a finding does not stand in for a later one.
        progress.returned = None if misfit else finding
        progress.results = _taken(reply)
        why = "no tool brought data for it" if reply.ungrounded else ""
        faults = [*finding.unsupported, *finding.doubts, *misfit]
        self.trace.note("finding_returned", agent.subtask_id, why=why, unsupported=[*faults])
        return prompts.objection(
            finding.unsupported,
            reply.unclear,
            misfit,
            finding.doubts,
            ungrounded=reply.ungrounded,
        )

    def stopped(self) -> WorkerAgentResult:
        """Returns the progress of a cancelled worker agent.

        A run that is reset continues from there.
        """
        return self._result(self._finding_so_far(), resumable=True).when_stopped()

    def failure(
        self, problem: Problem, retry_after: float = 0.0, *, keeps_finding: bool = False
    ) -> ApplicationError:
        """Returns the error of this attempt.

        One that it can go on from later carries where it stands.
        """
        resumable = problem.type in RESUMABLE
        keeps = keeps_finding or resumable or problem.type is ErrorKind.TIMEOUT
        consumed = self._result(self._finding_so_far() if keeps else None, resumable=resumable)
        consumed.retry_after = retry_after
        return ApplicationError(problem.message, consumed, type=problem.type, non_retryable=True)

    def _finding_so_far(self) -> Finding | None:
        """Returns the last text of the worker agent, if any, as a finding."""
        missing, finding = (
            "the worker agent was stopped before it had finished",
            self._progress.last_finding,
        )
        return finding and _lacking(finding, [missing], self._agent.subtask_id)

    def _worked(self) -> float:
        return self._progress.worked_seconds + (workflow.now() - self._began).total_seconds()

    def _has_a_turn_left(self) -> bool:
        """True if turns and budget allow another call that need not be the last one."""
        return self._progress.turn < self._agent.max_turns and self._allowed() is NextCall.CALL

    def _allowed(self) -> NextCall:
        agent, progress = self._agent, self._progress
        estimate = progress.last_tokens + _TURN_GROWTH_TOKENS
        return next_call(agent.grant, progress.usage, estimate, last_grant=agent.last_grant)

    def _note(self, words: str, last: bool) -> str | None:
        """Returns the note for a turn: words of the system and of people, and turns left."""
        agent, progress = self._agent, self._progress
        parts = [progress.note, words]
        is_near_the_end = progress.turn + 1 + limits.TURNS_NOTICE == agent.max_turns
        if last:
            parts.append(prompts.LAST_TURN)
        elif is_near_the_end and progress.head is not None:
            parts.append(prompts.TURNS_LEFT)
        if last and agent.brief.names_items:
            parts.append(prompts.LAST_ITEMS)
        return "\n\n".join(filter(None, parts)) or None

    async def _call_model(self, note: str | None, max_tokens: int, *, last: bool) -> TurnReply:
        agent, progress, turn = self._agent, self._progress, self._progress.turn + 1
        reply = await activity_calls.model_call(
            "call_model",
            TurnInput(
                run=agent.run,
                team_ref=agent.team_ref,
                role=agent.role.name,
                model=agent.role.model,
                effort=agent.effort,
                step=f"turn.{progress.earlier_turns + turn}",
                brief=agent.brief if progress.head is None or progress.feedback_due else None,
                head=progress.head,
                anew_from=progress.anew_from,
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
        progress.turn, progress.last_tokens, progress.labels = (
            turn,
            reply.usage.tokens,
            reply.labels,
        )
        if not reply.empty:
            progress.last_finding = reply.finding or reply.earlier or progress.last_finding
        self.trace.note(
            "turn",
            agent.subtask_id,
            turn=progress.number,
            stop_reason=reply.stop_reason,
            preview=reply.preview[:200],
            tokens=reply.usage.tokens,
            model=reply.model,
            **reply.model_dump(include={"withheld"}, exclude_defaults=True),
        )
        return reply

    def _book(self, usage: Usage) -> None:
        self._progress.usage += usage

    async def _run_approved(self) -> None:
        """Runs the calls that a person has approved, or replied to.

        Then the last turn's calls are all answered.
        """
        if self._progress.approved and not self.instructions.paused:
            await self._run_calls()

    def _take_calls(self, calls: list[ToolCallRef]) -> None:
        """Sorts the calls of a turn: to be run, to wait for a person, or too many."""
        progress, most = self._progress, limits.TOOL_CALLS_PER_TURN
        surplus = f"Not run: one turn runs at most {most} tool calls. Call it in the next one."
        progress.approved = [call for call in calls[:most] if not call.waits_for]
        progress.pending = [call for call in calls[:most] if call.waits_for]
        progress.results = [call.without_result(surplus) for call in calls[most:]]

    async def _run_calls(self) -> None:
        """Runs the approved calls in parallel.

        Raises the error of a loop of which others wait for a person.
        """
        progress = self._progress
        calls, progress.approved = progress.approved, []
        # By place: as each reply comes. The conversation gets them in the order of the calls, once
        # all have ended.
        replies: dict[int, ToolReply] = {}
        runs = [self._run_into(replies, place, call) for place, call in enumerate(calls)]
        running = asyncio.gather(*runs)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            # A call may have ended together with the cancellation: its task is ready, and would
            # lose its reply if it were cancelled now.
            await let_ready_tasks_finish()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            # The turn was made: the next attempt has to answer its calls. Those that have ended
            # keep their results.
            self._take_replies(calls, replies)
            unanswered = [call for place, call in enumerate(calls) if place not in replies]
            words = f"This call was stopped. {prompts.UNKNOWN_OUTCOME}"
            progress.results += [
                call.without_result(words) for call in [*unanswered, *progress.pending]
            ]
            progress.pending = []
            raise
        self._take_replies(calls, replies)
        if progress.pending:
            raise self.failure(
                Problem(type=ErrorKind.NEEDS_PERSON, message="it waits for a person")
            )

    async def _run_into(self, replies: dict[int, ToolReply], place: int, call: ToolCallRef) -> None:
        """Runs a call and adds its reply to the others."""
        replies[place] = await self._run_tool(call)

    def _take_replies(self, calls: list[ToolCallRef], replies: dict[int, ToolReply]) -> None:
        """Takes over replies to calls that have ended: results, effects, questions to people."""
        progress = self._progress
        for place, call in enumerate(calls):
            reply = replies.get(place)
            if reply is None:
                continue
            progress.usage += Usage(tool_calls=1)
            if reply.asks:
                progress.pending.append(_asking(call, reply))
                continue
            progress.results.append(reply.result)
            if reply.effect:
                progress.effects.append(reply.effect)

    async def _run_tool(self, call: ToolCallRef) -> ToolReply:
        agent, tool = self._agent, self._agent.role.tool(call.name)
        payload = ToolInput(
            run=agent.run,
            team_ref=agent.team_ref,
            role=agent.role.name,
            head=self._progress.head or "",
            call=call,
            attachments=agent.brief.attachments,
            findings=agent.brief.dependencies if call.name == READ_OUTPUT_TOOL else [],
        )
        try:
            queue = agent.outward_queue if tool.outward else agent.tools_queue
            reply = await activity_calls.run_tool(payload, queue, tool.timeout)
        except CallFailed as failed:
            if failed.problem.type in STORE | {ErrorKind.NOT_GRANTED}:
                raise  # what the run needs is gone, which is no result of the tool
            why = failed.problem.message  # it may have had effects
            words = prompts.DEADLY_CALL if DEADLY in why else prompts.UNKNOWN_OUTCOME
            reply = ToolReply(result=call.without_result(words), preview=why[:200])
        self.trace.note(
            "tool",
            agent.subtask_id,
            name=call.name,
            arguments=call.preview,
            is_error=reply.result.is_error,
            preview=reply.preview[:200],
            **({"after": self._progress.labels.path} if self._progress.labels.untrusted else {}),
        )
        return reply

    def _result(self, finding: Finding | None, *, resumable: bool = False) -> WorkerAgentResult:
        progress = self._progress
        return WorkerAgentResult(
            finding=finding,
            turns=progress.turn - progress.turns_booked,
            usage=progress.usage,
            head=progress.head or progress.anew_from or None,
            heard=progress.heard,
            effects=progress.effects,
            labels=progress.labels,
            progress=progress.model_copy(update={"worked_seconds": self._worked()})
            if resumable
            else None,
        )


def _asking(call: ToolCallRef, reply: ToolReply) -> ToolCallRef:
    """Returns a call whose tool asks a person, as one that waits for the answer."""
    return call.model_copy(
        update={
            "waits_for": "reply",
            "asks": reply.asks,
            "asked": reply.preview,
            "asked_ref": reply.result.ref,
            "choices": reply.choices,
        }
    )


def _taken(reply: TurnReply) -> list[ToolResultRef]:
    """Returns the answer to the call that gave a finding, if one did.

    The conversation continues after it.
    """
    return (
        [ToolResultRef(call_id=reply.finish_call_id, text=prompts.FINISH_TAKEN)]
        if reply.finish_call_id
        else []
    )


def _finding_of(step: Next, reply: TurnReply, subtask_id: str) -> Finding | None:
    """Returns the finding of a reply that concludes, or with which the loop has to end.

    None if it continues.
    """
    if step in (Next.FINISH, Next.FINISH_CUT):
        finding = reply.finding
    else:
        finding = reply.earlier if step in (Next.TURN_LIMIT, Next.BROKEN) else None
    how = f"the worker agent had not concluded when it ended with {reply.stop_reason}"
    cut_off = f"the finding is not whole: {how}"
    return finding and _lacking(finding, [] if step is Next.FINISH else [cut_off], subtask_id)


def _lacking(finding: Finding, missing: list[str], subtask_id: str) -> Finding:
    """Returns a finding of that subtask, which is partial if something is missing."""
    changes = {
        "outcome": "partial" if missing else finding.outcome,
        "artifacts": [
            item.model_copy(update={"subtask_id": subtask_id}) for item in finding.artifacts
        ],
        "limitations": [*finding.limitations, *missing],
    }
    return finding.model_copy(update=changes)


def _loop_problem(step: Next, reply: TurnReply, max_turns: int) -> Problem:
    if step is Next.REFUSED:
        detail = f": {reply.stop_detail}" if reply.stop_detail else ""
        return Problem(type=ErrorKind.REFUSED, message=f"the model refused this subtask{detail}")
    if step is Next.TURN_LIMIT:
        return Problem(type=ErrorKind.TURN_LIMIT, message=f"no finding after {max_turns} turns")
    if reply.stop_reason == WINDOW_FULL:
        why = "the conversation does not fit into the model's window"
        message = f"{why}, and nothing of it can be left out"
        return Problem(type=ErrorKind.CONTEXT_OVERFLOW, message=message)
    return Problem(
        type=ErrorKind.MODEL_UNAVAILABLE,
        message=f"the model gave no usable reply (stop reason {reply.stop_reason})",
    )
