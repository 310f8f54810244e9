"""The plan that a run carries out, and the team that it assigns."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.contract.finding import Labels
    from temporal_supervisor.supervision.contract.plan import Plan, Subtask
    from temporal_supervisor.supervision.contract.team import TeamCard
    from temporal_supervisor.supervision.run.run_state import RunState


class PlanInForce:
    """The stored plan, with the team that carries it out; both follow the plan's revisions.

    `adopt` is the only way to a plan: it changes the references here together with the run's state.

    `team` includes the roles that the plan added. `described_in` maps each subtask to the revision
    that introduced it, so that its brief is the same whenever it begins. `labels` maps each subtask
    to the labels of the texts behind its description.
    """

    def __init__(self, state: RunState, team: TeamCard, team_ref: str, *, may_nest: bool) -> None:
        """`may_nest` is False at the last level: no subtask goes to a role that is a team there."""
        self._state = state
        self.ref = ""
        self.team = team
        self.team_ref = team_ref
        self.described_in: dict[str, str] = {}
        self.labels: dict[str, Labels] = {}
        self._may_nest = may_nest

    def replace_team(self, team: TeamCard, ref: str) -> None:
        """Replaces the team by a revision, which has the roles that a plan adds."""
        self.team = team
        self.team_ref = ref

    def adopt(self, plan: Plan, ref: str, labels: Labels, described_in: str = "") -> None:
        """Adopts the plan stored at `ref`: the first one, or a revision with new subtasks.

        The new subtasks are described in that plan, or in a part of it at `described_in`, from
        texts with these `labels`. Subtasks of earlier revisions keep their own.
        """
        self.ref = ref
        for subtask in plan.subtasks:
            self.described_in.setdefault(subtask.id, described_in or ref)
            self.labels.setdefault(subtask.id, labels)
        self._state.adopt(plan)

    @property
    def assignable_roles(self) -> TeamCard:
        """The roles that a subtask may be given to."""
        return self.team.assignable(nesting=self._may_nest)

    def may_be_team(self, subtask: Subtask) -> bool:
        """True if a subtask is for a role that is a team, or may still get such a role."""
        roles = self.assignable_roles
        if subtask.role == "auto":
            return any(role.team for role in roles.roles)
        return roles.role(subtask.role).team is not None
