"""The answer of a run: a finding word for word, or a text written from the findings."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import (
        AdoptInput,
        TableInput,
        TableReply,
        as_refs,
        shown_gaps,
    )
    from activities.questions.items import Expansions
    from activities.questions.synthesis import SynthesisInput, SynthesisReply
    from activities.run.run_activities import RunActivities
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.contract.result import Citation, SubtaskReport
    from temporal_supervisor.supervision.contract.strategy import STRATEGIES, StrategyName
    from temporal_supervisor.supervision.results.answer import ANSWER_JSON
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.answer.answer_synthesis import EMPTY, AnswerSynthesis
    from workflows.answer.drafts import Drafts
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.supervisor_model import SupervisorModel
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms

_WORD_FOR_WORD = "The answer is this finding, word for word."
_CHOICE = "Each candidate is an answer to the whole goal. Choose the one that answers it best."


class AnswerWriter:
    """Puts the answer into the run's state, and with it the tables of templates."""

    def __init__(
        self, terms: RunTerms, state: RunState, plan: PlanInForce, model: SupervisorModel
    ) -> None:
        self._run = terms.run
        self._schema_ref = terms.setup.answer_schema_ref
        self._state = state
        self._plan = plan
        self._model = model
        self._synthesis = AnswerSynthesis(state, model, terms.setup.prompt_bytes)

    async def write(self, drafts: Drafts, strategy: StrategyName) -> None:
        """Makes a finding the answer if strategy or plan ask for that; else has it written.

        Raises SupervisionError if there is neither a finding nor a direct answer to fall back on.
        """
        tables = await self.tabulate()
        report = (
            self.routed_subtask(strategy)
            or self._answer_subtask()
            or await self._preferred_subtask()
        )
        if report is None or not await self._adopt_finding(report):
            await self._write(drafts, tables)

    def routed_subtask(self, strategy: StrategyName) -> SubtaskReport | None:
        """Returns the only subtask of a run that was routed to one role: its finding is the answer.

        None for other runs, and if the answer has to fit a schema.
        """
        reports = self._state.board.reports()
        is_routed = STRATEGIES[strategy].answer == "finding" and len(reports) == 1
        if not is_routed or self._schema_ref is not None:
            return None
        return reports[0] if reports[0].finding else None

    def _answer_subtask(self) -> SubtaskReport | None:
        """Returns the subtask that the plan names as the answer, or its latest replacement.

        None if the plan names no subtask, or if that one did not succeed: then the answer is
        written.
        """
        board, named = self._state.board, self._state.plan.answer_subtask
        if named is None or self._schema_ref is not None:
            return None
        report = board[named]
        while report.replaced_by is not None:
            report = board[report.replaced_by]
        return report if report.state == "completed" and report.finding else None

    async def _preferred_subtask(self) -> SubtaskReport | None:
        """Returns the subtask whose finding a judge prefers, if the plan asks for a choice."""
        state = self._state
        if state.plan.aggregation != "select" or self._schema_ref is not None:
            return None
        completed = [report for report in state.board.current() if report.state == "completed"]
        rivals = [report for report in completed if report.finding]
        if len(rivals) < 2:
            return next(iter(rivals), None)
        refs = as_refs(rivals, state.board)
        preferred, reason = await self._model.judge("select", _CHOICE, refs)
        index = preferred or 0  # the first one, if the judge has no preference
        chosen, count = rivals[index], len(rivals)
        state.trace.note("answer_chosen", chosen.id, choice=index + 1, of=count, reason=reason)
        return chosen

    async def _adopt_finding(self, report: SubtaskReport) -> bool:
        """Makes a subtask's finding the answer, headed by the label of its role.

        Returns False, with a warning, if the finding could not be read.
        """
        finding, role = report.finding, self._plan.team.find(report.role)
        if finding is None:
            return False
        label = role.label if role else None
        call = AdoptInput(run=self._run, text_ref=finding.text_ref, label=label)
        adopt, time = RunActivities.adopt_finding, limits.PUBLISH_TIMEOUT
        try:
            summary = "take the finding as the answer"
            answer = await activity_calls.store_call(adopt, time, summary, call)
        except CallFailed as failed:
            why = f"the finding of {report.id} could not be taken as the answer: {failed}"
            self._state.warn(why)
            return False
        citations = [Citation(claim=_WORD_FOR_WORD, subtask_ids=[report.id])]
        update = {"confidence": finding.confidence, "citations": citations}
        self._state.answer.replace(answer.model_copy(update=update))
        self._state.trace.note("finding_adopted", report.id)
        return True

    async def tabulate(self, patience: timedelta | None = None) -> TableReply:
        """Makes tables of the outputs of templates' items, and puts them into the state.

        One of them may be the answer. With `patience` the store may be unavailable for that long at
        most.
        """
        state = self._state
        completed = [report for report in state.board.reports() if report.state == "completed"]
        items = [report for report in completed if report.template]
        if not any(report.finding and report.finding.output_ref for report in items):
            return TableReply()
        call = TableInput(
            run=self._run,
            plan_ref=self._plan.ref,
            team_ref=self._plan.team_ref,
            findings=as_refs(items),
            answer_schema_ref=self._schema_ref,
        )
        tabulate, time = Expansions.tabulate, limits.FILES_TIMEOUT
        summary = f"tables of {len(call.findings)} items"
        try:
            reply = await activity_calls.store_call(
                tabulate, time, summary, call, patience=patience
            )
        except CallFailed as failed:
            state.warn(f"the outputs of items could not be made a table: {failed}")
            return TableReply()
        state.answer.replace_tables(reply.tables)
        for template, lacking in reply.lacks.items():
            state.open_points.set_gap(template, lacking)
        return reply

    async def _write(self, drafts: Drafts, tables: TableReply) -> None:
        """Has the answer written, with its JSON, unless one of the `tables` is that JSON.

        If it cannot be written, the findings stand in for it; JSON that does not fit becomes a gap.
        Raises SupervisionError if there is neither a finding nor a direct answer.
        """
        state, answer = self._state, self._state.answer
        reply: SynthesisReply | None = None
        why_not_written = EMPTY
        # A direct answer gets only its JSON here: its text rests on the same ground as before.
        grounding = answer.current.grounding
        try:
            with state.time_and_budget.own_work():
                # Stopped first: a draft that ended later would count findings as folded in that
                # the answer left out.
                await drafts.stop()
                reply = await self._synthesis.write(self._call(drafts, tables))
        except SupervisionError as error:
            if not state.board.has_finding and not answer.current.text:
                raise
            why_not_written = error.message

        if reply and reply.answer.text:
            written = {"grounding": grounding, "model": self._model.author_of(reply.head)}
            answer.replace(reply.answer.model_copy(update=written))
        else:
            answer.replace_by_findings(why_not_written)
            if reply:
                written_json = reply.answer.as_json, reply.answer.unsupported
                answer.replace(answer.current.with_json(*written_json))
        self._complete_json(reply, tables, why_not_written)
        for contradiction in reply.contradictions if reply else []:
            answer.add_contradiction(contradiction)

    def _call(self, drafts: Drafts, tables: TableReply) -> SynthesisInput:
        """Returns the input of the synthesis: the latest draft, and the findings that it lacks."""
        state = self._state
        unfolded = [report for report in state.board.usable() if report.id not in drafts.folded]
        # The items of a table that is the answer are in the prompt as its first rows.
        shown = [report for report in unfolded if report.template != tables.fills]
        findings = as_refs(shown, state.board)
        if tables.first_rows:
            findings.append(tables.first_rows)
        return SynthesisInput(
            **self._model.call_fields,
            findings=findings,
            missing=shown_gaps(state.board.gaps()),
            open_points=shown_gaps(state.open_points.of_subtasks),
            contradictions=state.answer.contradictions,
            draft_ref=drafts.draft_ref,
            answer_schema_ref=None if tables.fills else self._schema_ref,
            doubtful=drafts.doubtful[: limits.UNSUPPORTED_LISTED],
        )

    def _complete_json(self, reply: SynthesisReply | None, tables: TableReply, why: str) -> None:
        """Makes a table the answer's JSON if the table fills it; a lack in the JSON is a gap.

        `why` is the reason for having no reply.
        """
        lacks = "; ".join(reply.problems) if reply else why
        if tables.fills:
            answer = self._state.answer
            table = tables.answer_json, tables.answer_json_ref
            answer.replace(answer.current.with_table(*table))
            lacks = tables.problem
        if self._schema_ref and lacks:
            self._state.open_points.set_gap(ANSWER_JSON, lacks)
