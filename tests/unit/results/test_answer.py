"""What a model claims is checked against what was done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.base.text import size
from supervision.contract.finding import Finding
from supervision.contract.result import Contradiction, Gap, SubtaskReport
from supervision.results.answer import TRIED_SHOWN, checked_contradictions, failure_text, findings_as_answer, with_gaps
from tests.unit.shapes import any_text

ids = st.sampled_from(["t1", "t2", "t3", "ghost", ""])
completed_sets = st.sets(st.sampled_from(["t1", "t2", "t3"]))


@given(
    st.lists(st.builds(Contradiction, description=st.sampled_from(["a", " "]), subtask_ids=st.lists(ids))),
    completed_sets,
)
def test_contradictions_name_completed_subtasks_only(items: list[Contradiction], completed: set[str]) -> None:
    kept = checked_contradictions(items, completed)
    assert all(set(c.subtask_ids) <= completed and c.subtask_ids for c in kept)
    assert len(kept) == sum(c.description == "a" and bool(completed & {*c.subtask_ids}) for c in items)


def test_the_answer_lists_what_is_missing() -> None:
    gaps = [Gap(subtask_id="t2", reason="failed: TurnLimit: no finding"), Gap(subtask_id="t3", reason="skipped")]
    assert with_gaps("Sales grew.\n\n", gaps) == (
        "Sales grew.\n\n**Missing from this answer**\n\n- `t2`: failed: TurnLimit: no finding\n- `t3`: skipped"
    )


@given(any_text, st.lists(st.builds(Gap, subtask_id=st.sampled_from(["t1", "t2"]), reason=any_text), max_size=4))
def test_each_gap_is_one_line_after_the_untouched_answer(answer: str, gaps: list[Gap]) -> None:
    told = with_gaps(answer, gaps)
    assert told.startswith(answer.rstrip() if gaps else answer)
    assert len(told) >= len(answer.rstrip())
    listed = told[len(answer.rstrip()) :].splitlines() if gaps else []
    assert sum(line.startswith("- `t") for line in listed) == len(gaps)
    if gaps:
        assert len(listed) == 4 + len(gaps)
    else:
        assert told == answer


# --- runs without an answer -----------------------------------------------------------------------


def found(subtask_id: str, summary: str) -> SubtaskReport:
    return SubtaskReport(id=subtask_id, state="completed", finding=Finding(summary=summary, text_ref="r"))


def test_findings_in_place_of_an_answer_stand_under_their_subtasks_with_the_reason() -> None:
    told = findings_as_answer([found("t1", "Four."), SubtaskReport(id="t2"), found("t3", "Five.")], "the model is away")
    reason, *rest = told.split("\n\n")
    assert "the model is away" in reason
    assert rest == ["**t1**", "Four.", "**t3**", "Five."]


@pytest.mark.parametrize("others", [0, 1, 4])
def test_findings_in_place_of_an_answer_share_its_room_evenly(others: int) -> None:
    share = limits.ANSWER_INLINE_BYTES // (1 + others)
    told = findings_as_answer([found("t1", "a" * (share + 1)), *[found("t2", "b" * share)] * others], "why")
    assert f"\n{'a' * (share - len('…'.encode()))}…" in told
    assert told.count("b" * share) == others


def tried(number: int, attempts: int = 1) -> SubtaskReport:
    return SubtaskReport(
        id=f"t{number}", role="digger", description=f"Dig hole {number}", state="failed", attempts=attempts
    )


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


def test_a_failed_run_gives_the_advice_and_what_was_tried() -> None:
    told = failure_text("Ask again.", [tried(1), tried(2, attempts=0), tried(3)])
    assert told.startswith("Ask again.\n")
    first, second = lines_of(told)
    assert "Dig hole 1" in first
    assert "Dig hole 3" in second


@pytest.mark.parametrize(("attempts", "words"), [(1, "1 attempt by digger"), (3, "3 attempts by digger")])
def test_what_was_tried_says_how_often_and_by_whom(attempts: int, words: str) -> None:
    (line,) = lines_of(failure_text("Ask again.", [tried(1, attempts)]))
    assert words in line


@pytest.mark.parametrize(("count", "more"), [(0, False), (1, True), (7, True)])
def test_a_long_list_of_what_was_tried_is_cut_and_counted(count: int, more: bool) -> None:
    shown = lines_of(failure_text("Ask again.", [tried(n) for n in range(TRIED_SHOWN + count)]))
    assert len([line for line in shown if "Dig" in line]) == TRIED_SHOWN
    assert [line for line in shown if "Dig" not in line] == ([f"- and {count} more"] if more else [])


def test_the_reason_of_a_gap_is_told_at_some_length() -> None:
    told = with_gaps("a", [Gap(subtask_id="t1", description="d" * 1000, reason="r" * 1000)])
    assert size(told.splitlines()[-1]) == size("-  (`t1`: )") + limits.SENTENCE_BYTES + 600
