"""The stand-in knows no team: nothing in it names the default team's tables, columns, values or documents."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEAM = ROOT / "teams" / "default"
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "standin").rglob("*.py")))

# Words of the language that a column may happen to be called; the stand-in needs them for dates and prompts.
EVERYDAY = {"year", "month", "source", "state", "information", "population", "date"}


def files() -> list[Path]:
    found = sorted(TEAM.glob("data/*.csv"))
    if not found:
        pytest.skip("the default team has no data yet")
    return found


def said(name: str) -> bool:
    return re.search(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", SOURCE, re.IGNORECASE) is not None


def test_no_table_or_column_is_named() -> None:
    names = {path.stem for path in files()}
    for path in files():
        with path.open(newline="") as file:
            names |= set(next(csv.reader(file)))
    assert [name for name in sorted(names - EVERYDAY) if said(name)] == []


def test_no_value_of_a_text_column_is_named() -> None:
    values: set[str] = set()
    for path in files():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                values |= {value for value in row.values() if re.fullmatch(r"[A-Za-z][A-Za-z ,.&-]{2,}", value)}
    assert len(values) > 100
    assert [value for value in sorted(values) if value.lower() not in EVERYDAY and said(value)] == []


def test_no_document_is_named() -> None:
    documents = [path.stem for path in TEAM.glob("documents/*.md")]
    assert [name for name in documents if said(name) or said(name.replace("-", " "))] == []


def test_no_figure_is_written_down() -> None:
    figures: set[str] = set()
    for path in files():
        figures |= {one for one in re.findall(r"\d+\.\d{2,}|\d{5,}", path.read_text()) if len(one) >= 5}
    assert len(figures) > 1000
    written = set(re.findall(r"(?<![\d.])\d+\.\d{2,}|(?<![\d._])\d{5,}", SOURCE))
    assert sorted(written & figures) == []
