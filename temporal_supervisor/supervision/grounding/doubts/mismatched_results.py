"""Results that a query computes or shows, and that its question does not ask for.

Each rule takes an inquiry and yields a sentence for each doubt. The first half are rules about what
a query shows: the other end, a total among the rows, another kind or column. The second half are
about what no query computes: a sum, an extreme, a mean, a condition.
"""

import re
from collections.abc import Iterator
from typing import TypeAlias

from temporal_supervisor.supervision.base.prompt_marks import TIED
from temporal_supervisor.supervision.base.spoken_words import stems
from temporal_supervisor.supervision.base.text import has_whole, quoted
from temporal_supervisor.supervision.grounding.doubts import question_patterns as patterns
from temporal_supervisor.supervision.grounding.doubts.inquiry import (
    AnsweredQuery,
    Inquiry,
    place_of,
)
from temporal_supervisor.supervision.grounding.doubts.query_shape import QueryShape, plain_number
from temporal_supervisor.supervision.grounding.doubts.values_left_out import could_choose, is_common
from temporal_supervisor.supervision.grounding.rows.superlatives import TOTAL_WORDS
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

_ALIAS = re.compile(r"\bas\s+(\w+)")  # "count(*) as quantity"
_MOST_WORDS = """
most highest largest greatest least lowest fewest smallest
"""
_MOST = frozenset(_MOST_WORDS.split())
# A cell that names the sum of the others: "Total", "Grand total".
_SUMS_UP = re.compile(rf"(?:grand )?(?:{TOTAL_WORDS})", re.IGNORECASE)
# Columns whose lowest value is the best one: "rank", "pos", "#".
_RANKED = re.compile(
    r"\b(?:rank|rnk|ranking|pos|position|place|seed|no|lane)\b|#",
    re.IGNORECASE,
)
# Columns by which a first and a last one are known: "season", "date of birth".
DATED = re.compile(
    r"\b(?:year|date|season|episode|week|day|month|round|built|opened|founded|born)\b",
    re.IGNORECASE,
)
# Columns of numbers that count nothing: "Year", "No", "rank".
_NO_COUNT = re.compile(
    r"\b(?:year|rank|rnk|pos|position|place|date|id|no|season|week|lane)\b|#",
    re.IGNORECASE,
)
_SHORT_NAME = 3  # letters of a name that may be a word of the sentence
_ENDS = {"max": "highest", "min": "lowest"}
_OTHER_FUNCTIONS = frozenset(["max", "min", "avg", "mean", "median"])

Columns: TypeAlias = dict[tuple[str, ...], str]
"""The names of columns by their words."""


def other_end(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt if the only query takes the highest for the lowest, or the last for the first.

    Example: `ORDER BY wins DESC LIMIT 1` for "Who has the fewest wins?"
    """
    query = inquiry.only_query
    extremes = [*patterns.EXTREME.finditer(inquiry.question)]
    ends = [*patterns.ENDS.finditer(inquiry.question)]
    if query is None or len(extremes) + len(ends) != 1:
        return

    asked_for = (extremes or ends)[0]
    word = asked_for["word"].lower()
    if word in inquiry.names:
        return

    columns = " ".join([query.shape.bare, *query.shape.names]).replace("_", " ")
    direction = query.shape.direction
    if ends:
        other = 1 if word == "first" else -1
        if direction == other and DATED.search(columns):
            yield f"the query takes the other end, and the question asks for the {word}"
        return
    if _RANKED.search(columns):
        return  # the best rank is the lowest
    if asked_for["high"] and direction < 0:
        yield f"the query takes the lowest, and the question asks for the {word}"
    if asked_for["low"] and direction > 0:
        yield f"the query takes the highest, and the question asks for the {word}"


def total_row(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt if the only query takes a row that sums up the others for one of them."""
    query = inquiry.only_row
    if query is None or not query.shape.sorts:
        return
    for cell in query.cells:
        if _SUMS_UP.fullmatch(cell) and cell.lower() not in inquiry.question.lower():
            row = f"the row {quoted(cell)}"
            yield f"{row} sums up the others, and the query takes it for one of them"


def other_rows(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about rows that the only query leaves out, or counts in."""
    query = inquiry.only_query
    if query is None:
        return
    if query.facts.is_tied:
        yield f"{TIED}, which may be meant as well"
    if query.facts.adds_total:
        yield "the query counts in a row that is the sum of the others"


def other_kind(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt if the only row is of another kind than what is asked for.

    Examples: a number for a question that begins with "who", or none for "how many".
    """
    query, question = inquiry.only_row, inquiry.question
    if query is None:
        return

    has_numbers_alone = len(query.numbers) == len(query.cells)
    if has_numbers_alone and patterns.WHO.search(question):
        yield "the query returns a number, and the question asks who"
    if has_numbers_alone and patterns.WHERE.search(question):
        yield "the query returns a number, and the question asks where"
    if not query.has_digits and patterns.WHEN.search(question):
        yield "the query returns no date, and the question asks when"

    if not patterns.COUNT.search(question) or query.shape.counts:
        return
    if not query.has_digits:
        yield "the query returns no number, and the question asks how many"
    elif len(query.heads) == 1 and _NO_COUNT.search(query.heads[0]) and not query.shape.subtracts:
        yield f"the query returns {query.heads[0]}, and the question asks how many"


def none_of_two(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt if one of two is asked for, and the only row has a figure in its place.

    Example: `20` for "Were more episodes aired in 1967 or 1968?"
    """
    query = inquiry.only_row
    choice = patterns.ONE_OF_TWO.search(inquiry.question)
    if query is None or choice is None or len(query.cells) != 1 or not query.numbers:
        return
    if query.cells[0].lower() not in (choice["one"].lower(), choice["other"].lower()):
        yield "the query returns one number, and the question asks which of two"


def other_name(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt for each name in the finding that is in a listed column, and in no row."""
    cells = [cell for query in inquiry.queries for cell in query.cells]
    texts = [text for shape in inquiry.shapes for text in shape.texts]
    known = " ".join(" ".join([inquiry.question, *cells, *texts]).lower().split())
    for column in inquiry.columns:
        if not column.is_text:
            continue
        for value in column.values:
            is_name = value[:1].isupper() and len(value) > _SHORT_NAME
            if is_name and value.lower() not in known and has_whole(inquiry.finding, value):
                yield f"no row of the query has {quoted(value)}, which the finding gives"


def other_column(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about columns that a question asks for, and that no query shows or reads."""
    if any(shape.shows_all for shape in inquiry.shapes):
        return

    columns: Columns = {tuple(words_of(column.name)): column.name for column in inquiry.columns}
    heads = " ".join(head for query in inquiry.queries for head in query.heads)
    shown = stems(words_of(heads)).union(*(stems(shape.shown) for shape in inquiry.shapes))
    yield from _not_shown(inquiry, columns, shown)

    query = inquiry.only_query
    if query is None:
        return
    # After another query it may only have looked once more at what that one found.
    is_alone = len(inquiry.queries) == 1
    if is_alone and _shows_only_its_texts(query):
        yield "the query returns only the values that it was asked by"

    words = words_of(inquiry.question)
    yield from _most_of_another(words, columns, query.shape)
    if query.shape.counts_rows:
        yield from _rows_counted(inquiry, query.shape)
        return

    yield from _not_counted(inquiry, columns, query.shape)
    named = [name for key, name in columns.items() if _is_named(key, words)]
    read = shown.union(*(stems(shape.columns) for shape in inquiry.shapes))
    if named and stems(words).isdisjoint(read):
        yield f"the query does not read {named[0]}, which the question names"


def _not_shown(inquiry: Inquiry, columns: Columns, shown: frozenset[str]) -> Iterator[str]:
    """Yields doubts about the columns behind which and what, if no query shows any of their words.

    Of "Which home port ..." the column `Home port` is looked up before a column `Home`.
    """
    for noun in patterns.nouns_asked_for(inquiry.question):
        words = words_of(noun)
        if stems(words) & shown:
            continue
        keys = (tuple(words[:size]) for size in range(len(words), 0, -1))
        name = next((columns[key] for key in keys if key in columns), None)
        if name:
            yield f"the query does not show {name}, which the question asks for"


def _shows_only_its_texts(query: AnsweredQuery) -> bool:
    """True if its rows repeat the texts of its conditions, as in `SELECT a ... WHERE a = 'Bob'`."""
    cells = {cell.lower() for cell in query.cells}
    texts = {text.lower() for text in query.shape.texts}
    return cells <= texts and not query.shape.counts


def _most_of_another(words: list[str], columns: Columns, shape: QueryShape) -> Iterator[str]:
    """Yields the column whose most or least is asked for, where the query renames another one.

    Example: `SELECT nation, count(*) AS quantity ...` for "Who has the most quantity?"
    """
    aliases = stems(words_of(" ".join(_ALIAS.findall(shape.bare))))
    selected = stems(words_of(_ALIAS.sub(" ", shape.selected)))
    for key, name in columns.items():
        place = place_of(key, words)
        if place < 1 or words[place - 1] not in _MOST:
            continue
        is_a_mere_name = aliases >= stems(key) and selected.isdisjoint(stems(key))
        if is_a_mere_name:
            asked_for = f"the question asks for the {words[place - 1]}"
            yield f"the query does not read {name}, of which {asked_for}"


def _rows_counted(inquiry: Inquiry, shape: QueryShape) -> Iterator[str]:
    """Yields the column of numbers that a question names, where the query counts rows instead.

    Its name has to be the word of the question: a column `Game` may number the games.
    """
    noun = patterns.TOTAL_OF.search(inquiry.question)
    if noun is None:
        return
    name = noun["noun"].lower()
    is_read = name in shape.columns or not name.endswith("s")
    if is_read or _NO_COUNT.search(name.removesuffix("s")):
        return
    for column in inquiry.columns:
        if column.name == name and not column.is_text:
            yield f"the query counts rows, and the numbers of {name} are in a column of that name"


def _not_counted(inquiry: Inquiry, columns: Columns, shape: QueryShape) -> Iterator[str]:
    """Yields the column whose values a question counts, if the query counts another one's."""
    counted = patterns.COUNTED.search(inquiry.question)
    if counted is None or "count" not in shape.functions:
        return
    key = tuple(words_of(counted["noun"])[:1])
    if key in columns and not shape.columns.issuperset(key):
        yield f"the query does not read {columns[key]}, which the question counts"


def _is_named(key: tuple[str, ...], words: list[str]) -> bool:
    """True if a question has the words of a column, and these name something."""
    return not is_common(key) and place_of(key, words) >= 0


def not_added_up(inquiry: Inquiry) -> Iterator[str]:
    """Yields the sum of the rows, where a total is asked for and the finding has another one."""
    query = inquiry.only_query
    if query is None or not inquiry.finding_numbers or not patterns.TOTAL.search(inquiry.question):
        return
    if query.shape.counts or _extreme_of(inquiry) or inquiry.has_head("total", "combined", "sum"):
        return
    total = query.total
    if total is not None and plain_number(str(total)) not in inquiry.finding_numbers:
        yield f"the rows add up to {total}, and the finding gives another total"


def not_computed(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about extremes, means and differences that no query computes."""
    shapes = inquiry.shapes
    extreme = _extreme_of(inquiry)
    if extreme and not any(shape.sorts or shape.takes_first for shape in shapes):
        missing = "the query neither sorts nor takes an extreme"
        yield f"{missing}, and the question asks for the {extreme}"
    yield from no_mean(inquiry)

    compared = _comparison_in(inquiry.question)
    if compared and not any(shape.compares or shape.sorts for shape in shapes):
        number = plain_number(compared["number"].strip(",."))
        if number in inquiry.query_numbers or could_choose(inquiry, number):
            yield f"the query compares with nothing, and the question asks for {compared[0]}"
    yield from _other_figure(inquiry, is_extreme=bool(extreme))


def _comparison_in(question: str) -> re.Match[str] | None:
    return patterns.COMPARED.search(question) or patterns.RANGE.search(question)


def no_count(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt if a question asks for the most of names in a column, and no query counts."""
    most = patterns.MOST_OF.search(inquiry.question)
    if most is None or any(shape.counts for shape in inquiry.shapes):
        return
    noun = stems(words_of(most["noun"]))
    named = [column for column in inquiry.columns if noun & stems(words_of(column.name))]
    # A column such as `ships` may have the numbers of them.
    if named and all(column.is_text for column in named):
        yield f"the query counts nothing, and the question asks for the {most[0]}"


def no_mean(inquiry: Inquiry) -> Iterator[str]:
    """Yields a doubt if a mean is asked for that no query computes, and no column has means."""
    if not patterns.AVERAGE.search(inquiry.question):
        return
    if inquiry.has_head("averag", "mean", "avg"):
        return
    if not any(shape.averages for shape in inquiry.shapes):
        yield "the query computes no mean, which the question asks for (in SQL: avg(x))"


def _extreme_of(inquiry: Inquiry) -> str:
    """Returns the first superlative of a question that is no name; empty without one.

    Behind a mean that is computed it tells of what: the mean of the highest temperatures.
    """
    extremes = patterns.EXTREME.finditer(inquiry.question)
    found = [*extremes, *patterns.ENDS.finditer(inquiry.question)]
    is_computed = any(shape.averages for shape in inquiry.shapes)
    mean = patterns.AVERAGE.search(inquiry.question) if is_computed else None
    if mean is not None:
        found = [each for each in found if each.start() < mean.start()]
    superlatives = [each["word"].lower() for each in found]
    return next((word for word in superlatives if word not in inquiry.names), "")


def _other_figure(inquiry: Inquiry, *, is_extreme: bool) -> Iterator[str]:
    """Yields doubts about the only figure, if it is another one than the question asks for.

    With `is_extreme` the question asks for the highest or lowest of something.
    """
    query, question = inquiry.only_figure, inquiry.question
    if query is None:
        return

    shape = query.shape
    is_change = inquiry.has_head("difference", "diff", "gap", "margin", "change")
    if patterns.DIFFERENCE.search(question) and not shape.subtracts and not is_change:
        yield "the query computes no difference, which the question asks for"
    if shape.functions & {"avg", "mean"} and not patterns.may_mean(question):
        yield "the query computes a mean, which the question does not ask for"
    if is_extreme:
        return

    adds_up = shape.totals or shape.subtracts or not shape.functions & _OTHER_FUNCTIONS
    is_mean = shape.averages and patterns.AVERAGE.search(question)  # a sum over how many there are
    if patterns.TOTAL.search(question) and not adds_up and not is_mean:
        yield "the query adds nothing up, and the question asks for a total"
    if shape.outer_extreme and not patterns.may_take_an_end(question):
        end = _ENDS[shape.outer_extreme]
        yield f"the query takes the {end}, which the question does not ask for"


def not_chosen(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about conditions of a question, if the only query has none of their kind."""
    query, shapes = inquiry.only_row, inquiry.shapes
    if query is None or any(shape.compares for shape in shapes):
        return

    question = patterns.ORDER.sub("", inquiry.question)
    if patterns.NOT.search(question) and not any(shape.denies for shape in shapes):
        yield "the query leaves nothing out, and the question asks for what is not there"
    compared = patterns.COMPARED.search(inquiry.question)
    if compared and not any(shape.chooses or shape.sorts for shape in shapes):
        yield f"the query has no condition, and the question asks for {compared[0]}"
