"""What screens and files are made of, without a server: foreign text, rows, ids, limits, an answer as a file."""

import csv
import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from rich.console import Console

from temporal_supervisor.console.base.check_rows import CheckRow
from temporal_supervisor.console.base.output_file import write_file
from temporal_supervisor.console.base.terminal import look_alikes, print_rows, revealed, safe, safe_json
from temporal_supervisor.console.commands.evidence_commands import _file_names, _sentence
from temporal_supervisor.console.commands.list_commands import run_table
from temporal_supervisor.console.run.pollers import has_ended_here
from temporal_supervisor.console.view.answer_text import answer_file, answer_report, rows_of, why_partial
from temporal_supervisor.console.view.whole_item import _pretty
from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.result import Contradiction, Gap, RunResult, Unsupported
from tests.console.conftest import ROOT

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


def test_an_answer_is_a_file_of_its_kind() -> None:
    result = RunResult(answer="**Yes** \x1b[31m", answer_json={"a": 1})
    assert answer_file(result, ".md") == b"**Yes** \n"
    assert json.loads(answer_file(result, ".json")) == {"a": 1}
    for suffix in (".json", ".csv"):
        with pytest.raises(ValueError, match="no JSON"):
            answer_file(RunResult(answer="x"), suffix)


def test_any_name_of_an_artifact_is_one_of_a_file(tmp_path: Path) -> None:
    names = ["../a.md", "a.md", "\x1b[31m", ".", "果" * 200]
    files = _file_names([ArtifactRef(name=name, ref="r") for name in names])
    for name in files:
        write_file(tmp_path / name, b"")
    assert files[:2] == ["a.md", "2-a.md"]
    assert len(files) == len(list(tmp_path.iterdir()))


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


CORPUS = {
    "\x1b[31mred\x1b[0m": "red",
    "a\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\b": "alinkb",
    "\x1b]0;title\x07text": "text",
    "\x1b]52;c;aGVsbG8=\x07clipboard": "clipboard",
    "\x1bP+q544e\x1b\\dcs": "dcs",
    "\x9b2Jcleared": "cleared",
    "\x9d0;title\x9ctext": "text",
    "\x1b[2J\x1b[Hhome": "home",
    "\x1b]0;never ends": "0;never ends",
    "user\u202etxt.exe": "usertxt.exe",
    "\u2066isolated\u2069": "isolated",
    "zero\u200bwidth\ufeff": "zerowidth",
    "tag\U000e0041\U000e0042": "tag",
    "bell\a backspace\b": "bell backspace",
    "one\r\ntwo\rthree\u2028four": "one\ntwo\nthree\nfour",
    "lone \ud800 surrogate": "lone \ufffd surrogate",
    "tab\tstays": "tab\tstays",
    "👩\u200d🔬 日本語 é": "👩\u200d🔬 日本語 é",
}


@pytest.mark.parametrize(("text", "shown"), CORPUS.items())
def test_sequences_and_hidden_characters_go_and_text_stays(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_survives(text: str) -> None:
    shown = safe(text)
    shown.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\n\t" or 0x7F <= ord(c) <= 0x9F for c in shown)
    assert safe(shown) == shown


@pytest.mark.parametrize("text", CORPUS)
def test_json_keeps_every_character_and_shows_none_of_the_dangerous_ones(text: str) -> None:
    shown = safe_json({"text": text})
    assert safe(shown) == shown
    assert json.loads(shown) == {"text": text}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user\u202etxt.exe", "user<U+202E>txt.exe"),
        ("a\x1b[2Jb", "a<U+001B>[2Jb"),
        ("one\ntwo\tthree", "one\ntwo<U+0009>three"),
        ("pay\u200d\u3164pal\ufe0f", "pay<U+200D><U+3164>pal<U+FE0F>"),
        ("no\u00a0break", "no<U+00A0>break"),
        ("日本語 é 👩", "日本語 é 👩"),
    ],
)
def test_what_can_not_be_seen_is_shown_where_a_person_decides(text: str, shown: str) -> None:
    assert revealed(text) == shown


def test_a_question_of_brackets_is_shown_as_it_is() -> None:
    assert _pretty("[" * 2000) == "[" * 2000


@given(st.text())
def test_what_is_shown_to_decide_steers_no_terminal_and_loses_nothing(text: str) -> None:
    shown = revealed(text)
    assert safe(shown) == shown
    assert len(shown) >= len(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("to=board@p\u0430ypal.com", ["U+0430 CYRILLIC SMALL LETTER A in p\u0430ypal"]),
        ("to=\u0430\u0440\u0440\u04cf\u0435.com", ["U+0430", "U+0440", "U+04CF", "U+0435"]),
        ("\uff41dmin", ["U+FF41 FULLWIDTH LATIN SMALL LETTER A in \uff41dmin"]),
        ("Москва и сор", []),
        ("Москва и p\u0430ypal", ["U+0430"]),
        ("café, naïve, Ångström, 日本語", []),
    ],
)
def test_letters_that_look_latin_are_named(text: str, named: list[str]) -> None:
    found = look_alikes(text)
    assert [line[: len(name)] for line, name in zip(found, named, strict=True)] == named


LONG = "supervise-how-did-life-expectancy-in-rwanda-and-botswana-change-131ca7"


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_command_of_an_answer_is_never_broken(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(ROOT)
    screen = terminal(width)
    made = ArtifactRef(name="a.md", media_type="text/markdown", bytes=1, ref="r", subtask_id="t1")
    outcome = RunOutcome("completed", RunResult(answer="-", artifacts=[made]))
    answer_report(LONG, outcome, "http://h/" + LONG).print_to(screen)
    lines = written(screen).splitlines()
    assert any(".venv/bin/temporal-supervisor artifacts 131ca7 --save DIR" in line for line in lines)
    assert any(f"http://h/{LONG}" in line for line in lines)


def test_an_answer_says_what_nothing_supports_and_how_conflicts_were_settled() -> None:
    settled = Contradiction(subtask_ids=["t1", "t2"], description="d" * 300, resolution=f"{'r' * 300} end")
    doubtful = [Unsupported(text="2,000 kg", where="t4"), Unsupported(text="9 %", where="answer")]
    result = RunResult(answer="-", contradictions=[settled], unsupported=doubtful)
    screen = terminal(2_000)
    answer_report("r", RunOutcome("completed", result)).print_to(screen)
    assert " no support for '2,000 kg' (t4), '9 %' (answer)\n" in written(screen)
    assert f" conflict between t1, t2: {'d' * 300} → {'r' * 300} end\n" in written(screen)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_command_of_the_doctor_is_never_broken(width: int) -> None:
    screen = terminal(width)
    fix = f"start one with `.venv/bin/temporal-supervisor worker --pool east`; `.venv/bin/x status {LONG}` says more"
    row = CheckRow("problem", "open run", "t1 waits for a Worker of pool east: there is none", fix)
    print_rows(screen, [row])
    shown = written(screen)
    for command in (".venv/bin/temporal-supervisor worker --pool east", f".venv/bin/x status {LONG}"):
        (line,) = [line for line in shown.splitlines() if command in line]
        assert len(line) <= width or line.strip() == command  # bare: in backticks a shell would run its output
    assert shown.split()[:3] == ["problem", "open", "run"]
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_a_worker_of_this_machine_that_has_ended_serves_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    identities = [f"{process.pid}@{socket.gethostname()}", f"{os.getpid()}@{socket.gethostname()}", "1@elsewhere", "x"]
    assert [has_ended_here(identity) for identity in identities] == [True, False, False, False]


def test_a_partial_run_is_listed_as_one() -> None:
    row: dict[str, Any] = {"run_id": "r", "state": "completed", "phase": "done", "team": "t", "goal": "g", "usd": None}
    row |= {"started_at": "2026-01-01T10:00:00+00:00", "standstills": [], "reuse_from": []}
    screen = terminal(80)
    partial = {**row, "status": "partial", "partial": "t1/t2 (engineer: found nothing)"}
    print_rows(screen, run_table([partial, {**row, "status": "completed", "partial": None}]))
    lines = written(screen).splitlines()
    assert [line.split()[0] for line in lines] == ["state", "partial", "completed", "◐"]
    assert lines[-1] == "◐ r: t1/t2 (engineer: found nothing)"


@pytest.mark.parametrize("program", ["starter.py", "worker_main.py"])
def test_without_its_packages_a_program_says_what_to_do(program: str) -> None:
    done = subprocess.run([sys.executable, "-S", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "run `make setup` once, then .venv/bin/temporal-supervisor" in done.stderr


def test_what_makes_reports_and_compares_claims_is_loaded_by_the_commands_that_need_it() -> None:
    heavy = "{'jinja2', 'markdown_it', 'temporal_supervisor.supervision.grounding.units'} & {*sys.modules}"
    words = [sys.executable, "-c", f"import starter, sys; print({heavy})"]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "set()\n"
