"""The guard before every activity, and the grants that it reads: what lies within one passes, all else is refused."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ExecuteActivityInput

from activities.attempt_interceptor import AttemptInterceptor, check_grant, excess
from activities.contracts.run_contracts import AdoptInput, RunRef, SetupInput, SubtaskBrief
from activities.contracts.turn_contracts import ToolResultRef, TurnInput
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactUnavailable
from activities.store.grants import RunGrant, find_grant, write_grant
from activities.store.store_urls import open_store
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.store_keys import digest_of, is_named
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.team import Role, Team

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWN, FOREIGN = "run/outputs/1", "run2/outputs/1"
TEAM = f"run/team.{'ab' * 32}"
RUN = RunRef(run_id="run", first_run_id="first")
BRIEF = SubtaskBrief(plan_ref="run/plan", subtask_id="t1")


def grant(**fields: Any) -> RunGrant:
    made = {
        "run_id": "run",
        "workflow_id": "run",
        "depth": 1,
        "models": ["large", "small"],
        "nested_teams": ["crew"],
        "expires_at": NOW,
    }
    return RunGrant.model_validate(made | fields)


def turn(run: RunRef = RUN, **fields: Any) -> TurnInput:
    made = {"team_ref": TEAM, "role": "reader", "model": "large", "step": "turn.1", "brief": BRIEF, "max_tokens": 10}
    return TurnInput.model_validate({"run": run, **made, **fields})


def nested(team: str | Team = "crew", run: RunRef = RUN, brief: SubtaskBrief | None = BRIEF) -> SetupInput:
    return SetupInput(run=run, request=RunRequest(goal="g", team=team), brief=brief)


# --- what goes beyond a grant -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argument",
    [
        turn(),
        turn(head="run/first/run/turn.1/ab", results=[ToolResultRef(call_id="c", ref=OWN)]),
        nested(),
        AdoptInput(run=RUN, text_ref=OWN),
    ],
    ids=["turn", "later turn", "nested", "adopt"],
)
def test_what_lies_within_a_grant_passes_until_it_ends(argument: object) -> None:
    assert excess(grant(), argument, NOW) is None
    assert excess(grant(), argument, NOW + timedelta(microseconds=1)) == "the run's time is over"


@pytest.mark.parametrize(
    ("argument", "beyond"),
    [
        (turn(head=FOREIGN), "head belongs to another run"),
        (turn(head="run/../run2/goal"), "head belongs to another run"),
        (turn(head=f"uploads/{'ab' * 32}"), "head belongs to another run"),
        (turn(results=[ToolResultRef(call_id="c", ref=FOREIGN)]), "ref belongs to another run"),
        (turn(brief=BRIEF.model_copy(update={"previous_ref": FOREIGN})), "previous_ref belongs to another run"),
        (turn(RUN.model_copy(update={"grant_ref": "run2/grant.1"})), "grant_ref belongs to another run"),
        (turn(team_ref=OWN), "team_ref is no team of this run"),
        (turn(model="secret"), "model 'secret' is not one of the run's"),
    ],
)
def test_what_goes_beyond_a_grant_is_named(argument: object, beyond: str) -> None:
    assert excess(grant(), argument, NOW) == beyond


@pytest.mark.parametrize("depth", range(1, limits.MAX_DEPTH + 2))
def test_nested_supervisors_end_at_a_level(depth: int) -> None:
    beyond = excess(grant(depth=depth), nested(), NOW)
    assert beyond == (f"nested supervisors end at level {limits.MAX_DEPTH}" if depth >= limits.MAX_DEPTH else None)
    assert excess(grant(depth=depth), turn(), NOW) is None


def test_a_nested_supervisor_has_a_team_that_a_role_of_the_one_above_it_has() -> None:
    role = Role(name="reader", description="d", system_prompt="s")
    for team in ("other", "Crew", "", Team(name="crew", generalist="reader", roles=[role])):
        asked = nested("crew")
        asked.request.team = team
        assert excess(grant(), asked, NOW) == "its team is not one of the roles of the supervisor above it"


# --- the check of one activity ------------------------------------------------------------------------


class Desk:
    """A store with the grants of a run and of a nested supervisor in it."""

    def __init__(self, folder: Path) -> None:
        self.store_folder = folder
        self.store = open_store(folder)
        self.ends = datetime.now(UTC) + timedelta(hours=1)

    async def run(self, **fields: Any) -> RunRef:
        """The run with a grant."""
        ref = await write_grant(self.store, grant(**{"expires_at": self.ends, **fields}))
        return RUN.model_copy(update={"store_id": await self.store.begin(), "grant_ref": ref})

    async def check(self, argument: object, workflow_id: str | None = "run") -> str | None:
        """Returns why this is refused; None if it is not."""
        info = dataclasses.replace(ActivityEnvironment().info, workflow_id=workflow_id)
        try:
            await check_grant(self.store, info, argument)
        except SupervisionError as refused:
            if refused.kind is not ErrorKind.NOT_GRANTED:
                raise
            return refused.message
        return None


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_run_and_its_children_have_it_worked_on_and_no_stranger_that_knows_the_grant(desk: Desk) -> None:
    run = await desk.run()
    for workflow_id in ("run", "run/t1/1", "run/t1/1/t2/1"):
        assert await desk.check(turn(run), workflow_id) is None
    assert await desk.check(nested(run=run), "run/t1/1") is None
    for workflow_id in ("other", "run2", "other/run", "/run", ""):
        assert await desk.check(turn(run), workflow_id) == f"workflow '{workflow_id}' does not belong to run 'run'"
    assert await desk.check(turn(run), None) == "only a run itself may do this"


async def test_a_changed_grant_and_another_store_are_told_from_a_lack_of_rights(desk: Desk, tmp_path: Path) -> None:
    run = await desk.run()
    await desk.store.put(run.grant_ref, grant(models=["secret"], expires_at=desk.ends).model_dump_json().encode())
    with pytest.raises(ArtifactChanged):
        await desk.check(turn(run, model="secret"))
    with pytest.raises(ArtifactUnavailable, match="SUPERVISOR_ARTIFACTS_URL"):
        await desk.check(turn(run.model_copy(update={"store_id": "another"})))


async def test_a_root_is_prepared_without_a_grant_under_its_own_name_alone(desk: Desk) -> None:
    root = nested(brief=None)
    assert await desk.check(root) is None
    assert await desk.check(root, "other") == "workflow 'other' is not the run 'run'"
    assert await desk.check(root, "run/t1/1") == "workflow 'run/t1/1' is not the run 'run'"
    assert await desk.check(nested(), "run") == "workflow 'run' does not belong to run 'run'"


@pytest.mark.parametrize("argument", [None, "run", {"run": {"run_id": "run"}}, RUN, BRIEF])
async def test_an_activity_without_a_run_is_refused(desk: Desk, argument: object) -> None:
    assert await desk.check(argument) == "only a run itself may do this"


# --- as an interceptor --------------------------------------------------------------------------------


async def test_what_is_refused_fails_for_good_and_reaches_nothing(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    after = Mock(execute_activity=AsyncMock(return_value="done"))
    guarded = AttemptInterceptor(desk.store).intercept_activity(after)
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, workflow_id="run", activity_type="call_model")
    run = await desk.run()

    async def execute(*args: Any) -> Any:
        call = ExecuteActivityInput(fn=print, args=args, executor=None, headers={})
        return await environment.run(guarded.execute_activity, call)

    assert await execute(turn(run)) == "done"
    for args in ([], [turn(run, model="secret")]):
        with pytest.raises(ApplicationError) as refused:
            await execute(*args)
        assert refused.value.type == "NotGranted"
        assert after.execute_activity.await_count == 1
    assert "refused call_model: model 'secret' is not one of the run's" in caplog.text


# --- grants in the store -----------------------------------------------------------------------------


async def test_a_grant_is_named_by_what_it_grants(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    ref = await write_grant(store, grant())
    assert is_named("grant", ref, "run")
    assert await write_grant(store, grant()) == ref
    more = {"workflow_id": "run/t1/1", "depth": 2, "models": ["large"], "nested_teams": []}
    more["expires_at"] = NOW + timedelta(days=365)
    others = {await write_grant(store, grant(**{name: value})) for name, value in more.items()}
    assert len(others - {ref}) == len(more)
    assert {digest_of(name) for name in others}.isdisjoint({None, digest_of(ref)})


async def test_a_grant_of_another_run_is_none_before_and_after_it_is_known(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    ref = await write_grant(store, grant())
    assert await find_grant(store, "other", ref) is None
    assert await find_grant(store, "run", ref) == grant()
    assert await find_grant(store, "other", ref) is None
    assert await find_grant(store, "run2", ref) is None


async def test_a_grant_that_the_store_has_lost_is_waited_for_and_a_strangers_is_refused(desk: Desk) -> None:
    run = await desk.run()
    await desk.store.delete(run.grant_ref)
    lost = Desk(desk.store_folder)
    with pytest.raises(ArtifactMissing):
        await lost.check(turn(run), "run/t1/1")
    assert await lost.check(turn(run), "other") == "workflow 'other' does not belong to run 'run'"
