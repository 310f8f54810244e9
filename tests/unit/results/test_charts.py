"""Charts: a line over time, bars by category, none where it would mislead."""

import pytest

from temporal_supervisor.console.report.charts import charts_of, markdown_rows, table_in

YEARS = [["2023", "10.5"], ["2024", "12"], ["2025", "9"]]


def test_a_column_of_times_makes_a_line_with_a_point_for_each_value() -> None:
    (chart,) = charts_of(["year", "revenue"], YEARS, 3)
    (line,) = chart.lines
    assert [words for _, _, words in line.points] == ["2023: 10.5", "2024: 12", "2025: 9"]
    xs = [x for x, _, _ in line.points]
    assert xs == sorted(xs)
    assert chart.words == "revenue over time, 2023 to 2025"


def test_times_are_drawn_in_order_and_at_their_distance() -> None:
    rows = [["2025-03", "3"], ["2025-01", "1"], ["2025-09", "9"]]
    (line,) = charts_of(["month", "kg"], rows, 3)[0].lines
    (x1, _, first), (x2, _, _), (x3, _, _) = line.points
    assert first == "2025-01: 1"
    assert x3 - x2 == pytest.approx(3 * (x2 - x1), rel=0.01)


def test_a_word_beside_the_time_makes_a_line_each() -> None:
    rows = [[land, year, str(at)] for at, year in enumerate(("1952", "2007")) for land in ("A", "B")]
    (chart,) = charts_of(["country", "year", "life"], rows, 4)
    assert [line.name for line in chart.lines] == ["A", "B"]


def test_a_missing_value_breaks_the_line() -> None:
    rows = [["2022", "1"], ["2023", ""], ["2024", "3"], ["2025", "4"]]
    (line,) = charts_of(["year", "kg"], rows, 4)[0].lines
    assert line.path.count("M") == 2
    assert len(line.points) == 3


def test_categories_make_bars_that_begin_at_zero() -> None:
    rows = [["North", "50"], ["South", "-25"], ["West", "100"]]
    (chart,) = charts_of(["region", "margin"], rows, 3)
    widths = [bar.width for bar in chart.bars]
    assert widths[2] == pytest.approx(2 * widths[0])
    assert chart.bars[0].x == chart.bars[2].x == chart.zero
    assert chart.bars[1].x + chart.bars[1].width == pytest.approx(chart.zero)


@pytest.mark.parametrize(
    ("columns", "rows", "total"),
    [
        (["year", "kg"], YEARS, 4),  # rows are missing
        (["region", "kg"], [["North", "1"], ["South", "2"], ["Total", "3"]], 3),
        (["region", "kg"], [["North", "1"], ["South", ""]], 2),  # no bar is not a bar of 0
        (["region", "kg"], [["North", "1"], ["North", "2"]], 2),
        (["name", "order id"], [["Ann", "1001"], ["Bob", "1002"]], 2),  # numbers that name
        (["name", "town", "kg"], [["a", "b", "1"], ["c", "d", "2"]], 2),
        (["region", "kg"], [["North", "1,234"], ["South", "2"]], 2),  # 1,234 may be 1.234
        (["region", "kg"], [["North", "1"]], 1),
        (["year", "year", "kg"], [["2023", "2023", "1"], ["2024", "2024", "2"]], 2),
        ([], [], 0),
    ],
)
def test_what_would_mislead_is_not_drawn(columns: list[str], rows: list[list[str]], total: int) -> None:
    assert charts_of(columns, rows, total) == []


def test_a_count_of_ids_is_a_value() -> None:
    assert charts_of(["region", "number of Order ID"], [["North", "158"], ["South", "132"]], 2)


def test_equal_values_and_tiny_ones_are_drawn() -> None:
    for low, high in (("5", "5"), ("0", "0"), ("-0.001", "0.001"), ("1e9", "3e9")):
        (chart,) = charts_of(["year", "kg"], [["2023", low], ["2024", high]], 2)
        assert chart.ticks[-1].at < chart.ticks[0].at
        assert charts_of(["region", "kg"], [["a", low], ["b", high]], 2)[0].bars


def test_only_a_whole_table_of_a_query_is_one_for_charts() -> None:
    text = "| region | kg |\n| --- | --- |\n| North | 1 |\n| a \\| b | 2 |\n2 rows"
    assert table_in(text) == (["region", "kg"], [["North", "1"], ["a | b", "2"]])
    assert table_in(text.replace("2 rows", "first 2 rows of more")) is None
    assert markdown_rows(text.replace("2 rows", "first 2 rows of more")) is not None
    assert table_in("no table") is None
