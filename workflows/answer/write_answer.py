"""The answer: a finding word for word, or written from the findings, in several steps when they are too many.

Drafts of it may be written while subtasks still run, at most one in flight.
"""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import AdoptInput, TableInput, TableReply, as_refs, shown_gaps
    from activities.questions.items import Expansions
    from activities.questions.synthesis import SYNTHESIS, SynthesisInput
    from activities.run.run_activities import RunActivities
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.base.text import one_line
    from temporal_supervisor.supervision.contract.result import Citation, SubtaskReport
    from temporal_supervisor.supervision.contract.strategy import STRATEGIES, StrategyName
    from temporal_supervisor.supervision.results.answer import ANSWER_JSON, Answer
    from workflows.answer.answer_synthesis import EMPTY, synthesized
    from workflows.background import BackgroundTask
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.asking import ask, judge
    from workflows.run_context import RunContext

_WORD_FOR_WORD = "The answer is this finding, word for word."


class Drafts(BackgroundTask):
    """From some findings on (0 is never), a draft folds in what has arrived; the final answer takes it up.

    The first one is the plan's direct answer, if it has one. `folded` are the subtasks whose findings the draft at
    `draft_ref` holds.
    """

    def __init__(self, context: RunContext, planned: Answer) -> None:
        super().__init__()
        self._context = context
        self._after = context.state.request.incremental_synthesis
        self.folded: set[str] = set()
        self.draft_ref = planned.ref
        self.doubtful = [item.text for item in planned.unsupported]

    def forget(self) -> None:
        """Drops the draft, and one that is being written; there are no others then."""
        self._after, self.folded, self.draft_ref = 0, set(), None
        self._context.state.take_draft(Answer())

    def _is_due(self) -> bool:
        if not self._after or self._context.state.plan.answer_subtask is not None:
            return False
        new = self._new()
        unfinished = any(report.state in ("waiting", "running") for report in self._context.state.board.reports())
        return bool(unfinished and new and len(new) + len(self.folded) >= self._after)

    def _new(self) -> list[SubtaskReport]:
        usable = self._context.state.board.usable()
        return [report for report in usable if report.state == "completed" and report.id not in self.folded]

    async def _work(self) -> None:
        context, state, new = self._context, self._context.state, self._new()
        payload = SynthesisInput(
            **context.call_fields,
            findings=as_refs(new),
            mode="draft",
            draft_ref=self.draft_ref,
            number=state.next_number("synthesis"),
            max_tokens=state.request.max_tokens or limits.SYNTHESIS_MAX_TOKENS,
        )
        try:
            # Findings that arrive while this waits are new to the next draft, or to the answer. If one is done again
            # meanwhile, the draft is dropped.
            reply = await ask(context, SYNTHESIS, payload)
        except (SupervisionError, asyncio.CancelledError):
            state.trace.note("draft_failed")
            self._after = 0  # a draft saves time: what keeps one from being written is not worth trying again
            return
        if self._after and reply.answer.ref:
            self.draft_ref = reply.answer.ref
            self.folded.update(report.id for report in new)
            self.doubtful = [item.text for item in reply.answer.unsupported]
            state.take_draft(reply.answer)
            state.trace.note(
                "draft_written",
                number=payload.number,
                findings=len(self.folded),
                preview=one_line(reply.answer.text, limits.SENTENCE_BYTES),
                ref=reply.answer.ref,
            )
        context.show()


def sole_finding(context: RunContext, strategy: StrategyName) -> SubtaskReport | None:
    """Returns the subtask whose finding is the answer: that of a route to one role. None if there is no such."""
    reports = context.state.board.reports()
    if STRATEGIES[strategy].answer != "finding" or len(reports) != 1 or context.setup.answer_schema_ref is not None:
        return None
    return reports[0] if reports[0].finding else None


async def write_answer(context: RunContext, drafts: Drafts, strategy: StrategyName) -> None:
    """Puts the answer into the run's state: a finding as it stands, where strategy or plan say so, or a written one."""
    context.enter("synthesizing")
    tables = await tabulate(context)
    report = sole_finding(context, strategy) or _named_finding(context)
    report = report or await _best_finding(context)
    if report is None or not await _take(context, report):
        await _write(context, drafts, tables)


def _named_finding(context: RunContext) -> SubtaskReport | None:
    """Returns the subtask whose finding the plan makes the answer, or the one that took its place.

    None if the plan names none, and if that one did not succeed: then the answer is written.
    """
    board, named = context.state.board, context.state.plan.answer_subtask
    if named is None or context.setup.answer_schema_ref is not None:
        return None
    report = board[named]
    while report.replaced_by is not None:
        report = board[report.replaced_by]
    return report if report.state == "completed" and report.finding else None


async def _best_finding(context: RunContext) -> SubtaskReport | None:
    """Returns the subtask whose finding a judge chose as the answer; None if the plan does not ask for a choice."""
    state = context.state
    if state.plan.aggregation != "select" or context.setup.answer_schema_ref is not None:
        return None
    rivals = [report for report in state.board.current() if report.state == "completed" and report.finding]
    if len(rivals) < 2:
        return next(iter(rivals), None)
    question = "Each candidate is an answer to the whole goal. Choose the one that answers it best."
    choice, reason = await judge(context, "select", question, as_refs(rivals, state.board))
    choice = choice or 0
    state.trace.note("answer_chosen", rivals[choice].id, choice=choice + 1, of=len(rivals), reason=reason)
    return rivals[choice]


async def _take(context: RunContext, report: SubtaskReport) -> bool:
    """Makes a subtask's finding the answer, under its role's label. Returns False if it could not be read."""
    finding, role = report.finding, context.team.find(report.role)
    if finding is None:
        return False
    label = role.label if role else None
    taken = AdoptInput(run=context.run, text_ref=finding.text_ref, label=label)
    try:
        answer = await activity_calls.with_store(
            RunActivities.adopt_finding, limits.PUBLISH_TIMEOUT, "take the finding as the answer", taken
        )
    except CallFailed as failed:
        context.state.warn(f"the finding of {report.id} could not be taken as the answer: {failed}")
        return False
    citations = [Citation(claim=_WORD_FOR_WORD, subtask_ids=[report.id])]
    context.state.take_answer(answer.model_copy(update={"confidence": finding.confidence, "citations": citations}))
    context.state.trace.note("finding_adopted", report.id)
    return True


async def tabulate(context: RunContext, patience: timedelta | None = None) -> TableReply:
    """Puts the tables of templates whose items gave outputs into the run's state; one of them may be the answer.

    With `patience` a store that is away is not waited for longer.
    """
    items = [report for report in context.state.board.reports() if report.template and report.state == "completed"]
    if not any(report.finding and report.finding.output_ref for report in items):
        return TableReply()
    payload = TableInput(
        run=context.run,
        plan_ref=context.plan_ref,
        team_ref=context.team_ref,
        findings=as_refs(items),
        answer_schema_ref=context.setup.answer_schema_ref,
    )
    try:
        summary = f"tables of {len(payload.findings)} items"
        reply = await activity_calls.with_store(
            Expansions.tabulate, limits.FILES_TIMEOUT, summary, payload, patience=patience
        )
    except CallFailed as failed:
        context.state.warn(f"the outputs of items could not be made a table: {failed}")
        return TableReply()
    context.state.take_tables(reply.tables)
    for template, lacking in reply.lacks.items():
        context.state.open_point(template, lacking)
    return reply


async def _write(context: RunContext, drafts: Drafts, tables: TableReply) -> None:
    """Has the answer written; its JSON is written with it, or is one of the `tables`.

    If it cannot be written, the findings stand in for it; if its JSON does not fit, that is a gap. Raises
    SupervisionError only if there is neither a finding nor a direct answer.
    """
    state, reply, why = context.state, None, EMPTY
    own_grounding = state.answer.grounding  # of a direct answer, which gets its JSON here
    try:
        with context.own_work():
            # Stopped first: a draft that ended later would count findings as folded in that the answer left out.
            await drafts.stop()
            usable = [report for report in state.board.usable() if report.id not in drafts.folded]
            findings = as_refs([report for report in usable if report.template != tables.fills], state.board)
            call = SynthesisInput(
                **context.call_fields,
                findings=[*findings, tables.first_rows] if tables.first_rows else findings,
                missing=shown_gaps(state.board.gaps()),
                open_points=shown_gaps(state.open_points),
                contradictions=state.contradictions,
                draft_ref=drafts.draft_ref,
                answer_schema_ref=None if tables.fills else context.setup.answer_schema_ref,
                doubtful=drafts.doubtful[: limits.UNSUPPORTED_LISTED],
            )
            reply = await synthesized(context, call)
    except SupervisionError as error:
        if not state.board.has_finding and not state.answer.text:
            raise
        why = error.message
    if reply and reply.answer.text:
        written = {"grounding": own_grounding, "model": context.written_by.get(reply.head)}
        state.take_answer(reply.answer.model_copy(update=written))
    else:
        state.answer_by_findings(why)
        if reply:
            state.add_to_answer(reply.answer.as_json, reply.answer.unsupported)
    lacks = "; ".join(reply.problems) if reply else why
    if tables.fills:
        state.answer_with_table(tables.answer_json, tables.answer_json_ref)
        lacks = tables.problem
    if context.setup.answer_schema_ref and lacks:
        state.open_point(ANSWER_JSON, lacks)
    for contradiction in reply.contradictions if reply else []:
        state.add_contradiction(contradiction)
