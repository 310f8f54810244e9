"""From a claim of an answer to what it rests on: each step is named, and where the chain breaks, why."""

import pytest
from pydantic import JsonValue

from supervision.contract.finding import Evidence
from supervision.contract.result import Citation
from supervision.grounding.chain import Grounded, Link, answer_chain, field_links

COUNT = Evidence(tool="count", output_ref="run/outputs/count")
WEIGH = Evidence(tool="weigh", output_ref="run/outputs/weigh")
LOST = Evidence(tool="look", output_ref="run/outputs/lost")
CHANGED = "run/outputs/count was changed"


def grounded(text: str, unsupported: tuple[str, ...] = (), problems: tuple[str, ...] = ()) -> Grounded:
    """A finding behind which `count` said 4711, `weigh` said 815; the output of `look` is gone."""
    return Grounded(
        text=text,
        evidence=[COUNT, WEIGH, LOST],
        outputs={COUNT.output_ref: "4711 pears", WEIGH.output_ref: "815 kg"},
        problems=list(problems),
        unsupported=list(unsupported),
    )


def links(answer: str, *given: str, citations: tuple[Citation, ...] = (), **findings: Grounded) -> list[Link]:
    return answer_chain(answer, citations, findings, given)


def link(answer: str, *given: str, **findings: Grounded) -> Link:
    (only,) = answer_chain(answer, [], findings, given)
    return only


# --- claims ---------------------------------------------------------------------------------------


def test_a_claim_leads_to_the_findings_that_have_it_and_the_outputs_behind_these() -> None:
    found = link("We have 4711 pears.", t1=grounded("There are 4711 pears."), t2=grounded("They weigh 815 kg."))
    assert (found.text, found.kind, found.problem) == ("4711", "figure", "")
    assert (found.findings, found.outputs, found.elsewhere) == (["t1"], [COUNT], "")


def test_a_claim_from_the_models_own_knowledge_says_so_where_no_output_has_it() -> None:
    from_memory = grounded("There are 4711 pears on 99 trees.").model_copy(update={"grounding": "knowledge"})
    counted, known = links("We have 4711 pears on 99 trees.", t1=from_memory)
    assert (counted.outputs, counted.elsewhere) == ([COUNT], "")
    assert (known.outputs, known.problem) == ([], "")
    assert "own knowledge" in known.elsewhere


def test_each_claim_has_one_link_however_often_it_is_made() -> None:
    made = links("We have 4711 pears, yes 4711, and 815 plums.", t1=grounded("4711 and 815"))
    assert [item.text for item in made] == ["4711", "815"]


def test_a_claim_of_the_goal_or_plan_says_so() -> None:
    found = link("Of 4711 pears none is ripe.", "Which of the 4711 pears are ripe?", t1=grounded("None."))
    assert found.elsewhere
    assert (found.findings, found.problem) == ([], "")


def test_a_claim_that_no_output_has_is_fine_unless_it_was_doubted() -> None:
    """An author may compute: what was not found to lack support when the finding was written stands."""
    found = link("That is 1234 each.", t1=grounded("1234 each"))
    assert (found.findings, found.outputs, found.problem) == (["t1"], [], "")


@pytest.mark.parametrize("doubted", ["1234", "1234 each", "234"])
def test_a_claim_that_was_doubted_when_it_was_written_is_a_problem(doubted: str) -> None:
    found = link("That is 1234 each.", t1=grounded("1234 each", unsupported=("other", doubted)))
    assert found.problem == "no tool output has it"


def test_a_doubt_of_something_else_is_no_problem() -> None:
    assert link("That is 1234 each.", t1=grounded("1234 each", unsupported=("other",))).problem == ""


def test_of_a_doubted_claim_no_output_is_proof() -> None:
    found = link("We have 4711 pears.", t1=grounded("4711 pears", unsupported=("4711",)))
    assert (found.outputs, found.problem) == ([], "no tool output has it")


def test_a_claim_that_the_goal_has_needs_no_output() -> None:
    doubted = grounded("4711 pears", unsupported=("4711",))
    assert link("We have 4711 pears.", "Weigh the 4711 pears", t1=doubted).problem == ""


def test_a_claim_that_rests_on_changed_objects_says_so_whatever_else_supports_it() -> None:
    changed = grounded("4711 pears", problems=(CHANGED, "another"))
    found = link("We have 4711 pears.", "Weigh the 4711 pears", t1=grounded("4711 pears"), t2=changed)
    assert found.problem == CHANGED


def test_a_change_elsewhere_may_be_why_no_finding_has_a_claim() -> None:
    assert link("We have 9999 pears.", t1=grounded("", problems=(CHANGED, "another"))).problem == CHANGED


def test_a_change_in_a_finding_without_the_claim_is_no_problem_of_it() -> None:
    found = link("We have 4711 pears.", t1=grounded("4711 pears"), t2=grounded("815 kg", problems=(CHANGED,)))
    assert found.problem == ""


# --- citations ------------------------------------------------------------------------------------


def cited(*subtask_ids: str, **findings: Grounded) -> Link:
    (only,) = links("Pears.", citations=(Citation(claim="Pears grew", subtask_ids=[*subtask_ids]),), **findings)
    return only


def test_a_citation_rests_on_the_findings_that_it_names() -> None:
    found = cited("t2", "t1", t1=grounded("a"), t2=grounded("b"), t3=grounded("c"))
    assert (found.kind, found.text, found.findings, found.problem) == ("citation", "Pears grew", ["t2", "t1"], "")


def test_a_citation_of_findings_that_are_not_there_names_them() -> None:
    found = cited("t1", "t8", "t9", t1=grounded("a", problems=(CHANGED,)))
    assert found.findings == ["t1"]
    assert "t8, t9" in found.problem


def test_a_citation_that_its_own_finding_contradicts_is_a_problem() -> None:
    findings = {"t1": grounded("Wind output fell by 90 %."), "t2": grounded("Wind grew 300 %.")}
    citation = Citation(claim="wind fell by 90 %", subtask_ids=["t2"])
    beside, cited = links("Wind output fell by 90 % [t2]", citations=(citation,), **findings)
    assert (beside.text, beside.problem) == ("90 %", "cited as a finding of t2, which lacks it")
    assert (cited.kind, cited.problem) == ("citation", "t2 lacks 90 %")


def test_the_fields_of_a_structured_answer_are_links_of_their_own() -> None:
    findings = {"t1": Grounded(text="Esbjerg: 7.9 m/s"), "t2": Grounded(text="Esbjerg: 90 days\nHirtshals: 180 days")}
    good, bad = field_links({"site": "Esbjerg", "mean_wind_ms": 7.9, "permit_days": 180}, findings, [])
    assert (good.text, good.problem) == ("answer_json.mean_wind_ms: 7.9", "")
    assert (bad.text, bad.problem.split(" has")[0]) == ("answer_json.permit_days: 180", "no finding")


def test_a_row_that_code_took_leads_to_the_finding_that_handed_it_in() -> None:
    call = Evidence(tool="read", output_ref="ref")
    elm = Grounded(evidence=[call], outputs={"ref": "31.5"}, output={"tree": "elm", "height_m": 31.5, "note": ""})
    oak = Grounded(unsupported=["height_m: 28"], output={"tree": "oak", "height_m": 28})
    rows: JsonValue = {"trees": [{"tree": "elm", "height_m": 31.5}, {"tree": "oak", "height_m": 28}]}
    good, bad = field_links(rows, {"t1.1": elm, "t1.2": oak}, [])
    assert (good.text, good.findings, good.outputs, good.problem) == ("answer_json, row 1", ["t1.1"], [call], "")
    assert (bad.findings, bad.problem) == (["t1.2"], "no tool output has height_m: 28")
    (other,) = field_links([{"tree": "elm", "height_m": 99.5}], {"t1.1": elm}, [])
    assert other.problem
