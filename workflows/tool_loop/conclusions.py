"""The conclusions of a worker agent: sent back to it, or the finding of the attempt.

The rules are in `verdicts`, but for people's words, which only the workflow has.
"""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolResultRef, TurnReply
    from activities.prompts import agent_prompts as prompts
    from temporal_supervisor.supervision.agent.better_finding import better_finding
    from temporal_supervisor.supervision.agent.empty_words import Emptiness
    from temporal_supervisor.supervision.agent.turn_rules import Next
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem

    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.tool_loop.agent_attempt import AgentAttempt, of_subtask
    from workflows.tool_loop.verdicts import (
        NO_FINDING,
        AskAgain,
        GiveUp,
        HearPeople,
        Object,
        Verdict,
        verdict_on,
    )


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

    def verdict_on(self, step: Next, reply: TurnReply, finding: Finding) -> Verdict:
        """Returns the verdict on a conclusion, by the attempt as it is now. It changes nothing."""
        attempt = self._attempt
        if step is Next.FINISH and attempt.unheard and attempt.has_a_turn_left:
            return HearPeople()
        return verdict_on(
            reply,
            finding,
            self._progress,
            has_a_turn_left=attempt.has_a_turn_left,
            names_items=self._agent.brief.names_items,
        )

    def apply(self, verdict: Verdict, reply: TurnReply) -> None:
        """Puts a verdict into the attempt's progress and trace, for the turn that may follow.

        Raises the error of an attempt that has come to nothing.
        """
        if isinstance(verdict, HearPeople):
            self._progress.answer_calls(_finish_result(reply))
            return
        # Also of empty words that end the attempt, or for which an earlier finding counts.
        if reply.empty:
            self._attempt.note("finding_returned", why=NO_FINDING[reply.empty])
        match verdict:
            case AskAgain(emptiness):
                self._ask_again(emptiness, reply)
            case Object(finding, misfit):
                self._object(finding, misfit, reply)
            case GiveUp(why, keeps_finding):
                problem = Problem(type=ErrorKind.CANNOT_DO, message=why)
                raise self._attempt.failure(problem, keeps_finding=keeps_finding)

    def result(self, finding: Finding, reply: TurnReply) -> WorkerAgentResult:
        """Returns the result of an attempt that concluded with a reply."""
        return self._attempt.result(self._best(finding, reply)).concluded_by(reply)

    def begin_anew_if_repeated(self, reply: TurnReply) -> None:
        """Begins a conversation that goes in circles anew.

        Its own words are the strongest example that the model has. The new one has the brief, what
        tools returned, and all that people said.
        """
        if reply.repeats:
            self._progress.begin_anew(reply.head)
            self._attempt.note("begun_anew")

    def _ask_again(self, emptiness: Emptiness, reply: TurnReply) -> None:
        """Sends empty words back to their author."""
        self._progress.count_empty_reply()
        self._progress.send_back(prompts.empty_note(emptiness), _finish_result(reply))
        self.begin_anew_if_repeated(reply)

    def _object(self, finding: Finding, misfit: list[str], reply: TurnReply) -> None:
        """Sends a finding back to its author, with its faults."""
        # Its form is not the wanted one: such a finding never stands in for a later one.
        self._progress.mark_objected(None if misfit else finding)
        why = "no tool brought data for it" if reply.ungrounded else ""
        faults = [*finding.unsupported, *finding.doubts, *misfit]
        self._attempt.note("finding_returned", why=why, unsupported=[*faults])
        note = prompts.objection(
            finding.unsupported,
            reply.unclear,
            misfit,
            finding.doubts,
            ungrounded=reply.ungrounded,
        )
        self._progress.send_back(note, _finish_result(reply))

    def _best(self, finding: Finding, reply: TurnReply) -> Finding:
        """Returns the conclusion that counts: the last one, unless an earlier one is better."""
        earlier = self._progress.returned
        if earlier is None:
            return finding

        kept = earlier if reply.empty or reply.impossible else better_finding(earlier, finding)
        which = "earlier" if kept is earlier else "last"
        self._attempt.note("finding_kept", which=which)
        return kept


def _finish_result(reply: TurnReply) -> list[ToolResultRef]:
    """Returns the answer to the call that gave a finding, if one did.

    The conversation continues after it.
    """
    if not reply.finish_call_id:
        return []
    return [ToolResultRef(call_id=reply.finish_call_id, text=prompts.FINISH_TAKEN)]
