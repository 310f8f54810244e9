"""Forms as weaker models fill them in: what can mean one thing only is read, the rest is refused as it was written."""

from copy import deepcopy
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.replies.loose_form import read_form, says_nothing


class Tree(Model):
    name: str
    kind: Literal["oak", "elm"] = "oak"
    rings: int = 7
    share: float | None = None
    old: bool = False
    near: list[str] = []


class Wood(Model):
    trees: list[Tree]
    words: str = "none yet"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"near": None}, {"near": []}),
        ({"near": "null"}, {"near": []}),
        ({"near": "t1"}, {"near": ["t1"]}),
        ({"near": "t1, t2"}, {"near": ["t1", "t2"]}),
        ({"near": '["t1", 2]'}, {"near": ["t1", "2"]}),
        ({"near": "- by the lake\n- behind it\n"}, {"near": ["by the lake", "behind it"]}),
        ({"near": "t1\nt2"}, {"near": ["t1", "t2"]}),
        ({"near": "by the lake, behind the house"}, {"near": ["by the lake, behind the house"]}),
        ({"near": "red pears, apples"}, {"near": ["red pears, apples"]}),
        ({"rings": None}, {"rings": 7}),
        ({"name": {"ä": 1}}, {"name": '{"ä": 1}'}),
        ({"name": ["a", 1]}, {"name": '["a", 1]'}),
        ({"kind": "Elm."}, {"kind": "elm"}),
        ({"kind": "beech"}, {"kind": "oak"}),
        ({"kind": None}, {"kind": "oak"}),
        ({"rings": "6,000"}, {"rings": 7}),
        ({"rings": "Number 2"}, {"rings": 2}),
        ({"rings": "many"}, {"rings": 7}),
        ({"rings": 5.6}, {"rings": 6}),
        ({"share": "high"}, {"share": None}),
        ({"share": "95 %"}, {"share": 0.95}),
        ({"share": "-0,25"}, {"share": -0.25}),
        ({"share": "1 to 2"}, {"share": None}),
        ({"old": ""}, {"old": False}),
        ({"old": "perhaps"}, None),
        ({"name": 7}, {"name": "7"}),
        ({"name": None}, None),
        ({"name": ["a", "b"]}, {"name": "a\nb"}),
    ],
    ids=str,
)
def test_a_field_is_read_if_it_can_mean_one_thing_only(wrong: dict[str, Any], right: dict[str, Any] | None) -> None:
    filled = {"name": "n", **wrong}
    if right is None:
        with pytest.raises(ValidationError):
            read_form(Tree, filled)
    else:
        assert read_form(Tree, filled).model_dump(include=set(right)) == right


@pytest.mark.parametrize(
    "value",
    [
        {"trees": [{"name": "a"}]},
        {"Wood": {"trees": [{"name": "a"}]}},
        {"trees": '[{"name": "a"}]'},
        {"trees": {"name": "a"}},
        {"trees": ["none", {"name": "a"}, None, "keins"]},
        '{"trees": [{"name": "a"}]}',
    ],
    ids=str,
)
def test_a_form_is_read_however_it_is_wrapped_and_stays_as_it_was(value: Any) -> None:
    before = deepcopy(value)
    assert read_form(Wood, value) == Wood(trees=[Tree(name="a")])
    assert value == before


def test_what_cannot_be_read_is_refused_with_all_that_was_wrong() -> None:
    with pytest.raises(ValidationError):
        read_form(Wood, {"trees": "The elm is missing."})
    with pytest.raises(ValidationError) as refused:
        read_form(Wood, {"trees": [{"name": "a", "near": "t1"}, {"rings": "many"}], "words": None})
    assert [error["loc"] for error in refused.value.errors()] == [
        ("trees", 0, "near"), ("trees", 1, "name"), ("trees", 1, "rings"), ("words",),
    ]  # fmt: skip


def test_a_form_of_any_fields_is_not_unwrapped() -> None:
    class Anything(Model, extra="allow"):
        pass

    assert read_form(Anything, {"filter": {"a": 1}}).model_dump() == {"filter": {"a": 1}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["[1", "null", "t1, t2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*Tree.model_fields, "trees"]), inner),
)


@given(JSON)
def test_anything_is_read_or_refused_and_what_fits_is_not_changed(value: Any) -> None:
    try:
        fits: Wood | None = Wood.model_validate(value)
    except ValidationError:
        fits = None
    try:
        read = read_form(Wood, value)
    except ValidationError:
        read = None
    assert fits is None or read == fits


@pytest.mark.parametrize("value", [None, "", " Null. ", "N/A", "keine", "[]"])
def test_words_for_null_say_nothing(value: object) -> None:
    assert says_nothing(value)
    assert not says_nothing(f"{value} of them")
