"""Intervals, what is flagged, verdicts, tables, comparisons of two evals, and the budget of one."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.result import (
    Contradiction,
    Gap,
    Problem,
    RunResult,
    SubtaskReport,
    Unsupported,
)
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.scores.eval_budget import EvalBudget, RunBudget, Spent, next_grant, to_go
from temporal_supervisor.supervision.scores.flagged import flags, own_flags
from temporal_supervisor.supervision.scores.intervals import chance_of_loss, paired_bootstrap, wilson
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from temporal_supervisor.supervision.scores.score import EndedRun, Score, score_of
from temporal_supervisor.supervision.scores.score_table import EvalTable, compare_tables, shortfalls, table_of


def question(kind: str = "number", value: Any = 3, **more: Any) -> EvalQuestion:
    fields = {"id": "q", "question": "?", "answer": {"kind": kind, "value": value}}
    return EvalQuestion.model_validate({**fields, **more})


def score(verdict: str, name: str = "q", variant: int = 0, **more: Any) -> Score:
    fields = {"case": name, "question": name, "run_id": name, "verdict": verdict, "variant": variant}
    return Score.model_validate({**fields, **more})


def finding(**more: Any) -> Finding:
    return Finding(summary="s", text_ref="r/outputs/x", **more)


# --- intervals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (5, 10, 0.237, 0.763), (50, 100, 0.404, 0.596), (0, 0, 0.0, 1.0)],
)
def test_wilson_s_interval_is_that_of_the_books(hits: int, total: int, low: float, high: float) -> None:
    found = wilson(hits, total)
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-3)


@given(st.integers(1, 400).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_a_share_lies_in_its_interval(counts: tuple[int, int]) -> None:
    found = wilson(*counts)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_the_bootstrap_is_the_same_each_time_and_sees_a_change() -> None:
    before, after = [1.0] * 20 + [0.0] * 10, [0.0] * 10 + [1.0] * 10 + [0.0] * 10
    found = paired_bootstrap(before, after)
    assert found == paired_bootstrap(before, after)
    assert found.value == pytest.approx(-1 / 3)
    assert found.low < found.value < found.high < 0
    assert paired_bootstrap(before, before) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError):
        paired_bootstrap([], [])


def evals_of(chances: Sequence[float], drawn: Random) -> list[tuple[bool, bool]]:
    """Plays an eval: each question is right by its chance, and half of the wrong answers are not flagged."""
    rights = [drawn.random() < chance for chance in chances]
    return [(is_right, not is_right and drawn.random() < 0.5) for is_right in rights]


@pytest.mark.parametrize("count", [12, 40])
def test_one_eval_twice_is_worse_by_chance_at_most_once_in_twenty(count: int) -> None:
    drawn, repeats = Random(1), 100
    worse = 0
    for _ in range(repeats):
        chances = [drawn.betavariate(3, 1) for _ in range(count)]
        before, after = evals_of(chances, drawn), evals_of(chances, drawn)
        losses = [(float(a[0] - b[0]), float(b[1] - a[1])) for a, b in zip(before, after, strict=True)]
        worse += chance_of_loss(losses) <= 0.05
    assert worse <= 0.05 * repeats


def test_the_chance_of_a_loss_is_that_of_so_many_coins() -> None:
    assert chance_of_loss([(1.0, 1.0)] * 5 + [(0.0, 0.0)] * 7) == pytest.approx(1 / 32)
    assert chance_of_loss([(0.0, 0.0)] * 5) == 1.0
    assert chance_of_loss([(-1.0, 0.0)] * 12) == 1.0
    assert chance_of_loss([(1.0, 0.0)] * 30) < 0.001


# --- what is flagged ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "flag"),
    [
        ({"unsupported": [Unsupported(text="7", where="answer")]}, "unsupported"),
        ({"gaps": [Gap(subtask_id="t1", reason="x")]}, "gap"),
        ({"contradictions": [Contradiction(description="x", resolution="y")]}, "contradiction"),
        ({"status": "partial"}, "partial"),
        ({"grounding": "knowledge"}, "knowledge"),
        ({"confidence": 0.49}, "confidence"),
    ],
)
def test_what_a_reader_is_shown_flags_an_answer(shown: dict[str, Any], flag: str) -> None:
    plain = RunResult(status="completed", answer="x", confidence=0.5)
    assert flags(plain) == []
    assert flags(RunResult.model_validate({**plain.model_dump(), **shown})) == [flag]


def test_what_no_reader_is_shown_flags_nothing() -> None:
    hidden = SubtaskReport(id="t1", state="failed", attempts=3, finding=finding(unsupported=["7"], confidence=0.1))
    assert flags(RunResult(status="completed", answer="x", subtasks=[hidden], warnings=["w"])) == []
    assert flags(RunResult(status="completed", answer="x", confidence=None)) == []


def test_an_agent_alone_is_flagged_by_its_own_words_only() -> None:
    said = SubtaskReport(id="t1", state="completed", finding=finding(outcome="partial", confidence=0.3))
    found = RunResult(status="partial", subtasks=[said], unsupported=[Unsupported(text="7", where="t1")])
    assert own_flags(found) == ["partial", "confidence"]


# --- verdicts -------------------------------------------------------------------------------------------


def verdict(asked: EvalQuestion, **run: Any) -> str:
    return score_of(asked, "q", 0, EndedRun(run_id="r", **run)).verdict


def answered(value: Any, **more: Any) -> RunResult:
    fields = {"value": value, "scale": ""}
    return RunResult(**{"status": "completed", "answer": "x", "confidence": 0.9, "answer_json": fields, **more})


def test_a_verdict_says_whether_a_wrong_answer_was_noticed() -> None:
    gap = [Gap(subtask_id="t1", reason="x")]
    assert verdict(question(), result=answered(3)) == "right"
    assert verdict(question(), result=answered(4)) == "wrong_unflagged"
    assert verdict(question(), result=answered(4, gaps=gap)) == "wrong_flagged"
    assert verdict(question(), result=answered(None, gaps=gap)) == "refused_wrongly"
    assert verdict(question("none"), result=answered(None)) == "refused_rightly"
    assert verdict(question("none"), result=answered(4)) == "wrong_unflagged"


def test_a_run_that_broke_has_failed_and_one_that_has_no_answer_has_refused() -> None:
    def ended(kind: ErrorKind, why: ErrorKind) -> dict[str, Any]:
        problem = Problem(type=why, message="no")
        failed = SubtaskReport(id="t1", state="failed", error=problem)
        return {"problem": Problem(type=kind, message="no"), "result": RunResult(subtasks=[failed])}

    declined = ended(ErrorKind.ALL_SUBTASKS_FAILED, ErrorKind.CANNOT_DO)
    assert verdict(question(), **declined) == "refused_wrongly"
    assert verdict(question("none"), **declined) == "refused_rightly"
    broken = ended(ErrorKind.ALL_SUBTASKS_FAILED, ErrorKind.MODEL_UNAVAILABLE)
    assert verdict(question(), **broken) == "failed"
    assert verdict(question("none"), **broken) == "failed"
    assert verdict(question(), **ended(ErrorKind.DEADLINE_EXCEEDED, ErrorKind.CANNOT_DO)) == "failed"
    assert verdict(question(), problem=Problem(type=ErrorKind.INVALID_REQUEST, message="no")) == "failed"


def test_roles_and_cited_files_are_counted_beside_the_answer() -> None:
    report = SubtaskReport(
        id="t1", role="reader", state="completed", finding=finding(sources=["06-Tennessee.md", "09-Other.md p. 2"])
    )
    asked = question(role="reader", supporting=["06-Tennessee.md", "data/16-Publix.md"])
    found = score_of(asked, "q", 0, EndedRun(run_id="r", result=answered(3, subtasks=[report])))
    assert (found.routed, found.cited) == (True, 0.5)


@pytest.mark.parametrize(
    ("reports", "coverage", "needless", "missing"),
    [
        ("a:analyst:sales of May; b:analyst:Umsatz April; c:writer:compare:a,b", 1.0, [], []),
        ("a:analyst:sales of May; b:analyst:sales of April; c:writer:compare:a", 1.0, [], ["both after april"]),
        ("a:analyst:sales of May; c:writer:compare; d:reader:the weather", 2 / 3, ["d"], ["both after may"]),
        ("a:analyst:sales of May and April; x:analyst:sales:a; c:writer:compare:x", 1.0, ["x"], []),
        ("", 0.0, [], []),
    ],
)
def test_a_plan_is_compared_with_the_expected_one(
    reports: str, coverage: float, needless: list[str], missing: list[str]
) -> None:
    expected = [
        {"id": "may", "role": "analyst", "says": ["sales|Umsatz", "May"]},
        {"id": "april", "role": "analyst", "says": ["sales|Umsatz", "April"]},
        {"id": "both", "role": "writer", "after": ["may", "april"]},
    ]
    planned = []
    for words in filter(None, reports.split("; ")):
        name, role, description, *after = words.split(":")
        others = after[0].split(",") if after else []
        planned.append(SubtaskReport(id=name, role=role, description=description, depends_on=others))
    asked = question("plan", plan=expected)
    found = score_of(asked, "q", 0, EndedRun(run_id="r", result=RunResult(subtasks=planned), plan_alone=True))
    assert found.plan is not None
    assert (found.plan.coverage, found.plan.needless, found.plan.missing) == (coverage, needless, missing)
    assert found.is_right == found.plan.is_whole
    (row,) = table_of("eval-x", "x", ["m"], [found]).rows
    assert (row.coverage, row.needless, row.unordered) == (coverage, len(needless), len(missing))


def test_a_plan_alone_tells_which_role_takes_a_question() -> None:
    asked, planned = question("route", "writer"), SubtaskReport(id="t1", role="writer")
    run = EndedRun(run_id="r", result=RunResult(status="partial", subtasks=[planned]), plan_alone=True)
    assert score_of(asked, "q", 0, run).verdict == "right"
    assert score_of(question("route", "reader"), "q", 0, run).flags == []
    assert verdict(asked, result=RunResult(subtasks=[planned])) == "refused_wrongly"


def test_the_fault_of_given_findings_is_shown_or_not() -> None:
    asked = question(findings=[{"text": "3"}, {"text": "4"}], flag="contradiction")
    open_one = [Contradiction(description="3 or 4", resolution="")]
    shown = score_of(asked, "q", 0, EndedRun(run_id="r", result=answered(3, contradictions=open_one)))
    hidden = score_of(asked, "q", 0, EndedRun(run_id="r", result=answered(3)))
    assert (shown.fault_shown, hidden.fault_shown) == (True, False)
    assert table_of("eval-x", "x", ["m"], [shown, hidden]).rows[0].faults_shown == 0.5


# --- tables ---------------------------------------------------------------------------------------------


def test_a_table_counts_each_variant_by_itself() -> None:
    scores = [
        score("right", "q1", flags=["gap"], usage=Usage(model_calls=4, input_tokens=100, usd=0.5), seconds=10.0),
        score("wrong_unflagged", "q2", usage=Usage(model_calls=2, input_tokens=50, usd=0.1), seconds=2.0),
        score("refused_rightly", "q3"),
        score("failed", "q1~v2", 1, usage=Usage(usd=None)),
    ]
    one, other = table_of("eval-x", "x", ["m", "m, bare"], scores, planned=6).rows
    assert [one.n, one.right.value, one.unflagged.value] == pytest.approx([3, 2 / 3, 1 / 3])
    assert (one.flagged_though_right, one.calls, one.tokens, one.seconds) == (1, 2.0, 50.0, 4.0)
    assert one.usd == pytest.approx(0.2)
    assert (other.usd, other.counts["failed"]) == (None, 1)


def table(verdicts: str, label: str = "m", eval_id: str = "eval-x") -> EvalTable:
    """A table of questions that are right (r), wrong (w), or wrong and flagged (f)."""
    words = {"r": "right", "w": "wrong_unflagged", "f": "wrong_flagged"}
    scores = [score(words[letter], f"q{at}") for at, letter in enumerate(verdicts)]
    return table_of(eval_id, "x", [label], scores, planned=len(verdicts))


def test_two_evals_are_compared_question_by_question() -> None:
    (found,) = compare_tables(table("rrwwf"), table("rfrwf", "another model"))
    assert (found.n, found.better, found.worse, found.is_worse) == (5, ["q2"], ["q1"], False)
    assert found.right.value == 0.0
    with pytest.raises(ValueError, match="no question in common"):
        compare_tables(table(""), table("r"))


def test_worse_is_what_is_not_by_chance() -> None:
    before = table("r" * 12)
    assert [compare_tables(before, table("r" * (12 - n) + "f" * n))[0].is_worse for n in (0, 1, 4, 5, 12)] == [
        *(False, False, False, True, True)
    ]
    # As many are right, but nothing speaks against the wrong ones any more.
    assert compare_tables(table("r" * 6 + "f" * 6), table("r" * 6 + "w" * 6))[0].is_worse
    assert not compare_tables(table("r" * 6 + "w" * 6), table("r" * 6 + "f" * 6))[0].is_worse


def test_what_an_eval_falls_short_of_is_said_of_each_supervised_variant() -> None:
    found = table("rrrw")
    assert shortfalls(found, 0.75, 0.25) == []
    assert len(shortfalls(found, 0.8, 0.0)) == 2
    assert shortfalls(table("wwww", "m, bare"), 0.8, 0.0) == []
    worse = compare_tables(table("r" * 12), table("f" * 12))
    assert shortfalls(found, None, None, worse) == [f"m: worse than before, on {', '.join(worse[0].worse)}"]


# --- one budget for all ---------------------------------------------------------------------------------


def spent(tokens: int, ended: int, *under_way: int, usd: float | None = 0.0) -> Spent:
    grants = tuple(RunBudget(grant, 0.0) for grant in under_way)
    return Spent(Usage(input_tokens=tokens, usd=usd), ended, grants)


OWN = RunBudget(1_000_000, 5.0)


def test_a_run_gets_its_share_of_what_is_free_and_no_more_than_its_own() -> None:
    assert next_grant(EvalBudget(tokens=None), OWN, spent(10**9, 5), 4) == OWN
    assert next_grant(EvalBudget(tokens=40_000_000), OWN, spent(0, 0), 4) == OWN
    assert next_grant(EvalBudget(tokens=400_000), OWN, spent(0, 0), 4) == RunBudget(100_000, 5.0)
    assert next_grant(EvalBudget(tokens=400_000), OWN, spent(0, 0, 100_000), 3) == RunBudget(100_000, 5.0)


def test_no_run_begins_with_less_than_twice_what_runs_have_taken_so_far() -> None:
    assert next_grant(EvalBudget(tokens=100_000), OWN, spent(40_000, 2), 1) == RunBudget(60_000, 5.0)
    assert next_grant(EvalBudget(tokens=100_000), OWN, spent(60_000, 2), 1) is None
    assert next_grant(EvalBudget(tokens=100_000), OWN, spent(40_000, 2, 30_000), 1) is None
    assert next_grant(EvalBudget(tokens=19_000), OWN, spent(0, 0), 1) is None
    assert next_grant(EvalBudget(tokens=100_000, usd=1.0), OWN, spent(0, 2, usd=0.9), 1) is None


@given(st.integers(15_000, 10**7), st.integers(1, 8), st.lists(st.integers(0, 100), max_size=60))
def test_the_runs_of_an_eval_never_get_more_than_its_budget(total: int, parallel: int, shares: list[int]) -> None:
    budget, used, ended, under_way = EvalBudget(tokens=total), 0, 0, list[int]()
    for share in shares:
        grant = next_grant(budget, OWN, spent(used, ended, *under_way), parallel - len(under_way))
        if grant is not None and grant.tokens is not None and len(under_way) < parallel:
            under_way.append(grant.tokens)
        elif under_way:
            used, ended = used + under_way.pop(0) * share // 100, ended + 1
        assert used + sum(under_way) <= total


def test_what_is_to_come_is_known_once_a_run_has_ended() -> None:
    assert to_go(10, 0, 5.0, 0.0) == (None, None)
    assert to_go(10, 5, 100.0, 0.5) == (200.0, 1.0)
    assert to_go(10, 5, 100.0, None) == (200.0, None)
