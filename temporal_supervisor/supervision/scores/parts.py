"""Questions for a part of a run's work, and results of queries as true answers."""

from collections.abc import Sequence

from pydantic import JsonValue

from temporal_supervisor.supervision.scores.eval_plan import Part
from temporal_supervisor.supervision.scores.figures import figure_of
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion, Truth


def question_for_part(question: EvalQuestion, part: Part) -> EvalQuestion:
    """Returns a question for a part of a run's work alone.

    Raises ValueError if the question has nothing to judge that part by.
    """
    match part:
        case "plan":
            return _for_plan(question)
        case "agent" if question.answer.kind in ("route", "plan"):
            raise ValueError(f"an agent alone has no {question.answer.kind}")
        case "answer" if not question.findings:
            raise ValueError("a synthesis alone starts from `findings`")
        case "whole" if question.findings:
            raise ValueError("`findings` are for a synthesis alone: pass --only answer")
    return question


def _for_plan(question: EvalQuestion) -> EvalQuestion:
    """Returns a question that is judged by its plan, else by the role that takes it."""
    if question.plan:
        return question.model_copy(update={"answer": Truth(kind="plan")})
    role = question.answer.value if question.answer.kind == "route" else question.role
    if role is None:
        raise ValueError("a plan alone is judged by `plan` or `role`")
    answer = Truth(kind="route", value=role)
    return question.model_copy(
        update={"answer": answer, "strategy": question.strategy or "route"},
    )


def _plain(number: float) -> int | float:
    """Returns a number without needless decimals: 3 for 3.0."""
    return int(number) if number.is_integer() else number


def result_as_truth(asked: Truth, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Truth:
    """Returns the result of a query as a true answer.

    One cell is a number or a text, one column is a list, several columns are rows. Without rows
    there is no answer.
    """
    known = asked.model_dump(exclude_defaults=True, exclude={"kind", "value"})
    filled = [list(row) for row in rows if any(row)]
    value: JsonValue
    if not filled:
        return Truth.model_validate({**known, "kind": "none"})
    if len(filled) == len(columns) == 1:
        cell = filled[0][0]
        number = figure_of(cell)
        kind, value = ("text", cell) if number is None else ("number", _plain(number.value))
    elif len(columns) == 1:
        kind, value = "list", [row[0] for row in filled]
    else:
        kind, value = "rows", [dict(zip(columns, row, strict=True)) for row in filled]
    return Truth.model_validate({**known, "kind": kind, "value": value})
