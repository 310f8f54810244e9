"""What is a right answer: by kind, with scale, rounding and sign; and what any words of a text would do."""

from typing import Any

import pytest

from temporal_supervisor.supervision.scores.answer_forms import answer_form
from temporal_supervisor.supervision.scores.figures import numbers_in, plain
from temporal_supervisor.supervision.scores.judging import Given, judge_answer
from temporal_supervisor.supervision.scores.parts import question_for_part, result_as_truth
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion, Truth


def truth(kind: str, value: Any = None, **more: Any) -> Truth:
    return Truth.model_validate({"kind": kind, "value": value, **more})


def right(known: Truth, fields: Any, text: str = "") -> bool:
    return judge_answer(known, Given(text, fields)).right


def number(value: Any, scale: str = "") -> Any:
    return {"value": value, "scale": scale}


@pytest.mark.parametrize(
    ("value", "scale", "given", "is_right"),
    [
        (440, None, number(440), True),
        (440, None, number(440.4), False),
        (440, None, number("440"), True),
        (1440, None, number("1,440"), True),
        (440, None, number("440 or 441"), False),
        (440, None, number([440, 441]), False),
        (440, None, number(True), False),
        (440, None, number(-440), False),
        (5435, None, number(5435, "million"), True),
        (5435, None, number(5.435, "billion"), False),
        (13.1628, None, number(13.1628), True),
        (13.1628, None, number(13.16284), True),
        (13.1628, None, number(13.16), True),
        (13.1628, None, number(13.2), True),
        (13.1628, None, number(13), False),
        (13.1628, None, number(13.17), False),
        (-12.6, "million", number(-12.6, "million"), True),
        (-12.6, "million", number(12.6, "million"), False),
        (-12.6, "million", number(-12_600_000), True),
        (-12.6, "million", number("−12.6", "million"), True),
        (-12.6, "million", number(-12.6), False),
        (-12.6, "million", number(-12.6, "thousand"), False),
        (-12.6, "million", number(-0.0126, "billion"), True),
        (26.82, "percent", number(26.82, "percent"), True),
        (26.82, "percent", number(0.2682), True),
        (26.82, "percent", number("26.82 %"), True),
        (26.82, "percent", number(26.82), False),
        (26.82, "percent", number(26.8, "percent"), True),
        (26.82, "percent", number(27, "percent"), False),
        (2.93, "", number(2.93), True),
        (2.93, "", number(293, "percent"), True),
        (2.93, "", number(2.93, "million"), False),
        (172.0, "million", number(172, "million"), True),
        (172.0, "million", number(172.4, "million"), False),
    ],
)
def test_a_number_needs_its_sign_its_scale_and_its_digits(
    value: float, scale: str | None, given: Any, is_right: bool
) -> None:
    assert right(truth("number", value, scale=scale), given) is is_right


@pytest.mark.parametrize(
    ("more", "given", "is_right"),
    [
        ({"decimals": 1}, 2.34, True),
        ({"decimals": 1}, 2.36, False),
        ({"decimals": 0}, 2.4, True),
        ({"tolerance": 0.1}, 2.39, True),
        ({"tolerance": 0.1}, 2.5, False),
        ({"tolerance": 0.0}, 2.31, False),
    ],
)
def test_a_set_may_say_how_far_a_number_may_be_off(more: dict[str, float], given: float, is_right: bool) -> None:
    assert right(truth("number", 2.3, **more), number(given)) is is_right


def test_several_numbers_must_all_be_right() -> None:
    known = truth("numbers", {"mean": 171.44, "sd": 188.25})
    assert right(known, {"mean": 171.4353, "sd": 188.25})
    half = judge_answer(known, Given("", {"mean": 171.44, "sd": 1}))
    assert (half.right, half.share) == (False, 0.5)
    assert not right(known, {"mean": 171.44})
    assert not right(known, {"mean": 188.25, "sd": 171.44})


@pytest.mark.parametrize(
    ("given", "is_right"),
    [
        ("the Anglican Communion", True),
        ("Anglican communion.", True),
        ("Communion of Anglicans", True),
        ("the Anglican Communion or the Catholic Church", False),
        (["the Anglican Communion"], False),
        ("Anglican", False),
    ],
)
def test_a_text_is_the_true_one_or_an_alias_and_nothing_beside_it(given: object, is_right: bool) -> None:
    known = truth("text", "the Anglican Communion", aliases=["Communion of Anglicans"])
    assert right(known, {"value": given}) is is_right


def test_texts_that_are_numbers_or_truth_values_are_compared_as_such() -> None:
    assert right(truth("text", "35"), {"value": 35})
    assert right(truth("text", "1,200"), {"value": "1200"})
    assert right(truth("text", "True"), {"value": True})
    assert not right(truth("text", "True"), {"value": False})


def test_a_list_has_the_same_parts_in_any_order_unless_the_order_counts() -> None:
    known = truth("list", ["Ohio", "Utah", "2"])
    assert right(known, {"values": ["utah", "Ohio", 2]})
    assert judge_answer(known, Given("", {"values": ["Ohio", "Utah"]})).share == 0.8
    assert not right(known, {"values": ["Ohio", "Utah", "2", "Iowa"]})
    ordered = truth("list", ["Ohio", "Utah"], ordered=True)
    assert right(ordered, {"values": ["Ohio", "Utah"]})
    assert not right(ordered, {"values": ["Utah", "Ohio"]})


def test_rows_have_an_f1_for_each_field() -> None:
    known = truth("rows", {"party": ["Acme Inc.", "Bolt LLC"], "term": ["3 years"]})
    whole = judge_answer(known, Given("", {"party": ["bolt llc", "ACME Inc"], "term": ["3 years"]}))
    assert (whole.right, whole.share) == (True, 1.0)
    part = judge_answer(known, Given("", {"party": ["Acme Inc", "Crane AG"], "term": []}))
    assert (part.right, part.by_field) == (False, {"party": 0.5, "term": 0.0})
    assert part.share == 0.4


def test_rows_of_a_table_keep_their_cells_together() -> None:
    rows = [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 41}]
    known = truth("rows", rows)
    assert right(known, {"rows": [rows[1], rows[0]]})
    swapped = judge_answer(known, Given("", {"rows": [{"name": "Ada", "age": 41}, {"name": "Bob", "age": 36}]}))
    assert swapped.by_field == {"name": 1.0, "age": 0.0}


def test_where_the_files_have_no_answer_a_gap_is_right() -> None:
    known = truth("none")
    assert right(known, {"value": None}, "nothing says it")
    assert right(known, {"value": ""}, "nothing says it")
    assert not right(known, {"value": "Paris"}, "Paris")
    assert not right(known, None, "it is Paris")
    assert judge_answer(known, Given("nothing says it", None, has_gap=True)).right


def test_an_answer_without_a_value_is_refused() -> None:
    assert judge_answer(truth("number", 5), Given("I can't say", number(None))).refused
    assert judge_answer(truth("numbers", {"a": 1}), Given("", {"a": None})).refused
    assert judge_answer(truth("list", ["a"]), Given("", {"values": []})).refused
    assert judge_answer(truth("text", "a"), Given("", None)).refused
    assert not judge_answer(truth("text", "a"), Given("it is a", None)).refused
    assert not judge_answer(truth("number", 0), Given("", number(0))).refused


def test_the_role_of_a_route_is_the_only_one_that_worked() -> None:
    known = truth("route", "writer")
    assert judge_answer(known, Given("text", None, ["writer"])).right
    assert not judge_answer(known, Given("text", None, ["writer", "reader"])).right
    assert not judge_answer(known, Given("text", None, ["reader"])).right


def test_facts_stand_in_the_text_one_of_the_words_each() -> None:
    known = truth("facts", ["15 minutes|a quarter of an hour", "reset"])
    assert judge_answer(known, Given("Reset it after a quarter of an hour.")).right
    assert judge_answer(known, Given("It takes 15 minutes.")).share == 0.5


@pytest.mark.parametrize(
    ("known", "text", "is_lenient"),
    [
        (truth("number", 440), "between 439 and 900", True),
        (truth("number", 440), "between 400 and 900", False),
        (truth("number", -12.6, scale="million"), "it fell by 12,600,000 to (12,600,000)", True),
        (truth("number", -12.6), "it rose by 12.6", False),
        (truth("text", "the Anglican Communion"), "either Rome or Anglican Communion", True),
        (truth("list", ["Ohio", "7"]), "7 in Ohio, 8 in Utah", True),
        (truth("list", ["Ohio", "7"]), "8 in Ohio", False),
    ],
)
def test_leniently_any_words_of_the_text_would_do(known: Truth, text: str, is_lenient: bool) -> None:
    outcome = judge_answer(known, Given(text, {"value": "something else"}))
    assert (outcome.right, outcome.lenient) == (False, is_lenient)


def test_leniently_an_answer_that_its_fields_refuse_may_stand_in_its_text() -> None:
    outcome = judge_answer(truth("number", 440), Given("It may be 440.", number(None)))
    assert (outcome.right, outcome.refused, outcome.lenient) == (False, True, True)


def test_numbers_of_a_text_keep_their_signs() -> None:
    assert numbers_in("−3.5, (4,000) and $7; v1.2 q3") == [3.5, -3.5, 4000, -4000, 7]
    assert numbers_in("-3 and 5") == [3, -3, 5]


def test_plain_words_have_no_articles_unless_they_are_all_there_is() -> None:
    assert [plain("The  Café-Bar!"), plain("The"), plain("4.50"), plain("3%")] == ["café bar", "the", "4.5", "0.03"]


def test_the_form_is_made_from_the_kind_and_shows_nothing_of_the_answer() -> None:
    known = [
        truth("number", 4711, scale="million"),
        truth("numbers", {"mean_age": 4711}),
        truth("text", "Secretville", aliases=["Hidden"]),
        truth("list", ["Secretville"]),
        truth("rows", {"party": ["Secretville"]}),
        truth("rows", [{"party": "Secretville"}]),
    ]
    forms = [str(answer_form(each)) for each in known]
    assert not any(word in form for form in forms for word in ("4711", "Secretville", "Hidden"))
    assert "mean_age" in forms[1]
    assert [answer_form(truth(kind, ["x"] if kind == "facts" else "x")) for kind in ("facts", "route")] == [None, None]
    assert answer_form(truth("none")) == answer_form(truth("text", "x"))  # the form does not tell that there is none


@pytest.mark.parametrize(
    ("columns", "rows", "kind", "value"),
    [
        (["n"], [["440"]], "number", 440.0),
        (["n"], [["44,250.5"]], "number", 44250.5),
        (["name"], [["Acme Inc."]], "text", "Acme Inc."),
        (["name"], [["Ohio"], ["Utah"]], "list", ["Ohio", "Utah"]),
        (["state", "n"], [["Ohio", "3"]], "rows", [{"state": "Ohio", "n": "3"}]),
        (["n"], [], "none", None),
        (["n"], [[""]], "none", None),
    ],
)
def test_the_result_of_a_query_is_an_answer(columns: list[str], rows: list[list[str]], kind: str, value: Any) -> None:
    found = result_as_truth(truth("sql", "SELECT 1", ordered=True), columns, rows)
    assert (found.kind, found.value, found.ordered) == (kind, value, True)
    assert not str(found.value).endswith(".0")  # it is shown


def test_numbers_in_rows_may_be_rounded_as_others() -> None:
    known = truth("rows", [{"state": "Ohio", "mean": "3.3333"}, {"state": "Utah", "mean": "2.5"}])
    rounded = [{"state": "Ohio", "mean": "3.33"}, {"state": "Utah", "mean": 2.5}]
    assert right(known, {"rows": rounded})
    assert not right(known, {"rows": [{"state": "Ohio", "mean": "3.34"}, {"state": "Utah", "mean": 2.5}]})
    swapped: list[Any] = [{"state": "Utah", "mean": "3.33"}, {"state": "Ohio", "mean": 2.5}]
    assert judge_answer(known, Given(fields={"rows": swapped})).share == 0.5
    assert right(truth("list", [1.25, 2]), {"values": ["2", "1.25"]})
    assert not right(truth("list", [1.25]), {"values": ["1.25", "1.25"]})
    assert not right(truth("list", [1, 2], ordered=True), {"values": [2, 1]})


def test_a_question_is_asked_for_a_part_if_it_can_be_judged() -> None:
    def asked(**more: Any) -> EvalQuestion:
        fields = {"id": "q", "question": "?", "answer": {"kind": "number", "value": 3}}
        return EvalQuestion.model_validate({**fields, **more})

    routed = question_for_part(asked(role="writer"), "plan")
    assert (routed.answer.kind, routed.answer.value, routed.strategy) == ("route", "writer", "route")
    assert question_for_part(asked(plan=[{"id": "a", "says": ["x"]}]), "plan").answer.kind == "plan"
    for part, words in (("plan", "judged by `plan` or `role`"), ("answer", "starts from `findings`")):
        with pytest.raises(ValueError, match=words):
            question_for_part(asked(), part)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pass --only answer"):
        question_for_part(asked(findings=[{"text": "x"}]), "whole")
    with pytest.raises(ValueError, match="the plan has no subtask 'b'"):
        asked(plan=[{"id": "a", "says": ["x"], "after": ["b"]}])
