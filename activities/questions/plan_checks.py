"""Checks that a plan can run with this team, and the plan as it will run: capabilities covered, roles known."""

from dataclasses import dataclass, field, replace

from activities.contracts.planning_contracts import PlanInput
from activities.contracts.run_contracts import AttachmentRef
from activities.teams.team_files import LoadedTeam, tool_cards
from supervision.base import limits
from supervision.base.text import cut, quoted
from supervision.contract.plan import NewRole, Plan, Subtask
from supervision.contract.team import RoleCard, Team, TeamCard
from supervision.planning import capabilities
from supervision.planning.expansion import NO_DATA, Data
from supervision.planning.new_roles import new_role_problems, unknown_role_problems, unknown_roles
from supervision.planning.plan_graph import plan_problems
from supervision.planning.revisions import merge, revision_problems
from supervision.results.payload_fit import cut_to


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


def shortened(plan: Plan) -> Plan:
    """Returns the plan cut to a size that fits into history; the stored plan keeps whole texts.

    Descriptions of items begin with the item, so that they differ when they are cut.
    """
    subtasks = [
        subtask.model_copy(update={"description": cut(subtask.whole, limits.LINE_BYTES), "item": ""})
        if subtask.item
        else subtask
        for subtask in plan.subtasks
    ]
    plan = plan.model_copy(update={"subtasks": subtasks})
    return cut_to(plan.model_copy(update={"goal": cut(plan.goal, limits.SUMMARY_BYTES)}), limits.PAYLOAD_AIM_BYTES)


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
