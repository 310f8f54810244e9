"""The sources of a set: for each question an author that knows its true answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporal_supervisor.supervision.scores.question_sets import EvalQuestion, read_questions
from tests.oracle.dabench import dabench
from tests.oracle.musique import musique
from tests.oracle.plays import Source
from tests.oracle.tatqa import tatqa
from tests.oracle.wtq import wtq


def sources_of(folder: Path) -> Iterator[Source | None]:
    """Yields the source of each question of a set, None for one that cannot be derived."""
    text = (folder / "questions.jsonl").read_text(encoding="utf-8")
    for line, question in read_questions(text):
        known = json.loads(text.splitlines()[line - 1])
        yield _source(question, folder, known)


def _source(question: EvalQuestion, folder: Path, known: dict[str, Any]) -> Source | None:
    data = folder / str(question.data)
    if "derivation" in known:
        return tatqa(question, data, known["derivation"])
    if data.suffix == ".csv":
        return wtq(question, data)
    if question.answer.kind == "numbers":
        return dabench(question, data)
    if question.supporting and data.is_dir():
        return musique(question, data)
    return None
