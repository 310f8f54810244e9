"""The comparison of an answer with the true one, by the fields of the answer.

There is also a lenient comparison, by any words of the text.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from temporal_supervisor.supervision.scores.figures import (
    FACTORS,
    agrees,
    figure_of,
    has_words,
    is_near,
    numbers_in,
    plain,
)
from temporal_supervisor.supervision.scores.plan_fit import PlanFit, has_fact
from temporal_supervisor.supervision.scores.question_sets import Truth, is_number


class Given(NamedTuple):
    """An answer: its text, its fields, and the roles that took the question.

    `plan` is the fit of its plan, if one was expected.
    """

    text: str = ""
    fields: JsonValue = None
    roles: Sequence[str] = ()
    has_gap: bool = False
    plan: PlanFit | None = None


class Judged(NamedTuple):
    """The outcome of a comparison: whether the answer is `right`, and its right `share`.

    Rows have shares by field. `refused` is True without an answer in the fields. `lenient` accepts
    any word or number of the text.
    """

    right: bool
    share: float
    refused: bool = False
    lenient: bool = False
    by_field: Mapping[str, float] = {}


def judge_answer(truth: Truth, given: Given) -> Judged:
    """Compares an answer with the true one; several candidates in place of one are wrong."""
    refused = is_refused(truth, given)
    lenient = lenient_share(truth, given) >= 1.0
    if truth.kind == "none":
        return Judged(refused, float(refused), refused, refused)
    if refused:
        return Judged(False, 0.0, True, lenient)
    by_field = _by_field(truth, given)
    if by_field is not None:
        counts = list(by_field.values())
        hits, wanted, had = (sum(count[place] for count in counts) for place in range(3))
        share = _f1(hits, wanted, had)
        shares = {name: _f1(*count) for name, count in by_field.items()}
        return Judged(share == 1.0, share, False, lenient, shares)
    share = _share(truth, given)
    return Judged(share == 1.0, share, False, lenient)


def is_refused(truth: Truth, given: Given) -> bool:
    """True if the fields state that there is no answer, or if fields and text are empty."""
    match truth.kind:
        case "facts":
            return not given.text.strip()
        case "route":
            return not given.roles
        case "plan":
            return False
    fields = given.fields
    if fields is None and given.has_gap and truth.kind == "none":
        return True
    if not isinstance(fields, dict):
        return fields is None and not given.text.strip()
    values = [value for name, value in fields.items() if name != "scale"]
    return all(value is None or value in ("", []) for value in values)


def _share(truth: Truth, given: Given) -> float:
    """Returns the share of the true answer in the fields; 1 is right."""
    fields = given.fields if isinstance(given.fields, dict) else {}
    match truth.kind:
        case "number":
            figure = figure_of(fields.get("value"), fields.get("scale", ""))
            return float(figure is not None and agrees(figure, truth, _number(truth.value)))
        case "numbers":
            known = _numbers(truth)
            given_for = fields.get
            same = [_is_same_number(given_for(name), truth, known[name]) for name in known]
            return sum(same) / len(same)
        case "text":
            return float(_is_one_of(fields.get("value"), [truth.value, *truth.aliases]))
        case "list":
            return _list_share(truth, fields.get("values"))
        case "route":
            return float(list(given.roles) == [truth.value])
        case "plan":
            return _plan_share(given.plan)
        case _:
            return lenient_share(truth, given)


def _plan_share(fit: PlanFit | None) -> float:
    """Returns the coverage of a plan, below 1 if it is not whole."""
    if fit is None or fit.is_whole:
        return float(fit is not None)
    return min(fit.coverage, 0.99)


def _is_same_number(value: object, truth: Truth, wanted: float) -> bool:
    figure = figure_of(value)
    return figure is not None and agrees(figure, truth, wanted)


def _is_one_of(value: object, wanted: Sequence[object]) -> bool:
    if value is None or isinstance(value, list | dict):
        return False
    return plain(value) in {plain(each) for each in wanted}


def _list_share(truth: Truth, values: object) -> float:
    """Returns the F1 of a list or, if the order counts, 1 for an equal list."""
    given = [Cell("", value) for value in values] if isinstance(values, list) else []
    wanted = [Cell("", value) for value in truth.value] if isinstance(truth.value, list) else []
    if truth.ordered:
        pairs = zip(given, wanted, strict=False)
        same = sum(_is_same_cell(one, other, truth) for one, other in pairs)
        return same / max(len(given), len(wanted))
    return _f1(_common(given, wanted, truth), len(wanted), len(given))


def _by_field(truth: Truth, given: Given) -> dict[str, tuple[int, int, int]] | None:
    """Returns the numbers of right, true and given values for each field of rows.

    None for other kinds of answers.
    """
    if truth.kind != "rows":
        return None
    fields = given.fields if isinstance(given.fields, dict) else {}
    wanted = _columns(truth.value)
    had = _columns(fields if isinstance(truth.value, dict) else fields.get("rows"))
    counts = {}
    for name, cells in wanted.items():
        own = had.get(name, [])
        counts[name] = _common(own, cells, truth), len(cells), len(own)
    return counts


class Cell(NamedTuple):
    """A value in an answer, with the words that identify its row."""

    row: str
    value: object


def _columns(value: object) -> dict[str, list[Cell]]:
    """Returns the cells by field; cells of rows have the first cell as their row's name."""
    if isinstance(value, dict):
        lists = {name: cells for name, cells in value.items() if isinstance(cells, list)}
        return {name: [Cell("", cell) for cell in cells] for name, cells in lists.items()}
    columns: dict[str, list[Cell]] = {}
    for row in value if isinstance(value, list) else []:
        cells = list(row.items()) if isinstance(row, dict) else []
        for place, (name, cell) in enumerate(cells):
            named = "" if place == 0 else plain(cells[0][1])
            columns.setdefault(name, []).append(Cell(named, cell))
    return columns


def _common(given: Sequence[Cell], wanted: Sequence[Cell], truth: Truth) -> int:
    """Returns the number of given cells that are wanted; each counts once."""
    known = Counter((cell.row, plain(cell.value)) for cell in given)
    left: list[Cell] = []
    hits = 0
    for cell in wanted:
        key = cell.row, plain(cell.value)
        if known[key]:
            known[key] -= 1
            hits += 1
        else:
            left.append(cell)

    # A cell that differs by its letters may be the same number, rounded.
    spare = [cell for cell in given if _take_one(known, cell)]
    for cell in left:
        same = next((each for each in spare if _is_same_cell(each, cell, truth)), None)
        if same is not None:
            spare.remove(same)
            hits += 1
    return hits


def _take_one(known: Counter[tuple[str, str]], cell: Cell) -> bool:
    """Removes a matching cell from the remaining ones; returns False if there is none."""
    key = cell.row, plain(cell.value)
    known[key] -= 1
    return known[key] >= 0


def _is_same_cell(given: Cell, wanted: Cell, truth: Truth) -> bool:
    if given.row != wanted.row:
        return False
    if plain(given.value) == plain(wanted.value):
        return True
    number = figure_of(wanted.value)
    if number is None or not number.decimals:
        return False
    return _is_same_number(given.value, truth, number.value)


def _f1(hits: int, wanted: int, had: int) -> float:
    """Returns the F1 of `hits` among `wanted` true and `had` given values."""
    return 1.0 if wanted + had == 0 else 2 * hits / (wanted + had)


def lenient_share(truth: Truth, given: Given) -> float:
    """Returns the share of the true answer that appears anywhere in the text."""
    text = given.text
    match truth.kind:
        case "number":
            return float(_has_number(text, truth, _number(truth.value)))
        case "numbers":
            hits = [_has_number(text, truth, value) for value in _numbers(truth).values()]
            return sum(hits) / len(hits)
        case "text":
            return float(any(_has_value(text, value) for value in [truth.value, *truth.aliases]))
        case "route":
            return float(truth.value in given.roles)
        case "none":
            return 0.0
        case "plan":
            return given.plan.coverage if given.plan else 0.0
        case "facts":
            facts = truth.value if isinstance(truth.value, list) else []
            found = [has_fact(text, str(fact)) for fact in facts]
            return sum(found) / len(found)
    values = [_has_value(text, cell) for cells in _cells(truth.value) for cell in cells]
    return sum(values) / len(values)


def _cells(value: Any) -> list[list[Any]]:
    """Returns the cells of a list, of lists by field, or of rows."""
    if isinstance(value, dict):
        return list(value.values())
    return [list(each.values()) if isinstance(each, dict) else [each] for each in value]


def _has_value(text: str, value: object) -> bool:
    figure = None if isinstance(value, bool) else figure_of(value)
    if figure is not None and any(is_near(number, figure.value) for number in numbers_in(text)):
        return True
    return has_words(text, value)


def _has_number(text: str, truth: Truth, value: float) -> bool:
    """True if a number in the text is near the true one, as written or in another scale."""
    scales = {1.0} if not truth.scale else {1.0, FACTORS[truth.scale]}
    return any(is_near(number, value * factor) for number in numbers_in(text) for factor in scales)


def _number(value: object) -> float:
    return float(value) if is_number(value) and isinstance(value, int | float) else 0.0


def _numbers(truth: Truth) -> dict[str, float]:
    values = truth.value if isinstance(truth.value, dict) else {}
    return {name: _number(value) for name, value in values.items()}
