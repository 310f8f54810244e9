"""Recipes: each part changed alone makes another one, and nothing else does."""

from collections.abc import Callable
from typing import Any

import pytest

from temporal_supervisor.supervision.contract.finding import Evidence, Finding, FindingRecord
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.result import Reused, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.reuse.matching import (
    EarlierOffer,
    chosen,
    offered,
    saved_usage,
    with_data,
)
from temporal_supervisor.supervision.reuse.recipes import (
    RoleState,
    RunParts,
    ToolState,
    asks_for_today,
    recipes,
    why_never,
)
from tests.unit.reuse.workflow_shapes import SHAPES, below

QUERY = ToolState(sha256="query", stays="always", reads="named")
SEARCH = ToolState(sha256="search", stays="always", reads="all")
SUM = ToolState(sha256="sum", stays="always")
PAGE = ToolState(sha256="page", stays="never")
DAILY = ToolState(sha256="rates", stays="day")
FILES = {"a.csv": "1", "b.csv": "2", "data.toml": "3"}


def parts(**changes: Any) -> RunParts:
    roles = {
        "finder": RoleState(prompt="Find.", models=["small"], tools={"query": QUERY, "sum": SUM}),
        "writer": RoleState(prompt="Write.", models=["small"], tools={"sum": SUM}),
        "surfer": RoleState(prompt="Surf.", models=["small"], tools={"page": PAGE}),
        "clerk": RoleState(is_agent=False),
        "teller": RoleState(prompt="Tell.", models=["small"], tools={"rates": DAILY}),
    }
    usual: dict[str, Any] = {"roles": roles, "generalist": "finder", "attachments": {"note": "n"}}
    return RunParts(**{**usual, **changes})


def with_role(**changes: Any) -> RunParts:
    usual = parts()
    finder = usual.roles["finder"].model_copy(update=changes)
    return usual.model_copy(update={"roles": {**usual.roles, "finder": finder}})


FIRST = Subtask(id="t1", description="Count the pears", role="finder")
SECOND = Subtask(id="t2", description="Weigh the pears", role="finder", depends_on=["t1"], attachments=["note"])
PLAN = Plan(subtasks=[FIRST, SECOND])


def recipe(plan: Plan = PLAN, run: RunParts | None = None, of: str = "t2") -> str:
    return recipes(plan, run or parts(), {})[of]


def changed(**fields: Any) -> Plan:
    return Plan(subtasks=[FIRST, SECOND.model_copy(update=fields)])


OTHER_TOOL = {"query": QUERY.model_copy(update={"sha256": "query, version 2"}), "sum": SUM}
MISSES: dict[str, Callable[[], str]] = {
    "description": lambda: recipe(changed(description="Weigh the plums")),
    "item": lambda: recipe(changed(item="tree 4")),
    "role": lambda: recipe(changed(role="writer")),
    "candidates": lambda: recipe(changed(candidates=2)),
    "prompt of the role": lambda: recipe(run=with_role(prompt="Find it.")),
    "form of the role": lambda: recipe(run=with_role(output_schema={"type": "object"})),
    "grounding": lambda: recipe(run=with_role(grounding="knowledge")),
    "questions to people": lambda: recipe(run=with_role(asks=True)),
    "model": lambda: recipe(run=with_role(models=["large"])),
    "effort of the role": lambda: recipe(run=with_role(efforts={"first": "high"})),
    "effort of the run": lambda: recipe(run=parts(effort="high")),
    "stand-in": lambda: recipe(run=parts(extracts=True)),
    "data of others": lambda: recipe(run=parts(from_others=True)),
    "another tool": lambda: recipe(run=with_role(tools={"sum": SUM})),
    "version of a tool": lambda: recipe(run=with_role(tools=OTHER_TOOL)),
    "content of an attachment": lambda: recipe(run=parts(attachments={"note": "other"})),
    "attachment": lambda: recipe(changed(attachments=[])),
    "what it depends on": lambda: recipe(changed(depends_on=[])),
    "recipe of what it depends on": lambda: recipe(
        Plan(subtasks=[FIRST.model_copy(update={"description": "Count the plums"}), SECOND])
    ),
    "items that it names": lambda: recipe(
        Plan(subtasks=[FIRST, SECOND, Subtask(id="t3", description="Each", for_each="items:t2")])
    ),
}
HITS: dict[str, Callable[[], str]] = {
    "ids": lambda: recipe(
        Plan(
            subtasks=[
                FIRST.model_copy(update={"id": "a"}),
                SECOND.model_copy(update={"id": "b", "depends_on": ["a"]}),
            ]
        ),
        of="b",
    ),
    "importance": lambda: recipe(changed(importance="optional")),
    "weight": lambda: recipe(changed(weight=0.9)),
    "reasoning": lambda: recipe(changed(reasoning="it is wanted")),
    "time": lambda: recipe(changed(timeout_seconds=5.0)),
    "estimate": lambda: recipe(changed(estimated_tokens=900)),
    "other subtasks": lambda: recipe(Plan(subtasks=[FIRST, SECOND, Subtask(id="t3", description="Taste the pears")])),
    "goal": lambda: recipe(PLAN.model_copy(update={"goal": "Everything on pears"})),
    "other roles": lambda: recipe(run=parts(roles={"finder": parts().roles["finder"]})),
    "other attachments": lambda: recipe(run=parts(attachments={"note": "n", "more": "m"})),
    "day": lambda: recipe(run=parts(day="2026-11-28")),
    "files that it may not have read": lambda: recipe(run=parts(files={"c.csv": "9"})),
}


@pytest.mark.parametrize("part", MISSES)
def test_each_part_changed_alone_is_another_recipe(part: str) -> None:
    assert MISSES[part]() != recipe()


@pytest.mark.parametrize("part", HITS)
def test_nothing_else_changes_it(part: str) -> None:
    assert HITS[part]() == recipe()


def test_what_people_decide_about_is_of_a_role_that_has_no_recipe() -> None:
    plan = Plan(
        subtasks=[
            Subtask(id="t1", description="Read the page", role="surfer"),
            Subtask(id="t2", description="Decide on it", role="clerk"),
            Subtask(id="t3", description="Sum it up", role="writer", depends_on=["t1"]),
            Subtask(id="t4", description="Sum all up", role="writer"),
        ]
    )
    assert recipes(plan, parts(), {}).keys() == {"t4"}
    reasons = [why_never(subtask, parts()) for subtask in plan.subtasks]
    assert reasons[0] == "page has effects, or reads what changes"
    assert reasons[1] == "its role is a person, or a team that is not known"
    assert reasons[2:] == [None, None]


def test_a_tool_of_the_day_makes_a_recipe_of_that_day() -> None:
    plan = Plan(subtasks=[Subtask(id="t1", description="Tell the rate", role="teller")])
    monday, tuesday = (parts(day=f"2026-11-{day}") for day in (23, 24))
    assert recipe(plan, monday, "t1") == recipe(plan, monday, "t1")
    assert recipe(plan, monday, "t1") != recipe(plan, tuesday, "t1")


def test_an_item_is_made_from_its_own_file() -> None:
    def of(files: dict[str, str], item: str) -> str:
        template = Subtask(id="t1", description="Read the lease", for_each="files:*.pdf")
        one = Subtask(id="t1.7", description="Read the lease", role="finder", item=item)
        return recipe(Plan(subtasks=[template, one]), parts(files=files), "t1.7")

    known = of({"a.pdf": "1", "b.pdf": "2"}, "a.pdf, table rents")
    assert known == of({"a.pdf": "1", "b.pdf": "other", "c.pdf": "new"}, "a.pdf, table rents")
    assert known != of({"a.pdf": "other", "b.pdf": "2"}, "a.pdf, table rents")


def test_who_of_several_able_roles_did_it_is_no_part() -> None:
    able = {name: RoleState(prompt=name, capabilities=["count"]) for name in ("one", "two")}
    plan = Plan(subtasks=[Subtask(id="t1", description="Count", role="auto", capabilities=["count"])])
    assert recipe(plan, parts(roles=able), "t1") == recipe(plan, parts(roles=able), "t1")
    assert recipe(plan, parts(roles={"one": able["one"]}), "t1") != recipe(plan, parts(roles=able), "t1")


# --- which findings are taken ------------------------------------------------------------------------


def report(subtask_id: str, **more: Any) -> SubtaskReport:
    finding = Finding(summary="found", text_ref=f"run/outputs/{subtask_id}")
    usual: dict[str, Any] = {
        "role": "finder",
        "state": "completed",
        "finding": finding,
        "usage": Usage(model_calls=2),
    }
    return SubtaskReport(id=subtask_id, **{**usual, **more})


def offers_of(
    plan: Plan, reports: list[SubtaskReport], run: RunParts | None = None, run_id: str = "run"
) -> list[EarlierOffer]:
    digests = {each.id: f"text of {each.id}" for each in reports if each.finding}
    found = recipes(plan, run or parts(), {})
    offers = offered(run_id, reports, plan, found, digests, run or parts())
    return [offer.model_copy(update={"files": {}}) for offer in offers]


def taken(plan: Plan, offers: list[EarlierOffer], run: RunParts | None = None) -> set[str]:
    return set(chosen(plan, recipes(plan, run or parts(), {}), offers, run or parts()))


def graph(shape: dict[str, list[str]], other: str = "") -> Plan:
    words = {step: f"Do {step}{' in another way' if step == other else ''}" for step in shape}
    subtasks = [
        Subtask(id=step, description=words[step], role="finder", depends_on=before) for step, before in shape.items()
    ]
    return Plan(subtasks=subtasks)


@pytest.mark.parametrize("name", SHAPES)
def test_one_step_changed_is_done_again_with_all_that_rests_on_it_and_nothing_else(name: str) -> None:
    shape = SHAPES[name]
    offers = offers_of(graph(shape), [report(step) for step in shape])
    assert taken(graph(shape), offers) == set(shape)
    for step in shape:
        assert taken(graph(shape, step), offers) == set(shape) - below(shape, step), step


def test_there_are_fifteen_shapes() -> None:
    assert len(SHAPES) == 15


def test_what_failed_or_rests_on_less_or_on_something_older_is_no_offer() -> None:
    shape = {"a": [], "b": ["a"], "c": ["b"]}
    whole = graph(shape)
    failed = offers_of(whole, [report("a", state="failed"), report("b"), report("c")])
    assert taken(whole, failed) == set()
    stale = offers_of(whole, [report("a"), report("b", stale=True), report("c")])
    assert taken(whole, stale) == {"a"}


def test_a_finding_is_not_taken_onto_another_one_of_the_same_recipe() -> None:
    """Of two runs of the same plan the first has lost its second part: that of the other rests on another text."""
    whole = graph({"a": [], "b": ["a"]})
    one = offers_of(whole, [report("a")], run_id="one")
    other = [
        offer.model_copy(update={"digest": "another text"}) if offer.report.id == "a" else offer
        for offer in offers_of(whole, [report("a"), report("b")], run_id="other")
    ]
    other = [offer.model_copy(update={"rests_on": "another"}) if offer.report.id == "b" else offer for offer in other]
    assert taken(whole, [*one, *other]) == {"a"}
    assert chosen(whole, recipes(whole, parts(), {}), [*one, *other], parts())["a"].run_id == "one"


def test_a_finding_is_taken_by_name_whatever_it_was_made_from() -> None:
    named = Subtask(id="earlier-t1", description="Read the page", role="surfer", taken_from="run/t1")
    dependent = Subtask(id="t9", description="Sum up", role="writer", depends_on=["earlier-t1"])
    old = Plan(subtasks=[Subtask(id="t1", description="Read the page", role="surfer")])
    offers = offers_of(old, [report("t1")])
    plan = Plan(subtasks=[named, dependent])
    assert taken(plan, offers) == {"earlier-t1"}
    assert taken(plan, offers_of(old, [report("t1")], run_id="another")) == set()
    found = recipes(plan, parts(), {"earlier-t1": "text"})
    assert found["t9"] != recipes(plan, parts(), {"earlier-t1": "another text"})["t9"]


def test_items_are_taken_by_their_template_and_their_own_text() -> None:
    def items(*texts: str, taken_from: str | None = None) -> Plan:
        template = Subtask(id="t1", description="Read it", role="surfer", for_each="lines:list")
        parts_of = [
            Subtask(id=f"t1.{n}", description="Read it", role="surfer", item=text, taken_from=taken_from)
            for n, text in enumerate(texts, 1)
        ]
        return Plan(subtasks=[template, *parts_of])

    offers = offers_of(items("ash", "elm"), [report("t1.1", role="surfer"), report("t1.2", role="surfer")])
    found = chosen(items("oak", "elm", taken_from="run/t1"), {}, offers, parts())
    assert {subtask_id: offer.report.id for subtask_id, offer in found.items()} == {"t1.2": "t1.2"}


def test_what_a_stand_in_did_is_taken_while_that_role_is_the_same() -> None:
    """The recipe is that of the planned role: a fallback, or a backup, made it."""
    plan = graph({"a": []})
    offers = offers_of(plan, [report("a", role="writer")])
    assert taken(plan, offers) == {"a"}
    roles = parts().roles
    other = roles["writer"].model_copy(update={"prompt": "Write well."})
    assert taken(plan, offers, parts(roles={**roles, "writer": other})) == set()
    for never in ("surfer", "clerk", "gone"):
        assert taken(plan, offers_of(plan, [report("a", role=never)])) == set(), never


def test_a_team_is_a_role_with_one_tool_that_reads_all() -> None:
    def of(**state: Any) -> RunParts:
        group = RoleState(is_agent=False, team=ToolState(**{"sha256": "group", "reads": "all", **state}))
        return parts(roles={**parts().roles, "group": group})

    plan = Plan(subtasks=[Subtask(id="t1", description="See to it", role="group")])
    always = recipe(plan, of(stays="always"), "t1")
    assert always == recipe(plan, of(stays="always"), "t1")
    assert always != recipe(plan, of(stays="always", sha256="another"), "t1")
    monday, tuesday = (
        recipe(plan, of(stays="day").model_copy(update={"day": day}), "t1") for day in ("2026-11-23", "2026-11-24")
    )
    assert monday != tuesday
    assert recipes(plan, of(stays="never"), {}) == {}
    assert why_never(plan.subtasks[0], of(stays="never")) == "its team has effects, or reads what changes"


# --- the files that a finding rests on ----------------------------------------------------------------


def record(*tools: str, sources: tuple[str, ...] = ()) -> FindingRecord:
    return FindingRecord(evidence=[Evidence(tool=tool) for tool in tools], sources=list(sources))


def on(read: FindingRecord, **changes: str) -> bool:
    """True if a finding with that record is taken where these files have changed."""
    tools = {"query": QUERY, "search": SEARCH, "sum": SUM}
    offer = offers_of(graph({"a": []}), [report("a")])[0].model_copy(update={"files": None})
    offer = with_data(offer, read, tools, FILES, described_by="data.toml")
    plan = graph({"a": []})
    now = {**FILES, **{name.replace("_", "."): content for name, content in changes.items()}}
    return bool(chosen(plan, recipes(plan, parts(), {}), [offer], parts(files=now)))


def test_a_finding_rests_on_the_files_that_its_outputs_name() -> None:
    read = record("query", sources=("a.csv",))
    assert on(read)
    assert on(read, b_csv="other")
    assert not on(read, a_csv="other")
    assert not on(read, data_toml="other"), "it says how the others are read"


def test_what_searched_all_files_rests_on_all() -> None:
    assert not on(record("search", sources=("a.csv p. 3",)), c_csv="new")
    assert not on(record("query", sources=("the statistics office",)), b_csv="other")
    assert on(record("sum"), a_csv="other")


@pytest.mark.parametrize(
    ("sql", "is_so"),
    [
        ("SELECT * FROM leases WHERE ends < current_date", True),
        ("select CURRENT_TIMESTAMP", True),
        ("SELECT today () - begins FROM leases", True),
        ("SELECT age(begins) FROM leases", True),
        ("SELECT get_current_time()", True),
        ("SELECT age, today, now FROM leases", False),
        ("SELECT current_dates FROM leases WHERE name = 'date'", False),
    ],
)
def test_a_query_that_asks_for_the_date_is_of_that_day(sql: str, is_so: bool) -> None:
    assert asks_for_today(sql) is is_so
    plan, made = graph({"a": []}), parts(day="2026-11-23")
    read = FindingRecord(evidence=[Evidence(tool="query", of_day=is_so)], sources=["a.csv"])
    offer = with_data(offers_of(plan, [report("a")], made)[0], read, {"query": QUERY}, FILES)
    assert taken(plan, [offer], parts(files=FILES, day="2026-11-23")) == {"a"}
    assert bool(taken(plan, [offer], parts(files=FILES, day="2026-11-24"))) is not is_so


def test_what_people_said_is_no_data_of_another_run() -> None:
    assert not on(record("ask_person"))
    assert not on(record(sources=("person anna",)))


def test_what_was_saved_once_is_saved_again() -> None:
    before = Reused(run_id="first", subtask_id="t1", usage=Usage(model_calls=5))
    again = offers_of(graph({"a": []}), [report("a", reused=before, usage=Usage())])[0].reused
    assert (again.run_id, again.usage.model_calls) == ("run", 5)
    assert saved_usage([report("a", reused=again)]) == Usage(model_calls=5)
    assert saved_usage([report("a")]) is None
