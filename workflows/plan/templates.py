"""The items of templates: each becomes a subtask of the plan."""

from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import ExpandInput, ExpandReply
    from activities.questions.items import Expansions
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.contract.finding import Finding, Labels
    from temporal_supervisor.supervision.contract.plan import Subtask
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.planning.expansion import room_for
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.saved_work import EarlierFindings
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms


class Templates:
    """Revises the plan with the items of its templates.

    `issue_soon` publishes a change of the run.
    """

    def __init__(
        self,
        terms: RunTerms,
        state: RunState,
        plan: PlanInForce,
        earlier: EarlierFindings,
        issue_soon: Callable[[], None],
    ) -> None:
        self._terms = terms
        self._state = state
        self._plan = plan
        self._earlier = earlier
        self._issue_soon = issue_soon

    @property
    def ready(self) -> list[str]:
        """The templates whose items can be determined now."""
        return self._state.board.expandable()

    async def expand(self, template_id: str) -> None:
        """Adds as many items of a template as the budget allows; without any the template fails."""
        board = self._state.board
        template = board.subtask(template_id)
        room, why_no_more = self._room_for(template)
        sources = self._sources_of(template)
        call = ExpandInput(
            run=self._terms.run,
            plan_ref=self._plan.ref,
            team_ref=self._plan.team_ref,
            template=template_id,
            named_ref=[finding.items_ref for finding in sources if finding and finding.items_ref],
            attachments=self._terms.setup.attachments,
            room=room,
        )
        expand, time = Expansions.expand_plan, limits.FILES_TIMEOUT
        try:
            reply = await activity_calls.store_call(
                expand, time, f"the items of {template_id}", call
            )
        except CallFailed as failed:
            self._fail(template_id, failed.problem)
            return
        if reply.plan is None:
            self._fail(template_id, _no_items(reply, why_no_more, template.for_each or ""))
            return
        # Before the plan is adopted: from then on an item can begin at any await.
        await self._earlier.look_up(reply.plan_ref, self._plan.team_ref)
        labels = Labels.of(sources) | self._plan.labels[template_id]
        self._plan.adopt(reply.plan, reply.plan_ref, labels, described_in=reply.items_ref)
        readable = reply.found - reply.unread
        count = min(room, readable)
        board.leave_out(template_id, readable - count, why_no_more)
        board.leave_out(template_id, reply.unread, reply.problem)
        counted = {"items": count, "found": reply.found, "revision": reply.plan.revision}
        self._state.trace.note("items_planned", template_id, **counted)
        self._issue_soon()

    def _room_for(self, template: Subtask) -> tuple[int, str]:
        """Returns the number of items that may be added, and the reason why more may not."""
        board, budget = self._state.board, self._state.time_and_budget
        done = [report for report in board.reports() if report.state == "completed"]
        ended = [report.usage for report in done if report.finding]
        affordable = budget.affordable(template.estimated_tokens, ended)
        return room_for(template, board.item_count, affordable)

    def _sources_of(self, template: Subtask) -> list[Finding | None]:
        """Returns the findings that name the items of a template."""
        return [
            report.finding
            for report in self._state.board.completed_for(template.id)
            if template.names_items_of in (report.id, report.template)
        ]

    def _fail(self, template_id: str, problem: Problem) -> None:
        board = self._state.board
        board.begin(template_id, board[template_id].role)
        board.end(template_id, "failed", problem)
        why = {"error": problem.type, "message": problem.message}
        self._state.trace.note("subtask_failed", template_id, **why)


def _no_items(reply: ExpandReply, why: str, for_each: str) -> Problem:
    """Returns the reason why a template has no items: none were found, or there is no room."""
    if reply.found and not reply.problem:
        message = f"none of {reply.found} items: {why}"
        return Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=message)
    message = reply.problem or f"there are no items in {for_each}"
    return Problem(type=ErrorKind.CANNOT_DO, message=message)
