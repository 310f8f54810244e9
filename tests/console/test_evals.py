"""The command `eval`: what is wrong with a set is said before anything is spent; table, page and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed
from temporal_supervisor.console.evals.eval_view import eval_page, measures, table_rows
from temporal_supervisor.console.evals.set_files import (
    check_set,
    data_of,
    for_part,
    read_set,
    request_fields,
    set_file,
    variants_of,
    with_agents,
    with_results,
)
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.scores.eval_plan import EvalVariant
from temporal_supervisor.supervision.scores.score import Opinion, Score
from temporal_supervisor.supervision.scores.score_table import WORDS, EvalTable, table_of
from tests.console.conftest import Cli

QUESTIONS: list[dict[str, Any]] = [
    {"id": "total", "question": "What is the total of pears?", "answer": {"kind": "number", "value": 44}},
    {"id": "best", "question": "Which garden has most pears?", "answer": {"kind": "text", "value": "North"}},
]


def a_set(folder: Path, *changes: dict[str, Any]) -> Path:
    """Writes a set over a small table, a line for each of the first questions with changes."""
    folder.mkdir(exist_ok=True)
    (folder / "gardens.csv").write_text("garden,pears\nNorth,30\nSouth,14\n")
    lines = [{**question, "data": "gardens.csv", **change} for question, change in zip(QUESTIONS, changes, strict=True)]
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def check(folder: Path, repeat: int) -> None:
    """Reads a set as the command does before it starts anything."""
    known = read_set(set_file(str(folder)) or folder, None)
    check_set(known, [EvalVariant(label="x", request={"team": "files"})], repeat)
    data_of(known)


def refusal(folder: Path, repeat: int = 1) -> str:
    """Returns what is wrong with a set."""
    with pytest.raises(CommandFailed) as failed:
        check(folder, repeat)
    assert failed.value.code == BAD_INPUT
    return failed.value.message


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"id": "total"}, "line 2: the id 'total' is that of line 1, too"),
        ({"answer": {"kind": "nmber", "value": 1}}, "line 2: unknown kind of answer 'nmber', did you mean 'number'?"),
        ({"data": "gone.csv"}, "line 2: there is no "),
        ({"question": " "}, "line 2: goal: the goal is empty"),
        ({"strategy": "best"}, "line 2: strategy: "),
        ({"data": "keys.exe"}, "line 2: no file can be read: keys.exe: "),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(tmp_path: Path, second: dict[str, Any], words: str) -> None:
    (tmp_path / "keys.exe").write_text("x")
    message = refusal(a_set(tmp_path, {}, second))
    assert f"{tmp_path / 'questions.jsonl'}: {words}" in message


def test_a_set_that_is_no_json_or_too_long_or_none_is_refused(tmp_path: Path) -> None:
    folder = a_set(tmp_path / "set", {}, {})
    assert "2,002 runs, at most 2,000 are taken" in refusal(folder, repeat=1001)
    (folder / "questions.jsonl").write_text('{"id": "q1",}\n')
    assert "line 1: it is not JSON" in refusal(folder)
    with pytest.raises(CommandFailed, match=r"has no questions\.jsonl"):
        set_file(str(tmp_path))
    fields = tmp_path / "request.json"
    fields.write_text('{"goal": "x"}')
    with pytest.raises(CommandFailed, match="each question has its own goal"):
        request_fields(fields)


def sql(query: str) -> dict[str, Any]:
    return {"answer": {"kind": "sql", "value": query}}


async def test_the_result_of_a_query_takes_its_place(tmp_path: Path) -> None:
    total, best = sql("SELECT sum(pears) FROM gardens"), sql("SELECT garden FROM gardens ORDER BY pears DESC LIMIT 1")
    found = await with_results(read_set(a_set(tmp_path, total, best) / "questions.jsonl", None))
    answers = [question.answer for _, question in found.questions]
    assert [(answer.kind, answer.value) for answer in answers] == [("number", 44.0), ("text", "North")]
    rows = await with_results(read_set(a_set(tmp_path, total, sql("SELECT * FROM gardens")) / "questions.jsonl", None))
    assert rows.questions[1][1].answer.value == [
        {"garden": "North", "pears": "30"},
        {"garden": "South", "pears": "14"},
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT plums FROM gardens", "line 2: the query cannot run: "),
        ("DROP TABLE gardens", "line 2: the query cannot run: "),
        ("SELECT range FROM range(1000)", "line 2: the query "),
    ],
)
async def test_a_query_that_gives_no_answer_is_refused_with_its_line(tmp_path: Path, query: str, words: str) -> None:
    known = read_set(a_set(tmp_path, {}, sql(query)) / "questions.jsonl", None)
    with pytest.raises(CommandFailed, match=words):
        await with_results(known)


def test_an_agent_alone_has_a_role_of_the_team_with_its_tools(tmp_path: Path) -> None:
    settings = Settings(_env_file=None)
    fields = with_agents(settings, {}, "files")
    variants = variants_of(fields, None, ["m"], None, "agent")
    known = read_set(a_set(tmp_path, {"role": "analyst"}, {"role": "analyst"}) / "questions.jsonl", None)
    request = check_set(known, variants, 1).case(0).request()
    (role,) = request["team"]["roles"]
    assert (role["name"], request["team"]["generalist"]) == ("analyst", "analyst")
    assert role["tools"]
    assert all(tool.startswith("files/") for tool in role["tools"])
    nobody = read_set(a_set(tmp_path, {"role": "analyst"}, {"role": "nobody"}) / "questions.jsonl", None)
    with pytest.raises(CommandFailed, match="line 2: the team has no worker agent 'nobody'"):
        check_set(nobody, variants, 1)
    with pytest.raises(CommandFailed, match="line 1: a plan alone is judged by `plan` or `role`"):
        for_part(read_set(a_set(tmp_path, {}, {}) / "questions.jsonl", None), "plan")


def test_goals_of_a_team_are_a_set(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "teams/support/goals.toml"
    known = read_set(file, 2)
    assert (known.team, [question.answer.kind for _, question in known.questions]) == ("support", ["facts"] * 2)
    (tmp_path / "goals.toml").write_text("goals = 1")
    assert "goals.toml" in refusal(tmp_path)


def test_the_page_opens_reports_and_shows_foreign_words_as_text() -> None:
    fields = {
        "question": "q1",
        "run_id": "eval-x/q1",
        "verdict": "wrong_unflagged",
        "given": "<script>alert(1)</script>",
    }
    score = Score.model_validate({"case": "q1", **fields})
    page = eval_page(table_of("eval-x", "x", ["m"], [score], planned=1), {"eval-x/q1": "page-runs/q1.html"})
    assert '<a href="page-runs/q1.html">q1</a>' in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_models_opinion_is_named_as_one_in_table_json_and_page() -> None:
    opinion = Opinion(model="claude-x", right=True, reason='Both say "Rome"')
    fields = {"case": "q1", "question": "q1", "run_id": "eval-x/q1", "verdict": "wrong_unflagged", "given": "in Rome"}
    judged = Score.model_validate({**fields, "opinion": opinion})
    other = Score.model_validate({**fields, "case": "q2", "question": "q2", "verdict": "right"})
    table = table_of("eval-x", "x", ["m"], [judged, other], planned=2, no_opinion="TIMEOUT: it was slow")
    assert table.rows[0].right.value == 0.5  # by code
    lines = dict(measures(table.rows))
    assert lines["claude-x calls right (a model's opinion)"][0].startswith("100.0%")
    assert (lines["· answers in words"], lines["· of these code agrees on"]) == (["1"], ["0.0%"])
    shown = "\n".join(map(str, table_rows(table, [])))
    assert "no opinion of some answers: TIMEOUT: it was slow" in shown
    page = eval_page(table, {})
    assert "<th scope=col>a model's opinion</th>" in page
    assert '<span title="Both say &quot;Rome&quot;">claude-x: right</span>' in page
    assert EvalTable.model_validate_json(table.model_dump_json()) == table
    without = table_of("eval-x", "x", ["m"], [other], planned=1)
    assert "opinion" not in without.model_dump_json() + eval_page(without, {})


async def test_an_eval_from_the_question_to_the_page(cli: Cli, tmp_path: Path) -> None:
    folder, page = a_set(tmp_path / "pears", {}, {}), tmp_path / "page.html"
    bad = a_set(tmp_path / "bad", {}, {"id": "total"})
    assert "line 2" in await cli.refused("eval", str(bad), code=2)
    assert "no file, folder or eval" in await cli.refused("eval", str(tmp_path / "none"), code=2)
    done = await cli("eval", str(folder), "--id", "eval-pears-1", "-o", str(page), "--at-least", "0", "--judge", "m")
    assert done.code == 0, done.err
    assert "eval-pears-1, pears, completed, 2 of 2 questions" in done.out
    assert "2 of 2" in done.err
    assert "no opinion of some answers: the stand-in model extracts" in done.out
    assert (tmp_path / "page-runs" / "total.html").is_file()
    assert 'href="page-runs/total.html"' in page.read_text()
    assert "exists already" in (await cli("eval", str(folder), "--id", "eval-pears-1")).err
    found = await cli("eval", "eval-pears-1", "--json")  # from the store
    table = json.loads(found.out)
    assert {score["run_id"] for score in table["scores"]} == {"eval-pears-1/total", "eval-pears-1/best"}
    (tmp_path / "before.json").write_text(found.out)
    same = await cli("eval", "eval-pears-1", "--no-worse-than", str(tmp_path / "before.json"))
    assert same.code == 0
    assert "on 2 questions that both were asked" in same.out
    table["rows"][0]["right"] = [0.5, 0.1, 0.9]
    short = tmp_path / "short.json"
    short.write_text(json.dumps(table))
    refused = await cli("eval", str(short), "--at-least", "0.8")
    assert refused.code == 1
    assert "50.0% are right, at least 80.0% should be" in refused.err
    listed = json.loads((await cli("list", "--eval", "eval-pears-1", "--json")).out)
    verdicts = {score["run_id"]: WORDS[score["verdict"]] for score in table["scores"]}
    assert {row["run_id"]: row["verdict"] for row in listed} == verdicts
    shown = (await cli("list", "--eval", "eval-pears-1")).out
    assert all(words in shown for words in verdicts.values())
