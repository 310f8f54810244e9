"""The tool calls of a turn: run at once, or once a person has approved them."""

import asyncio
from contextlib import suppress

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolCallRef, ToolInput, ToolReply
    from activities.prompts import agent_prompts as prompts
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import STORE, ErrorKind
    from temporal_supervisor.supervision.base.prompt_marks import READ_OUTPUT_TOOL
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.usage import Usage

    from workflows.background import let_ready_tasks_finish
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.tool_loop.agent_attempt import AgentAttempt


class TurnCalls:
    """The calls of an attempt's last turn, until each has a result for the conversation."""

    def __init__(self, attempt: AgentAttempt) -> None:
        self._attempt = attempt
        self._agent = attempt.agent
        self._progress = attempt.progress

    async def run_approved(self) -> None:
        """Runs the calls that a person has approved, or replied to.

        Then the last turn's calls are all answered.
        """
        if self._progress.approved and not self._attempt.instructions.paused:
            await self._run()

    async def answer(self, calls: list[ToolCallRef]) -> None:
        """Runs the calls of a turn, but those that wait for a person, and those too many.

        Raises the error of a loop of which some wait for a person.
        """
        most = limits.TOOL_CALLS_PER_TURN
        surplus = f"Not run: one turn runs at most {most} tool calls. Call it in the next one."
        not_run = [call.without_result(surplus) for call in calls[most:]]
        self._progress.begin_calls(calls[:most], not_run)
        await self._run()

    async def run_aside(self, call: ToolCallRef, head: str) -> ToolReply:
        """Runs a call of another conversation, in its reply at `head`."""
        reply = await self._run_tool(call, head)
        self._progress.add_usage(Usage(tool_calls=1))
        return reply

    async def _run(self) -> None:
        """Runs the approved calls in parallel.

        Raises the error of a loop of which others wait for a person.
        """
        progress = self._progress
        calls = progress.take_approved()
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
            self._take_what_ended(calls, replies)
            raise

        self._take_replies(calls, replies)
        if progress.pending:
            why = Problem(type=ErrorKind.NEEDS_PERSON, message="it waits for a person")
            raise self._attempt.failure(why)

    async def _run_into(self, replies: dict[int, ToolReply], place: int, call: ToolCallRef) -> None:
        """Runs a call and adds its reply to the others."""
        replies[place] = await self._run_tool(call, self._progress.head or "")

    def _take_what_ended(self, calls: list[ToolCallRef], replies: dict[int, ToolReply]) -> None:
        """Answers all calls of a turn that was stopped while they ran.

        The turn was made: the next attempt has to answer its calls. Those that have ended keep
        their results.
        """
        self._take_replies(calls, replies)
        unanswered = [call for place, call in enumerate(calls) if place not in replies]
        words = f"This call was stopped. {prompts.UNKNOWN_OUTCOME}"
        self._progress.stop_calls(unanswered, words)

    def _take_replies(self, calls: list[ToolCallRef], replies: dict[int, ToolReply]) -> None:
        """Takes over replies to calls that have ended: results, effects, questions to people."""
        progress = self._progress
        for place, call in enumerate(calls):
            reply = replies.get(place)
            if reply is None:
                continue
            progress.add_usage(Usage(tool_calls=1))
            if reply.asks:
                progress.hold_call(_asking(call, reply))
            else:
                progress.add_result(reply.result, reply.effect)

    async def _run_tool(self, call: ToolCallRef, head: str) -> ToolReply:
        """Runs one call. One that failed may have had effects, which its result admits."""
        agent = self._agent
        tool = agent.role.tool(call.name)
        queue = agent.outward_queue if tool.outward else agent.tools_queue
        try:
            reply = await activity_calls.run_tool(self._input(call, head), queue, tool.timeout)
        except CallFailed as failed:
            problem = failed.problem
            if problem.type in STORE | {ErrorKind.NOT_GRANTED}:
                raise  # what the run needs is gone, which is no result of the tool
            is_deadly = problem.type is ErrorKind.PROCESS_DIED
            words = prompts.DEADLY_CALL if is_deadly else prompts.UNKNOWN_OUTCOME
            reply = ToolReply(result=call.without_result(words), preview=problem.message[:200])
        self._note_call(call, reply)
        return reply

    def _input(self, call: ToolCallRef, head: str) -> ToolInput:
        agent = self._agent
        reads_findings = call.name == READ_OUTPUT_TOOL
        return ToolInput(
            run=agent.run,
            team_ref=agent.team_ref,
            role=agent.role.name,
            head=head,
            call=call,
            attachments=agent.brief.attachments,
            findings=agent.brief.dependencies if reads_findings else [],
        )

    def _note_call(self, call: ToolCallRef, reply: ToolReply) -> None:
        """Notes a call in the trace, with the text of others that it came after."""
        labels = self._progress.labels
        after = {"after": labels.path} if labels.untrusted else {}
        self._attempt.note(
            "tool",
            name=call.name,
            arguments=call.preview,
            is_error=reply.result.is_error,
            preview=reply.preview[:200],
            **after,
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
