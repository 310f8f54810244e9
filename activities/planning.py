"""The activity that plans: one model call, its reply read and checked, by the run's strategy."""

from temporalio import activity

from activities.contracts.planning_contracts import PlanInput, PlanReply
from activities.model.conversation import Opening
from activities.model.journalled_call import Answered, ModelCalls
from activities.prompts.excerpts import read_text
from activities.prompts.planning_prompts import (
    PLAN_WORDS,
    REVISION_WORDS,
    ROUTE_WORDS,
    STEP_WORDS,
    history,
    plan_repair,
    plan_rules,
    planner_request,
    planner_system,
    revision_rules,
    route_rules,
    step_rules,
)
from activities.replies.plan_checks import Checked, checked
from activities.replies.plan_draft import PlanDraft, RouteDraft, mode_of, plan_of, routed, sent_model, shortened
from activities.replies.structured_reply import read_reply, refusal_of
from activities.store.stored_plans import read_plan
from activities.teams.stored_teams import StoredTeams
from supervision import limits
from supervision.contract.plan import Plan
from supervision.contract.team import Role, Team


class PlanningActivities:
    """Planning, with the model and the teams of this process."""

    def __init__(self, calls: ModelCalls, teams: StoredTeams) -> None:
        self._calls = calls
        self._teams = teams

    @activity.defn
    async def plan(self, input: PlanInput) -> PlanReply:
        """Asks for a plan, or for a better one after `input.problems`; the reply says what is wrong with it."""
        step = f"plan.{input.revision}.{input.attempt}"
        team = (await self._teams.load(input.team_ref)).team
        goal = await read_text(self._calls.store, input.goal_ref)
        previous = await self._previous(input)
        if input.head is None:
            opening, text = self._opening(input, team, goal, previous)
            answered = await self._calls.begin(input.run, step, opening, text, limits.PLAN_MAX_TOKENS)
        else:
            message = {"role": "user", "content": [{"type": "text", "text": plan_repair(input.problems)}]}
            answered = await self._calls.go_on(input.run, step, input.head, [message], limits.PLAN_MAX_TOKENS)
        reply = PlanReply(head=answered.head, usage=answered.usage, refusal=refusal_of(answered.message))
        if reply.refusal is None:
            if mode_of(input) == "route":
                await self._route(input, answered, reply, team, goal)
            else:
                await self._plan(input, answered, reply, team, goal, previous)
        return reply

    async def _previous(self, input: PlanInput) -> Plan | None:
        if input.previous_ref is None:
            return None
        return await read_plan(self._calls.store, input.previous_ref)

    def _opening(self, input: PlanInput, team: Team, goal: str, previous: Plan | None) -> tuple[Opening, str]:
        mode = mode_of(input)
        roles = usable_roles(team, input.nesting_left)
        rules, last_words = {
            "auto": (plan_rules(team, input.max_subtasks, auto=True), ""),
            "plan": (plan_rules(team, input.max_subtasks, auto=False), PLAN_WORDS),
            "revision": (revision_rules(team, input.max_subtasks), REVISION_WORDS),
            "step": (step_rules(team, input.max_subtasks), STEP_WORDS),
            "route": (route_rules(), ROUTE_WORDS),
        }[mode]
        capabilities = sorted({capability for role in roles for capability in role.capabilities})
        sent = sent_model(mode, [role.name for role in roles], capabilities)
        opening = Opening(
            system=planner_system(roles, rules),
            model=input.model,
            tools=[],
            output_schema=self._calls.model.output_schema(sent),
        )
        so_far = history(previous, input.done) if previous else ""
        return opening, planner_request(goal, input.attachments, input.in_flight, so_far, last_words)

    async def _plan(
        self, input: PlanInput, answered: Answered, reply: PlanReply, team: Team, goal: str, previous: Plan | None
    ) -> None:
        try:
            draft = read_reply(PlanDraft, answered.message, root="plan")
        except ValueError as error:
            reply.problems = [str(error)]
            return
        mode = mode_of(input)
        if not draft.subtasks and (mode == "revision" or (mode == "step" and draft.finished and input.done)):
            reply.finished = True
            reply.strategy = "step" if mode == "step" else "plan"
            return
        reply.strategy = draft.strategy if mode == "auto" else "step" if mode == "step" else "plan"
        reply.problems = _shape_problems(input, draft)
        if reply.problems:
            return
        card = await self._teams.card(input.team_ref, input.model)
        found = checked(plan_of(draft, goal, input.revision), previous, team, card, input)
        reply.problems, reply.incapable = found.problems, found.incapable
        if found.plan is not None:
            await self._accept(input, reply, found)

    async def _route(self, input: PlanInput, answered: Answered, reply: PlanReply, team: Team, goal: str) -> None:
        draft: RouteDraft | None = None
        try:
            draft = read_reply(RouteDraft, answered.message)
        except ValueError as error:
            if input.attempt < limits.PLAN_TRIES:
                reply.problems = [str(error)]
                return
        names = [role.name for role in usable_roles(team, input.nesting_left)]
        plan = routed(draft, goal, names, team.generalist, input.revision)
        plan.subtasks = plan.subtasks[: input.max_subtasks]
        reply.strategy = "route"
        await self._accept(input, reply, Checked(plan=plan))

    async def _accept(self, input: PlanInput, reply: PlanReply, found: Checked) -> None:
        assert found.plan is not None
        if found.new_roles:
            reply.team_ref = await self._teams.extend(input.run.run_id, input.team_ref, found.new_roles)
            reply.team = await self._teams.card(reply.team_ref, input.model)
        whole = found.plan.model_dump_json().encode()
        reply.plan_ref = await self._calls.store.put_output(input.run.run_id, whole)
        reply.plan = shortened(found.plan)
        if found.plan.direct_answer:
            answer = found.plan.direct_answer.encode("utf-8", "replace")
            reply.answer_ref = await self._calls.store.put_output(input.run.run_id, answer)


def usable_roles(team: Team, nesting_left: int) -> list[Role]:
    """The roles a plan may name: without levels left, none that is a team."""
    return [role for role in team.roles if nesting_left > 0 or role.team is None]


def _shape_problems(input: PlanInput, draft: PlanDraft) -> list[str]:
    """What the way of planning forbids."""
    mode = mode_of(input)
    if draft.direct_answer and draft.direct_answer.strip() and mode != "auto":
        return ["a direct answer is not wanted here: plan subtasks"]
    if mode == "step" and not draft.subtasks:
        if draft.finished:
            return ["nothing has been done yet: give the first subtask"]
        return ["give the next subtask, or set finished to true"]
    if mode == "step" and len(draft.subtasks) > 1:
        return [f"give exactly one subtask, the next one, not {len(draft.subtasks)}"]
    return []
