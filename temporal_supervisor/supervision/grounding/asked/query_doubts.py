"""Doubts about the queries behind an answer: reasons to think that they ask something else than the question.

A query proves its figures, whatever it asks for. So the words of the question are compared with what all
queries together compute, choose and show. Whoever has read several rows may have compared or added them up, and
whoever has read a text may know from there: then nothing is doubted but a year or name that is nowhere at all.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.grounding.asked import question_words as words
from temporal_supervisor.supervision.grounding.asked.listed_tables import ListedColumn, listed_tables
from temporal_supervisor.supervision.grounding.asked.query_shape import QueryShape, plain_number, shape_of
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, read_tables
from temporal_supervisor.supervision.grounding.rows.queries import read_query, sql_in
from temporal_supervisor.supervision.grounding.rows.row_facts import words_of
from temporal_supervisor.supervision.grounding.sources import BRIEF, Source

_DOUBTS = 5  # of one finding
_COMPARED = 2000  # listed values
_NAME_WORDS = 8
_STEM = 5  # letters by which two forms of a word are told to be one
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_NUMBER = re.compile(r"[^\w\s]{0,3}-?\d[\d,. ]*%?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?")
_COUNT_OF_ROWS = re.compile(r"^(?:first )?\d+ rows?\b.*$", re.MULTILINE)
_SUMS_UP = re.compile(r"(?:grand |sub)?totals?|sum|all|overall|gesamt|insgesamt", re.IGNORECASE)
_RANKED = re.compile(r"\b(?:rank|rnk|ranking|pos|position|place|seed|no|lane)\b|#", re.IGNORECASE)
_NO_COUNT = re.compile(r"\b(?:year|rank|rnk|pos|position|place|date|id|no|season|week|lane)\b|#", re.IGNORECASE)
_TITLES = re.compile(r"\bname|title|player|person|nation|country|team|city\b", re.IGNORECASE)
# fmt: off
_COMMON = frozenset(words_of(
    "the a an of in on at by for to from with and or is are was were be has have had do does did not no yes all any "
    "more most less least than who what which when where why how many much other only first last second third total "
    "win won loss lost lose draw drawn tie home away time times year years day month name number game games round "
    "final place up out over under off day both each per same new old one two three four five six"
))
# fmt: on


@dataclass(frozen=True)
class _Query:
    """A query that found rows: its shape, the tables that it read, and its output."""

    shape: QueryShape
    tables: tuple[str, ...]
    filtered: frozenset[str]
    output: tuple[MarkdownTable, ...]

    @property
    def rows(self) -> int:
        """The number of rows that it shows."""
        return sum(len(table.rows) for table in self.output)

    @property
    def only_names(self) -> bool:
        """True if it shows texts without any number, each once: they can neither be compared nor counted by name."""
        cells = self.cells
        return not any(_DIGITS.search(cell) for cell in cells) and len(set(cells)) == len(cells)

    @property
    def cells(self) -> list[str]:
        """All its cells."""
        return [cell for table in self.output for row in table.rows for cell in row.cells]

    @property
    def heads(self) -> list[str]:
        """The heads of its columns."""
        return [head for table in self.output for head in table.columns]


def query_doubts(question: str, sources: Sequence[Source]) -> list[str]:
    """Returns sentences on what a question asks for, and no query behind its answer does.

    `sources` are the outputs of tools, and the brief. Without a query that found rows there are no doubts.
    """
    asked = _Asked(question, sources)
    return list(dict.fromkeys(islice(asked.doubts(), _DOUBTS)))


class _Asked:
    """A question beside all that was read to answer it."""

    def __init__(self, question: str, sources: Sequence[Source]) -> None:
        self._question = question
        self._queries = [query for source in sources if (query := _found(source)) is not None]
        listed = listed_tables(source.text for source in sources if read_query(source.arguments) is None)
        names = {name for query in self._queries for name in query.tables}
        self._columns = [column for name in names for column in listed.get(name, [])]
        others = [each for each in sources if each.name != BRIEF and read_query(each.arguments) is None]
        self._others = [each for each in others if not each.text.startswith("table ")]
        self._is_listed = bool(names) and all(name in listed for name in names)

    def doubts(self) -> Iterator[str]:
        """Yields the doubts, the surest first."""
        if not self._queries:
            return
        yield from self._numbers_left_out()
        yield from self._names_left_out()
        if self._others:
            return
        yield from self._other_direction()
        yield from self._total_rows()
        yield from self._other_cells()
        yield from self._other_columns()
        if self._reads_rows:
            return
        yield from self._not_computed()
        yield from self._not_chosen()

    @cached_property
    def _shapes(self) -> list[QueryShape]:
        return [query.shape for query in self._queries]

    @cached_property
    def _reads_rows(self) -> bool:
        """True if an agent has seen several rows at once, and more of them than names that are all different."""
        return any(query.rows > 1 and not query.only_names for query in self._queries)

    @cached_property
    def _shown(self) -> str:
        """All cells that queries show, and the texts of other tools."""
        return "\n".join([*(cell for query in self._queries for cell in query.cells), *(o.text for o in self._others)])

    @cached_property
    def _shown_words(self) -> frozenset[str]:
        return frozenset(words_of(self._shown))

    @cached_property
    def _shown_numbers(self) -> frozenset[str]:
        return frozenset(plain_number(number) for number in _DIGITS.findall(self._shown.replace(",", "")))

    @cached_property
    def _asked_numbers(self) -> frozenset[str]:
        return frozenset[str]().union(*(shape.numbers for shape in self._shapes))

    @cached_property
    def _asked_words(self) -> frozenset[str]:
        return frozenset[str]().union(*(shape.words for shape in self._shapes))

    @cached_property
    def _heads(self) -> list[str]:
        """The names of all columns that are known."""
        shown = [head for query in self._queries for head in query.heads]
        return [*(column.name for column in self._columns), *shown]

    def _numbers_left_out(self) -> Iterator[str]:
        """Yields the years and numbers of the question that could choose rows, and neither do nor stand in them."""
        for number in words.numbers_in(self._question):
            plain = plain_number(number)
            near = {plain, *self._neighbours(plain)}
            if near & self._asked_numbers or plain in self._shown_numbers or not self._could_choose(plain):
                continue
            if words.is_year(number) and f"{int(number) % 100}" in self._asked_numbers:
                continue
            yield f"the query has no condition on {number}, which the question names"

    def _neighbours(self, number: str) -> Iterator[str]:
        """Yields the whole numbers beside one: more than 9 is at least 10."""
        if number.isdigit():
            yield from (str(int(number) - 1), str(int(number) + 1))

    def _could_choose(self, number: str) -> bool:
        """True if a column has this number between others, or in a text."""
        is_year = words.is_year(number)
        for column in self._columns:
            if column.ends and _lies_within(number, column.ends, is_year):
                return True
            if is_year and any(number in _DIGITS.findall(value) for value in column.values[:_COMPARED]):
                return True
        return False

    def _names_left_out(self) -> Iterator[str]:
        """Yields the values of columns that the question names, and no query asks for or shows."""
        rest = words_of(words.without_exceptions(self._question))
        said = {*rest}
        heads = frozenset(words_of(" ".join(self._heads)))
        for key, value, column in self._named_values():
            if not said.issuperset(key):
                continue
            at = _place(rest, key)
            if at < 0:
                continue
            rest[at : at + len(key)] = [""] * len(key)
            is_head = all(any(head.startswith(word) for head in heads) for word in key)
            if is_head or {*key} & (self._asked_words | self._shown_words):
                continue
            yield f"the query has no condition on {quoted(value)} of {column}, which the question names"

    def _named_values(self) -> list[tuple[tuple[str, ...], str, str]]:
        """Returns the values of text columns that may be names, the longest first."""
        found = list[tuple[tuple[str, ...], str, str]]()
        for column in self._columns:
            if len(column.values) == 1:
                continue  # a condition on it would leave out nothing
            for value in column.values[:_COMPARED]:
                key = tuple(words_of(value))
                if 0 < len(key) <= _NAME_WORDS and _is_name(key):
                    found.append((key, value, column.name))
        return sorted(found, key=lambda each: -len(each[0]))

    def _not_computed(self) -> Iterator[str]:
        """Yields what the question wants to be computed, and no query computes."""
        question, shapes = self._question, self._shapes
        if any(extreme := [*self._extremes()]) and not any(shape.sorts or _takes_first(shape) for shape in shapes):
            yield f"the query neither sorts nor takes an extreme, and the question asks for the {extreme[0]}"
        if words.AVERAGE.search(question) and not any(shape.averages for shape in shapes) and not self._has("averag", "mean", "avg"):
            yield "the query computes no mean, which the question asks for"
        if not words.may_mean(question) and self._is_single and any(
            shape.functions & {"avg", "mean"} for shape in shapes
        ):
            yield "the query computes a mean, which the question does not ask for"
        if words.DIFFERENCE.search(question) and not any(shape.subtracts for shape in shapes) and self._is_single:
            if not self._has("difference", "diff", "gap", "margin", "change"):
                yield "the query computes no difference, which the question asks for"
        compared = words.COMPARED.search(question) or words.RANGE.search(question)
        if compared and not any(shape.compares or shape.sorts for shape in shapes):
            number = plain_number(compared["number"].strip(",."))
            if number in self._asked_numbers or self._could_choose(number):
                yield f"the query compares with nothing, and the question asks for {compared['word']} {compared['number']}"

        if words.TOTAL.search(question) and self._is_single and not extreme:
            shape = shapes[0]
            if shape.functions & {"max", "min", "avg", "mean", "median"} and not shape.totals and not shape.subtracts:
                yield "the query adds nothing up, and the question asks for a total"
        if self._is_single and not extreme and shapes[0].outer_extreme and not words.takes_an_end(question):
            ends = {"max": "highest", "min": "lowest"}
            yield f"the query takes the {ends[shapes[0].outer_extreme]}, which the question does not ask for"

    def _total_rows(self) -> Iterator[str]:
        """Yields the row that sums up the others, where the only query takes it for one of them."""
        if len(self._queries) != 1 or self._queries[0].rows != 1 or not self._shapes[0].sorts:
            return
        for cell in self._queries[0].cells:
            if _SUMS_UP.fullmatch(cell) and cell.lower() not in self._question.lower():
                yield f"the row {quoted(cell)} sums up the others, and the query takes it for one of them"

    def _not_chosen(self) -> Iterator[str]:
        """Yields what the question leaves out, and the only query does not."""
        if len(self._queries) != 1 or self._queries[0].rows != 1:
            return
        shape = self._shapes[0]
        if words.NOT.search(self._question) and not shape.denies and not shape.compares:
            yield "the query leaves nothing out, and the question asks for what is not there"
        compared = words.COMPARED.search(self._question)
        if compared and not shape.chooses and not shape.compares and not shape.sorts:
            yield f"the query has no condition, and the question asks for {compared['word']} {compared['number']}"

    @cached_property
    def _is_single(self) -> bool:
        """True if the only query that found something shows one figure."""
        if len(self._queries) != 1:
            return False
        return sum(1 for cell in self._queries[0].cells if _is_number(cell)) == 1

    def _extremes(self) -> Iterator[str]:
        """Yields the superlatives of the question that no column is called by."""
        for pattern in (words.EXTREME, words.ENDS):
            for found in pattern.finditer(self._question):
                word = found["word"].lower()
                if word not in self._known_words:
                    yield word

    @cached_property
    def _known_words(self) -> frozenset[str]:
        """The words of columns, of their values, and of the texts in queries, by which a word may be a name."""
        values = (value for column in self._columns for value in column.values[:_COMPARED])
        texts = (text for shape in self._shapes for text in (*shape.texts, *shape.names))
        found = " ".join([*self._heads, *values, *texts]).lower()
        return frozenset(re.findall(r"[^\W_]+", found))

    def _other_direction(self) -> Iterator[str]:
        """Yields that the only query takes the other end than the question asks for."""
        found = [*words.EXTREME.finditer(self._question)]
        if len(self._queries) != 1 or len(found) != 1 or words.ENDS.search(self._question):
            return
        shape, said = self._shapes[0], found[0]
        if said["word"].lower() in self._known_words or _RANKED.search(shape.bare.replace("_", " ")) or any(
            _RANKED.search(name) for name in shape.names
        ):
            return
        if said["high"] and shape.direction < 0 and said["word"].lower() not in ("oldest", "latest"):
            yield f"the query takes the lowest, and the question asks for the {said['word'].lower()}"
        if said["low"] and shape.direction > 0 and said["word"].lower() not in ("youngest", "earliest"):
            yield f"the query takes the highest, and the question asks for the {said['word'].lower()}"

    def _has(self, *stems: str) -> bool:
        """True if a column is called so."""
        return any(stem in head.lower() for stem in stems for head in self._heads)

    def _other_cells(self) -> Iterator[str]:
        """Yields that the only row that was found answers another kind of question."""
        if len(self._queries) != 1 or self._queries[0].rows != 1:
            return
        cells, question = [cell for cell in self._queries[0].cells if cell], self._question
        numbers = [cell for cell in cells if _is_number(cell)]
        if words.WHO.search(question) and len(numbers) == len(cells):
            yield "the query returns a number, and the question asks who"
        if words.WHERE.search(question) and len(numbers) == len(cells):
            yield "the query returns a number, and the question asks where"
        if words.WHEN.search(question) and not any(re.search(r"\d", cell) for cell in cells):
            yield "the query returns no date, and the question asks when"
        if words.COUNT.search(question) and not self._shapes[0].counts:
            if not any(re.search(r"\d", cell) for cell in cells):
                yield "the query returns no number, and the question asks how many"
            elif len(cells) == 1 and all(_NO_COUNT.search(head) for head in self._queries[0].heads) and not self._shapes[0].subtracts:
                yield f"the query returns {self._queries[0].heads[0]}, and the question asks how many"

    def _other_columns(self) -> Iterator[str]:
        """Yields the columns that the question asks for and no query shows."""
        heads = frozenset(word for query in self._queries for head in query.heads for word in words_of(head))
        shown = heads.union(*(shape.shown for shape in self._shapes))
        if any(shape.shows_all for shape in self._shapes):
            return
        for query in self._queries[-1:]:
            told = {cell.lower() for cell in query.cells}
            asked = {text.lower() for text in query.shape.texts}
            if len(self._queries) == 1 and told and told <= asked and not query.shape.counts:
                yield "the query returns only what it was asked by"
        by_words = {tuple(words_of(column.name)): column.name for column in self._columns}
        for noun in words.nouns_asked_for(self._question):
            said = words_of(noun)
            if _share_a_stem(said, shown):
                continue
            for size in range(len(said), 0, -1):
                name = by_words.get(tuple(said[:size]))
                if name is not None:
                    yield f"the query does not show {name}, which the question asks for"
                    break
        yield from self._counted_column(by_words)
        yield from self._named_columns(by_words, shown)

    def _counted_column(self, by_words: dict[tuple[str, ...], str]) -> Iterator[str]:
        """Yields the column whose values the question counts, and the only query counts another one's."""
        counted = words.COUNTED.search(self._question)
        if counted is None or len(self._queries) != 1 or self._shapes[0].counts_rows or "count" not in self._shapes[0].functions:
            return
        said = words_of(counted["noun"])[:1]
        name = by_words.get(tuple(said))
        if name is not None and not {*said} & self._shapes[0].columns:
            yield f"the query does not read {name}, which the question counts"

    def _named_columns(self, by_words: dict[tuple[str, ...], str], shown: frozenset[str]) -> Iterator[str]:
        """Yields the columns that the question names, if the only query reads none of them, and counts no rows."""
        if len(self._queries) != 1 or self._shapes[0].counts_rows:
            return
        asked = words_of(self._question)
        named = [key for key in by_words if _place(asked, key) >= 0]
        told = [key for key in named if not {*key} <= _COMMON]
        read = shown | self._shapes[0].columns
        if told and not _share_a_stem(asked, read):
            yield f"the query does not read {by_words[told[0]]}, which the question names"


def _found(source: Source) -> _Query | None:
    """Returns the query behind an output; None if there is none, or if it found nothing."""
    query = read_query(source.arguments)
    output = read_tables(source.text)
    if query is None or not output:
        return None
    return _Query(shape_of(sql_in(source.arguments)), tuple(query.tables), frozenset(query.filters), tuple(output))


def _takes_first(shape: QueryShape) -> bool:
    """True if a query chooses rows by a rank, as in `rank = 1`."""
    chosen = re.search(r"=\s*1\b", shape.bare) is not None
    return chosen or any(text.strip("% #.").lower() in ("1", "1st", "first") for text in shape.texts)


def _lies_within(number: str, ends: tuple[str, str], is_year: bool) -> bool:
    """True if a column has values on both sides of a number; a year is compared with years and dates alone."""
    first, last = (end[:4] if _DAY.fullmatch(end) else end for end in ends)
    if is_year != (words.is_year(first) and words.is_year(last)):
        return False
    try:
        return float(first) < float(number) < float(last) or (is_year and number in (first, last) and first != last)
    except ValueError:
        return False


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _is_name(key: tuple[str, ...]) -> bool:
    letters = sum(len(word) for word in key if not word.isdigit())
    return letters > 2 and not all(word in _COMMON or word.isdigit() for word in key)


def _place(words_: list[str], key: tuple[str, ...]) -> int:
    """Returns where words stand in a row; -1 if they do not."""
    for at in range(len(words_) - len(key) + 1):
        if tuple(words_[at : at + len(key)]) == key:
            return at
    return -1


def _share_a_stem(some: Iterable[str], others: Iterable[str]) -> bool:
    """True if one word of these begins like one of those: densities and density."""
    stems = {word[:_STEM] for word in others}
    return any(word[:_STEM] in stems for word in some)
