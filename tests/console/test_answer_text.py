"""An answer as a file, and why it is partial."""

import csv
import io
import json

import pytest
from pydantic import JsonValue

from console.commands.evidence_commands import _sentence
from console.view.answer_text import answer_file, rows_of, why_partial
from supervision.contract.result import Gap, RunResult

ROW: dict[str, JsonValue] = {"supplier": "Alder, Ltd.", "fee": 22000, "dates": ["2025-01-01"], "cap": None}


@pytest.mark.parametrize(
    ("value", "is_table"),
    [
        ([ROW], True),
        ({"contracts": [ROW, {"fee": 1, "note": "x"}], "year": 2025}, True),
        ({"contracts": [ROW], "others": [ROW]}, False),
        ({"years": [2024, 2025]}, False),
        ([], False),
        ({"contracts": []}, False),
        ("text", False),
    ],
)
def test_the_one_list_of_objects_is_a_table(value: JsonValue, is_table: bool) -> None:
    assert (rows_of(value) is not None) == is_table
    if not is_table:
        with pytest.raises(ValueError, match="is no table"):
            answer_file(RunResult(answer="x", answer_json=value), ".csv")


def test_a_table_has_every_column_and_each_cell_whole() -> None:
    value: JsonValue = {"rows": [ROW, {"fee": -5, "note": "line\nbreak"}]}
    read = list(csv.DictReader(io.StringIO(answer_file(RunResult(answer_json=value), ".csv").decode(), newline="")))
    assert read == [
        {"supplier": "Alder, Ltd.", "fee": "22000", "dates": '["2025-01-01"]', "cap": "", "note": ""},
        {"supplier": "", "fee": "-5", "dates": "", "cap": "", "note": "line\nbreak"},
    ]


@pytest.mark.parametrize("text", ["=1+1", "@sum(1)", "+1+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "\t=1"])
def test_no_cell_is_run_as_a_formula(text: str) -> None:
    lines = answer_file(RunResult(answer_json=[{"a": text}]), ".csv").decode().splitlines()
    assert lines[1].strip('"').startswith("'")


@pytest.mark.parametrize("text", ["-5", "+49 30 1234", "a=b", "2025-01-01", "-1.5"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert answer_file(RunResult(answer_json=[{"a": text}]), ".csv").decode().splitlines()[1] == text


def test_an_answer_is_a_file_of_its_kind() -> None:
    result = RunResult(answer="**Yes** \x1b[31m", answer_json={"a": 1})
    assert answer_file(result, ".md") == b"**Yes** \n"
    assert json.loads(answer_file(result, ".json")) == {"a": 1}
    for suffix in (".json", ".csv"):
        with pytest.raises(ValueError, match="no JSON"):
            answer_file(RunResult(answer="x"), suffix)


def test_a_partial_result_says_what_is_missing_first() -> None:
    gaps = [Gap(subtask_id="t1/t2", reason="engineer: found nothing"), Gap(subtask_id="t3", reason="failed: TurnLimit")]
    assert why_partial(RunResult(status="partial", gaps=gaps)) == "t1/t2 (engineer: found nothing); and 1 more gap"
    assert why_partial(RunResult(status="completed")) == ""


@pytest.mark.parametrize(
    ("answer", "words", "sentence"),
    [
        ("Sales rose. They were 4,412 kg in 2009. Then not.", "2009", "They were 4,412 kg in 2009"),
        ("| kg | year |\n| 12 | 2009 |\n", "12", "12 | 2009"),
        ("- a 120 and 12 here\n- b", "12", "a 120 and 12 here"),
        ("Nothing.", "12", ""),
    ],
)
def test_a_claim_is_shown_in_its_sentence(answer: str, words: str, sentence: str) -> None:
    assert _sentence(answer, words) == sentence
