"""A question from a notebook: what its cell shows while the run goes on, and of its end."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from temporal_supervisor.console.view.live_view import Picture
from temporal_supervisor.notebook import CellScreen, ShownAnswer
from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport

ROWS = {"regions": [{"region": "North", "revenue": 2335}, {"region": "South | West", "revenue": None}]}


def answered() -> ShownAnswer:
    result = RunResult(status="completed", answer="North sold **most**.", answer_json=ROWS)
    return ShownAnswer("run-1", RunOutcome("completed", result))


def test_the_cell_shows_the_tree_and_each_picture_replaces_the_last() -> None:
    shown: list[dict[str, str]] = []
    with CellScreen(shown.append) as screen:
        picture = Picture("run-1", reports={"t1": SubtaskReport(id="t1", role="analyst", state="running")})
        screen.update(picture)
        picture.reports["t1"].state = "completed"
        screen.update(picture)
    assert ["▶ t1" in cell["text/plain"] for cell in shown] == [True, False]
    assert "✔ t1" in shown[1]["text/plain"]
    assert shown[1]["text/html"].startswith("<pre>")


def test_the_answer_is_shown_with_its_table() -> None:
    shown = answered()._repr_markdown_()
    assert shown.splitlines() == [
        *("North sold **most**.", "", "| region | revenue |", "| --- | --- |"),
        *("| North | 2335 |", "| South \\| West |  |"),
    ]


@pytest.fixture
def pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of that name, whose frames keep what they are made of."""
    (tmp_path / "pandas.py").write_text("class DataFrame:\n    def __init__(self, rows):\n        self.rows = rows\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("pandas", None)


@pytest.mark.usefixtures("pandas")
def test_with_pandas_there_is_a_frame() -> None:
    assert answered().to_pandas().rows == ROWS["regions"]


def test_the_table_that_a_run_made_of_its_items_is_shown() -> None:
    result = RunResult(status="completed", answer="Two invoices.")
    made = ShownAnswer("run-1", RunOutcome("completed", result), "supplier,total\nAcme,588.0\nBorg,\n")
    assert made.rows == [{"supplier": "Acme", "total": "588.0"}, {"supplier": "Borg", "total": ""}]
    assert "| Borg |  |" in made._repr_markdown_()


def test_without_pandas_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("temporal_supervisor.notebook.find_spec", lambda _: None)
    assert not hasattr(answered(), "to_pandas")
