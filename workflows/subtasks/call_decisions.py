"""People's decisions about the tool calls and questions of a worker agent."""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolCallRef, ToolResultRef
    from activities.prompts.agent_prompts import denied, unanswered
    from temporal_supervisor.supervision.contract.status import Wait, WaitKind

    from workflows.children.child_contracts import LoopProgress
    from workflows.run.waiting import Waiting


class CallDecisions:
    """Asks people about the calls of worker agents, with a `timeout` for each."""

    def __init__(self, waiting: Waiting, timeout: timedelta) -> None:
        self._waiting = waiting
        self._timeout = timeout

    async def decide_pending(self, place: str, progress: LoopProgress) -> LoopProgress:
        """Returns the progress of a worker agent once people have decided about all its calls.

        `place` names the agent, for example `t3/1`. Replies and denials become results, approved
        calls will be run. Raises SupervisionError `DeadlineExceeded` if the run's time is over
        first, and CallFailed if a reply could not be stored.
        """
        head = progress.head or ""
        turn = f"{place}:{progress.number}"
        asking = [self._decide_call(turn, head, call) for call in progress.pending]
        results, approved = [*progress.results], [*progress.approved]
        # All are awaited to their ends, so that no wait is left behind by another one's error.
        for outcome in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            if isinstance(outcome, ToolResultRef):
                results.append(outcome)
            else:
                approved.append(outcome)
        decided = {"pending": [], "results": results, "approved": approved}
        return progress.model_copy(update=decided)

    async def _decide_call(
        self, turn: str, head: str, call: ToolCallRef
    ) -> ToolCallRef | ToolResultRef:
        """Returns the call if it is to be run; else its result, a reply or the lack of one."""
        wait = self._new_wait(turn, head, call)
        decision = await self._waiting.decision(wait, self._timeout, call.asked)
        if decision is None:
            return call.without_result(unanswered(call.waits_for != "tool"))
        if decision.choice == "approve":
            return call
        if decision.choice == "deny":
            return call.without_result(denied(decision.text))
        words = await self._waiting.stored_words(decision)
        if call.waits_for == "reply":
            replies = [*call.replies, (call.asks, words.text_ref)]
            return call.model_copy(update={"replies": replies})
        return ToolResultRef(call_id=call.call_id, ref=words.text_ref, sources=words.sources)

    def _new_wait(self, turn: str, head: str, call: ToolCallRef) -> Wait:
        is_tool = call.waits_for == "tool"
        again = f".{len(call.replies)}" if call.waits_for == "reply" else ""
        question = call.asked if call.asks else ""
        preview = f"{call.name} {call.preview}" if is_tool else question or call.preview
        # The head names the whole conversation: workflow, turn and model are part of it.
        source = (
            head,
            str(call.index),
            call.name,
            call.definition_sha256,
            call.arguments_sha256,
            call.asks,
            call.asked,
        )
        kind: WaitKind = "tool" if is_tool else "question"
        return self._waiting.new_wait(
            f"{turn}.{call.index}{again}",
            kind,
            *source,
            subtask_id=turn.partition("/")[0],
            prompt_preview=preview,
            arguments_sha256=call.arguments_sha256 if is_tool else None,
            choices=["approve", "deny"] if is_tool else call.choices,
            content_ref=call.asked_ref,
            after=call.after,
        )
