"""The question for a plan: the reply is read by the mode of planning, and checked for its team."""

import asyncio
from collections.abc import Sequence, Set
from functools import partial

from activities.contracts.run_contracts import PlanInput, PlanReply, RunRef
from activities.model.port import (
    CacheUse,
    ModelEndpoint,
    ModelRequest,
    ModelUsage,
    StreamProgress,
    user_message,
)
from activities.model.pricing import price
from activities.prompts.prompt_blocks import repair
from activities.questions.items import RunData, shortened
from activities.questions.planner import Planner
from activities.questions.planning_prompts import (
    LAST_WORDS,
    earlier_words,
    history,
    load_lines,
    plan_change,
    planner_request,
)
from activities.questions.question import Desk, Question, goal_of_people, send_to_model
from activities.reuse.begun_runs import LatestPlan, keep_plan
from activities.reuse.earlier_runs import WORKS
from activities.store.reading import first_of, list_bytes, read_plan, read_text
from activities.store.spending import newest_samples
from activities.teams.stored_teams import catalogue
from activities.teams.team_files import LoadedTeam
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.strategy import STRATEGIES
from temporal_supervisor.supervision.contract.team import TeamCard
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.grounding.claims import without_quotes
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import unsupported_in_answer
from temporal_supervisor.supervision.planning import capabilities
from temporal_supervisor.supervision.planning.estimate import estimate_of
from temporal_supervisor.supervision.planning.expansion import NO_DATA, Data
from temporal_supervisor.supervision.planning.new_roles import (
    new_role_problems,
    unknown_role_problems,
    unknown_roles,
)
from temporal_supervisor.supervision.planning.plan_graph import is_empty, plan_problems
from temporal_supervisor.supervision.planning.put_right import KnownNames, put_right
from temporal_supervisor.supervision.planning.revisions import (
    merge,
    revision_problems,
    without_copies,
    without_repeats,
)
from temporal_supervisor.supervision.results.recalled import is_recalled
from temporal_supervisor.supervision.results.shown_links import addresses_in, without_links
from temporal_supervisor.supervision.reuse.earlier import earlier_ids, texts_in

# Characters of a team's data for each token of a small window: a quarter of it or so.
_CATALOGUE_SHARE = 1.0
_ATTACHMENT_CHARS = 300  # of each in the planner's prompt: the columns of a table, or a title


async def make_plan(desk: Desk, call: PlanInput) -> PlanReply:
    """Returns a plan, or a better one after `call.problems`, or the problems with it."""
    planner = await _planner(desk, call)
    previous = await read_plan(desk.store, call.plan_ref) if call.plan_ref else None
    reply, written = await _write_plan(desk, planner, previous)
    if written is not None:
        written, reply.problems = planner.with_earlier(written)
    if written is None or reply.problems:
        return reply
    if call.own_plan is None and reply.strategy != "route":  # a person's plan is taken literally
        written = _repair_names(planner, reply, written, previous)
        if previous is not None and planner.short:
            written, repeats = without_repeats(previous.folded(), written, _states(call))
            reply.put_right += repeats
            if repeats and not written.subtasks:
                reply.finished = True  # a small model would only write them again
                return reply
    team = await desk.teams.card(call.team_ref)
    loaded, added = planner.loaded, written.new_roles
    reply.problems = new_role_problems(loaded.team, added) or loaded.toolbox.combination_problems(
        added
    )
    if added and not reply.problems:
        reply.team_ref = await desk.teams.extend(call.run.run_id, call.team_ref, added)
        reply.team = team = await desk.teams.card(reply.team_ref)
    plan = None if reply.problems else _check_plan(planner, reply, written, previous, team)
    if plan is not None:
        await _store_plan(desk, reply, plan, planner)
    if reply.plan is None or reply.plan_ref is None:
        reply.team_ref = reply.team = None
        return reply

    if call.estimates:
        samples = await newest_samples(desk.store, team.name)
        reply.estimate = await asyncio.to_thread(
            estimate_of,
            reply.plan,
            team,
            samples,
            call.max_turns,
            call.max_subtasks,
            _input_price,
        )
    team_ref = reply.team_ref or call.team_ref
    await keep_plan(desk.store, call.run, LatestPlan(plan_ref=reply.plan_ref, team_ref=team_ref))
    return reply


async def _planner(desk: Desk, call: PlanInput) -> Planner:
    """Returns the planner for a call, with the team, the goal and the data of its run."""
    window = await desk.calls.window(call.run, call.model)
    about = await desk.teams.catalogue(call.team_ref)
    if window.is_small:
        room = int(window.tokens * _CATALOGUE_SHARE)
        about = "\n".join(first_of(about.splitlines(), room))
    seen = await desk.store.get(call.earlier_ref) if call.earlier_ref else b"[]"
    return Planner(
        call,
        await desk.teams.load(call.team_ref),
        await read_text(desk.store, call.goal_ref),
        about,
        await _data(desk, call),
        short=window.is_small,
        works=tuple(WORKS.validate_json(seen)),
    )


async def _data(desk: Desk, call: PlanInput) -> Data:
    """Returns the names of the run's data."""
    if not call.run.files_ref and not call.attachments:
        return NO_DATA
    return await RunData(desk.store, desk.teams, call.run, call.attachments).names()


def _repair_names(planner: Planner, reply: PlanReply, plan: Plan, previous: Plan | None) -> Plan:
    """Returns the model's plan with existing names, and with roles that can query its tables."""
    states = _states(planner.call)
    earlier = previous.folded().subtasks if previous else []
    # Roles that are not usable here count, too: that a run needs them is worth knowing.
    roles = planner.loaded.team.roles
    names = KnownNames(
        attachments=[attachment.name for attachment in planner.call.attachments],
        capabilities=[capability for role in roles for capability in role.capabilities],
        data=planner.data if planner.fields.items else NO_DATA,
        states={subtask.id: states.get(subtask.id, "waiting") for subtask in earlier},
    )
    plan, notes = put_right(plan, names)
    if planner.short:
        plan, copies = without_copies(plan)
        notes += copies
    plan, moved = planner.with_able_roles(plan)
    reply.put_right = [*notes, *moved]
    return planner.with_whole_goal(plan, reply.strategy) if planner.short else plan


def _states(call: PlanInput) -> dict[str, str]:
    """Returns the current states of the run's subtasks, by id."""
    return {note.subtask_id: note.state for note in call.done}


async def _write_plan(
    desk: Desk,
    planner: Planner,
    previous: Plan | None,
) -> tuple[PlanReply, Plan | None]:
    """Returns the beginning of the reply, and the plan of the caller, the team or the model.

    After a first plan it is an addition to that.
    """
    call = planner.call
    steps = STRATEGIES[call.strategy].plans_steps
    # For a caller's plan and for a fixed route of the team no model is asked.
    if call.own_plan is not None:
        reply = PlanReply(head="", usage=Usage(), strategy="step" if steps else "plan")
        return reply, call.own_plan.model_copy(update={"goal": planner.goal})
    fixed = planner.fixed_route()
    if fixed is not None:
        return PlanReply(head="", usage=Usage(), strategy="route"), fixed
    untrusted = planner.loaded.toolbox.labels_of_data().untrusted
    attachments: dict[str, str] = {}
    for attachment in call.attachments:
        attachments[attachment.name] = await _beginning(desk, attachment, untrusted)

    form = await read_text(desk.store, call.answer_schema_ref) if call.answer_schema_ref else ""
    others_at_work = await desk.others.agents_at_work(call.run.run_id) if desk.others else 0
    busy = load_lines(call.done, others_at_work)
    change = plan_change(call.comment) if call.comment else ""
    problems = repair("plan", call.problems) if call.problems else ""

    async def write_prompt(tokens: int) -> str:
        so_far = history(previous, call.done, list_bytes(tokens)) if previous else ""
        built_on = earlier_words(planner.works, list_bytes(tokens))
        # Another model has heard no comment.
        parts = [built_on, change, problems, LAST_WORDS[planner.mode]]
        last_words = "\n\n".join(filter(None, parts))
        return planner_request(
            planner.goal,
            attachments,
            so_far,
            call.missing,
            last_words,
            form,
            planner.catalogue,
            busy,
        )

    back = None
    if call.head is not None:
        words = [change, problems, "Return the complete reply again."]
        back = (call.head, "\n\n".join(filter(None, words)))
    # One step at a time asks with the same system text again and again.
    cache: CacheUse = "prefix" if steps else "none"
    answered = await send_to_model(
        desk, call, planner.system(), planner.form(), write_prompt, back, cache
    )
    reply = PlanReply(head=answered.head, usage=answered.usage, refusal=answered.message.refusal)
    plan = None
    if reply.refusal is None:
        try:
            reply.strategy, plan = planner.parse_reply(answered.message)
            reply.finished = plan is None
        except ValueError as error:
            reply.problems = [str(error)]
    return reply, plan


async def _beginning(desk: Desk, attachment: ArtifactRef, untrusted: str) -> str:
    """Returns the beginning of an attachment's text; of an untrusted one only the size."""
    size = f"{attachment.bytes:,} bytes"
    if untrusted:  # else it could have a part in the plan, which all agents follow
        return f"({size}, to be read by worker agents alone)"
    text = await read_text(desk.store, attachment.ref)
    if len(text) <= _ATTACHMENT_CHARS:
        return text
    return f"{text[:_ATTACHMENT_CHARS]} [... {size} in all]"


def _check_plan(
    planner: Planner,
    reply: PlanReply,
    plan: Plan,
    previous: Plan | None,
    card: TeamCard,
) -> Plan | None:
    """Returns the plan as it will run, with earlier revisions; None if it has problems."""
    call, states = planner.call, _states(planner.call)
    usable = card.assignable(nesting=call.nesting_left > 0)
    names = [attachment.name for attachment in call.attachments]
    # Small attachments are a part of every brief, large ones need a role with a tool for them.
    large = {each.name for each in call.attachments if each.bytes > limits.SMALL_ATTACHMENT_BYTES}
    if reply.strategy == "route":
        return _with_attachments(plan, usable, names, large)

    # A finding of an earlier run costs nothing, and takes no subtask's room.
    most = call.max_subtasks + len(earlier_ids(plan))
    if previous is None:
        problems = plan_problems(plan, most, names, planner.data)
        reply.without_subtasks = is_empty(plan)
    else:
        most += len(earlier_ids(previous))
        reply.without_subtasks = not plan.subtasks
        problems = revision_problems(previous, plan, most, states, names, planner.data)
    if call.own_plan:
        problems += unknown_role_problems(plan, card)

    plan = _without_teams_as_candidates(plan, usable)
    earlier = [subtask.id for subtask in previous.subtasks] if previous else []
    incapable = capabilities.capability_problems(plan, usable)
    assigned = capabilities.with_assigned_roles(plan, usable, large, earlier)
    if call.own_plan is None:
        assigned, moved = capabilities.with_readers(assigned, usable, large)
        reply.put_right += moved
    if call.nesting_left <= 0:
        problems += _nesting_problems([*plan.subtasks, *assigned.subtasks], card)
    reply.incapable = bool(incapable)
    reply.problems = problems + incapable
    if not reply.problems:
        reply.problems = capabilities.attachment_problems(assigned, usable, large)
    if reply.problems:
        return None

    reply.unknown_roles = unknown_roles(plan, planner.loaded.team)
    whole = merge(previous, assigned, states) if previous else assigned
    was_split = len(assigned.subtasks) > len(plan.subtasks)
    if was_split and len(whole.named) > most:
        reply.problems = [
            f"no single role has the capabilities of some subtasks: split among roles the plan has "
            f"{len(whole.named)} subtasks, at most {most} are allowed"
        ]
        return None
    reply.problems = capabilities.teams_without_room(whole, usable, call.max_subtasks, states)
    if reply.problems:
        return None
    return whole.model_copy(update={"revision": call.revision})


def _with_attachments(plan: Plan, usable: TeamCard, names: list[str], large: Set[str]) -> Plan:
    """Returns a route whose subtasks have all attachments, large ones only if they read them."""
    small = [name for name in names if name not in large]
    for subtask in plan.subtasks:
        subtask.attachments = names if usable.role(subtask.role).reads_attachments else small
    return plan


def _without_teams_as_candidates(plan: Plan, usable: TeamCard) -> Plan:
    """Returns a plan without teams among its candidate roles."""
    single = {role.name for role in usable.roles if role.team is None}
    subtasks = []
    for subtask in plan.subtasks:
        able = [name for name in subtask.candidate_roles if name in single]
        # Not in place: plans that are read are shared.
        subtasks.append(subtask.model_copy(update={"candidate_roles": able}))
    return plan.model_copy(update={"subtasks": subtasks})


def _nesting_problems(subtasks: Sequence[Subtask], card: TeamCard) -> list[str]:
    """Returns a sentence for each role that is a team.

    Unknown roles have been replaced by the generalist by now, which may be a team.
    """
    problems = []
    for name in dict.fromkeys(subtask.role for subtask in subtasks):
        role = card.find(name)
        if role is not None and role.team is not None:
            problems.append(f"role {quoted(role.name)} is a team and nesting is not possible here")
    return problems


async def _store_plan(desk: Desk, reply: PlanReply, plan: Plan, planner: Planner) -> None:
    """Stores a checked plan and puts it into the reply; or a problem, if it is too large."""
    call, goal = planner.call, planner.goal
    known_texts = [goal]
    for work in planner.works:
        known_texts += texts_in(work)
    if plan.direct_answer:
        known = addresses_in(*goal_of_people(goal, call.run.run_id))
        direct = without_links(plan.direct_answer, known)
        plan = plan.model_copy(update={"direct_answer": direct})
    reply.plan = shortened(plan)
    length, most = len(reply.model_dump_json()), limits.PLAN_REPLY_BYTES
    if length > most:
        reply.plan = None
        size = f"the plan takes {length} bytes, at most {most} are possible"
        reply.problems = [f"{size}: give it fewer dependencies"]
        return
    run_id = call.run.run_id
    reply.plan_ref = await desk.store.put_output(run_id, plan.model_dump_json())
    if plan.direct_answer:
        reply.answer.ref = await desk.store.put_output(run_id, plan.direct_answer)
        own = without_quotes(plan.direct_answer)
        grounds = "\n".join(known_texts)
        recalled = is_recalled(plan.direct_answer, grounds)
        reply.answer.grounding = "knowledge" if recalled else "tools"
        sources = [Source(text) for text in known_texts]
        check = partial(unsupported_in_answer, own, sources, names=False)
        reply.answer.unsupported = await asyncio.to_thread(check)


def _input_price(model: str, tokens: float, searches: float) -> float | None:
    return price(model, ModelUsage(input_tokens=round(tokens), web_searches=round(searches)))


async def choose_role(
    endpoint: ModelEndpoint,
    model: str,
    loaded: LoadedTeam,
    goal: str,
) -> tuple[Plan, str | None]:
    """Returns the route for a goal without a run, and the model that chose it, None if it is fixed.

    Raises ModelFailure. An unreadable reply gives the goal to the generalist, as in a run's last
    try.
    """
    call = PlanInput(
        run=RunRef(run_id="asked"),
        goal_ref="",
        team_ref="",
        model=model,
        max_subtasks=limits.MAX_SUBTASKS,
        strategy="route",
        nesting_left=1,
        attempt=limits.PLAN_TRIES,
    )
    about = await catalogue(loaded.toolbox.tools_named(loaded.team.named_tools))
    planner = Planner(call, loaded, goal, about)
    fixed = planner.fixed_route()
    if fixed is not None:
        return fixed, None

    last_words = LAST_WORDS["route"]
    prompt = planner_request(goal, {}, last_words=last_words, catalogue=planner.catalogue)
    request = ModelRequest(
        model=model,
        system=planner.system(),
        messages=[user_message(prompt)],
        max_tokens=limits.PLAN_MAX_TOKENS,
        output_schema=endpoint.output_schema(planner.form()),
    )
    _, chosen = planner.parse_reply(await endpoint.complete(request, StreamProgress()))
    assert chosen is not None  # a route is a plan
    return chosen, model


PLAN = Question("plan", PlanInput, PlanReply, make_plan)
