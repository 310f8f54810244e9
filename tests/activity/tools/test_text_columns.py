"""Queries that take columns of texts for numbers."""

from pathlib import Path

import pytest

from temporal_supervisor import ToolContext, ToolMisuse
from tests.activity.tools.test_sql import tools

_CASES = "place,cases\nA,630308[495000-801000]\nB,7[1-9]\nC,0\n"


async def test_numbers_at_the_beginning_of_texts_can_be_calculated_with(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cases.csv").write_text(_CASES)
    _, query = await tools(tmp_path)
    told = set[str]()
    for sql in (
        "SELECT avg(cases) FROM cases",
        "SELECT avg(CAST(cases AS BIGINT)) FROM cases",
        "SELECT place FROM cases WHERE cases > 5",
    ):
        with pytest.raises(ToolMisuse) as misuse:
            await query.run(query.arguments(sql=sql), ToolContext())
        line = next(line for line in str(misuse.value).splitlines() if line.startswith("Column cases"))
        told.add(line.partition("write ")[2].removesuffix(" in its place."))

    (number,) = told
    output = await query.run(query.arguments(sql=f"SELECT sum({number}) FROM cases"), ToolContext())
    assert "| 630315 |" in output.text
