"""The policy of tools: its whole table, what holds for all words and labels, and which schemas are closed."""

from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.agent.policy import (
    ToolWords,
    decide,
    is_offered,
    is_quarantined,
    labels_of,
    why_not_together,
)
from temporal_supervisor.supervision.contract.finding import Finding, Labels
from temporal_supervisor.supervision.contract.team import Approval, Effects, Reads, Returns, Role, Targets

CLEAN, TAINTED = Labels(private=True), Labels(private=True, untrusted="web_fetch example.com in t1")
HERE, THERE = {"to": "board@acme.example"}, {"to": "eve@evil.example"}
TARGETS: Targets = {"to": ["board@acme.example"]}

# By effects and the word on approval: what becomes of a call after trusted, and after untrusted text.
TABLE: dict[tuple[str, str | None], tuple[str, str]] = {
    ("read", None): ("allowed", "allowed"),
    ("read", "never"): ("allowed", "allowed"),
    ("read", "tainted"): ("allowed", "ask"),
    ("read", "always"): ("ask", "ask"),
    **{(effects, None): ("allowed", "ask") for effects in ("outward", "write")},
    **{(effects, "never"): ("allowed", "refused") for effects in ("outward", "write")},
    **{(effects, "tainted"): ("allowed", "ask") for effects in ("outward", "write")},
    **{(effects, "always"): ("ask", "ask") for effects in ("outward", "write")},
}

words = st.builds(
    ToolWords,
    reads=st.sampled_from(get_args(Reads)),
    returns=st.sampled_from(get_args(Returns)),
    effects=st.sampled_from(get_args(Effects)),
    approve=st.sampled_from([None, *get_args(Approval)]),
    targets=st.dictionaries(st.sampled_from(["to", "cc"]), st.lists(st.sampled_from(["a", "b", 1, True, None]))),
    server=st.sampled_from(["", "db.example"]),
)
arguments = st.one_of(
    st.dictionaries(st.sampled_from(["to", "cc", "x"]), st.sampled_from(["a", "c", 1, True, [], ["a"], ["a", "c"]])),
    st.sampled_from([None, "a", ["to"]]),
)
labels = st.builds(
    Labels,
    private=st.booleans(),
    untrusted=st.sampled_from(["", "page in t1"]),
    home=st.sampled_from(["", "db.example"]),
)


@pytest.mark.parametrize(
    ("brief", "private", "with_domains", "with_effects", "without_effects"),
    [
        ("", False, True, True, True),
        ("", True, True, False, True),
        ("page in t1", False, True, False, True),
        ("page in t1", True, True, False, True),
    ],
)
def test_when_a_tool_of_the_provider_is_offered(
    brief: str, private: bool, with_domains: bool, with_effects: bool, without_effects: bool
) -> None:
    """Its own results count as read only beside private data: then the next query could carry it away."""
    definition = {"name": "web_search", "allowed_domains": ["example.com"]}
    for effects, targets, expected in [
        ("outward", {"allowed_domains": ["example.com"]}, with_domains),
        ("outward", {}, with_effects),
        ("read", {}, without_effects),
    ]:
        tool = ToolWords(reads="public", returns="untrusted", effects=effects, targets=targets)  # type: ignore[arg-type]
        own = Labels(private=private, untrusted="web_search pears in t2")
        assert is_offered(tool, Labels(untrusted=brief), own, definition) is expected


def test_the_table_has_every_pair_of_words() -> None:
    assert set(TABLE) == set(product(get_args(Effects), [None, *get_args(Approval)]))


@pytest.mark.parametrize(("said", "verdicts"), TABLE.items(), ids=str)
def test_what_becomes_of_a_call(said: tuple[Any, Any], verdicts: tuple[str, str]) -> None:
    effects, approve = said
    for reads, returns, private in product(get_args(Reads), get_args(Returns), (False, True)):
        tool = ToolWords(reads=reads, returns=returns, effects=effects, approve=approve)
        aimed = ToolWords(reads=reads, returns=returns, effects=effects, approve=approve, targets=TARGETS)
        clean, tainted = (label.model_copy(update={"private": private}) for label in (CLEAN, TAINTED))
        assert (decide(tool, clean, THERE), decide(tool, tainted, THERE)) == verdicts
        assert (decide(aimed, clean, THERE), decide(aimed, tainted, THERE)) == verdicts
        assert decide(aimed, tainted, HERE) == ("ask" if approve == "always" else "allowed")


@pytest.mark.parametrize(
    "given_arguments",
    [
        {},
        {"to": []},
        {"to": [HERE["to"], THERE["to"]]},
        {"to": [[HERE["to"]]]},
        {"to": {"to": HERE["to"]}},
        {"to": f" {HERE['to']}"},
        {"to": HERE["to"].upper()},
        {"To": HERE["to"]},
        {"to": None},
        HERE["to"],
        None,
    ],
    ids=str,
)
def test_no_other_value_is_a_target(given_arguments: object) -> None:
    assert decide(ToolWords(effects="outward", targets=TARGETS), TAINTED, given_arguments) == "ask"
    assert decide(ToolWords(effects="outward", targets={"to": []}), TAINTED, given_arguments) == "ask"


def test_a_target_is_a_value_of_its_type() -> None:
    tool = ToolWords(effects="write", targets={"account": [1], "note": ["x", None, {"a": 1, "b": 2}]})
    assert decide(tool, TAINTED, {"account": 1, "note": {"b": 2, "a": 1}}) == "allowed"
    assert decide(tool, TAINTED, {"account": 1, "note": ["x", "x"]}) == "allowed"
    assert decide(tool, TAINTED, {"account": True, "note": None}) == "ask"
    assert decide(tool, TAINTED, {"account": 1.0, "note": None}) == "ask"
    assert decide(tool, TAINTED, {"account": 1}) == "ask"


@given(words, labels, arguments)
def test_no_effect_follows_untrusted_text_without_a_person_or_a_target(
    tool: ToolWords, read: Labels, call: object
) -> None:
    verdict = decide(tool, read, call)
    secrets = read.private and read.home != tool.server
    if (tool.effects != "read" or (tool.server and secrets)) and read.untrusted and verdict == "allowed":
        assert isinstance(call, dict)
        assert tool.targets
        for name, allowed in tool.targets.items():
            value = call[name]
            values = value if isinstance(value, list) and value else [value]
            assert all(any(type(one) is type(other) and one == other for other in allowed) for one in values)
    if tool.approve == "always":
        assert verdict == "ask"
    if verdict == "ask":
        assert tool.approve != "never"


@pytest.mark.parametrize(
    ("read", "verdict"),
    [
        (Labels(private=True), "allowed"),
        (Labels(untrusted="page in t1"), "allowed"),
        (Labels(untrusted="search in t1", private=True, home="tickets.example"), "allowed"),
        (Labels(untrusted="search in t1", private=True, home="other.example"), "ask"),
        (TAINTED, "ask"),
        (TAINTED | Labels(private=True, home="tickets.example"), "ask"),
        (Labels(private=True, home="tickets.example") | Labels(untrusted="page in t1"), "allowed"),
    ],
    ids=str,
)
def test_a_query_to_a_server_elsewhere_carries_no_private_data_of_others(read: Labels, verdict: str) -> None:
    query = ToolWords(returns="untrusted", server="tickets.example")
    assert decide(query, read, {}) == verdict
    assert decide(ToolWords(returns="untrusted"), read, {}) == "allowed"
    own = labels_of(query, "search", "t1")
    assert (own.home, (own | own).home, (own | TAINTED).home) == ("tickets.example", "tickets.example", "")


@given(words, labels, labels, arguments)
def test_more_labels_never_allow_more(tool: ToolWords, read: Labels, more: Labels, call: object) -> None:
    if decide(tool, read, call) != "allowed":
        assert decide(tool, read | more, call) != "allowed"
        assert decide(tool, more | read, call) != "allowed"


def test_labels_say_where_they_come_from() -> None:
    page = labels_of(ToolWords(reads="public", returns="untrusted"), "web_fetch example.com\nnow " + "x" * 200, "t3/t1")
    assert page.untrusted.startswith("web_fetch example.com")
    assert page.untrusted.endswith("… in t3/t1")
    assert "\n" not in page.untrusted
    assert labels_of(ToolWords(), "query", "t2") == CLEAN
    assert "labels" not in Finding(summary="s", text_ref="r").model_dump()
    assert Labels().model_dump() == {"private": False, "untrusted": ""}


PAGE, ROWS = ToolWords(reads="public", returns="untrusted"), ToolWords()
MAIL, ASKED = (ToolWords(reads="public", effects="outward", approve=word) for word in (None, "always"))
MCP = ToolWords(returns="untrusted", effects="write")
SEARCH = ToolWords(returns="untrusted", server="tickets.example")


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        ({"page": PAGE, "rows": ROWS}, ""),
        ({"page": PAGE, "mail": MAIL}, ""),
        ({"rows": ROWS, "mail": MAIL}, ""),
        ({"page": PAGE, "rows": ROWS, "mail": ASKED}, ""),
        ({"page": PAGE, "rows": ROWS, "mail": MAIL}, "rows reads private data, page returns untrusted text and mail"),
        ({"mcp": MCP}, "mcp reads private data, mcp returns untrusted text and mcp has effects"),
        ({"page": PAGE, "rows": ROWS, "mail": ASKED, "mcp": MCP}, '"always" for mcp'),
        ({"search": SEARCH}, ""),
        ({"search": SEARCH, "page": PAGE}, ""),
        ({"search": SEARCH, "rows": ROWS}, "rows reads private data, search returns untrusted text and search sends"),
        ({"search": SEARCH, "rows": ROWS, "mail": ASKED}, '"always" for search'),
        ({}, ""),
    ],
    ids=str,
)
def test_private_data_untrusted_text_and_effects_are_not_joined(tools: dict[str, ToolWords], named: str) -> None:
    why = why_not_together(tools)
    assert (why is None) == (not named)
    assert named in (why or "")


NUMBER, WORD = {"type": "number", "minimum": 0, "maximum": 10**15}, {"enum": ["yes", "no"]}
WORDS = {"type": "array", "items": WORD, "maxItems": 20}
CLOSED: list[Any] = [
    {"n": NUMBER, "w": WORD, "b": {"type": "boolean"}, "c": {"const": "x"}, "d": {"type": "string", "format": "date"}},
    {"many": WORDS, "none": {"type": ["integer", "null"], "minimum": -5, "maximum": 5}},
    {"inner": {"type": "object", "properties": {"n": NUMBER}, "additionalProperties": False}},
]
OPEN: list[Any] = [
    {"type": "string"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "pattern": "^x$"},
    {"type": ["number", "string"]},
    {"type": "array", "maxItems": 5},
    {"type": "array", "items": NUMBER, "maxItems": 5, "prefixItems": [{"type": "string"}]},
    {"type": "integer"},
    {"type": "number", "minimum": 0},
    {"type": "number", "minimum": 0, "maximum": 10**16},
    {"type": "number", "minimum": True, "maximum": 5},
    {"type": "array", "items": WORD},
    {"type": "array", "items": WORD, "maxItems": 21},
    {"type": "array", "items": WORDS, "maxItems": 5},
    {"type": "array", "items": {"type": "object", "properties": {"w": WORDS}, "additionalProperties": False}},
    {"type": "object", "properties": {"n": NUMBER}},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "properties": {}, "additionalProperties": False, "patternProperties": {".": NUMBER}},
    {"anyOf": [NUMBER]},
    {"$ref": "#/$defs/x"},
    {"type": []},
    True,
    {},
]


def reader(properties: dict[str, Any], **more: Any) -> Role:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    fields = {"name": "reader", "description": "d", "system_prompt": "s", "output_schema": schema}
    return Role.model_validate({**fields, **more})


def test_a_quarantined_role_has_no_tools_and_closed_values_alone() -> None:
    for properties in CLOSED:
        assert is_quarantined(reader(properties)), properties
        assert not is_quarantined(reader(properties, tools=["look"]))
        assert not is_quarantined(reader(properties, ask=True))
    for part in OPEN:
        assert not is_quarantined(reader({"n": NUMBER, "part": part})), part
    assert not is_quarantined(reader({"n": NUMBER}, output_schema=None))
    assert not is_quarantined(reader({"n": NUMBER}, output_schema={"type": "object", "properties": {"n": NUMBER}}))
