"""A set of questions with their true answers: a file with one JSON object a line."""

import json
import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, JsonValue, ValidationError, model_validator

from temporal_supervisor.supervision.base.text import did_you_mean, quoted, size
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.request import complaint_lines
from temporal_supervisor.supervision.scores.flagged import Flag

MOST_QUESTIONS = 2000  # in one eval, over all its models and repetitions: each is a run of its own
ID_BYTES = 120  # it is a part of a run's id, below that of the eval

_OfAnswer = Literal["number", "numbers", "text", "list", "rows", "sql", "none", "facts"]
AnswerKind = Literal[_OfAnswer, "route", "plan"]
Scale = Literal["", "percent", "thousand", "million", "billion"]
Cell = str | int | float

_WRITTEN = {
    "number": "a number",
    "numbers": 'an object of numbers by name, such as {"mean": 1.5}',
    "text": "a text",
    "list": "a list of texts or numbers",
    "rows": "an object of lists by field, or a list of objects",
    "sql": "a query in SQL over the data, whose result is the true answer",
    "route": "the name of a role",
    "facts": "a list of texts that the answer contains",
}


class BadQuestion(ValueError):
    """An invalid line of a set; the message names the line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line


class Truth(Model):
    """The true answer to a question.

    A number has a `scale` if the question leaves it open: -12.6 in millions. Without one the number
    counts as it is written. It may be rounded to `decimals`, or be off by a `tolerance`; else it
    agrees to its last digit. A text has `aliases`. A list may be `ordered`. Of a fact one of the
    words between "|" is enough. `none` is a question that the files do not answer. The value of
    `sql` is a query: before an eval begins its result takes its place, as another kind. A `plan` is
    the one that the question has.
    """

    kind: AnswerKind
    value: JsonValue = None
    scale: Scale | None = None
    aliases: list[str] = []
    decimals: Annotated[int, Field(ge=0, le=12)] | None = None
    tolerance: Annotated[float, Field(ge=0)] | None = None
    ordered: bool = False

    @model_validator(mode="after")
    def _fits(self) -> "Truth":
        if not _is_written(self.kind, self.value):
            raise ValueError(f"the value of kind {self.kind} is {_WRITTEN[self.kind]}")
        return self


class ExpectedSubtask(Model):
    """A subtask that a good plan has, by the role that takes it and the facts of its description.

    Of a fact one of the words between "|" is enough. It builds on those that it comes `after`.
    """

    id: str
    says: list[str] = []
    role: str | None = None
    after: list[str] = []

    @model_validator(mode="after")
    def _told_apart(self) -> "ExpectedSubtask":
        if not self.says and self.role is None:
            raise ValueError(f"the subtask {quoted(self.id)} of the plan needs `says` or `role`")
        return self


class GivenFinding(Model):
    """A finding from which a synthesis alone starts, with its author's role."""

    text: Annotated[str, Field(min_length=1, max_length=20_000)]
    role: str = "auto"
    about: str = ""


class EvalQuestion(Model):
    """A question with its true answer.

    `data` is a file or folder beside the set, `form` says in words how the answer is written.
    `supporting` are the files that hold the answer, `role` is the one that should take it.
    `strategy` overrides that of the run. `plan` is a good plan. `findings` are those that a
    synthesis alone gets; if they have a fault, `flag` is the one that a reader should be shown.
    """

    id: str
    question: Annotated[str, Field(min_length=1)]
    answer: Truth
    data: str | None = None
    form: str = ""
    supporting: list[str] = []
    role: str | None = None
    strategy: str | None = None
    plan: list[ExpectedSubtask] = []
    findings: Annotated[list[GivenFinding], Field(max_length=50)] = []
    flag: Flag | None = None

    @model_validator(mode="after")
    def _named(self) -> "EvalQuestion":
        is_text = bool(self.id.strip()) and self.id.isprintable()
        if not is_text or "/" in self.id or size(self.id) > ID_BYTES:
            raise ValueError(f"an id has 1 to {ID_BYTES} bytes of printable text without a slash")
        return self

    @model_validator(mode="after")
    def _planned(self) -> "EvalQuestion":
        names = [subtask.id for subtask in self.plan]
        if len(set(names)) < len(names):
            raise ValueError("the subtasks of the plan have ids of their own")
        unknown = [name for subtask in self.plan for name in subtask.after if name not in names]
        if unknown:
            raise ValueError(f"the plan has no subtask {quoted(unknown[0])}")
        if self.answer.kind == "plan" and not self.plan:
            raise ValueError("an answer of kind plan needs a `plan` beside it")
        if self.answer.kind == "sql" and self.data is None:
            raise ValueError("an answer of kind sql needs `data`")
        return self

    @property
    def goal(self) -> str:
        """The goal of the run."""
        if not self.form:
            return self.question
        return f"{self.question}\n\nThe form of the answer: {self.form}"


def read_questions(text: str) -> list[tuple[int, EvalQuestion]]:
    """Returns the questions with their line numbers. Raises BadQuestion for an invalid line."""
    found: list[tuple[int, EvalQuestion]] = []
    places: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        question = _question(number, _object(number, line))
        if question.id in places:
            raise BadQuestion(
                number,
                f"the id {quoted(question.id)} is that of line {places[question.id]}, too",
            )
        places[question.id] = number
        found.append((number, question))
    if not found:
        raise BadQuestion(1, "there is no question")
    return found


def goals_as_questions(team: str, known: dict[str, Any]) -> list[EvalQuestion]:
    """Returns the goals of a team's `goals.toml` as questions.

    Goals that need a person are left out. Raises BadQuestion for an invalid goal.
    """
    found: list[EvalQuestion] = []
    goals = known.get("goals")
    for number, goal in enumerate(goals if isinstance(goals, list) else [], 1):
        if not isinstance(goal, dict):
            raise BadQuestion(number, "a goal is a section [[goals]]")
        if goal.get("reply"):
            continue

        role = goal.get("role")
        facts = goal.get("says")
        answer = {"kind": "facts", "value": facts} if facts else {"kind": "route", "value": role}
        fields = {
            "id": f"{team}-{number}",
            "question": goal.get("goal"),
            "answer": answer,
            "role": role,
            "strategy": goal.get("strategy", known.get("strategy")),
            "data": known.get("data"),
        }
        found.append(_question(number, fields))
    if not found:
        raise BadQuestion(1, "there is no goal")
    return found


def _object(number: int, line: str) -> dict[str, Any]:
    """Returns the object in a line of JSON. Raises BadQuestion for any other line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadQuestion(number, f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadQuestion(
            number,
            'it must hold an object such as {"id": "q1", "question": "...", "answer": {...}}',
        )
    return value


def _question(number: int, fields: dict[str, Any]) -> EvalQuestion:
    """Returns the question with these fields. Raises BadQuestion if they are invalid."""
    answer = fields.get("answer")
    kind = answer.get("kind") if isinstance(answer, dict) else None
    if isinstance(kind, str) and kind not in get_args(AnswerKind):
        kinds = ", ".join(get_args(AnswerKind))
        meant = did_you_mean(kind, get_args(AnswerKind))
        raise BadQuestion(
            number,
            f"unknown kind of answer {quoted(kind)}{meant}; there are: {kinds}",
        )
    try:
        return EvalQuestion.model_validate(fields)
    except ValidationError as error:
        raise BadQuestion(number, "; ".join(complaint_lines(error, root="question"))) from None


def _is_written(kind: AnswerKind, value: JsonValue) -> bool:
    """True if a value has the form that its kind needs."""
    match kind:
        case "none" | "plan":
            return True
        case "number":
            return is_number(value)
        case "numbers":
            return isinstance(value, dict) and bool(value) and all(map(is_number, value.values()))
        case "text" | "route" | "sql":
            return isinstance(value, str) and bool(value.strip())
        case "facts":
            texts = [each for each in _items(value) if isinstance(each, str) and each.strip()]
            return _is_list(value) and texts == value
        case "list":
            return _is_list(value) and _are_cells(_items(value))
        case "rows" if isinstance(value, dict):
            are_columns = [_is_list(each) and _are_cells(_items(each)) for each in value.values()]
            return bool(value) and all(are_columns)
        case "rows":
            return _is_list(value) and all(_is_row(row) for row in _items(value))
    return False


def is_number(value: object) -> bool:
    """True for a finite number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, list) and bool(value)


def _items(value: JsonValue) -> list[Any]:
    return value if isinstance(value, list) else []


def _are_cells(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) or is_number(value) for value in values)


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and bool(row) and _are_cells(row.values())
