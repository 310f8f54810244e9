"""The gate: each guard is taken away once, and the case named for it turns red. A guard nobody would miss is none."""

import contextlib
import dataclasses
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import httpx2
import pytest
import sqlglot
from temporalio.client import WorkflowQueryFailedError
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment

from activities import guard
from activities.agent import tool_calls
from activities.contracts.run_contracts import RunRef
from activities.contracts.turn_contracts import ToolCallRef, arguments_sha256
from activities.model import journalled_call, stream
from activities.prompts import agent_prompts
from activities.replies import answer_schema
from activities.store import artifacts
from activities.store.grants import Grants, RunGrant
from activities.teams import toolbox
from activities.tools.sql.sql_tools import TableStore
from runtime import connection
from runtime.payloads import BoundedPayloadConverter, data_converter
from runtime.server import temporal_binary
from runtime.server.temporal_binary import TemporalNotFound, find_temporal
from runtime.settings import Settings
from standin.server.app import BrainServer
from supervision.base import limits
from supervision.base.errors import SupervisionError
from supervision.base.trust import Credentials
from supervision.contract import request
from supervision.contract.base import Model, Undecodable
from supervision.contract.ceilings import Ceilings
from supervision.contract.request import RunRequest, parse_request
from supervision.contract.result import RunResult
from supervision.run import web_details
from tests.activity.files.made_tables import tables_of
from tests.activity.model import test_hostile_endpoint as endpoint
from tests.activity.teams import test_team_files as teams
from tests.corpus import test_forged_principals as principals
from tests.corpus import test_forged_text as texts
from tests.corpus import test_growth as growth
from tests.corpus import test_hostages as hostages
from tests.corpus import test_raw_inputs as raw_inputs
from tests.corpus.growth import slow_text
from tests.corpus.patterns import all_patterns
from tests.runtime import test_connection as connections
from tests.runtime import test_temporal_binary as programs
from tests.standin import test_server as standins
from tests.unit.contract import test_ceilings as inline_teams
from tests.unit.run.test_waits import shown
from tests.workflow.runs import Lab

Patch = pytest.MonkeyPatch


class Guard(NamedTuple):
    """A guard: how it is taken away, and the case that then fails."""

    name: str
    drop: Callable[[Patch], None]
    case: Callable[..., Any]
    arguments: dict[str, Any] = {}


def gone(target: object, name: str, replacement: Any) -> Callable[[Patch], None]:
    """Takes a guard away by putting something harmless in its place."""
    return lambda patch: patch.setattr(target, name, replacement)


# --- cases without a run ----------------------------------------------------------------------------


def no_pattern_of_prompts_outgrows_its_text() -> None:
    found = [one for one in all_patterns() if one.name.startswith("activities.prompts.")]
    assert found
    assert [one.name for one in found if slow_text(one)] == []


def no_payload_without_a_type_raises() -> None:
    for odd in raw_inputs.UNDECODABLE.values():
        try:
            (value,) = data_converter.payload_converter.from_payloads([odd])
        except Exception as error:
            raise AssertionError(odd) from error
        assert isinstance(value, Undecodable)


def no_request_is_nested_too_deeply() -> None:
    schema: dict[str, Any] = {}
    for _ in range(150):
        schema = {"not": schema}
    with pytest.raises(SupervisionError, match="nested too deeply: at most"):
        parse_request({"goal": "Weigh the pears", "answer_schema": schema})


GRANT = RunGrant(
    run_id="own", workflow_id="own", depth=1, models=["m"], nested_teams=[], expires_at=datetime(9000, 1, 1, tzinfo=UTC)
)


def no_activity_takes_a_reference_of_another_run() -> None:
    assert guard.excess(GRANT, {"no": "references"}, datetime.now(UTC)) is None
    loot = Loot(run=RunRef(run_id="own", store_id=""), head="victim/x/1")
    assert guard.excess(GRANT, loot, datetime.now(UTC)) == "head belongs to another run"


async def no_activity_serves_a_foreign_workflow(settings: Settings) -> None:
    store = artifacts.open_store(settings.artifacts_url)
    ref = await Grants(store).write(GRANT)
    for workflow_id, served in (("own", True), ("own/t1/1", True), ("ownership", False), ("evil", False)):
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, workflow_id=workflow_id)
        loot = Loot(run=RunRef(run_id="own", grant_ref=ref), head="own/x/1")
        try:
            await guard.Guard(store).check(environment.info, loot)
        except guard.NotGranted:
            assert not served
        else:
            assert served


class Loot(Model):
    """The part of an activity's input that refers to content."""

    run: RunRef
    head: str


def no_call_is_run_with_other_arguments() -> None:
    shown_call = ToolCallRef(call_id="c", name="pay", arguments_sha256=arguments_sha256({"to": "Ann"}))
    block = {"type": "tool_use", "id": "c", "name": "pay", "input": {"to": "Ann"}}
    assert tool_calls._shown_block([block], shown_call) == block
    assert tool_calls._shown_block([{**block, "input": {"to": "Eve"}}], shown_call) is None


async def no_pattern_holds_the_event_loop() -> None:
    _, spent = await hostages.captive(answer_schema.problems({"pattern": "(a+)+$"}, "a" * 24 + "!", "run"))
    assert spent < hostages.LOOP_CPU


async def no_query_is_parsed_on_the_event_loop(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    store = await tables_of(tmp_path / "t.csv")
    _, spent = await hostages.captive(store.query("SELECT * FROM t" + " JOIN t" * 16))
    store.close()
    assert spent < hostages.LOOP_CPU


def no_program_of_other_sources_is_kept(tmp_path: Path, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        programs.fake_go(programs.bare_machine(tmp_path, patch), sources="")
        with pytest.raises(TemporalNotFound):
            find_temporal()


def no_strangers_server_is_taken(tmp_path: Path, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        connections.test_a_strangers_server_is_not_taken_by_default(patch, tmp_path)


def no_request_is_above_a_ceiling() -> None:
    with pytest.raises(SupervisionError):
        Ceilings(tokens=1000).check(RunRequest(goal="g", budget={"tokens": 2000}))


def no_goal_is_markup() -> None:
    assert r"\[Pay\](http://evil)" in shown(goal="[Pay](http://evil)")


# --- what stands in place of a guard ----------------------------------------------------------------


async def inline(function: Callable[..., Any], *arguments: Any, owner: str) -> Any:
    """Runs a bounded function without its bounds."""
    return function(*arguments)


async def parsed_here(self: TableStore, sql: str, run_id: str = "") -> dict[str, Any]:
    """Parses a query in this process."""
    sqlglot.parse(sql, read="duckdb")
    return {"columns": [], "rows": [], "more": False, "read": []}


def following(patch: Patch) -> None:
    """Lets the SDK's client follow redirects."""
    plain: Any = anthropic.DefaultAioHttpClient.send

    async def send(self: Any, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response: httpx2.Response = await plain(self, request, **{**options, "follow_redirects": True})
        return response

    patch.setattr(anthropic.DefaultAioHttpClient, "send", send)


def unhashed(patch: Patch) -> None:
    """Takes what the store gives for what was put in."""
    patch.setattr(artifacts, "digest_of", lambda key: None)


def cubic(text: str) -> object:
    """Tries each beginning with each division."""
    return re.search(r"\{*\{*x", text)


GUARDS = [
    Guard(
        "raw payloads",
        gone(BoundedPayloadConverter, "from_payloads", PydanticPayloadConverter.from_payloads),
        no_payload_without_a_type_raises,
    ),
    Guard("depth of requests", gone(request, "depth_exceeds", lambda *_: False), no_request_is_nested_too_deeply),
    Guard("caller", gone(RunGrant, "covers", lambda *_: True), no_activity_serves_a_foreign_workflow),
    Guard("grant", gone(guard, "references", lambda *_: []), no_activity_takes_a_reference_of_another_run),
    Guard("hash before the effect", gone(tool_calls, "arguments_sha256", lambda _: arguments_sha256({"to": "Ann"})),
          no_call_is_run_with_other_arguments),
    Guard("tags", gone(agent_prompts, "plain", str.strip), texts.test_a_finding_cannot_speak_for_another_one),
    Guard("attributes", gone(agent_prompts, "_attribute", str), texts.test_a_reason_stays_in_its_attribute),
    Guard("SQL in a child process", gone(TableStore, "query", parsed_here), no_query_is_parsed_on_the_event_loop),
    Guard("schemas in a child process", gone(answer_schema, "run_bounded", inline), no_pattern_holds_the_event_loop),
    Guard("linear parsers",
          lambda patch: patch.setitem(growth.PARSERS, "first_json", growth.Parser(cubic, growth.units("{"), 1100)),
          growth.test_twice_the_text_takes_at_most_three_times_as_long, {"name": "first_json"}),
    Guard("linear patterns", gone(agent_prompts, "_OWN_TAG", re.compile(r"<(?=\s*/?\s*goal\b)")),
          no_pattern_of_prompts_outgrows_its_text),
    Guard("redirects", following, endpoint.test_a_redirect_is_a_bad_response_and_is_not_followed, {"status": 302}),
    Guard("usage", gone(stream, "_tokens", lambda value, _: value or 0), endpoint.test_usage_that_cannot_be_is_refused,
          {"field": "input_tokens", "value": 10**9 + 1}),
    Guard("depth of replies", gone(stream, "depth_exceeds", lambda *_: False),
          endpoint.test_an_answer_that_could_not_be_read_again_is_refused, {"value": endpoint.UNREADABLE["too deep"]}),
    Guard("names of replies", gone(limits, "MODEL_NAME_BYTES", 10**9),
          endpoint.test_names_of_any_length_are_refused, {"field": "id"}),
    Guard("key in replies", gone(Credentials, "withheld", lambda _, text: text),
          endpoint.test_a_reply_is_kept_without_the_key, {"echo": endpoint.KEY}),
    Guard("ceilings", gone(Ceilings, "lowered", lambda _, request: request), no_request_is_above_a_ceiling),
    Guard("tools of one team alone", gone(toolbox, "replace", lambda tool, **_: tool),
          teams.test_a_tool_for_its_own_team_is_not_given_to_inline_teams, {"wanted": "calculate", "own": False}),
    Guard("combined tools", gone(Ceilings, "check_inline_team", lambda *_: None),
          inline_teams.test_inline_teams_take_tools_as_the_operator_allows,
          {"rule": "same-team", "sources": ["a", "b"], "allowed": False}),
    Guard("control of the stand-in", gone(BrainServer, "_controlled", lambda _, handler: handler),
          standins.test_a_server_without_a_token_is_controlled_by_nobody, {"token": "Bearer "}),
    Guard("sources of the server", gone(temporal_binary, "is_of_pinned_sources", lambda *_: True),
          no_program_of_other_sources_is_kept),
    Guard("the server by default", gone(connection, "_default_address", lambda: connection.DEFAULT_ADDRESS),
          no_strangers_server_is_taken),
    Guard("markup in the Web UI", gone(web_details, "_literal", lambda text, limit: text[:limit]), no_goal_is_markup),
]  # fmt: skip
GUARDS_OF_RUNS = [
    Guard("ids of calls", gone(journalled_call, "_distinct", lambda message: message),
          texts.test_calls_that_share_an_id_are_no_answer),
    Guard("hash of results", unhashed, principals.test_a_rewritten_result_is_noticed),
]  # fmt: skip


async def run_case(guarded: Guard, fixtures: dict[str, Any]) -> None:
    """Runs a case with those of the fixtures that it takes."""
    names = inspect.signature(guarded.case).parameters
    arguments = {**{name: fixtures[name] for name in names if name in fixtures}, **guarded.arguments}
    outcome = guarded.case(**arguments)
    if inspect.isawaitable(outcome):
        await outcome


@contextlib.contextmanager
def red() -> Iterator[None]:
    """Passes if the block fails as a test fails."""
    try:
        yield
    except (AssertionError, pytest.fail.Exception, RPCError, WorkflowQueryFailedError):
        return
    raise AssertionError("the case is green without its guard")


async def assert_red_without(guarded: Guard, patching: Patch, **fixtures: Any) -> None:
    """Checks that a case fails without its guard, and passes with it; cases of other modules are tests of their own."""
    with patching.context() as patch:
        guarded.drop(patch)
        with red():
            await run_case(guarded, fixtures)
    if guarded.case.__module__ == __name__:
        await run_case(guarded, fixtures)


@pytest.mark.parametrize("guarded", GUARDS, ids=lambda guarded: guarded.name)
async def test_a_case_is_red_without_its_guard_and_green_with_it(
    guarded: Guard, settings: Settings, tmp_path: Path, monkeypatch: Patch
) -> None:
    await assert_red_without(guarded, monkeypatch, settings=settings, tmp_path=tmp_path, monkeypatch=monkeypatch)


@pytest.mark.parametrize("guarded", GUARDS_OF_RUNS, ids=lambda guarded: guarded.name)
async def test_a_case_with_a_run_is_red_without_its_guard(
    guarded: Guard, lab: Lab, settings: Settings, victim: RunResult, monkeypatch: Patch
) -> None:
    await assert_red_without(guarded, monkeypatch, lab=lab, settings=settings, victim=victim)
    with contextlib.suppress(RPCError):  # the case may have stopped before its run did
        await lab.client.get_workflow_handle(lab.run_id).terminate()
