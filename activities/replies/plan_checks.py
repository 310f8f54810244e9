"""Checks that a plan can run with this team, and the plan as it will run: capabilities covered, roles known."""

from dataclasses import dataclass, field

from activities.contracts.planning_contracts import PlanInput
from supervision import limits
from supervision.contract.plan import NewRole, Plan
from supervision.contract.team import RoleCard, Team, TeamCard
from supervision.planning import capabilities
from supervision.planning.new_roles import new_role_problems
from supervision.planning.plan_graph import plan_problems
from supervision.planning.revisions import merge, revision_problems
from supervision.text import cut, quoted

_SHORTENED_CHARS = (limits.DESCRIPTION_CHARS, 1000, 400, 160, 80, 40)  # of descriptions: the first that fits is taken
_LEAST_INSTRUCTION_BYTES = 200


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that can run, or the problems with it. It is the whole plan, earlier revisions included.

    `incapable` is True if no role has a capability that the plan asks for.
    """

    plan: Plan | None = None
    new_roles: list[NewRole] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    incapable: bool = False


def check_plan(plan: Plan, previous: Plan | None, team: Team, card: TeamCard, call: PlanInput) -> CheckedPlan:
    """Returns the plan as it will run, or all problems with it. With `previous`, `plan` is an addition to that."""
    problems = _rule_problems(plan, previous, call)
    problems += new_role_problems(team, plan.new_roles)
    problems += _nesting_problems(plan, team, call.nesting_left)
    usable = _usable_card(card, plan.new_roles, call.nesting_left)
    missing = capabilities.missing(plan, usable)
    if problems or missing:
        return CheckedPlan(problems=problems + missing, incapable=bool(missing))
    return _expanded(plan, previous, team, usable, call)


def _rule_problems(plan: Plan, previous: Plan | None, call: PlanInput) -> list[str]:
    attachments = [attachment.name for attachment in call.attachments]
    if previous is None:
        return plan_problems(plan, call.max_subtasks, attachments)
    return revision_problems(previous, plan, call.max_subtasks, _states(call), attachments)


def _expanded(plan: Plan, previous: Plan | None, team: Team, usable: TeamCard, call: PlanInput) -> CheckedPlan:
    """Returns the plan with its subtasks split and given to roles; that alone may break two more rules."""
    taken = [subtask.id for subtask in previous.subtasks] if previous else []
    assigned = capabilities.expand(plan, usable, taken)
    whole = merge(previous, assigned, _states(call)) if previous else assigned
    # Again: subtasks of unknown roles have gone to the generalist, which may be a team.
    problems = _nesting_problems(assigned, team, call.nesting_left)
    if len(whole.subtasks) > call.max_subtasks:
        problems.append(
            f"no single role has the capabilities of some subtasks: split among roles the plan has "
            f"{len(whole.subtasks)} subtasks, at most {call.max_subtasks} are allowed"
        )
    if problems:
        return CheckedPlan(problems=problems)
    return CheckedPlan(plan=whole.model_copy(update={"revision": call.revision}), new_roles=plan.new_roles)


def shortened(plan: Plan) -> Plan:
    """Returns the plan cut to a size that fits into history; the stored plan keeps whole texts."""
    small = plan.model_copy(update={"goal": cut(plan.goal, limits.SUMMARY_BYTES)})
    for length in _SHORTENED_CHARS:
        small = small.model_copy(
            update={
                "direct_answer": cut(plan.direct_answer, limits.ANSWER_INLINE_BYTES) if plan.direct_answer else None,
                "final_instruction": cut(plan.final_instruction, max(length, _LEAST_INSTRUCTION_BYTES)),
                "subtasks": [s.model_copy(update={"description": cut(s.description, length)}) for s in plan.subtasks],
                "new_roles": [_shortened_role(role, length) for role in plan.new_roles],
            }
        )
        if len(small.model_dump_json()) <= limits.PAYLOAD_AIM_BYTES:
            break
    return small


def _shortened_role(role: NewRole, length: int) -> NewRole:
    return role.model_copy(
        update={"description": cut(role.description, length), "system_prompt": cut(role.system_prompt, length)}
    )


def _states(call: PlanInput) -> dict[str, str]:
    return {note.subtask_id: note.state for note in call.done}


def _nesting_problems(plan: Plan, team: Team, nesting_left: int) -> list[str]:
    if nesting_left > 0:
        return []
    teams = {role.name for role in team.roles if role.team is not None}
    named = dict.fromkeys(subtask.role for subtask in plan.subtasks if subtask.role in teams)
    return [f"role {quoted(name)} is a team and nesting is not possible here" for name in named]


def _usable_card(card: TeamCard, added: list[NewRole], nesting_left: int) -> TeamCard:
    """Returns the team's card with the plan's own roles, without the roles that may not be used here."""
    usable = [role for role in card.roles if nesting_left > 0 or role.team is None or role.name == card.generalist]
    model = card.role(card.generalist).model
    new = [RoleCard(name=role.name, description=role.description, model=model) for role in added]
    return card.model_copy(update={"roles": [*usable, *new]})
