"""Values of tables as text: what a query shows is what the table holds, and `verify` finds it there."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.files.file_cache import FileCache
from activities.files.values import value_text
from activities.tools.files import FolderFiles
from activities.tools.sql.sql_tools import TableTools
from activities.tools.sql.table_words import TableOptions
from activities.tools.tool import ToolContext
from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import Support


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (26474.0, "26474"),
        (26474, "26474"),
        (0.1 + 0.2, "0.3"),
        (12345678901.23, "12345678901.23"),
        (999999999999.5, "999999999999.5"),
        (1e15, "1000000000000000"),
        (123456789012345.0, "123456789012345"),
        (-2.5e-7, "-0.00000025"),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (Decimal("0E-10"), "0.0000000000"),
        (Decimal("1234567890123456789.5"), "1234567890123456789.5"),
        (None, "NULL"),
        (True, "True"),
    ],
)
def test_numbers_are_shown_without_groups_and_exponents(value: object, text: str) -> None:
    assert value_text(value) == text


@given(st.decimals(-(10**11), 10**11, places=3))
def test_a_number_as_people_write_it_is_shown_as_written(value: Decimal) -> None:
    assert Decimal(value_text(float(value))) == value


@pytest.mark.parametrize(
    "written", ["26,474", "26474", "26 474", "26,474.00", "12,345,678,901.23", "999,999,999,999.5"]
)
async def test_verify_finds_a_figure_however_it_is_grouped_and_no_thousandth_of_it(
    written: str, tmp_path: Path
) -> None:
    value = float(written.replace(",", "").replace(" ", ""))
    (claim,) = claims(f"The total is {written} dollars.")
    # What people write with one comma may be a decimal one in their language: the claim itself has two meanings.
    thousandth = written == "26,474"
    totals = {
        "exact": (value, True),
        "smaller": (value / 1000, thousandth),
        "larger": (value * 1000, False),
    }
    numbers = ",".join(repr(number) for number, _ in totals.values())
    (tmp_path / "n.csv").write_text(f"{','.join(totals)},x\n{numbers},a\n0.5,0.5,0.5,b\n")
    files = FolderFiles(tmp_path, "n.csv", FileCache(tmp_path / "cache"))
    (query,) = await TableTools(files, {"query": "sql_query"}, TableOptions(tables="n.csv")).open()
    for column, (_, holds) in totals.items():
        asked = query.arguments(sql=f"SELECT max({column}) AS total FROM n")
        output = await query.run(asked, ToolContext())
        source = Source(output.text, arguments=asked.model_dump_json())
        assert Support([source]).supports(claim) is holds, output.text
