"""Teams and the small values of the contract: what is wrong with one is said in words its author can act on."""

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.base import Duration, depth_exceeds
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding, Labels
from temporal_supervisor.supervision.contract.model_choice import MODEL_CHAIN, Efforts, ModelChain, chain_of
from temporal_supervisor.supervision.contract.plan import Range, Shares
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.request import Budget, describe_errors
from temporal_supervisor.supervision.contract.result import Gap, Problem, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import Flags, Wait
from temporal_supervisor.supervision.contract.team import (
    McpServer,
    McpTool,
    Role,
    RoleCard,
    Team,
    TeamCard,
    ToolCard,
    is_name,
    with_secrets,
)
from temporal_supervisor.supervision.contract.updates import (
    DecidePlan,
    ExtendLimits,
    NewBudget,
    Resume,
    Steer,
    Update,
    read_update,
)
from temporal_supervisor.supervision.contract.usage import Usage
from tests.unit.shapes import FINDING, WORDS, plan, subtask

ROLE = {"name": "analyst", "description": "counts", "system_prompt": "Count."}
ROW = {"type": "object", "properties": {"tree": {}, "kg": {}}}
URL = "https://a.example"
NAMES = "must be 1 to 48 lower-case letters, digits, hyphens or underscores, a letter first"


def team(**changes: Any) -> dict[str, Any]:
    return {"name": "shop", "generalist": "analyst", "roles": [ROLE], **changes}


def role(name: str = "analyst", *tools: str, **more: Any) -> dict[str, Any]:
    return {**ROLE, "name": name, "tools": list(tools), **more}


def with_server(**server: Any) -> dict[str, Any]:
    return {"mcp_servers": {"store": server}}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "My Shop"}, f"name: {NAMES}"),
        ({"roles": []}, "roles: List should have at least 1 item after validation, not 0"),
        ({"roles": [ROLE, ROLE]}, "roles: role names must differ: analyst"),
        ({"generalist": "analist"}, "generalist: 'analist' is not one of the roles: analyst, did you mean"),
        ({"tools": [{"name": "a b", "uses": "sql"}]}, "tools.0.name: must be 1 to 64 letters, digits, hyphens or "),
        ({"tools": [{"name": "q", "uses": "sql"}] * 2}, "tools: tool names must differ: q"),
        (
            {"roles": [role("analyst", "sql", "web"), role("writer", "sql", "web")]},
            "roles: roles share the tools sql, web: give each tool to one role, or set share_tools = true",
        ),
        ({"roles": [{**ROLE, "fallback": "analyst"}]}, "roles: role 'analyst' is its own fallback: name another role"),
        ({"roles": [{**ROLE, "backup": "boss"}]}, "roles: role 'analyst': backup 'boss' is not one of the roles"),
        ({"roles": [{**ROLE, "fallback": "boss"}]}, "roles: role 'analyst': fallback 'boss' is not one of the roles"),
        ({"roles": [role(pool="Far")]}, "roles.0.pool: must be 1 to 48 lower-case letters"),
        ({"routes": [{"pattern": "refund", "role": "clerk"}]}, "routes: 'clerk' is not one of the roles"),
        ({"roles": [role(system_prompt=" ")]}, "roles.0: a role needs a system_prompt"),
        ({"roles": [role("analyst", "sql", team="lab")]}, "roles.0: a role that is a team or a person has no"),
        ({"roles": [role(team="lab", ask=True)]}, "roles.0: a role that is a team or a person has no"),
        ({"roles": [role(team="lab", output_schema=ROW)]}, "roles.0: a role that is a team or a person has no"),
        ({"roles": [role(output_schema={**ROW, "type": "array"})]}, "roles.0: output_schema: "),
        (
            {"roles": [role("analyst", "sql", person={"who": "Ann"})]},
            "roles.0: a role that is a team or a person has no",
        ),
        (with_server(), "mcp_servers.store: give it either a command or a url"),
        (with_server(command="x", url=URL), "mcp_servers.store: give it either a command or a url"),
        (with_server(command="x", env={"TOKEN": "t"}), "mcp_servers.store.env: write the names alone, "),
        (with_server(command="x", headers={"X": "TOKEN"}), "mcp_servers.store: headers belong to a url"),
        (with_server(url=URL, args=["y"]), "mcp_servers.store: headers belong to a url"),
        (with_server(url="http://a.example", headers={"X": "T"}), "mcp_servers.store: url: plain http to 'a.example'"),
        (with_server(url=URL, headers={"X": "Bearer abc"}), "mcp_servers.store: headers: 'Bearer abc' names no secret"),
    ],
)
def test_a_bad_team_is_told_what_is_wrong(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Team.model_validate(team(**changes))
    assert describe_errors(caught.value, root="team").startswith(complaint)


def test_what_teams_and_roles_may_have_is_taken() -> None:
    shared = team(roles=[role("analyst", "sql"), role("writer", "sql")], share_tools=True)
    assert Team.model_validate(shared).share_tools
    assert Team.model_validate(team(roles=[role("analyst", "sql", "sql")])).role("analyst").tools == ["sql", "sql"]
    made = Team.model_validate(
        team(routes=[{"pattern": "refund", "role": "analyst"}], tools=[{"name": "q", "uses": "x"}])
    )
    assert (made.routes[0].role, made.tools[0].name) == ("analyst", "q")
    assert Team.model_validate({**shared, "toolbox": ["web", "sql"]}).named_tools == ["sql", "web"]
    assert Role(name="r", description="d", team="lab").team == "lab"
    assert (Role(**role()).columns, Role(**role(output_schema=ROW)).columns) == ([], ["tree", "kg"])


def test_optional_tools_are_left_out_where_the_models_of_a_role_do_not_run_them() -> None:
    tools = [{"name": name, "uses": "x", "optional": name != "sql"} for name in ("web", "fetch", "sql")]
    roles = [role("seeker", "web", "fetch"), role("analyst", "sql"), role("both", "sql", "web", model="runs")]
    given = Team.model_validate(team(tools=tools, roles=roles, generalist="seeker", share_tools=True))
    served = given.as_served(["other"], lambda model: model == "runs")
    kept = {each.name: (each.tools, each.grounding) for each in served.roles}
    assert kept == {"seeker": ([], "knowledge"), "analyst": (["sql"], "tools"), "both": (["sql", "web"], "tools")}
    assert given.as_served(["runs"], lambda model: model == "runs") == given


@pytest.mark.parametrize(
    ("text", "good"),
    [("a", True), ("a-b_9", True), ("a" * 48, True), ("a" * 49, False), ("", False), ("A", False), ("9a", False)]
    + [("a\n", False), ("../a", False), ("é", False)],
)
def test_names_are_plain(text: str, good: bool) -> None:
    assert is_name(text) == good


def test_a_server_of_tools_names_its_secrets_and_gives_its_tools_names() -> None:
    local = McpServer(command="x", args=["y"], env=["A"], tools={"get.price": McpTool(effects="read")})
    remote = McpServer(url=URL, headers={"X": "Bearer ${B}", "Y": "C"})
    assert (local.secrets, remote.secrets) == (["A"], ["B", "C"])
    assert [with_secrets(text, {"B": "b", "C": "c"}) for text in remote.headers.values()] == ["Bearer b", "c"]
    assert Team.model_validate(team(mcp_servers={"shop": local})).server_tools == ["shop__get_price"]
    assert local.tools["get.price"].as_tool_fields == {"reads": "private", "returns": "untrusted", "effects": "read"}


def test_a_card_of_a_role_says_what_it_reads_which_models_take_over_and_how_long_a_tool_may_take() -> None:
    reads, writes = ToolCard(name="read", reads_attachments=True), ToolCard(name="write", timeout_seconds=2)
    plain, able = RoleCard(name="a", model="m", tools=[writes]), RoleCard(name="b", model="m", tools=[writes, reads])
    unit = RoleCard(name="c", model="m", fallback_models=["n", "o"], team="shop")
    assert [card.reads_attachments for card in (plain, able, unit)] == [False, True, True]
    assert (plain.models, unit.models) == (["m"], ["m", "n", "o"])
    assert (plain.tool("write"), plain.tool("finish")) == (writes, ToolCard(name="finish"))
    assert (writes.timeout, reads.timeout) == (timedelta(seconds=2), limits.TOOL_TIMEOUT)
    crew = TeamCard(name="shop", generalist="b", roles=[plain, able])
    assert [crew.role(name) for name in ("a", "b", "stranger", "")] == [plain, able, able, able]
    assert [crew.find(name) for name in ("a", "stranger", None)] == [plain, None, None]
    crews = TeamCard(name="shop", generalist="c", roles=[plain, unit, unit.model_copy(update={"name": "d"})])
    assert [[card.name for card in crews.assignable(nesting=nesting).roles] for nesting in (True, False)] == [
        ["a", "c", "d"],
        ["a", "c"],
    ]


# --- small values ------------------------------------------------------------------------------------


DURATIONS: TypeAdapter[timedelta] = TypeAdapter(Duration)
CHAINS: TypeAdapter[list[str]] = TypeAdapter(ModelChain)
MODELS = [f"model-{number}" for number in range(MODEL_CHAIN)]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        *((DURATIONS, each, timedelta(seconds=90)) for each in ("90s", "PT90S", 90)),
        *((DURATIONS, each, timedelta(days=7)) for each in ("7d", "1w", " 168 H ", "10080m")),
        *((DURATIONS, each, None) for each in ("5 apples", "m", "100000000w")),
        *((CHAINS, each, ["a"]) for each in ("a", ["a"])),
        *((CHAINS, each, each) for each in (["b", "a"], MODELS)),
        *((CHAINS, each, None) for each in ([], ["a", "b", "a"], [*MODELS, "one more"], "", None, [1])),
    ],
    ids=str,
)
def test_durations_and_fallback_chains_are_read_or_refused(kind: TypeAdapter[Any], written: object, value: Any) -> None:
    with nullcontext() if value else pytest.raises(ValidationError):
        assert kind.validate_python(written) == value


@pytest.mark.parametrize(("written", "why"), [(" a,b , c", ""), ("a, a", "differ"), ("a,", "name a model")])
def test_a_setting_names_different_models_by_commas(written: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) if why else nullcontext():
        assert chain_of(written) == ["a", "b", "c"]


def test_an_effort_is_that_of_every_attempt_or_of_the_first_and_the_later_ones() -> None:
    for written, first, later in (("low", "low", "low"), ({"first": "low", "later": "high"}, "low", "high")):
        efforts = Efforts.model_validate(written)
        assert [efforts.of_attempt(number) for number in (1, 2, 3)] == [first, later, later]


def nested(levels: int, as_list: bool) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value] if as_list else {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "exceeds"),
    [
        *((nested(levels, as_list), levels > 3) for levels in (0, 2, 3, 4, 5000) for as_list in (True, False)),
        ([1, {"a": [[1]]}, 2], True),
        ([1, {"a": [1]}, [], {}], False),
        ([[[]]], False),
    ],
)
def test_the_deepest_branch_decides_if_a_value_is_too_deep(value: Any, exceeds: bool) -> None:
    assert depth_exceeds(value, 3) == exceeds


# --- plans, results, updates -------------------------------------------------------------------------


def test_a_plan_is_folded_to_what_it_names() -> None:
    template = subtask("t2", "t1", for_each="items:t1")
    item = subtask("t2.1", "t1", item="oak")
    shape = plan(subtask("t1", for_each="rows:trees"), template, item, subtask("t3", "t2.1", "t2.2", "t1"))
    assert [named.id for named in shape.named] == ["t1", "t2", "t3"]
    assert shape.subtask("t2") is template
    with pytest.raises(KeyError, match="t9"):
        shape.subtask("t9")
    assert shape.folded().subtasks == [*shape.subtasks[:2], subtask("t3", "t2", "t1")]
    assert [planned.names_items_of for planned in shape.subtasks] == [None, "t1", None, None]
    assert (item.whole, template.whole) == (f"oak: {WORDS}", WORDS)
    shape.subtasks[3].replaces = ["t1"]
    assert shape.importance == {"t2": "required", "t3": "required"}
    assert [SubtaskReport(id=planned.id).template for planned in (template, item)] == [None, "t2"]


def test_an_estimate_is_said_in_calls_and_in_dollars_where_they_are_known() -> None:
    calls = Range(low=1, high=2)
    assert [number in calls for number in (0.9, 1, 2, 2.1)] == [False, True, True, False]
    assert calls.times(3, 5) == Range(low=3, high=10)
    share = Shares(id="t1", calls=calls, tokens=calls, seconds=calls)
    assert share.line == "1-2 calls"
    assert share.model_copy(update={"usd": calls}).line == "1-2 calls, $1.00-2.00"


def test_labels_add_up_and_the_first_untrusted_text_stands() -> None:
    page, private = Labels(untrusted="a page in t1"), Labels(private=True)
    findings = [FINDING.model_copy(update={"labels": labels}) for labels in (page, Labels(untrusted="mail"), private)]
    assert Labels.of([FINDING, None, *findings]) == page | private == Labels(private=True, untrusted="a page in t1")
    assert (private.path, page.path) == ("", "after reading a page in t1")
    assert (page | private).path == f"{page.path}, and private data"


def test_counts_add_up_and_ended_are_those_in_a_final_state() -> None:
    counts = Counts(total=77_777, waiting=70_000, running=7_000, completed=1, failed=20, skipped=300, cancelled=4_000)
    assert counts.ended == 4321
    assert [Counts(total=3, completed=2, partial=part).items_line for part in (0, 1)] == ["2/3", "2/3, 1 in part"]
    assert Counts(total=2, completed=1, failed=1) + Counts(total=3, failed=2) == Counts(total=5, completed=1, failed=3)


@pytest.mark.parametrize(("more", "truncated", "is_lean"), [(0, True, False), (1, False, False), (1, True, True)])
def test_unset_fields_are_left_out_of_a_long_list_in_a_truncated_result_only(
    more: int, truncated: bool, is_lean: bool
) -> None:
    reports = [SubtaskReport(id=f"t{number}") for number in range(limits.STATUS_PAGE + more)]
    dumped = RunResult(subtasks=reports, truncated=truncated).model_dump(mode="json")["subtasks"][0]
    assert dumped == ({"id": "t0", "state": "waiting"} if is_lean else reports[0].model_dump(mode="json"))


def test_the_tables_of_a_result_are_those_that_stand_for_templates() -> None:
    table, chart = (
        ArtifactRef(name=name, media_type="text/csv", bytes=1, ref=name, subtask_id=name) for name in ("t1", "t2")
    )
    reports = [SubtaskReport(id="t1", counts=Counts(total=2)), SubtaskReport(id="t2")]
    assert RunResult(subtasks=reports, artifacts=[table, chart]).tables == [table]


def test_a_wait_is_shown_by_its_path_from_the_run_above() -> None:
    below = Wait(id="t3/1/t2/1", subtask_id="t2", kind="question", workflow_id="w", since="")
    own = Wait(id="t3/1/synthesis", kind="provider", workflow_id="w", since="")
    assert [(w.id, w.subtask_id) for w in (below.as_nested_in("t3"), own.as_nested_in("t3"))] == [
        ("t3/1/t2/1", "t3/t2"),
        ("t3/1/synthesis", "t3"),
    ]
    assert [(w.subject, w.for_person) for w in (below, own)] == [("t2", True), ("t3/1/synthesis", False)]
    assert [w.for_decision for w in (below, own)] == [True, False]


def test_the_hash_of_a_wait_is_of_what_it_shows_and_where_that_came_from() -> None:
    wait = Wait(id="t2/1:1.0", kind="tool", workflow_id="w", prompt_preview="pay 100", since="now")
    bound = wait.bound_to("head", "0")
    later = {"since": "later", "expires_at": "tomorrow", "subtask_id": "t3/t2"}
    assert wait.model_copy(update=later).bound_to("head", "0").sha256 == bound.sha256
    others = [
        wait.bound_to("head", "1"),
        wait.bound_to("head0"),
        *(wait.model_copy(update={name: "x"}).bound_to("head", "0") for name in ("id", "prompt_preview", "after")),
        wait.model_copy(update={"choices": ["deny"]}).bound_to("head", "0"),
        wait.model_copy(update={"arguments_sha256": "a" * 64}).bound_to("head", "0"),
        wait.model_copy(update={"workflow_id": "other"}).bound_to("head", "0"),
        wait.model_copy(update={"content_ref": "other"}).bound_to("head", "0"),
    ]
    assert len({bound.sha256, *(other.sha256 for other in others)}) == 1 + len(others)


def test_of_several_conditions_the_most_urgent_is_shown() -> None:
    paused, provider, person = Flags(paused=True), Flags(paused=True, waiting_provider=True), Flags(waiting_person=True)
    both = provider.model_copy(update={"waiting_person": True})
    shown = [flags.most_urgent for flags in (Flags(), paused, provider, person, both)]
    assert shown == [None, "paused", "provider", "person", "person"]


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        (DecidePlan, {"revision": 1, "decision": "approve"}, ""),
        (DecidePlan, {"revision": 1, "decision": "approve", "plan": {}}, "a plan belongs to"),
        (DecidePlan, {"revision": 1, "decision": "edit", "plan": {"goal": "g"}}, ""),
        (DecidePlan, {"revision": 1, "decision": "edit", "plan": {"gaol": "g"}}, "gaol"),
        (DecidePlan, {"revision": 1, "decision": "change", "comment": "less"}, ""),
        (DecidePlan, {"revision": 1, "decision": "change"}, "needs a comment"),
        (Steer, {"text": "x" * 2048}, ""),
        (Steer, {"text": "x" * 2049}, "text: has 2049 bytes, at most 2048"),
        (Steer, {"text": " \x1b"}, "text: is empty"),
        (Resume, {}, ""),
        (Resume, None, ""),
        (ExtendLimits, {"colour": "red"}, "colour: unknown field"),
        (ExtendLimits, [], "update: "),
        (ExtendLimits, {"budget": {"tokens": 10**400}}, "budget.tokens: "),
    ],
)
def test_an_update_is_complete_and_short_or_says_what_is_wrong(kind: type[Update], fields: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) if complaint else nullcontext():
        assert read_update(kind, fields).model_dump(exclude_unset=True) == (fields or {})


def test_an_update_has_the_name_of_its_type() -> None:
    assert [update.name() for update in (Steer, ExtendLimits)] == ["steer", "extend_limits"]


def test_a_new_total_leaves_the_other_one_alone() -> None:
    news = NewBudget(tokens=7), NewBudget(usd=2.0)
    totals = [(budget.tokens, budget.usd) for budget in (new.applied_to(Budget(tokens=5, usd=1.0)) for new in news)]
    assert totals == [(7, 1.0), (5, 2.0)]


counts = st.integers(0, 10**9)
COUNTED = Usage.model_fields.keys() - {"usd"}
usages = st.builds(Usage, **dict.fromkeys(COUNTED, counts), usd=st.none() | st.floats(0, 1e6))


@given(st.lists(usages, max_size=6))
def test_a_sum_adds_every_field_and_a_difference_is_never_below_zero(parts: list[Usage]) -> None:
    total = sum(parts, start=Usage())
    for name in COUNTED:
        assert getattr(total, name) == sum(getattr(part, name) for part in parts)
    assert total.tokens == sum(part.tokens for part in parts)
    known = [part.usd for part in parts if part.usd is not None]
    assert total.usd == (pytest.approx(sum(known)) if len(known) == len(parts) else None)
    for part in parts:
        assert part - total == Usage(usd=None if total.usd is None else 0.0)
        rest = total - part
        assert (rest.usd is None) == (total.usd is None)
        assert (rest + part).model_dump(exclude={"usd"}) == total.model_dump(exclude={"usd"})


def test_tokens_are_counted_and_said() -> None:
    used = Usage(input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000)
    assert (used.tokens, used.prompt_tokens, Usage().cached_share) == (4321, 4301, 0.0)
    assert used.tokens_line() == "4,301 input tokens (7% from the cache), 20 output tokens"
    assert Usage(input_tokens=1500, output_tokens=2).tokens_line() == "1,500 input tokens, 2 output tokens"


def test_texts_of_others_are_cut_by_the_type_of_their_field() -> None:
    long = "x" * 5000
    gap = Gap(subtask_id="t1", description=f"a\n{long}", reason=long)
    finding = Finding(summary=long, text_ref="r", limitations=[long])
    problem = Problem(type=ErrorKind.TIMEOUT, message=long)
    texts = [gap.description, *finding.limitations, gap.reason, problem.message, finding.summary]
    assert [len(text.encode()) for text in texts] == [300, 300, 600, 1024, 2048]
    assert gap.description.startswith("a x")
