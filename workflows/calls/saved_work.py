"""Findings of earlier runs that replace work: looked up for each plan, taken when needed."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.eval_contracts import GivenInput
    from activities.contracts.run_contracts import PlanReply
    from activities.reuse.saved_findings import SavedFindings, SavedInput, SavedReply
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.base.store_keys import digest_of
    from temporal_supervisor.supervision.contract.plan import Estimate
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.reuse.matching import SavedFinding, SavedWork
    from temporal_supervisor.supervision.reuse.recipes import digest_sum
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms

_SUMMARY = "look for findings of earlier runs"


class EarlierFindings:
    """The findings of earlier runs that subtasks of this run will take."""

    def __init__(self, terms: RunTerms, state: RunState, plan: PlanInForce) -> None:
        self._terms = terms
        self._state = state
        self._plan = plan
        self._saved = SavedWork()

    async def with_savings(self, reply: PlanReply) -> PlanReply:
        """Returns a planner's reply, its estimate without subtasks that take an earlier finding."""
        if reply.plan is None or reply.plan_ref is None:
            return reply
        await self.look_up(reply.plan_ref, reply.team_ref or self._plan.team_ref)
        findings = self._saved.findings
        if reply.estimate is None or not findings:
            return reply
        places = {subtask_id: saved.reused.place for subtask_id, saved in findings.items()}
        return reply.model_copy(update={"estimate": _estimate_without(reply.estimate, places)})

    async def look_up(self, plan_ref: str, team_ref: str) -> None:
        """Looks up the findings that a plan may take. Only a root reuses earlier runs.

        If the look-up fails the run continues, with a warning, as if there were none.
        """
        state = self._state
        if self._terms.is_answer_alone:
            await self._take_given()
            return
        if not state.request.reuse_from or self._terms.nested is not None:
            return
        call = SavedInput(run=self._terms.run, plan_ref=plan_ref, team_ref=team_ref)
        try:
            reply = await _find_saved(call)
            saved = [*reply.saved]
            for ref in reply.more_refs:
                more = await _find_saved(call.model_copy(update={"page_ref": ref}))
                saved += more.saved
        except CallFailed as failed:
            state.warn(f"nothing is taken from earlier runs: {failed}")
            return
        for warning in reply.warnings:
            state.warn(warning)
        self._saved.look_up_again(saved, reply.missing)
        counted = {"findings": len(saved), "is_new": not saved}
        state.trace.note("findings_looked_up", runs=[*state.request.reuse_from], **counted)

    async def _take_given(self) -> None:
        """Has the subtasks take the findings that an eval provides.

        Raises CallFailed if they are missing: an answer made without them could not be judged.
        """
        call = GivenInput(run=self._terms.run)
        take, time = SavedFindings.given_findings, limits.SETUP_TIMEOUT
        reply = await activity_calls.store_call(take, time, "take the given findings", call)
        self._saved.look_up_again(reply.saved, {})

    def complete_ready(self) -> None:
        """Completes each ready subtask that has an earlier finding, as long as more become ready.

        A subtask that can only take a finding, and has none, fails.
        """
        board = self._state.board
        # One that is completed may make others ready.
        while ready := self._saved.among(board.ready()):
            for subtask_id in ready:
                saved, why = self._saved.hand_out(subtask_id)
                if why is not None:
                    self._fail(subtask_id, why)
                elif saved is not None and self._fits(saved):
                    self._complete(saved)

    def _fits(self, saved: SavedFinding) -> bool:
        """True if the subtask is new, and its dependencies have the findings behind `saved`."""
        board = self._state.board
        report = board[saved.subtask_id]
        if report.attempts or report.finding is not None:
            return False
        if saved.is_named:
            return True
        refs = [board.text_ref(dependency) for dependency in report.depends_on]
        digests = [digest_of(ref) or ref for ref in refs if ref is not None]
        return len(digests) == len(refs) and digest_sum(digests) == saved.rests_on

    def _complete(self, saved: SavedFinding) -> None:
        """Completes a subtask with a finding of an earlier run."""
        state, subtask_id = self._state, saved.subtask_id
        state.board.begin(subtask_id, saved.role)
        state.board.set_model(subtask_id, saved.model)
        state.board.take_over(subtask_id, saved.finding, saved.reused)
        state.work_done.add([], saved.finding.labels)
        calls = saved.reused.usage.model_calls
        state.trace.note("subtask_reused", subtask_id, place=saved.reused.place, calls=calls)

    def _fail(self, subtask_id: str, why: str) -> None:
        """Ends a subtask that has no finding to take."""
        board = self._state.board
        board.begin(subtask_id, board[subtask_id].role)
        problem = Problem(type=ErrorKind.ARTIFACT_MISSING, message=why)
        board.end(subtask_id, "failed", problem)
        self._state.trace.note("subtask_failed", subtask_id, error=problem.type, message=why)


async def _find_saved(call: SavedInput) -> SavedReply:
    find, time = SavedFindings.find_saved, limits.FILES_TIMEOUT
    return await activity_calls.store_call(find, time, _SUMMARY, call)


def _estimate_without(estimate: Estimate, places: dict[str, str]) -> Estimate:
    """Returns an estimate without the parts of subtasks that take an earlier finding."""
    kept = [part for part in estimate.parts if part.id not in places]
    gone = [part for part in estimate.parts if part.id in places]
    total = estimate.total.minus(gone)
    return estimate.model_copy(update={"parts": kept, "total": total, "saved": places})
