"""The activity that plans: one model call, its plan read and checked."""

from typing import Any, Literal

from pydantic import ValidationError, create_model
from temporalio import activity

from activities.context import read_text
from activities.contracts import PlanInput, PlanReply
from activities.conversation import Opening
from activities.model_call import Answered, ModelCalls
from activities.prompts import plan_repair, planner_request, planner_system
from activities.stored_teams import StoredTeams
from activities.structured import first_json
from activities.team_files import team_card
from supervision import limits
from supervision.base import Model
from supervision.keys import named_key
from supervision.plan import Plan, Subtask
from supervision.plan_graph import assign, problems
from supervision.request import describe_errors
from supervision.team import Team
from supervision.text import cut


class SubtaskDraft(Model):
    """A subtask as the planner writes it; `role` is narrowed to the team's roles in the schema sent."""

    id: str
    description: str
    role: str
    depends_on: list[str]
    importance: Literal["required", "optional"]
    attachments: list[str]


class PlanDraft(Model):
    """A plan as the planner writes it."""

    direct_answer: str | None
    subtasks: list[SubtaskDraft]
    final_instruction: str


class PlanningActivities:
    """Planning, with the model and the teams of this process."""

    def __init__(self, calls: ModelCalls, teams: StoredTeams) -> None:
        self._calls = calls
        self._teams = teams

    @activity.defn
    async def plan(self, input: PlanInput) -> PlanReply:
        """Asks for a plan, or for a better one after `input.problems`; the reply says what is wrong with it."""
        step = f"plan.{input.revision}.{input.attempt}"
        team = await self._teams.load(input.team_ref)
        goal = await read_text(self._calls.store, input.goal_ref)
        if input.head is None:
            opening = Opening(
                system=planner_system(team.team, input.max_subtasks),
                model=input.model,
                tools=[],
                output_schema=self._calls.model.output_schema(draft_model(team.team)),
            )
            text = planner_request(goal, input.attachments, input.strategy == "auto")
            answered = await self._calls.begin(input.run, step, opening, text, limits.PLAN_MAX_TOKENS)
        else:
            message = {"role": "user", "content": [{"type": "text", "text": plan_repair(input.problems)}]}
            answered = await self._calls.go_on(input.run, step, input.head, [message], limits.PLAN_MAX_TOKENS)
        return await self._reply(input, answered, goal)

    async def _reply(self, input: PlanInput, answered: Answered, goal: str) -> PlanReply:
        reply = PlanReply(head=answered.head, usage=answered.usage)
        message = answered.message
        if message.stop_reason == "refusal":
            details = message.stop_details or {}
            reply.refusal = str(details.get("explanation") or details.get("category") or "no reason given")
            return reply
        if message.stop_reason == "max_tokens":
            reply.problems = ["the plan was cut off: make it shorter"]
            return reply
        try:
            draft = PlanDraft.model_validate(first_json(message.text()))
        except ValidationError as error:
            reply.problems = [f"the reply is not the JSON asked for: {describe_errors(error, root='plan')}"]
            return reply
        except ValueError as error:
            reply.problems = [f"the reply is not the JSON asked for: {error}"]
            return reply
        plan = _plan(draft, goal, input.revision)
        reply.problems = problems(plan, input.max_subtasks, [a.name for a in input.attachments])
        if plan.direct_answer and input.strategy != "auto":
            reply.problems = ["a direct answer is not wanted here: plan subtasks"]
        if not reply.problems:
            loaded = await self._teams.load(input.team_ref)
            plan = assign(plan, team_card(loaded, input.model))
            reply.plan_ref = named_key(input.run.run_id, f"plan.{plan.revision}")
            await self._calls.store.put(reply.plan_ref, plan.model_dump_json().encode())
            reply.plan = shortened(plan)
        return reply


def draft_model(team: Team) -> type[PlanDraft]:
    """PlanDraft with `role` narrowed to the team's roles, so that the schema offers no other."""
    names = tuple(role.name for role in team.roles)
    role: Any = Literal[names]
    subtask: Any = create_model("SubtaskDraft", __base__=SubtaskDraft, role=(role, ...))
    return create_model("PlanDraft", __base__=PlanDraft, subtasks=(list[subtask], ...))


def _plan(draft: PlanDraft, goal: str, revision: int) -> Plan:
    answer = draft.direct_answer if draft.direct_answer and draft.direct_answer.strip() else None
    return Plan(
        goal=goal,
        direct_answer=answer,
        final_instruction=draft.final_instruction,
        subtasks=[
            Subtask(
                id=item.id.strip(),
                description=item.description,
                role=item.role,
                depends_on=list(dict.fromkeys(item.depends_on)),
                importance=item.importance,
                attachments=item.attachments,
            )
            for item in draft.subtasks
        ],
        revision=revision,
    )


def shortened(plan: Plan) -> Plan:
    """`plan` small enough for history: long texts give way to their beginnings, the stored plan has all."""
    small = plan.model_copy(update={"goal": cut(plan.goal, limits.SUMMARY_BYTES)})
    for size in (limits.DESCRIPTION_CHARS, 1000, 400, 160, 80, 40):
        small = small.model_copy(
            update={
                "direct_answer": cut(plan.direct_answer, limits.ANSWER_INLINE_BYTES) if plan.direct_answer else None,
                "final_instruction": cut(plan.final_instruction, max(size, 200)),
                "subtasks": [s.model_copy(update={"description": cut(s.description, size)}) for s in plan.subtasks],
            }
        )
        if len(small.model_dump_json()) <= limits.PAYLOAD_AIM_BYTES:
            break
    return small
