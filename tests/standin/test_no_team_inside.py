"""The stand-in knows no team: nothing in it names the bundled almanac's tables, columns, values or documents."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEAM = ROOT / "teams" / "almanac"
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "temporal_supervisor" / "standin").rglob("*.py")))

# Words of the language that a column may happen to be called; the stand-in needs them for dates and prompts.
EVERYDAY = {"year", "month", "source", "state", "information", "population", "date"}


def said(name: str) -> bool:
    return re.search(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", SOURCE, re.IGNORECASE) is not None


def test_no_name_of_the_team_is_said() -> None:
    names = {form for path in TEAM.glob("documents/*.md") for form in (path.stem, path.stem.replace("-", " "))}
    for path in TEAM.glob("data/*.csv"):
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        texts = {value for row in rows for value in row if re.fullmatch(r"[A-Za-z][A-Za-z ,.&-]{2,}", value)}
        names |= {path.stem, *header, *texts}
    assert len(names) > 100
    assert [name for name in sorted(names) if name.lower() not in EVERYDAY and said(name)] == []


def test_no_figure_of_the_team_is_written_down() -> None:
    data = "\n".join(path.read_text() for path in TEAM.glob("data/*.csv"))
    figures = {one for one in re.findall(r"\d+\.\d{2,}|\d{5,}", data) if len(one) >= 5}
    assert len(figures) > 1000
    assert sorted(set(re.findall(r"(?<![\d.])\d+\.\d{2,}|(?<![\d._])\d{5,}", SOURCE)) & figures) == []
