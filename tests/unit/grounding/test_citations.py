"""Citations hold only by the findings that they name, whatever a model claims."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.result import Citation
from supervision.grounding.citations import CitedFindings, marked_citations, marks_from_below, with_valid_marks

ids = st.sampled_from(["t1", "t2", "t3", "ghost", ""])
completed_sets = st.sets(st.sampled_from(["t1", "t2", "t3"]))
SILENT = CitedFindings({})


@given(
    st.lists(st.builds(Citation, claim=st.sampled_from(["growth", " ", ""]), subtask_ids=st.lists(ids))), completed_sets
)
def test_citations_rest_on_completed_subtasks_only(citations: list[Citation], completed: set[str]) -> None:
    kept = SILENT.holding(citations, completed)
    assert all(c.claim.strip() and c.subtask_ids and set(c.subtask_ids) <= completed for c in kept)
    assert all(len(set(c.subtask_ids)) == len(c.subtask_ids) for c in kept)
    assert len(kept) == sum(bool(c.claim.strip()) and bool(completed & {*c.subtask_ids}) for c in citations)


# --- what a citation claims ----------------------------------------------------------------------

FOUND = CitedFindings(
    {"t1": "Wind output fell by 90 %.", "t2": 'Wind grew 300 %. "We never saw such a year", says iea.org.'}
)
BOTH = {"t1", "t2"}


@pytest.mark.parametrize(
    ("claim", "named", "holds"),
    [
        ("wind grew 300 %", ["t2"], True),
        ("wind grew threefold", ["t2"], True),
        ("wind fell by 90 %", ["t2"], False),
        ("wind fell by 90 %", ["t1"], True),
        ("wind fell by 90 % or grew 300 %", ["t1", "t2"], True),
        ("wind fell by 90 % or grew 300 %", ["t2"], False),
        ('"We never saw such a year"', ["t2"], True),
        ('"We never saw such a year"', ["t1"], False),
        ("so iea.org", ["t2"], True),
        ("so iea.org", ["t1"], False),
    ],
)
def test_a_citation_holds_only_if_the_findings_that_it_names_say_so(claim: str, named: list[str], holds: bool) -> None:
    citation = Citation(claim=claim, subtask_ids=named)
    assert FOUND.holding([citation], BOTH) == [citation] * holds


def test_a_finding_in_a_digest_is_cited_by_the_digest() -> None:
    digests = CitedFindings({"t1": "It fell."}, ["Wind grew 300 % [t2]."])
    assert digests.texts == ["It fell.", "Wind grew 300 % [t2]."]
    assert digests.lacking("wind grew 300 %", ["t2"]) == []
    assert [made.text for made in digests.lacking("wind grew 300 %", ["t1"])] == ["300 %"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Wind output fell by 90 % [t2].", {"90 %": ["t2"]}),
        ("Wind output fell by 90 % [t1].", {}),
        ("Wind output fell by 90 % [t1][t2].", {}),
        ("Wind output fell by 90 % [t1] and grew 300 % [t2].", {}),
        ("Wind output fell by 90 %. It grew 300 % [t2].", {}),
        ("风电下降90%。风电增长300% [t2]。", {}),
        ("| year | 90 % | [t2] |", {"90 %": ["t2"]}),
        ("Of 4711 turbines all ran [t2].", {}),
        ("Wind output fell by 90 % [t2](https://iea.org).", {}),
    ],
)
def test_a_claim_beside_a_mark_is_looked_for_in_the_finding_marked(text: str, wrong: dict[str, list[str]]) -> None:
    assert FOUND.miscited(text, BOTH, ["How did the 4711 turbines do?"]) == wrong


# --- marks in the text ---------------------------------------------------------------------------

PLANNED = {"t1", "t2", "t3"}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Pears grew [t1].", "Pears grew [t1]."),
        ("Pears grew[t1].", "Pears grew[t1]."),
        ("Pears grew [t1,t2].", "Pears grew [t1, t2]."),
        ("Pears grew [t3].", "Pears grew."),
        ("Pears grew [t1, t3].", "Pears grew [t1]."),
        ("Pears grew [t1] and [t3] fell.", "Pears grew [t1] and fell."),
        ("[t1] says so.", "[t1] says so."),
        ("See [appendix] and [t1, appendix].", "See [appendix] and [t1, appendix]."),
        ("See [t3](https://example.org).", "See [t3](https://example.org)."),
        ("Pears grew [t1/t2, t1/t9].", "Pears grew [t1/t2, t1]."),
        ("Pears grew [t3/t1], see [a/b].", "Pears grew, see [a/b]."),
    ],
)
def test_a_mark_names_only_subtasks_that_may_be_cited_and_other_brackets_stay(written: str, shown: str) -> None:
    assert with_valid_marks(written, PLANNED, {"t1", "t2"}, ["Pears grew [t1/t2]."]) == shown


def test_the_marks_of_a_nested_answer_say_where_they_lead() -> None:
    assert marks_from_below("Grew [t1, t2/t1] [note].", {"t1", "t2"}, "t3") == "Grew [t3/t1, t3/t2/t1] [note]."


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Pears grew [t1].", [("Pears grew", ["t1"])]),
        ("One. Two! Three [t1, t2]", [("Three", ["t1", "t2"])]),
        ("# Fruit\n- Pears grew [t1]\n- Plums fell [t2]", [("Pears grew", ["t1"]), ("Plums fell", ["t2"])]),
        ("Pears grew [t1], plums fell [t2].", [("Pears grew", ["t1"]), ("plums fell", ["t2"])]),
        ("[t1] [t2]", []),
        ("Pears grew [t9] a lot [t1]", [("Pears grew [t9] a lot", ["t1"])]),
        ("Pears grew [t2/t1, t2/t3].", [("Pears grew", ["t2"])]),
        ("Pears grew.", []),
    ],
)
def test_a_mark_cites_for_the_statement_before_it(text: str, claims: list[tuple[str, list[str]]]) -> None:
    assert [(c.claim, c.subtask_ids) for c in marked_citations(text, {"t1", "t2"})] == claims


@pytest.mark.parametrize("marks", ["[t1][t2]", "[t1] [t2]", "[t1], [t2]", "[t1, t2]"])
def test_several_marks_after_a_statement_cite_for_it_together(marks: str) -> None:
    assert marked_citations(f"Pears grew {marks}.", PLANNED) == [Citation(claim="Pears grew", subtask_ids=["t1", "t2"])]


@pytest.mark.parametrize("text", ["Pears grew [t1]. [t2] says so.", "Pears grew [t1].\n\n[t2]", "Pears [t1]\n[t2]"])
def test_a_mark_that_begins_a_sentence_or_line_cites_nothing_before_it(text: str) -> None:
    assert [c.subtask_ids for c in marked_citations(text, PLANNED)] == [["t1"]]
