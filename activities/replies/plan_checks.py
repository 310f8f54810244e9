"""Whether a plan can run with this team, and what it becomes: capabilities covered, roles known."""

from dataclasses import dataclass, field

from activities.contracts.planning_contracts import PlanInput
from supervision.contract.plan import NewRole, Plan
from supervision.contract.team import RoleCard, Team, TeamCard
from supervision.planning import capabilities, new_roles, revisions
from supervision.planning.plan_graph import problems
from supervision.text import one_line


@dataclass(frozen=True)
class Checked:
    """`plan` is None when there are problems; with earlier revisions it is the whole plan, theirs included."""

    plan: Plan | None = None
    new_roles: list[NewRole] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    incapable: bool = False


def checked(plan: Plan, previous: Plan | None, team: Team, card: TeamCard, input: PlanInput) -> Checked:
    """The plan as it will run, or everything wrong with it. With `previous`, `plan` is what is added to it."""
    states = {note.subtask_id: note.state for note in input.done}
    names = [attachment.name for attachment in input.attachments]
    if previous is None:
        found = problems(plan, input.max_subtasks, names)
    else:
        found = revisions.problems(previous, plan, input.max_subtasks, states, names)
    found += new_roles.problems(team, plan.new_roles)
    found += _nesting_problems(plan, team, input.nesting_left)
    grown = _grown(card, plan.new_roles, input.nesting_left)
    lacking = capabilities.missing(plan, grown)
    if found or lacking:
        return Checked(problems=found + lacking, incapable=bool(lacking))
    assigned = capabilities.expand(plan, grown, taken=[s.id for s in previous.subtasks] if previous else [])
    whole = revisions.merge(previous, assigned, states) if previous else assigned
    found = _nesting_problems(assigned, team, input.nesting_left)  # a generalist may be a team, too
    if len(whole.subtasks) > input.max_subtasks:
        found.append(
            f"no single role has the capabilities of some subtasks: split among roles the plan has "
            f"{len(whole.subtasks)} subtasks, at most {input.max_subtasks} are allowed"
        )
    if found:
        return Checked(problems=found)
    return Checked(plan=whole.model_copy(update={"revision": input.revision}), new_roles=plan.new_roles)


def _nesting_problems(plan: Plan, team: Team, nesting_left: int) -> list[str]:
    if nesting_left > 0:
        return []
    teams = {role.name for role in team.roles if role.team is not None}
    named = dict.fromkeys(subtask.role for subtask in plan.subtasks if subtask.role in teams)
    return [f"role '{one_line(name, 60)}' is a team and nesting is not possible here" for name in named]


def _grown(card: TeamCard, added: list[NewRole], nesting_left: int) -> TeamCard:
    """The team's card with the plan's roles, without those that may not be used here."""
    usable = [role for role in card.roles if nesting_left > 0 or role.team is None or role.name == card.generalist]
    model = card.role(card.generalist).model
    new = [RoleCard(name=role.name, description=role.description, model=model) for role in added]
    return card.model_copy(update={"roles": [*usable, *new]})
