"""Sets of questions as people write them, and what is wrong with a line."""

import json
from typing import Any

import pytest

from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.team import Team
from temporal_supervisor.supervision.scores.eval_plan import EvalSet, EvalVariant
from temporal_supervisor.supervision.scores.question_sets import BadQuestion, goals_as_questions, read_questions

GOOD: dict[str, Any] = {"id": "q1", "question": "How many?", "answer": {"kind": "number", "value": 3}}


def line(**more: Any) -> str:
    return json.dumps({**GOOD, **more})


def test_a_line_is_a_question_and_what_is_not_known_of_it_is_left_alone() -> None:
    found = read_questions(f"{line(derivation='1+2', set='mine')}\n\n{line(id='q2', form='in days')}\n")
    assert [(number, question.id) for number, question in found] == [(1, "q1"), (3, "q2")]
    assert found[1][1].goal == "How many?\n\nThe form of the answer: in days"


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("{", "line 2: it is not JSON"),
        ("[1]", "line 2: it must hold an object"),
        (line(), "line 2: the id 'q1' is that of line 1, too"),
        (line(id="a/b"), "line 2: question: an id has 1 to 120 bytes of printable text without a slash"),
        (line(id=""), "line 2: question: an id has"),
        (line(id="q2", answer={"kind": "numbr", "value": 3}), "line 2: unknown kind of answer 'numbr', did you mean"),
        (
            line(id="q2", answer={"kind": "number", "value": "3"}),
            "line 2: answer: the value of kind number is a number",
        ),
        (line(id="q2", answer={"kind": "list", "value": []}), "the value of kind list is a list of texts or numbers"),
        (line(id="q2", answer={"kind": "rows", "value": {"a": "x"}}), "the value of kind rows is an object of lists"),
        (line(id="q2", answer={"kind": "number", "value": 3, "scale": "dozen"}), "line 2: answer.scale"),
        (line(id="q2", question=""), "line 2: question: "),
        (json.dumps({"id": "q2", "question": "x"}), "line 2: answer: "),
    ],
)
def test_a_line_that_is_wrong_is_named(second: str, problem: str) -> None:
    with pytest.raises(BadQuestion) as refused:
        read_questions(f"{line()}\n{second}\n")
    assert problem in str(refused.value)


def test_a_file_without_a_question_is_none() -> None:
    with pytest.raises(BadQuestion, match="there is no question"):
        read_questions("\n\n")


def test_goals_of_a_team_are_questions_without_those_that_need_a_person() -> None:
    goals = [
        {"goal": "Why?", "role": "finder", "says": ["a|b"]},
        {"goal": "Which?", "role": "finder", "strategy": "plan"},
        {"goal": "Me!", "role": "person", "says": ["x"], "reply": "x"},
    ]
    found = goals_as_questions("lab", {"strategy": "route", "goals": goals})
    assert [(q.id, q.answer.kind, q.strategy, q.role) for q in found] == [
        ("lab-1", "facts", "route", "finder"),
        ("lab-2", "route", "plan", "finder"),
    ]


def test_each_question_is_asked_of_all_variants_before_the_next_one() -> None:
    questions = [question for _, question in read_questions(f"{line()}\n{line(id='q2')}")]
    variants = [EvalVariant(label="a"), EvalVariant(label="b")]
    whole = EvalSet(name="s", questions=questions, variants=variants, repeat=2)
    names = [whole.case(index).name for index in range(whole.total)]
    assert names[:5] == ["q1", "q1~r2", "q1~v2", "q1~v2~r2", "q2"]
    assert len(set(names)) == whole.total == 8


def test_a_request_has_the_data_and_the_form_and_a_bare_one_a_role_that_gives_the_form() -> None:
    (question,) = [question for _, question in read_questions(line(data="d", strategy="plan"))]
    role = {"name": "alone", "description": "All.", "system_prompt": "Work.", "tools": ["files/query_data"]}
    team = {"name": "bare", "generalist": "alone", "roles": [role]}
    variants = [
        EvalVariant(label="a", request={"team": "files", "max_turns": 5}),
        EvalVariant(label="a, bare", request={"team": team}, bare=True),
    ]
    data = {"d": {"name": "files", "ref": "uploads/x"}}
    whole = EvalSet(name="s", questions=[question], variants=variants, data=data)
    usual, bare = (RunRequest.model_validate(whole.case(index).request()) for index in range(2))
    assert (usual.team, usual.strategy, usual.max_turns, usual.attachments[0].ref) == ("files", "plan", 5, "uploads/x")
    assert usual.answer_schema is not None
    assert (bare.strategy, bare.answer_schema, bare.max_reviews, bare.max_turns) == ("route", None, 0, 30)
    assert isinstance(bare.team, Team)
    assert bare.team.roles[0].output_schema == usual.answer_schema
    assert [(route.pattern, route.role) for route in bare.team.routes] == [("*", "alone")]
