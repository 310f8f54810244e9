"""The loop: model call, tool calls, model call, ... until the finding."""

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import OtherQuery, ToolReply, TurnInput, TurnReply
    from activities.prompts import agent_prompts as prompts
    from activities.prompts.prompt_blocks import steering
    from temporal_supervisor.supervision.agent.turn_rules import (
        WINDOW_FULL,
        LoopState,
        Next,
        more_room,
        next_step,
    )
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.budget.ledger import NextCall
    from temporal_supervisor.supervision.contract.result import Problem

    from workflows.calls import activity_calls
    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.tool_loop.agent_attempt import AgentAttempt
    from workflows.tool_loop.conclusions import Conclusions
    from workflows.tool_loop.turn_calls import TurnCalls
    from workflows.tool_loop.verdicts import Accept


class ToolLoop:
    """The turns of one attempt."""

    def __init__(self, attempt: AgentAttempt) -> None:
        self._attempt = attempt
        self._agent = attempt.agent
        self._progress = attempt.progress
        self._calls = TurnCalls(attempt)
        self._conclusions = Conclusions(attempt)
        self._rules = LoopState(attempt.progress.turn, attempt.agent.max_turns)
        self._max_tokens = attempt.agent.role.max_tokens or limits.TURN_MAX_TOKENS

    async def run(self) -> WorkerAgentResult:
        """Returns the finding.

        Raises the error that ends the attempt, CallFailed, or CancelledError.
        """
        rules, progress = self._rules, self._progress
        # An attempt that waited for people has calls of its last turn, which are answered first.
        await self._calls.run_approved()
        while True:
            rules.begin_turn(last=self._is_last())
            # Words that come while the call is under way are for the next one.
            heard = len(self._attempt.instructions.words)
            reply = await self._call_model(self._note_for_model(), last=rules.last)
            step = self._step_after(reply)
            if step is Next.ASK_AGAIN:
                rules.ask_again()
                self._max_tokens = self._more_room
                continue

            rules.accept_reply()
            progress.go_on_from(reply, heard)
            finding = self._conclusions.finding_of(step, reply)
            if finding is not None:
                verdict = self._conclusions.verdict_on(step, reply, finding)
                self._conclusions.apply(verdict, reply)
                if isinstance(verdict, Accept):
                    return self._conclusions.result(finding, reply)
                continue
            if step is Next.INSIST:
                rules.insist()
                not_run = [call.without_result(prompts.NOT_RUN) for call in reply.calls]
                progress.answer_calls(not_run)
                continue

            await self._follow(step, reply)
            if self._needs_other_queries(reply):
                await self._ask_for_other_queries()
            # Between turns nothing is under way, so the progress is all that a successor needs.
            if self._agent.goes_first:
                return self._attempt.result(None, resumable=True)
            if workflow.info().is_continue_as_new_suggested():
                self._attempt.continue_as_new()

    @property
    def _more_room(self) -> int:
        """The token limit of a call that is made again because its reply was cut."""
        return more_room(self._max_tokens, self._agent.role.max_tokens)

    def _is_last(self) -> bool:
        """True if the turn that comes now is the last one, by turns or by budget.

        Raises the error of the attempt if there can be no turn at all.
        """
        attempt = self._attempt
        if attempt.instructions.paused:
            raise attempt.failure(Problem(type=ErrorKind.PAUSED, message="the run is paused"))
        allowed = attempt.allowed
        if allowed is NextCall.STOP:
            why = "its share of the budget is used up"
            raise attempt.failure(Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=why))
        return allowed is NextCall.CONCLUDE or self._progress.turn + 1 >= self._agent.max_turns

    def _note_for_model(self) -> str | None:
        """Returns the note for a turn: words of the system and of people, and turns left."""
        agent, progress, last = self._agent, self._progress, self._rules.last
        parts = [progress.note, steering(self._attempt.unheard)]
        is_near_the_end = progress.turn + 1 + limits.TURNS_NOTICE == agent.max_turns
        if last:
            parts.append(prompts.LAST_TURN)
        elif is_near_the_end and progress.head is not None:
            parts.append(prompts.TURNS_LEFT)
        if last and agent.brief.names_items:
            parts.append(prompts.LAST_ITEMS)
        return "\n\n".join(filter(None, parts)) or None

    async def _call_model(self, note: str | None, *, last: bool) -> TurnReply:
        """Makes the model call of a turn, and books it."""
        agent, progress, attempt = self._agent, self._progress, self._attempt
        needs_brief = progress.head is None or progress.feedback_due
        reply = await self._reply(
            f"turn.{progress.number + 1}",
            brief=agent.brief if needs_brief else None,
            head=progress.head,
            anew_from=progress.anew_from,
            results=progress.results,
            note=note,
            last=last,
            others=progress.others,
        )
        progress.count_turn(reply)
        attempt.note(
            "turn",
            turn=progress.number,
            stop_reason=reply.stop_reason,
            preview=reply.preview[:200],
            tokens=reply.usage.tokens,
            model=reply.model,
            **reply.model_dump(include={"withheld"}, exclude_defaults=True),
        )
        return reply

    async def _reply(self, step: str, **of_turn: Any) -> TurnReply:
        """Makes a model call with fields of TurnInput, besides those of the attempt."""
        agent, attempt = self._agent, self._attempt
        turn = TurnInput(
            run=agent.run,
            team_ref=agent.team_ref,
            role=agent.role.name,
            model=agent.role.model,
            effort=agent.effort,
            step=step,
            max_turns=agent.max_turns,
            max_tokens=self._max_tokens,
            **of_turn,
        )
        return await activity_calls.model_call(
            "call_model",
            turn,
            TurnReply,
            agent.expires_at,
            agent.model_queue,
            attempt.book,
            stopped=lambda: attempt.instructions.paused and attempt.instructions.now,
        )

    async def _ask_for_other_queries(self) -> None:
        """Has the model write other queries, each from the brief alone, and runs them.

        A finding that rests on a query has to agree with one of them. An attempt that is
        interrupted here goes on with those it has.
        """
        for number in range(1, limits.OTHER_QUERIES + 1):
            other = await self._other_query(number)
            if other is not None:
                self._progress.add_other(other)

    async def _other_query(self, number: int) -> OtherQuery | None:
        """Returns another query with its result, corrected once; None if the model writes none."""
        step = f"query.{self._progress.number}.{number}"
        asked = await self._reply(step, brief=self._agent.brief, another_query=number)
        ran = await self._run_other(asked)
        if ran is None:
            return None
        other = OtherQuery(head=asked.head, result=ran.result)
        facts = ran.result.facts
        is_in_vain = ran.result.is_error or (facts is not None and facts.nothing == "no_rows")
        if not is_in_vain:
            return other

        corrected = await self._reply(
            f"{step}.2",
            head=asked.head,
            results=[ran.result],
            another_query=number,
        )
        ran = await self._run_other(corrected)
        return other if ran is None else OtherQuery(head=corrected.head, result=ran.result)

    async def _run_other(self, reply: TurnReply) -> ToolReply | None:
        """Runs the query in a reply of its own conversation; None if it has none."""
        self._attempt.note("other_query", tokens=reply.usage.tokens, model=reply.model)
        free = [call for call in reply.calls if not call.waits_for]
        return await self._calls.run_aside(free[0], reply.head) if free else None

    def _needs_other_queries(self, reply: TurnReply) -> bool:
        """True if the model has made its first query, and may make other calls."""
        if not reply.others_due or self._progress.others:
            return False
        # Other agents' findings, which such a query may need, are not in its prompt.
        if self._agent.brief.dependencies:
            return False
        return self._attempt.has_a_turn_left

    def _step_after(self, reply: TurnReply) -> Next:
        """Returns the step that follows a reply."""
        rules, progress = self._rules, self._progress
        can_grow = not reply.fullest and self._more_room > self._max_tokens
        rules.hear_reply(turn=progress.turn, pauses=progress.pauses, can_grow=can_grow)
        return next_step(reply.stop_reason, reply.finding is not None, len(reply.calls), rules)

    async def _follow(self, step: Next, reply: TurnReply) -> None:
        """Does the work between two turns.

        Raises the error of the attempt if the reply leads to no next turn.
        """
        progress = self._progress
        if step is Next.TOOLS:
            await self._calls.answer(reply.calls)
        elif step is Next.CONTINUE:
            progress.count_pause()
        elif step is Next.NUDGE:
            progress.leave_note(prompts.NUDGE)
            self._conclusions.begin_anew_if_repeated(reply)
        else:
            raise self._attempt.failure(_loop_problem(step, reply, self._agent.max_turns))


def _loop_problem(step: Next, reply: TurnReply, max_turns: int) -> Problem:
    """Returns the problem of a reply that leads to no next turn."""
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
