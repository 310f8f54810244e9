"""The question for a plan: the reply is read by the mode of planning, and checked: can it run with this team?"""

import asyncio

from activities.contracts.run_contracts import AttachmentRef, PlanInput, PlanReply, RunRef
from activities.model.port import ModelEndpoint, ModelRequest, ModelUsage, StreamProgress, user_message
from activities.model.pricing import price
from activities.questions.items import RunData
from activities.questions.plan_modes import Planner, shortened
from activities.questions.planning_prompts import MODES, history, plan_change, plan_repair, planner_request
from activities.questions.question import Desk, Question, refusal_of, send
from activities.store.reading import list_bytes, read_plan, read_text
from activities.store.spending import newest_samples
from activities.teams.stored_teams import catalogue
from activities.teams.team_files import LoadedTeam, tool_cards
from supervision.base import limits
from supervision.base.text import quoted
from supervision.contract.plan import NewRole, Plan
from supervision.contract.strategy import STRATEGIES
from supervision.contract.team import RoleCard, Team, TeamCard
from supervision.contract.usage import Usage
from supervision.grounding.support import Source, unsupported_texts
from supervision.planning import capabilities
from supervision.planning.estimate import estimate_of
from supervision.planning.expansion import NO_DATA
from supervision.planning.new_roles import new_role_problems, unknown_role_problems, unknown_roles
from supervision.planning.plan_graph import plan_problems
from supervision.planning.revisions import merge, revision_problems

_ATTACHMENT_CHARS = 300  # of each attachment in the planner's prompt: enough for the columns of a table, or a title


async def make_plan(desk: Desk, call: PlanInput) -> PlanReply:
    """Returns a plan, or a better one after `call.problems`, or what is wrong with it."""
    goal, about = await read_text(desk.store, call.goal_ref), await desk.teams.catalogue(call.team_ref)
    planner = Planner(call, await desk.teams.load(call.team_ref), goal, about)
    previous = await read_plan(desk.store, call.plan_ref) if call.plan_ref else None
    reply, written = await _written(desk, planner, previous)
    if written is None:
        return reply
    card = await desk.teams.card(call.team_ref, call.model)
    plan = await _checked(desk, planner, reply, written, previous, card)
    if plan is not None:
        await _accept(desk, call, reply, plan, written.new_roles, goal)
    if call.estimates and reply.plan:
        team = reply.team or card
        samples = await newest_samples(desk.store, team.name)
        sizes = (call.max_turns, call.max_subtasks)
        reply.estimate = await asyncio.to_thread(estimate_of, reply.plan, team, samples, *sizes, _input_price)
    return reply


async def _written(desk: Desk, planner: Planner, previous: Plan | None) -> tuple[PlanReply, Plan | None]:
    """Returns the beginning of the reply, and the plan, or addition, as the caller, the team or the model wrote it."""
    call, steps = planner.call, STRATEGIES[planner.call.strategy].plans_steps
    if call.is_given:  # for a caller's plan and a fixed route of the team no model is asked
        own = call.own_plan or await read_plan(desk.store, call.own_plan_ref or "")
        reply = PlanReply(head="", usage=Usage(), strategy="step" if steps else "plan")
        return reply, own.model_copy(update={"goal": planner.goal})
    if (fixed := planner.fixed_route()) is not None:
        return PlanReply(head="", usage=Usage(), strategy="route"), fixed
    untrusted = planner.loaded.toolbox.labels_of_data().untrusted
    attachments = {item.name: await _beginning(desk, item, untrusted) for item in call.attachments}

    async def within(tokens: int) -> str:
        so_far = history(previous, call.done, list_bytes(tokens)) if previous else ""
        last_words = MODES[planner.mode][1]
        return planner_request(planner.goal, attachments, call.in_flight, so_far, call.missing, last_words)

    words = plan_change(call.comment) if call.comment else plan_repair(call.problems)
    back = None if call.head is None else (call.head, words)
    # One step at a time asks with the same system text again and again.
    answered = await send(desk, call, planner.system(), planner.form(), within, back, "prefix" if steps else "none")
    reply = PlanReply(head=answered.head, usage=answered.usage, refusal=refusal_of(answered.message))
    reply.strategy = "plan" if planner.mode == "revision" else call.strategy
    plan = None
    if reply.refusal is None:
        try:
            reply.strategy, plan = planner.read(answered.message)
            reply.finished = plan is None
        except ValueError as error:
            reply.problems = [str(error)]
    return reply, plan


async def _beginning(desk: Desk, attachment: AttachmentRef, untrusted: str) -> str:
    """Returns the beginning of an attachment's text; of an untrusted one its size alone."""
    size = f"{attachment.bytes:,} bytes"
    if untrusted:  # else it could have a part in the plan, which all agents follow
        return f"({size}, to be read by worker agents alone)"
    text = await read_text(desk.store, attachment.ref)
    return text if len(text) <= _ATTACHMENT_CHARS else f"{text[:_ATTACHMENT_CHARS]} [... {size} in all]"


async def _checked(
    desk: Desk, planner: Planner, reply: PlanReply, plan: Plan, previous: Plan | None, card: TeamCard
) -> Plan | None:
    """Returns the plan as it will run, earlier revisions included; None, with all its problems in the reply.

    A route has no problems: it gets the attachments that its roles can read.
    """
    call, loaded = planner.call, planner.loaded
    usable, states = _usable_card(loaded, card, plan.new_roles, call), {n.subtask_id: n.state for n in call.done}
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
    problems += new_role_problems(loaded.team, plan.new_roles) or loaded.toolbox.joined(plan.new_roles)
    problems += _nesting_problems(plan, loaded.team, call) + _candidate_problems(plan, usable)
    problems += unknown_role_problems(plan, card) if call.is_given else []
    missing = capabilities.missing(plan, usable)
    reply.problems, reply.incapable = problems + missing, bool(missing)
    if reply.problems:
        return None
    taken, large = [subtask.id for subtask in previous.subtasks] if previous else [], set(names).difference(small)
    assigned = capabilities.expand(capabilities.for_readers(plan, usable, large), usable, taken)
    whole = merge(previous, assigned, states) if previous else assigned
    # Again: subtasks of unknown roles have gone to the generalist, which may be a team.
    reply.problems = _nesting_problems(assigned, loaded.team, call) + capabilities.unreadable(assigned, usable, large)
    if len(whole.named) > call.max_subtasks:
        reply.problems.append(
            f"no single role has the capabilities of some subtasks: split among roles the plan has "
            f"{len(whole.named)} subtasks, at most {call.max_subtasks} are allowed"
        )
    reply.unknown_roles = unknown_roles(plan, loaded.team)
    return None if reply.problems else whole.model_copy(update={"revision": call.revision})


def _nesting_problems(plan: Plan, team: Team, call: PlanInput) -> list[str]:
    teams = {role.name for role in team.roles if role.team is not None and call.nesting_left <= 0}
    named = dict.fromkeys(subtask.role for subtask in plan.subtasks if subtask.role in teams)
    return [f"role {quoted(name)} is a team and nesting is not possible here" for name in named]


def _candidate_problems(plan: Plan, usable: TeamCard) -> list[str]:
    """Returns the roles that candidates cannot have: unknown ones, and teams, whose attempts have no candidates."""
    single = {role.name for role in usable.roles if role.team is None}
    return [
        f"subtask {quoted(subtask.id)} names {quoted(name)} in candidate_roles, which is not a role of one worker agent"
        for subtask in plan.subtasks
        for name in subtask.candidate_roles
        if name not in single
    ]


def _usable_card(loaded: LoadedTeam, card: TeamCard, added: list[NewRole], call: PlanInput) -> TeamCard:
    """Returns the team's card with the plan's own roles, without the roles that may not be used here."""
    usable = [role for role in card.roles if call.nesting_left > 0 or role.team is None or role.name == card.generalist]
    able = card.role(card.generalist)
    new = [
        RoleCard(
            name=role.name,
            description=role.description,
            model=able.model,
            fallback_models=able.fallback_models,
            tools=tool_cards(loaded.toolbox, role.tools),
        )
        for role in added
    ]
    return card.model_copy(update={"roles": [*usable, *new]})


async def _accept(
    desk: Desk, call: PlanInput, reply: PlanReply, plan: Plan, new_roles: list[NewRole], goal: str
) -> None:
    """Writes a checked plan into the reply and the store, or why history cannot have it."""
    reply.plan = shortened(plan)
    if (length := len(reply.model_dump_json())) > limits.PLAN_REPLY_BYTES:
        reply.plan = None
        reply.problems = [
            f"the plan takes {length} bytes without its descriptions, at most {limits.PLAN_REPLY_BYTES} are "
            "possible: give it fewer dependencies (let one subtask collect what others found), or shorter ids"
        ]
        return
    run_id = call.run.run_id
    if new_roles:
        reply.team_ref = await desk.teams.extend(run_id, call.team_ref, new_roles)
        reply.team = await desk.teams.card(reply.team_ref, call.model)
    reply.plan_ref = await desk.store.put_output(run_id, plan.model_dump_json())
    if plan.direct_answer:
        reply.answer_ref = await desk.store.put_output(run_id, plan.direct_answer)
        reply.unsupported = await asyncio.to_thread(unsupported_texts, plan.direct_answer, [Source(goal)])


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
    planner = Planner(call, loaded, goal, await catalogue(loaded.team, loaded.toolbox))
    if (fixed := planner.fixed_route()) is not None:
        return fixed, None
    request = ModelRequest(
        model=model,
        system=planner.system(),
        messages=[user_message(planner_request(goal, {}, {}, last_words=MODES["route"][1]))],
        max_tokens=limits.PLAN_MAX_TOKENS,
        output_schema=endpoint.output_schema(planner.form()),
    )
    _, chosen = planner.read(await endpoint.complete(request, StreamProgress()))
    assert chosen is not None  # a route is a plan
    return chosen, model


PLAN = Question("plan", PlanInput, PlanReply, make_plan)
