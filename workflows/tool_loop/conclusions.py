"""The conclusions of a worker agent: sent back to it, or the finding of the attempt."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolResultRef, TurnReply
    from activities.prompts import agent_prompts as prompts
    from temporal_supervisor.supervision.agent.better_finding import better_finding
    from temporal_supervisor.supervision.agent.empty_words import Emptiness
    from temporal_supervisor.supervision.agent.turn_rules import Next
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem

    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.tool_loop.agent_attempt import AgentAttempt, of_subtask

_NO_FINDING: dict[Emptiness, str] = {
    "says_nothing": "its last words are no finding",
    "failed_call": "its last call failed, and no other one brought data",
    "no_rows": "its last words are a query, and no row met the one before it",
}


class Conclusions:
    """The conclusions of one attempt, of which it keeps the best."""

    def __init__(self, attempt: AgentAttempt) -> None:
        self._attempt = attempt
        self._agent = attempt.agent
        self._progress = attempt.progress

    def finding_of(self, step: Next, reply: TurnReply) -> Finding | None:
        """Returns the finding of a reply that concludes, or with which the loop has to end.

        None if it continues.
        """
        finding = None
        if step in (Next.FINISH, Next.FINISH_CUT):
            finding = reply.finding
        elif step in (Next.TURN_LIMIT, Next.BROKEN):
            finding = reply.earlier
        if finding is None:
            return None

        missing = ""
        if step is not Next.FINISH:
            how = f"the worker agent had not concluded when it ended with {reply.stop_reason}"
            missing = f"the finding is not whole: {how}"
        return of_subtask(finding, self._agent.subtask_id, missing=missing)

    def goes_back(self, step: Next, reply: TurnReply, finding: Finding) -> bool:
        """True if more follows a conclusion: what people said meanwhile, or an objection.

        Raises the error of an attempt that has come to nothing.
        """
        attempt, progress = self._attempt, self._progress
        if step is Next.FINISH and attempt.unheard and attempt.has_a_turn_left:
            progress.answer_calls(_taken(reply))
            return True
        if reply.empty:
            return self._asks_again(reply, reply.empty)
        return self._objects_to(reply, finding)

    def result(self, finding: Finding, reply: TurnReply) -> WorkerAgentResult:
        """Returns the result of an attempt that concluded with a reply."""
        result = self._attempt.result(self._best(finding, reply))
        result.finish_call_id = reply.finish_call_id
        result.repeats = reply.repeats
        return result

    def begin_anew_if_repeated(self, reply: TurnReply) -> None:
        """Begins a conversation that goes in circles anew.

        Its own words are the strongest example that the model has. The new one has the brief, what
        tools returned, and all that people said.
        """
        if reply.repeats:
            self._progress.begin_anew(reply.head)
            self._attempt.note("begun_anew")

    def _asks_again(self, reply: TurnReply, why: Emptiness) -> bool:
        """True if empty words are sent back, twice at most.

        False if an earlier finding takes their place.

        Raises the error of an attempt that has none.
        """
        attempt, progress = self._attempt, self._progress
        attempt.note("finding_returned", why=_NO_FINDING[why])
        if progress.empty_replies < limits.EMPTY_REPLIES and attempt.has_a_turn_left:
            progress.count_empty_reply()
            progress.send_back(prompts.empty_note(why), _taken(reply))
            self.begin_anew_if_repeated(reply)
            return True
        if progress.returned is not None:
            return False
        raise self._cannot_do(f"{_NO_FINDING[why]}: {reply.preview}")

    def _objects_to(self, reply: TurnReply, finding: Finding) -> bool:
        """True if a conclusion is sent back, once and if there is a turn for it.

        Raises the error of an attempt that concluded with `impossible`.
        """
        attempt, progress = self._attempt, self._progress
        if reply.finding is None:
            return False
        if reply.impossible:
            if progress.returned is not None and progress.returned.supported:
                return False
            raise self._cannot_do(finding.summary)

        lacks_items = self._agent.brief.names_items and not finding.items_ref
        misfit = [*reply.misfit]
        if lacks_items:
            misfit.append(prompts.NO_ITEMS)
        is_doubtful = finding.unsupported or finding.doubts or reply.unclear or reply.ungrounded
        is_faulty = is_doubtful or misfit
        if not is_faulty or progress.objected or not attempt.has_a_turn_left:
            if lacks_items:
                why = f"its finding names no items: {prompts.NO_ITEMS}"
                raise self._cannot_do(why, keeps_finding=True)
            return False

        # Its form is not what was asked for: such a finding does not stand in for a later one.
        progress.note_objection(None if misfit else finding)
        why = "no tool brought data for it" if reply.ungrounded else ""
        faults = [*finding.unsupported, *finding.doubts, *misfit]
        attempt.note("finding_returned", why=why, unsupported=[*faults])
        note = prompts.objection(
            finding.unsupported,
            reply.unclear,
            misfit,
            finding.doubts,
            ungrounded=reply.ungrounded,
        )
        progress.send_back(note, _taken(reply))
        return True

    def _best(self, finding: Finding, reply: TurnReply) -> Finding:
        """Returns the conclusion that counts: the last one, unless an earlier one is better."""
        earlier = self._progress.returned
        if earlier is None:
            return finding

        kept = earlier if reply.empty or reply.impossible else better_finding(earlier, finding)
        which = "earlier" if kept is earlier else "last"
        self._attempt.note("finding_kept", which=which)
        return kept

    def _cannot_do(self, why: str, *, keeps_finding: bool = False) -> ApplicationError:
        """Returns the error of an attempt that has come to nothing."""
        problem = Problem(type=ErrorKind.CANNOT_DO, message=why)
        return self._attempt.failure(problem, keeps_finding=keeps_finding)


def _taken(reply: TurnReply) -> list[ToolResultRef]:
    """Returns the answer to the call that gave a finding, if one did.

    The conversation continues after it.
    """
    if not reply.finish_call_id:
        return []
    return [ToolResultRef(call_id=reply.finish_call_id, text=prompts.FINISH_TAKEN)]
