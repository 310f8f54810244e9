"""The question for a plan: the reply is read by the mode of planning, and checked: can it run with this team?"""

import asyncio
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BeforeValidator

from activities.contracts.run_contracts import PlanInput, PlanReply, RunRef
from activities.model.port import ModelEndpoint, ModelMessage, ModelRequest, ModelUsage, StreamProgress, user_message
from activities.model.pricing import price
from activities.prompts.agent_prompts import repair
from activities.questions.items import RunData, shortened
from activities.questions.planning_prompts import (
    MODES,
    history,
    plan_change,
    planner_request,
    planner_system,
    reply_form,
)
from activities.questions.question import Desk, Question, read_reply, send
from activities.store.reading import list_bytes, read_plan, read_text
from activities.store.spending import newest_samples
from activities.teams.stored_teams import catalogue
from activities.teams.team_files import LoadedTeam
from supervision.base import limits
from supervision.base.text import cut, quoted
from supervision.contract.base import Model
from supervision.contract.finding import ArtifactRef
from supervision.contract.plan import Plan, Subtask
from supervision.contract.strategy import STRATEGIES, StrategyName
from supervision.contract.team import Role, TeamCard
from supervision.contract.usage import Usage
from supervision.grounding.claims import without_quotes
from supervision.grounding.support import Source, unsupported_in_answer
from supervision.planning import capabilities
from supervision.planning.estimate import estimate_of
from supervision.planning.expansion import NO_DATA
from supervision.planning.new_roles import new_role_problems, unknown_role_problems, unknown_roles
from supervision.planning.plan_graph import description_problems, plan_problems
from supervision.planning.revisions import merge, revision_problems
from supervision.replies.loose_form import says_nothing
from supervision.results.recalled import is_recalled

_ATTACHMENT_CHARS = 300  # of each attachment in the planner's prompt: enough for the columns of a table, or a title


def _with_new_role(written: object) -> object:
    """Returns a subtask with its `new_role`, one of the same plan, in place of `role`."""
    if not isinstance(written, dict) or not isinstance(new := written.get("new_role"), str) or says_nothing(new):
        return written
    return {**written, "role": new.strip()}


class PlanDraft(Plan):
    """A plan as the planner writes it, or what is to be added to one; `finished` is for one step at a time."""

    finished: bool = False
    strategy: Literal["plan", "step"] = "plan"
    subtasks: list[Annotated[Subtask, BeforeValidator(_with_new_role)]] = []


class RouteDraft(Model):
    """The choice of a role for the whole goal, and of one beside it."""

    role: str
    secondary_role: str | None = None
    description: str = ""
    reasoning: str = ""


def plan_of(draft: PlanDraft, goal: str, revision: int) -> Plan:
    """Returns the plan that a draft means."""
    meant = {
        "goal": goal,
        # Beside subtasks it is what a model writes into every field.
        "direct_answer": None if draft.subtasks or says_nothing(draft.direct_answer) else draft.direct_answer,
        "reasoning": cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        "subtasks": [_subtask_of(item) for item in draft.subtasks],
        "revision": revision,
    }
    return Plan.model_validate({**dict(draft), **meant})


def _subtask_of(draft: Subtask) -> Subtask:
    meant = {
        "id": draft.id.strip(),
        "depends_on": [each for each in dict.fromkeys(draft.depends_on) if not says_nothing(each)],
        "candidates": max(1, draft.candidates),
        "timeout_seconds": None,  # a model's guess would end honest work: only a caller's plan sets one
        "weight": min(max(draft.weight, 0.0), 1.0),
        "estimated_tokens": min(max(draft.estimated_tokens, 0), limits.MAX_BUDGET_TOKENS),
        "reasoning": cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        "for_each": None if says_nothing(draft.for_each) else (draft.for_each or "").strip(),
        "max_items": draft.max_items or None,
        "item": "",
    }
    return draft.model_copy(update=meant)


@dataclass(frozen=True)
class Planner:
    """One way to a plan: the planner's input, the run's team, the text of its goal, and its data."""

    call: PlanInput
    loaded: LoadedTeam
    goal: str
    catalogue: str

    @property
    def mode(self) -> str:
        """The strategy, or "revision": a plan that has been worked on is added to, unless it goes step by step."""
        call = self.call
        return "revision" if call.plan_ref and not STRATEGIES[call.strategy].plans_steps else call.strategy

    @property
    def roles(self) -> list[Role]:
        """The roles that a plan may name: those that are teams only while nesting is possible."""
        return [role for role in self.loaded.team.roles if self.call.nesting_left > 0 or role.team is None]

    def system(self) -> str:
        """Returns the planner's instructions."""
        return planner_system(self.mode, self.loaded.team, self.roles, self.loaded.toolbox, self.call)

    def form(self) -> type[Model]:
        """Returns the model whose schema is sent."""
        able = tuple(sorted({capability for role in self.roles for capability in role.capabilities}))
        new_roles = bool(self.loaded.team.toolbox)  # without tools for them they could only recall, not find out
        return reply_form(self.mode, tuple(role.name for role in self.roles), able, new_roles=new_roles)

    def read(self, message: ModelMessage) -> tuple[StrategyName, Plan | None]:
        """Returns how the run plans, and the plan, None if nothing more is needed. ValueError says why not."""
        call, mode = self.call, self.mode
        if mode == "route":
            return "route", self._read_route(message)
        draft = read_reply(PlanDraft, message, root="plan")
        plan = plan_of(draft, self.goal, call.revision)
        for subtask in plan.subtasks:
            subtask.role = self._role(subtask.role)
        if mode == "auto":
            return draft.strategy, plan
        plan.direct_answer = None  # no field of these forms
        may_end = draft.finished and call.done if mode == "step" else call.plan_ref
        if mode == "step":
            plan.subtasks = plan.subtasks[:1]
        return "step" if mode == "step" else "plan", None if may_end and not plan.subtasks else plan

    def _read_route(self, message: ModelMessage) -> Plan:
        """Returns the route as a plan; the last try always gives one, for the generalist if need be."""
        try:
            return self._routed(read_reply(RouteDraft, message))
        except ValueError:
            if self.call.attempt < limits.PLAN_TRIES:
                raise
            return self._routed(RouteDraft(role=self.loaded.team.generalist))

    def _role(self, written: str) -> str:
        """Returns the name of the role that is written so, be it in capitals; what is written if there is none."""
        said = written.strip().casefold()
        return next((role.name for role in self.roles if role.name.casefold() == said), written)

    def fixed_route(self) -> Plan | None:
        """Returns the first plan of a goal that one of the team's fixed routes fits; None if none does."""
        call, team = self.call, self.loaded.team
        if not STRATEGIES[call.strategy].fixed_routes or call.revision > 1 or call.head is not None or call.attempt > 1:
            return None
        route = next((route for route in team.routes if fits(route.pattern, self.goal)), None)
        if route is None or route.role not in [role.name for role in self.roles]:
            return None
        why = f"the team's route for goals such as: {route.pattern}"
        return self._routed(RouteDraft(role=route.role, reasoning=why))

    def _routed(self, draft: RouteDraft) -> Plan:
        """Returns the plan of a route; the generalist gets the goal if the chosen role may not be named."""
        team, names = self.loaded.team, [role.name for role in self.roles]
        draft.role = self._role(draft.role)
        if draft.role not in names:
            draft = RouteDraft(role=team.generalist, reasoning=draft.reasoning)
        reasoning = cut(draft.reasoning.strip(), limits.SENTENCE_BYTES)
        prefix = "Answer this goal: "
        text = cut(self.goal.strip(), limits.DESCRIPTION_CHARS - len(prefix))
        wanted = (t for t in (draft.description, text) if not description_problems(Subtask(id="t1", description=t)))
        description = next(wanted, prefix + text)
        subtasks = [Subtask(id="t1", description=description, role=draft.role, reasoning=reasoning)]
        if draft.secondary_role in names and draft.secondary_role != draft.role:
            beside = Subtask(id="t2", description=description, role=draft.secondary_role or "", importance="optional")
            subtasks.append(beside)
        labels = [(subtask.id, team.role(subtask.role).label) for subtask in subtasks]
        shown = ", ".join(f"{label} for {subtask_id}" for subtask_id, label in labels if label)
        return Plan(
            goal=self.goal,
            reasoning=reasoning,
            final_instruction=f"Set what each of them says under its label: {shown}." if shown and subtasks[1:] else "",
            subtasks=subtasks[: self.call.max_subtasks],
            revision=self.call.revision,
        )


def fits(pattern: str, goal: str) -> bool:
    """True if a goal fits the pattern of a route: it has its words, or what stands around each `*`."""
    pattern, text = (" ".join(each.casefold().split()) for each in (pattern, goal))
    if "*" not in pattern:
        words, said = (" ".join(re.findall(r"\w+", each)) for each in (pattern, text))
        return bool(words) and f" {words} " in f" {said} "
    return fnmatchcase(text, re.sub(r"[?[]", r"[\g<0>]", pattern))  # linear in the text: it never tries again


# --- the activity -----------------------------------------------------------------------------------


async def make_plan(desk: Desk, call: PlanInput) -> PlanReply:
    """Returns a plan, or a better one after `call.problems`, or what is wrong with it."""
    goal, about = await read_text(desk.store, call.goal_ref), await desk.teams.catalogue(call.team_ref)
    planner = Planner(call, await desk.teams.load(call.team_ref), goal, about)
    previous = await read_plan(desk.store, call.plan_ref) if call.plan_ref else None
    reply, written = await _written(desk, planner, previous)
    if written is None:
        return reply
    team = await desk.teams.card(call.team_ref)
    loaded, added = planner.loaded, written.new_roles
    reply.problems = new_role_problems(loaded.team, added) or loaded.toolbox.joined(added)
    if added and not reply.problems:
        reply.team_ref = await desk.teams.extend(call.run.run_id, call.team_ref, added)
        reply.team = team = await desk.teams.card(reply.team_ref)
    plan = None if reply.problems else await _checked(desk, planner, reply, written, previous, team)
    if plan is not None:
        await _accept(desk, call, reply, plan, goal)
    if reply.plan is None:
        reply.team_ref = reply.team = None
    elif call.estimates:
        samples = await newest_samples(desk.store, team.name)
        sizes = (call.max_turns, call.max_subtasks)
        reply.estimate = await asyncio.to_thread(estimate_of, reply.plan, team, samples, *sizes, _input_price)
    return reply


async def _written(desk: Desk, planner: Planner, previous: Plan | None) -> tuple[PlanReply, Plan | None]:
    """Returns the beginning of the reply, and the plan, or addition, as the caller, the team or the model wrote it."""
    call, steps = planner.call, STRATEGIES[planner.call.strategy].plans_steps
    if call.own_plan is not None:  # for a caller's plan and a fixed route of the team no model is asked
        reply = PlanReply(head="", usage=Usage(), strategy="step" if steps else "plan")
        return reply, call.own_plan.model_copy(update={"goal": planner.goal})
    if (fixed := planner.fixed_route()) is not None:
        return PlanReply(head="", usage=Usage(), strategy="route"), fixed
    untrusted = planner.loaded.toolbox.labels_of_data().untrusted
    attachments = {item.name: await _beginning(desk, item, untrusted) for item in call.attachments}

    form = await read_text(desk.store, call.answer_schema_ref) if call.answer_schema_ref else ""
    change = plan_change(call.comment) if call.comment else ""
    problems = repair("plan", call.problems) if call.problems else ""

    async def within(tokens: int) -> str:
        so_far = history(previous, call.done, list_bytes(tokens)) if previous else ""
        # Another model has heard no comment.
        last_words = "\n\n".join(filter(None, [change, problems, MODES[planner.mode][1]]))
        return planner_request(planner.goal, attachments, so_far, call.missing, last_words, form, planner.catalogue)

    words = [change, problems, "Return the complete reply again."]
    back = None if call.head is None else (call.head, "\n\n".join(filter(None, words)))
    # One step at a time asks with the same system text again and again.
    answered = await send(desk, call, planner.system(), planner.form(), within, back, "prefix" if steps else "none")
    reply = PlanReply(head=answered.head, usage=answered.usage, refusal=answered.message.refusal)
    plan = None
    if reply.refusal is None:
        try:
            reply.strategy, plan = planner.read(answered.message)
            reply.finished = plan is None
        except ValueError as error:
            reply.problems = [str(error)]
    return reply, plan


async def _beginning(desk: Desk, attachment: ArtifactRef, untrusted: str) -> str:
    """Returns the beginning of an attachment's text; of an untrusted one its size alone."""
    size = f"{attachment.bytes:,} bytes"
    if untrusted:  # else it could have a part in the plan, which all agents follow
        return f"({size}, to be read by worker agents alone)"
    text = await read_text(desk.store, attachment.ref)
    return text if len(text) <= _ATTACHMENT_CHARS else f"{text[:_ATTACHMENT_CHARS]} [... {size} in all]"


async def _checked(
    desk: Desk, planner: Planner, reply: PlanReply, plan: Plan, previous: Plan | None, card: TeamCard
) -> Plan | None:
    """Returns the plan as it will run, earlier revisions included; None, with its problems in the reply."""
    call, states = planner.call, {n.subtask_id: n.state for n in planner.call.done}
    usable = card.assignable(nesting=call.nesting_left > 0)
    small = [a.name for a in call.attachments if a.bytes <= limits.SMALL_ATTACHMENT_BYTES]  # a part of every brief
    names = [attachment.name for attachment in call.attachments]
    if reply.strategy == "route":
        for subtask in plan.subtasks:
            subtask.attachments = names if usable.role(subtask.role).reads_attachments else small
        return plan
    planned = [*plan.subtasks, *(previous.subtasks if previous else [])]
    named = RunData(desk.store, desk.teams, call.run, call.attachments)
    data = await named.names() if any(s.for_each for s in planned) else NO_DATA
    problems = (
        plan_problems(plan, call.max_subtasks, names, data)
        if previous is None
        else revision_problems(previous, plan, call.max_subtasks, states, names, data)
    )
    problems += unknown_role_problems(plan, card) if call.own_plan else []
    single = {role.name for role in usable.roles if role.team is None}  # a team is no candidate
    able = [{"candidate_roles": [name for name in item.candidate_roles if name in single]} for item in plan.subtasks]
    changed = [item.model_copy(update=to) for item, to in zip(plan.subtasks, able, strict=True)]
    plan = plan.model_copy(update={"subtasks": changed})  # not in place: plans that are read are shared
    large = set(names).difference(small)
    incapable, assigned = capabilities.incapable(plan, usable), capabilities.assigned(plan, usable, large)
    # Subtasks of unknown roles have gone to the generalist, which may be a team.
    taken = dict.fromkeys(subtask.role for subtask in (*plan.subtasks, *assigned.subtasks))
    teams = [name for name in taken if call.nesting_left <= 0 and (role := card.find(name)) and role.team is not None]
    problems += [f"role {quoted(name)} is a team and nesting is not possible here" for name in teams]
    reply.incapable = bool(incapable)
    reply.problems = problems + incapable or capabilities.unreadable(assigned, usable, large)
    if reply.problems:
        return None
    reply.unknown_roles = unknown_roles(plan, planner.loaded.team)
    whole = merge(previous, assigned, states) if previous else assigned
    return whole.model_copy(update={"revision": call.revision})


async def _accept(desk: Desk, call: PlanInput, reply: PlanReply, plan: Plan, goal: str) -> None:
    """Writes a checked plan into the reply and the store, or why history cannot have it."""
    reply.plan = shortened(plan)
    if (length := len(reply.model_dump_json())) > limits.PLAN_REPLY_BYTES:
        reply.plan = None
        most = limits.PLAN_REPLY_BYTES
        reply.problems = [f"the plan takes {length} bytes, at most {most} are possible: give it fewer dependencies"]
        return
    run_id = call.run.run_id
    reply.plan_ref = await desk.store.put_output(run_id, plan.model_dump_json())
    if plan.direct_answer:
        reply.answer.ref = await desk.store.put_output(run_id, plan.direct_answer)
        own = without_quotes(plan.direct_answer)
        reply.answer.grounding = "knowledge" if is_recalled(plan.direct_answer, goal) else "tools"
        reply.answer.unsupported = await asyncio.to_thread(unsupported_in_answer, own, [Source(goal)], names=False)


def _input_price(model: str, tokens: float, searches: float) -> float | None:
    return price(model, ModelUsage(input_tokens=round(tokens), web_searches=round(searches)))


async def choose_role(endpoint: ModelEndpoint, model: str, loaded: LoadedTeam, goal: str) -> tuple[Plan, str | None]:
    """Returns the plan of a route for a goal, without a run, and the model that chose it; None for a fixed route.

    Raises ModelFailure. A reply that can't be read is the generalist's, as in the last try of a run.
    """
    call = PlanInput(
        run=RunRef(run_id="asked"), goal_ref="", team_ref="", model=model, max_subtasks=limits.MAX_SUBTASKS
    )
    call.strategy, call.nesting_left, call.attempt = "route", 1, limits.PLAN_TRIES
    planner = Planner(call, loaded, goal, await catalogue(loaded.toolbox.named(loaded.team.named_tools)))
    if (fixed := planner.fixed_route()) is not None:
        return fixed, None
    request = ModelRequest(
        model=model,
        system=planner.system(),
        messages=[user_message(planner_request(goal, {}, last_words=MODES["route"][1], catalogue=planner.catalogue))],
        max_tokens=limits.PLAN_MAX_TOKENS,
        output_schema=endpoint.output_schema(planner.form()),
    )
    _, chosen = planner.read(await endpoint.complete(request, StreamProgress()))
    assert chosen is not None  # a route is a plan
    return chosen, model


PLAN = Question("plan", PlanInput, PlanReply, make_plan)
