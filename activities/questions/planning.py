"""The question for a plan: the reply is read by the mode of planning, and checked: can it run with this team?"""

import asyncio
from dataclasses import dataclass, field, replace

from activities.contracts.run_contracts import AttachmentRef, PlanInput, PlanReply, RunRef
from activities.model.journalled_call import Answered, CallName, CallOptions
from activities.model.port import ModelEndpoint, ModelRequest, ModelUsage, StreamProgress, user_message
from activities.model.pricing import price
from activities.questions.items import named_data
from activities.questions.plan_modes import PlanContext, PlanMode, PlanReading, fixed_route, mode_of, shortened
from activities.questions.planning_prompts import (
    history,
    plan_change,
    plan_repair,
    planner_request,
    planner_system,
    rules_for,
    tool_texts,
)
from activities.questions.question import Desk, Question, opening_of, refusal_of, steered
from activities.store.reading import list_bytes, read_plan, read_text
from activities.store.spending import newest_samples
from activities.teams.stored_teams import catalogue
from activities.teams.team_files import LoadedTeam, tool_cards
from supervision.base import limits
from supervision.base.text import quoted
from supervision.contract.plan import Estimate, NewRole, Plan, Subtask
from supervision.contract.strategy import STRATEGIES
from supervision.contract.team import RoleCard, Team, TeamCard
from supervision.contract.usage import Usage
from supervision.grounding.support import Source, unsupported_texts
from supervision.planning import capabilities
from supervision.planning.estimate import estimate_of
from supervision.planning.expansion import NO_DATA, Data
from supervision.planning.new_roles import new_role_problems, unknown_role_problems, unknown_roles
from supervision.planning.plan_graph import plan_problems
from supervision.planning.revisions import merge, revision_problems


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that can run, earlier revisions included, or the problems with it.

    `incapable` is True if no role has a capability that the plan asks for. `unknown_roles` are roles that the plan
    names and the team lacks, by subtask: the generalist does these.
    """

    plan: Plan | None = None
    new_roles: list[NewRole] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    incapable: bool = False
    unknown_roles: dict[str, str] = field(default_factory=dict)


def check_plan(
    plan: Plan,
    previous: Plan | None,
    loaded: LoadedTeam,
    card: TeamCard,
    call: PlanInput,
    data: Data = NO_DATA,
    *,
    routed: bool = False,
) -> CheckedPlan:
    """Returns the plan as it will run, or all problems with it. With `previous`, `plan` is an addition to that.

    A `routed` plan has no problems: it gets the attachments that its roles can read.
    """
    team = loaded.team
    usable = _usable_card(loaded, card, plan.new_roles, call.nesting_left)
    if routed:
        given = [s.model_copy(update={"attachments": _readable(s, usable, call.attachments)}) for s in plan.subtasks]
        return CheckedPlan(plan.model_copy(update={"subtasks": given}))
    problems = _rule_problems(plan, previous, call, data)
    problems += new_role_problems(team, plan.new_roles) or loaded.toolbox.joined(plan.new_roles)
    problems += _nesting_problems(plan, team, call.nesting_left)
    problems += _candidate_problems(plan, usable)
    if call.is_given:
        problems += unknown_role_problems(plan, card)
    missing = capabilities.missing(plan, usable)
    if problems or missing:
        return CheckedPlan(problems=problems + missing, incapable=bool(missing))
    return replace(_expanded(plan, previous, team, usable, call), unknown_roles=unknown_roles(plan, team))


def _rule_problems(plan: Plan, previous: Plan | None, call: PlanInput, data: Data) -> list[str]:
    attachments = [attachment.name for attachment in call.attachments]
    if previous is None:
        return plan_problems(plan, call.max_subtasks, attachments, data)
    return revision_problems(previous, plan, call.max_subtasks, _states(call), attachments, data)


def _expanded(plan: Plan, previous: Plan | None, team: Team, usable: TeamCard, call: PlanInput) -> CheckedPlan:
    """Returns the plan with its subtasks split and given to roles; that alone may break more rules."""
    taken = [subtask.id for subtask in previous.subtasks] if previous else []
    large = {attachment.name for attachment in call.attachments if attachment.bytes > limits.SMALL_ATTACHMENT_BYTES}
    assigned = capabilities.expand(capabilities.for_readers(plan, usable, large), usable, taken)
    whole = merge(previous, assigned, _states(call)) if previous else assigned
    # Again: subtasks of unknown roles have gone to the generalist, which may be a team.
    problems = _nesting_problems(assigned, team, call.nesting_left)
    problems += capabilities.unreadable(assigned, usable, large)
    if len(whole.named) > call.max_subtasks:
        problems.append(
            f"no single role has the capabilities of some subtasks: split among roles the plan has "
            f"{len(whole.named)} subtasks, at most {call.max_subtasks} are allowed"
        )
    if problems:
        return CheckedPlan(problems=problems)
    return CheckedPlan(plan=whole.model_copy(update={"revision": call.revision}), new_roles=plan.new_roles)


def _readable(subtask: Subtask, team: TeamCard, attachments: list[AttachmentRef]) -> list[str]:
    """Returns the attachments that the subtask's role can read; small ones are part of every brief."""
    reads = team.role(subtask.role).reads_attachments
    return [a.name for a in attachments if reads or a.bytes <= limits.SMALL_ATTACHMENT_BYTES]


def _states(call: PlanInput) -> dict[str, str]:
    return {note.subtask_id: note.state for note in call.done}


def _nesting_problems(plan: Plan, team: Team, nesting_left: int) -> list[str]:
    if nesting_left > 0:
        return []
    teams = {role.name for role in team.roles if role.team is not None}
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


def _usable_card(loaded: LoadedTeam, card: TeamCard, added: list[NewRole], nesting_left: int) -> TeamCard:
    """Returns the team's card with the plan's own roles, without the roles that may not be used here."""
    usable = [role for role in card.roles if nesting_left > 0 or role.team is None or role.name == card.generalist]
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


_ATTACHMENT_CHARS = 300  # of each attachment in the planner's prompt: enough for the columns of a table, or a title


async def make_plan(desk: Desk, call: PlanInput) -> PlanReply:
    """Asks for a plan, or for a better one after `call.problems`. Returns the plan, or what is wrong with it.

    The plan of the run's caller and a fixed route of the team are plans that no model is asked for.
    """
    loaded = await desk.teams.load(call.team_ref)
    context = PlanContext(
        call=call,
        team=loaded.team,
        goal=await read_text(desk.store, call.goal_ref),
        tools=tool_texts(loaded.toolbox),
        catalogue=await desk.teams.catalogue(call.team_ref),
    )
    previous = await read_plan(desk.store, call.plan_ref) if call.plan_ref else None
    reply, reading = await _reading(desk, context, previous)
    reply.strategy, reply.finished, reply.problems = reading.strategy, reading.finished, reading.problems
    if reading.plan is not None:
        card = await desk.teams.card(call.team_ref, call.model)
        planned = [*reading.plan.subtasks, *(previous.subtasks if previous else [])]
        data = await named_data(desk.store, desk.teams, call) if any(s.for_each for s in planned) else NO_DATA
        checked = check_plan(reading.plan, previous, loaded, card, call, data, routed=reading.routed)
        await _accept(desk, call, reply, checked, context.goal)
        if call.estimates and reply.plan:
            reply.estimate = await _estimate(desk, call, reply.plan, reply.team or card)
    return reply


async def _reading(desk: Desk, context: PlanContext, previous: Plan | None) -> tuple[PlanReply, PlanReading]:
    """Returns the beginning of the reply, and the plan as it was written: by the caller, the team, or the model."""
    call, steps = context.call, STRATEGIES[context.call.strategy].plans_steps
    if call.is_given:
        own = call.own_plan or await read_plan(desk.store, call.own_plan_ref or "")
        own = own.model_copy(update={"goal": context.goal})
        return PlanReply(head="", usage=Usage()), PlanReading("step" if steps else "plan", own)
    if (fixed := fixed_route(context)) is not None:
        return PlanReply(head="", usage=Usage()), fixed
    mode = mode_of(call)
    answered = await _ask(desk, mode, context, previous)
    refusal = refusal_of(answered.message)
    reply = PlanReply(head=answered.head, usage=answered.usage, refusal=refusal)
    if refusal is not None:
        return reply, PlanReading(mode.strategy)
    try:
        return reply, mode.read(answered.message, context)
    except ValueError as error:
        return reply, PlanReading(mode.strategy, problems=[str(error)])


async def _ask(desk: Desk, mode: PlanMode, context: PlanContext, previous: Plan | None) -> Answered:
    call, rules = context.call, rules_for(context.team, context.call.max_subtasks, context.call.max_turns, mode.rules)
    name = CallName.of(call, call.terms.step)
    system = planner_system(context.team, context.roles, context.tools, context.catalogue, rules)
    opening = opening_of(desk, call, system, mode.form(context))
    untrusted = (await desk.teams.load(call.team_ref)).toolbox.labels_of_data().untrusted
    attachments = {item.name: await _beginning(desk, item, untrusted) for item in call.attachments}

    async def within(tokens: int) -> str:
        return planner_request(
            context.goal,
            attachments,
            call.in_flight,
            history(previous, call.done, list_bytes(tokens)) if previous else "",
            call.missing,
            mode.last_words,
        )

    if call.head is not None:
        words = plan_change(call.comment) if call.comment else plan_repair(call.problems)
        options = CallOptions(limits.PLAN_MAX_TOKENS)
        return await desk.calls.correct(name, call.head, steered(words, call), opening, within, options)
    # One step at a time asks with the same system text again and again.
    options = CallOptions(limits.PLAN_MAX_TOKENS, cache="prefix" if STRATEGIES[call.strategy].plans_steps else "none")
    return await desk.calls.begin(name, opening, within, options)


async def _beginning(desk: Desk, attachment: AttachmentRef, untrusted: str) -> str:
    """Returns the beginning of an attachment's text; of an untrusted one its size alone."""
    text = await read_text(desk.store, attachment.ref)
    size = f"{attachment.bytes:,} bytes"
    if untrusted:  # else it could have a part in the plan, which all agents follow
        return f"({size}, to be read by worker agents alone)"
    return text if len(text) <= _ATTACHMENT_CHARS else f"{text[:_ATTACHMENT_CHARS]} [... {size} in all]"


async def _accept(desk: Desk, call: PlanInput, reply: PlanReply, checked: CheckedPlan, goal: str) -> None:
    """Writes a checked plan into the reply and the store, or its problems into the reply."""
    reply.problems, reply.incapable, reply.unknown_roles = checked.problems, checked.incapable, checked.unknown_roles
    plan = checked.plan
    if plan is None:
        return
    reply.plan = shortened(plan)
    if (length := len(reply.model_dump_json())) > limits.PLAN_REPLY_BYTES:
        reply.plan = None
        reply.problems = [
            f"the plan takes {length} bytes without its descriptions, at most {limits.PLAN_REPLY_BYTES} are "
            "possible: give it fewer dependencies (let one subtask collect what others found), or shorter ids"
        ]
        return
    run_id = call.run.run_id
    if checked.new_roles:
        reply.team_ref = await desk.teams.extend(run_id, call.team_ref, checked.new_roles)
        reply.team = await desk.teams.card(reply.team_ref, call.model)
    reply.plan_ref = await desk.store.put_output(run_id, plan.model_dump_json())
    if plan.direct_answer:
        reply.answer_ref = await desk.store.put_output(run_id, plan.direct_answer)
        reply.unsupported = await asyncio.to_thread(unsupported_texts, plan.direct_answer, [Source(goal)])


async def _estimate(desk: Desk, call: PlanInput, plan: Plan, team: TeamCard) -> Estimate:
    def input_price(model: str, tokens: float, searches: float) -> float | None:
        return price(model, ModelUsage(input_tokens=round(tokens), web_searches=round(searches)))

    samples = await newest_samples(desk.store, team.name)
    return await asyncio.to_thread(estimate_of, plan, team, samples, call.max_turns, call.max_subtasks, input_price)


async def choose_role(endpoint: ModelEndpoint, model: str, loaded: LoadedTeam, goal: str) -> tuple[Plan, str | None]:
    """Returns the plan of a route for a goal, without a run, and the model that chose it; None for a fixed route.

    Raises ModelFailure. A reply that can't be read is the generalist's, as in the last try of a run.
    """
    call = PlanInput(
        run=RunRef(run_id="asked"), goal_ref="", team_ref="", model=model, max_subtasks=limits.MAX_SUBTASKS
    )
    call.strategy, call.nesting_left, call.attempt = "route", 1, limits.PLAN_TRIES
    data = await catalogue(loaded.team, loaded.toolbox)
    context, mode = PlanContext(call, loaded.team, goal, tool_texts(loaded.toolbox), data), mode_of(call)
    fixed = fixed_route(context)
    if fixed is not None and fixed.plan is not None:
        return fixed.plan, None
    rules = rules_for(loaded.team, call.max_subtasks, call.max_turns, mode.rules)
    request = ModelRequest(
        model=model,
        system=planner_system(loaded.team, context.roles, context.tools, data, rules),
        messages=[user_message(planner_request(goal, {}, {}, last_words=mode.last_words))],
        max_tokens=limits.PLAN_MAX_TOKENS,
        output_schema=endpoint.output_schema(mode.form(context)),
    )
    chosen = mode.read(await endpoint.complete(request, StreamProgress()), context).plan
    assert chosen is not None  # a route is a plan
    return chosen, model


PLAN = Question("plan", PlanInput, PlanReply, make_plan)
