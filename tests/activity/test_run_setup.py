"""Preparing a run: what is refused before any money is spent, and what is warned of."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import RunRef, RunSetup, SetupInput, SubtaskBrief
from activities.files.file_cache import FileCache
from activities.files.manifest import RunFiles
from activities.model.anthropic_model import AnthropicModel
from activities.model.endpoint_probe import EndpointProbe
from activities.run.run_activities import GRANT_LIFETIME, DefaultModels
from activities.store.grants import RunGrant, find_grant
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import TeamFiles
from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.team import Role, Team
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits
from tests.activity.supervising import ROLE, Desk

BUNDLED = TeamFiles([BUILTIN_TEAMS])


def team(*more: Role) -> Team:
    return Team(name="garden", generalist="reader", roles=[Role(name="reader", **ROLE), *more])


async def prepare(
    desk: Desk,
    notice: str | None = None,
    ceilings: Ceilings | None = None,
    windows: dict[str, int] | None = None,
    parent: RunRef | None = None,
    own_first_run_id: str = "",
    **fields: Any,
) -> RunSetup:
    endpoint = AnthropicModel(windows=windows, free=notice is not None)
    setup = desk.run_activities(endpoint=endpoint, model_notice=notice, ceilings=ceilings or Ceilings())
    request = RunRequest(**{"goal": "How large is the pear crop?", "team": team(), **fields})
    asked = SetupInput(run=parent or await desk.run_ref(), request=request, own_first_run_id=own_first_run_id)
    if parent is None:
        return await desk.do(setup.prepare_run, asked)
    plan_ref = await desk.plan(Subtask(id="t1", description="Count the pears of the north."))
    asked.brief = SubtaskBrief(plan_ref=plan_ref, subtask_id="t1")
    return await desk.do(setup.prepare_run, asked, f"{desk.run_id}/t1/1")


async def test_an_answer_schema_is_stored_for_the_synthesis(desk: Desk) -> None:
    schema = {"type": "object", "properties": {"crop": {"type": "integer"}}}
    setup = await prepare(desk, answer_schema=schema)
    assert json.loads(await desk.read(setup.answer_schema_ref)) == schema
    assert (await prepare(desk)).answer_schema_ref is None


@pytest.mark.parametrize(("key_at_home", "tools"), [(True, ["web_search", "web_fetch"]), (False, [])])
async def test_the_usual_team_searches_the_web_where_the_provider_does(
    desk: Desk, key_at_home: bool, tools: list[str]
) -> None:
    endpoint = AnthropicModel(api_key="key", base_url=None if key_at_home else "http://127.0.0.1:1")
    setup = dataclasses.replace(desk.run_activities(endpoint=endpoint), teams=StoredTeams(desk.store, BUNDLED))
    request = RunRequest(goal="How large is the pear crop?")
    made = await desk.do(setup.prepare_run, SetupInput(run=await desk.run_ref(), request=request))
    assert (made.team.name, [tool.name for tool in made.team.role("researcher").tools]) == ("general", tools)
    stored = await StoredTeams(desk.store, BUNDLED).load(made.team_ref)
    assert stored.team.role("researcher").grounding == ("tools" if key_at_home else "knowledge")


LOW = Ceilings(tokens=1000, usd=1.0, models=["claude-*"])
OWN_MODELS = {"team": team(Role(name="oddity", model="llama-own", **ROLE)), "models": {"supervisor": "gpt-own"}}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"answer_schema": {"type": "nonsense"}}, "answer_schema: "),
        ({**OWN_MODELS, "budget": {"usd": 1.0}}, "budget.usd: the price of gpt-own, llama-own is unknown"),
        ({"ceilings": LOW, "budget": {"tokens": 2000}}, "SUPERVISOR_MAX_BUDGET_TOKENS"),
        ({"ceilings": LOW, "models": {"workers": "llama-own"}}, "SUPERVISOR_ALLOWED_MODELS"),
        ({"ceilings": Ceilings(inline_teams="off")}, "SUPERVISOR_INLINE_TEAMS"),
    ],
)
async def test_what_cannot_be_kept_or_is_above_a_ceiling_is_refused(
    desk: Desk, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(SupervisionError, match=says) as caught:
        await prepare(desk, **fields)
    assert caught.value.kind == "InvalidRequest"


async def test_the_default_dollar_budget_gives_way_with_a_warning(desk: Desk) -> None:
    setup = await prepare(desk, models={"workers": "llama-own"})
    assert "the dollar budget is not kept: the price of llama-own is unknown" in setup.warnings
    tokens = await prepare(desk, models={"workers": "llama-own"}, budget={"usd": None})
    assert not any("dollar" in warning for warning in tokens.warnings)


async def test_the_room_for_findings_is_that_of_the_supervisors_smallest_window(desk: Desk) -> None:
    assert (await prepare(desk)).prompt_tokens == limits.CONTEXT_TOKENS
    chain = ["claude-opus-5-5", "tiny"]
    assert (await prepare(desk, models={"supervisor": chain}, windows={"tiny": 30_000})).prompt_tokens == 15_000


@pytest.mark.parametrize(
    ("models", "tokens", "reviewed"),
    [
        ({"supervisor": "own", "workers": "own"}, 16_384, False),
        ({"supervisor": "own", "workers": "other"}, 16_384, True),
        ({"supervisor": "own", "workers": "own"}, 128_000, True),
    ],
)
async def test_a_small_model_does_not_review_its_own_findings(
    desk: Desk, models: dict[str, str], tokens: int, reviewed: bool
) -> None:
    assert (await prepare(desk, models=models, windows={"*": tokens})).reviewed == reviewed


# --- the grant ----------------------------------------------------------------------------------------


async def granted(desk: Desk, setup: RunSetup) -> RunGrant:
    grant = await find_grant(desk.store, desk.run_id, setup.grant_ref)
    assert grant
    return grant


async def below(desk: Desk, setup: RunSetup, **fields: Any) -> RunSetup:
    """Prepares a nested supervisor of a run with that grant."""
    run = await desk.run_ref()
    return await prepare(desk, parent=run.model_copy(update={"grant_ref": setup.grant_ref}), **fields)


async def test_a_run_is_granted_its_models_and_the_teams_of_its_roles_for_so_long(desk: Desk) -> None:
    crew = Role(name="crew", description="A crew.", team=desk.write_orchard())
    roles = [Role(name="own", model="b-model", **ROLE), crew]
    models = {"supervisor": ["c-model", "a-model"], "workers": ["d-model"]}
    before = datetime.now(UTC)
    grant = await granted(desk, await prepare(desk, team=team(*roles), models=models))
    assert (grant.run_id, grant.workflow_id, grant.depth) == (desk.run_id, desk.run_id, 1)
    assert grant.models == ["a-model", "b-model", "c-model", "d-model"]
    assert grant.nested_teams == ["orchard"]
    assert before <= grant.expires_at - GRANT_LIFETIME <= datetime.now(UTC)


async def test_a_nested_supervisor_is_granted_one_level_and_no_more_time_than_the_one_above(desk: Desk) -> None:
    root = await prepare(desk)
    nested = await below(desk, root, models={"supervisor": "claude-sonnet-5-5"})
    above, grant = await granted(desk, root), await granted(desk, nested)
    assert (grant.run_id, grant.workflow_id, grant.depth) == (desk.run_id, f"{desk.run_id}/t1/1", 2)
    assert grant.expires_at == above.expires_at
    assert grant.models == ["claude-haiku-5-5", "claude-sonnet-5-5"]
    assert (await granted(desk, await below(desk, nested))).depth == 3
    again = await below(desk, root, models={"supervisor": "claude-sonnet-5-5"})
    assert again.grant_ref == nested.grant_ref, "every attempt at it issues the same"


async def test_a_run_knows_by_its_first_run_id_that_it_was_reset(desk: Desk) -> None:
    own = ActivityEnvironment().info.workflow_run_id
    assert own
    assert not (await prepare(desk)).was_reset
    assert not (await prepare(desk, own_first_run_id=own)).was_reset
    assert (await prepare(desk, own_first_run_id="another")).was_reset


async def test_tables_that_are_attached_as_text_are_data_and_a_data_toml_describes_them(
    desk: Desk, tmp_path: Path
) -> None:
    attached = {
        "sales.csv": "region;amount\nNorth;1.234,50\nSouth;26.474,00\n",
        "cities.tsv": "city\tpeople\nKöln\t1,085,664\nBonn\t336,465\n",
        "notes.md": "# Fees\n\n| who | fee |\n|---|---|\n| a | 1,200 |\n| b | 13,400 |\n",
        "data.toml": '[tables."sale.csv"]\nheader = 1\n',
    }
    setup = await prepare(desk, attachments=[{"name": name, "text": text} for name, text in attached.items()])
    assert [each.name for each in setup.attachments] == list(attached)
    files = RunFiles(desk.store, FileCache(tmp_path / "cache"), desk.run_id, setup.files_ref)
    tables = {table["name"]: table for report in await files.reports() for table in report.tables}
    ranges = {name: table["columns"][1]["range"] for name, table in tables.items()}
    assert ranges == {
        "sales": ["1234.5", "26474"],
        "cities": ["336465", "1085664"],
        "notes": ["1200", "13400"],
    }
    assert files.unread() == "data.toml: line 1: there is no table 'sale.csv', did you mean 'sales.csv'?"


# --- the endpoint -------------------------------------------------------------------------------------


class Known(EndpointProbe):
    """An endpoint of which this is known."""

    def __init__(self, facts: EndpointFacts) -> None:
        super().__init__()
        self.known = facts

    async def facts(self, patience: timedelta = limits.ENDPOINT_PATIENCE) -> EndpointFacts:
        return self.known


QWEN = EndpointFacts(
    address="here:1", asked=True, names=["qwen"], models={"qwen": ModelTraits(window=16_384, schemas=False)}
)


async def at(desk: Desk, known: EndpointFacts, chosen: bool = False, parent: RunRef | None = None) -> RunSetup:
    """Prepares a run, or one below a `parent`, in a process that knows this of its endpoint."""
    process = dataclasses.replace(
        desk.run_activities(),
        defaults=DefaultModels(["claude-opus-5-5"], ["claude-haiku-5-5"], chosen),
        probe=Known(known),
    )
    request = RunRequest(goal="How large is the pear crop?", team=team())
    asked = SetupInput(run=parent or await desk.run_ref(), request=request)
    if parent is None:
        return await desk.do(process.prepare_run, asked)
    plan_ref = await desk.plan(Subtask(id="t1", description="Count the pears of the north."))
    asked.brief = SubtaskBrief(plan_ref=plan_ref, subtask_id="t1")
    return await desk.do(process.prepare_run, asked, f"{desk.run_id}/t1/1")


async def test_the_only_model_of_an_endpoint_is_used_if_nobody_named_one(desk: Desk) -> None:
    setup = await at(desk, QWEN)
    assert (setup.supervisor_models, setup.team.roles[0].models) == (["qwen"], ["qwen"])
    assert (setup.prompt_tokens, setup.endpoint) == (8192, QWEN)
    assert (await granted(desk, setup)).endpoint == QWEN
    assert not any("endpoint" in warning for warning in setup.warnings)


async def test_a_model_that_the_endpoint_does_not_list_is_warned_of_with_those_that_it_has(desk: Desk) -> None:
    two = QWEN.model_copy(update={"names": ["qwen", "llama"]})
    for known, chosen in ((QWEN, True), (two, False)):
        setup = await at(desk, known, chosen)
        assert setup.supervisor_models == ["claude-opus-5-5"]
        [warning] = [each for each in setup.warnings if "endpoint" in each]
        assert "does not list claude-opus-5-5, claude-haiku-5-5; it has qwen" in warning


async def test_an_endpoint_that_did_not_answer_in_time_is_noted_with_what_is_assumed(desk: Desk) -> None:
    setup = await at(desk, EndpointFacts(address="here:1"))
    [warning] = [each for each in setup.warnings if "endpoint" in each]
    assert "here:1 did not answer within 60 s: assumed" in warning
    assert setup.endpoint.traits("claude-opus-5-5").window == 1_000_000


async def test_a_nested_run_calls_its_models_as_the_run_above_whatever_its_process_knows(desk: Desk) -> None:
    root = await at(desk, QWEN)
    run = (await desk.run_ref()).model_copy(update={"grant_ref": root.grant_ref})
    other = QWEN.model_copy(update={"models": {"qwen": ModelTraits(window=4096, schemas=True)}})
    nested = await at(desk, other, parent=run)
    assert (nested.supervisor_models, nested.endpoint) == (["qwen"], QWEN)
