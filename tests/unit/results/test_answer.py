"""What a model claims is checked against what was done."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.result import Citation, Contradiction, Gap
from supervision.results.answer import checked_citations, checked_contradictions, with_gaps
from tests.unit.shapes import any_text

ids = st.sampled_from(["t1", "t2", "t3", "ghost", ""])
completed_sets = st.sets(st.sampled_from(["t1", "t2", "t3"]))


@given(
    st.lists(st.builds(Citation, claim=st.sampled_from(["growth", " ", ""]), subtask_ids=st.lists(ids))), completed_sets
)
def test_citations_rest_on_completed_subtasks_only(citations: list[Citation], completed: set[str]) -> None:
    kept = checked_citations(citations, completed)
    assert all(c.claim.strip() and c.subtask_ids and set(c.subtask_ids) <= completed for c in kept)
    assert all(len(set(c.subtask_ids)) == len(c.subtask_ids) for c in kept)
    assert len(kept) == sum(bool(c.claim.strip()) and bool(completed & {*c.subtask_ids}) for c in citations)


@given(
    st.lists(st.builds(Contradiction, description=st.sampled_from(["a", " "]), subtask_ids=st.lists(ids))),
    completed_sets,
)
def test_contradictions_name_completed_subtasks_only(items: list[Contradiction], completed: set[str]) -> None:
    kept = checked_contradictions(items, completed)
    assert all(set(c.subtask_ids) <= completed and c.subtask_ids for c in kept)
    assert len(kept) == sum(c.description == "a" and bool(completed & {*c.subtask_ids}) for c in items)


def test_an_invented_subtask_is_dropped_and_its_citation_kept_where_another_holds() -> None:
    citations = [Citation(claim="4 %", subtask_ids=["t9", "t1", "t1"]), Citation(claim="5 %", subtask_ids=["t9"])]
    assert checked_citations(citations, {"t1"}) == [Citation(claim="4 %", subtask_ids=["t1"])]


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
