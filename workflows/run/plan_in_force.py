"""The plan that a run works by, and the team that it assigns."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.contract.finding import Labels
    from temporal_supervisor.supervision.contract.plan import Plan, Subtask
    from temporal_supervisor.supervision.contract.team import TeamCard


class PlanInForce:
    """The plan as it is stored, with the team that carries it out: both follow its revisions.

    `team` has the roles that the plan added. `described_in` has for each subtask the plan that
    brought it: its brief is the same then, whenever it begins. `labels` has for each subtask those
    of what its description was made from.
    """

    def __init__(self, team: TeamCard, team_ref: str, *, may_nest: bool) -> None:
        """At the last level a run may not nest: no role is a team of its own there."""
        self.ref = ""
        self.team = team
        self.team_ref = team_ref
        self.described_in: dict[str, str] = {}
        self.labels: dict[str, Labels] = {}
        self._may_nest = may_nest

    def take_team(self, team: TeamCard, ref: str) -> None:
        """Takes over a revision of the team, which has the roles that the plan added."""
        self.team = team
        self.team_ref = ref

    def take(self, plan: Plan, ref: str, described_in: str, labels: Labels) -> None:
        """Takes over a revision of the plan.

        Its new subtasks are `described_in` it, or in a part of it.
        """
        self.ref = ref
        for subtask in plan.subtasks:
            self.described_in.setdefault(subtask.id, described_in)
            self.labels.setdefault(subtask.id, labels)

    @property
    def assignable_roles(self) -> TeamCard:
        """The roles that a subtask may be given to."""
        return self.team.assignable(nesting=self._may_nest)

    def may_be_team(self, subtask: Subtask) -> bool:
        """True if a subtask goes to a role that is a team, as far as that is decided."""
        roles = self.assignable_roles
        if subtask.role == "auto":
            return any(role.team for role in roles.roles)
        return roles.role(subtask.role).team is not None
