"""The oracle over a small set of the tests' own: right answers stay right, and faults in them are flagged."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from temporal_supervisor.supervision.scores.score import Score
from tests.oracle.__main__ import falls_short, main, planted, with_kept
from tests.oracle.playing import played
from tests.oracle.plays import ANSWER, FINDING
from tests.oracle.report import SetFigures, figures_of, lines_of
from tests.oracle.sources import sources_of

SETS = Path(__file__).parent / "sets"
SOME, FAULTS = 5, 14  # one of each kind in each place


@pytest.mark.parametrize("faults", [SOME, pytest.param(FAULTS, marks=pytest.mark.long)])
async def test_right_answers_are_not_flagged_and_faults_in_them_are(faults: int) -> None:
    (found,) = await main(SETS, [], faults, 4)
    assert (found.played, found.wrong, found.doubted) == (found.questions, [], [])
    assert sum(count.planted for count in found.faults) == faults
    assert len(found.not_flagged) <= 1, found.not_flagged


async def test_without_faults_no_eval_is_begun_for_them() -> None:
    sources = [source for source in sources_of(SETS / "harbour") if source is not None]
    nobody: Any = None  # that could be asked
    table = await played(nobody, nobody, "eval-none", SETS / "harbour", planted(sources, 0))
    found = figures_of("harbour", len(sources), [], [(planted(sources, 1)[0], score) for score in table.scores])
    assert (table.scores, found.faults, falls_short([found])) == ([], [], False)


def test_sets_that_are_not_played_keep_their_figures() -> None:
    old = [SetFigures(name=name, questions=9, played=1) for name in ("wtq", "harbour")]
    new = [SetFigures(name="harbour", questions=9, played=4), SetFigures(name="tatqa", questions=9)]
    kept = with_kept(new, TypeAdapter(list[SetFigures]).dump_json(old))
    assert [(each.name, each.played) for each in kept] == [("harbour", 4), ("tatqa", 0), ("wtq", 1)]
    assert with_kept(new, b"") == new


def test_figures_count_what_was_noticed() -> None:
    sources = [source for source in sources_of(SETS / "harbour") if source is not None]
    first, second = planted(sources, 2)
    assert (first.fault, first.place, second.place) == ("figure", FINDING, ANSWER)
    right = Score(case="q", question="q", run_id="r", verdict="right")
    doubted = right.model_copy(update={"flags": ["gap"]})
    wrong = right.model_copy(update={"verdict": "wrong_unflagged"})
    noticed = wrong.model_copy(update={"verdict": "wrong_flagged", "flags": ["unsupported"]})
    found = figures_of("harbour", 4, [right, doubted, wrong], [(first, noticed), (second, wrong)])
    assert (found.played, found.right, found.flagged_though_right) == (3, 2, 1)
    assert found.not_flagged == [second.name]
    assert falls_short([found])
    lines = lines_of([found])
    assert "| harbour | 4 | 3 | 2 | 1 | 2 | 1 of 2, 50% |" in lines
    assert "| figure | 1 of 1, 100% | 0 of 1, 0% |" in lines
