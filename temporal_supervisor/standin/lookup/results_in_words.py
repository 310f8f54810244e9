"""The results of queries in words, by the form of the question that each one answers."""

from temporal_supervisor.standin.lookup.table_questions import TableAnswer
from temporal_supervisor.standin.lookup.tables import Grid, grid_sentences, parse_grids

_IN_A_SENTENCE = 12  # groups, names or rows; more are shown as a table
_NONE = ("NULL", "")
_BESIDE = ("with_value", "rows")  # columns that only say what a figure rests on
_SHARED = 3  # that share the first place, at most, to be named
_HOW = {"sum": "Total", "avg": "Average"}


def result_in_words(answer: TableAnswer, output: str, calculated: dict[str, str]) -> list[str]:
    """Returns a query's output in words, as parts of a Markdown text.

    There are none if the table has no such row.
    """
    grids = parse_grids(output)
    if not grids:
        return []
    grid, where = grids[0], f" ({answer.where})" if answer.where else ""
    how, _, rest = answer.kind.partition(" ")
    if how == "change":
        return _lines(grid_sentences(grids, calculated))
    if rest == "by":
        return _groups(answer, grid, where)
    match how:
        case "count":
            return _lines([_count(answer, grid, where)])
        case "distinct":
            return _lines([f"Count of {answer.what}{where}: {grid.rows[0][0]}."])
        case "sum" | "avg":
            return _lines(_aggregate(answer, grid, where))
        case "ranking":
            return _lines([_ranking(answer, grid, where, rest)])
        case "extreme" | "dated":
            return _lines([_extreme(answer, grid, where, rest)])
        case "list":
            return _listing(answer, grid, where)
        case _:
            return _rows(answer, grid, where)


def _lines(said: list[str]) -> list[str]:
    return ["\n".join(f"- {line}" for line in said)] if said else []


def _count(answer: TableAnswer, grid: Grid, where: str) -> str:
    number = grid.rows[0][0]
    noun = answer.what if number != "1" else answer.what.replace("rows", "row", 1)
    return f"Count: {number} {noun}{where}."


def _aggregate(answer: TableAnswer, grid: Grid, where: str) -> list[str]:
    """Returns a total or an average; nothing without rows.

    The number of rows behind it is added if some rows have no value.
    """
    value, with_value, rows = grid.rows[0][-3:]
    name = f"{_HOW[answer.kind]} {answer.what}{where}"
    if rows == "0":
        return []
    if value in _NONE:
        return [f"{name}: the table has no value."]
    some = "" if with_value == rows else f" {with_value} of {rows} rows have a value."
    return [f"{name}: {value}.{some}"]


def _groups(answer: TableAnswer, grid: Grid, where: str) -> list[str]:
    how = answer.kind.partition(" ")[0]
    name = f"{_HOW.get(how, 'Count of')} {answer.what}{where}"
    shown = [at for at, column in enumerate(grid.header) if column not in _BESIDE or how == "count"]
    header = [grid.header[at] for at in shown]
    rows = [[row[at] for at in shown] for row in grid.rows]
    narrow = Grid(header, rows)
    if len(grid.rows) > _IN_A_SENTENCE:
        return [f"- {name}: {len(grid.rows)} groups.", narrow.markdown()]
    groups = [f"{', '.join(row[:-1])}: {row[-1]}" for row in narrow.rows]
    return _lines([f"{name}: {'; '.join(groups)}."])


def _ranking(answer: TableAnswer, grid: Grid, where: str, order: str) -> str:
    first = [row[0] for row in grid.rows if row[1] == grid.rows[0][1]]
    others = [f"{row[0]}, {row[1]}" for row in grid.rows[len(first) : len(first) + 2]]
    superlatives = {"DESC": "Highest", "ASC": "Lowest"}
    if answer.what.startswith("rows "):
        superlatives = {"DESC": "Most", "ASC": "Fewest"}
    word = superlatives[order]
    after = f"; then {'; '.join(others)}" if others else ""
    return f"{word} {answer.what}{where}: {' and '.join(first)}, {grid.rows[0][1]}{after}."


def _extreme(answer: TableAnswer, grid: Grid, where: str, order: str) -> str:
    titles = [column.replace("_", " ") for column in grid.header]
    at = titles.index(answer.what) if answer.what in titles else len(titles) - 1
    best = [row for row in grid.rows if row[at] == grid.rows[0][at]][:_SHARED]
    superlatives = {"DESC": "Highest", "ASC": "Lowest"}
    if answer.kind.startswith("dated"):
        superlatives = {"DESC": "Latest", "ASC": "Earliest"}
    word = superlatives[order]
    rows = "; ".join(_row(titles, row, at) for row in best)
    return f"{word} {answer.what}{where}: {best[0][at]} ({rows})."


def _row(titles: list[str], row: list[str], without: int) -> str:
    """Returns a row's other cells with their columns."""
    shown = [
        (titles[at], cell) for at, cell in enumerate(row) if at != without and cell not in _NONE
    ]
    return ", ".join(f"{title}: {cell}" for title, cell in shown)


def _listing(answer: TableAnswer, grid: Grid, where: str) -> list[str]:
    names = [row[0] for row in grid.rows]
    if len(names) > _IN_A_SENTENCE:
        return [f"- {answer.what}{where}:", grid.markdown()]
    return _lines([f"{answer.what}{where}: {', '.join(names)}."])


def _rows(answer: TableAnswer, grid: Grid, where: str) -> list[str]:
    """Returns rows: one as a sentence, several as a table."""
    if len(grid.rows) > 1:
        return [f"- {answer.what}{where}:", grid.markdown()]
    titles = [column.replace("_", " ") for column in grid.header]
    cells = dict(zip(titles, grid.rows[0], strict=True))
    asked = [title for title in titles if title in answer.what.split(" and ")]
    named = ", ".join(f"{title} {cell}" for title, cell in cells.items() if title not in asked)
    if not asked:
        return _lines([f"{answer.what}{where}: {named}."])
    about = f" ({named})" if named else ""
    values = {title: "no value" if cells[title] in _NONE else cells[title] for title in asked}
    return _lines([f"{title}{about}: {value}." for title, value in values.items()])
