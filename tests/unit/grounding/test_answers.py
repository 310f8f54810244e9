"""Answers and what they rest on: fields of structured ones, citations, the chain from a claim to a tool's output."""

import time
from typing import Any

import pytest
from pydantic import JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import Evidence
from temporal_supervisor.supervision.contract.result import Citation
from temporal_supervisor.supervision.grounding.answer_chain import Grounded, answer_chain
from temporal_supervisor.supervision.grounding.answer_fields import field_claims
from temporal_supervisor.supervision.grounding.citations import CitedFindings, with_valid_marks

WIND = """## Sites

- Esbjerg: mean wind 7.9 m/s, a permit takes 90 days
- Hirtshals: mean wind 8.4 m/s, a permit takes 180 days
- A mast weighs 45 kg
"""
TABLE = """| country | continent | year | life_expectancy_years |
|---|---|---|---|
| Rwanda | Africa | 1952 | 40.0 |
| Rwanda | Africa | 2007 | 46.242 |
| Botswana | Africa | 2007 | 50.728 |
"""


def missing(value: Any, *findings: str, given: str = "") -> list[str]:
    """The paths of what no finding has."""
    return [path.removeprefix("answer_json") for path, _, found in field_claims(value, findings, [given]) if not found]


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"site": "Esbjerg", "mean_wind_ms": 7.9, "permit_days": 90}, []),
        ({"site": "Esbjerg", "mean_wind_ms": 180, "permit_days": 180}, [".mean_wind_ms", ".permit_days"]),
        ({"site": "Esbjerg: 7.9 m/s [t1]", "mean_wind_ms": 180}, [".mean_wind_ms"]),
        ([{"name": "Hirtshals", "permitDays": 180}, {"name": "Esbjerg", "permitDays": 180}], ["[1].permitDays"]),
        ({"mean_wind_ms": 91}, [".mean_wind_ms"]),  # without a row: in any line with the unit
        ({"permit_days": 90}, []),
        ({"site": "Skagen", "permit_days": 90}, []),  # no finding has the name
        ({"best": "Hirtshals", "other": "Esbjerg", "best_ms": 8.4, "other_ms": 7.9}, []),
        ({"best": "Hirtshals", "begun": "14.07.2026", "masts_kg": 45}, [".begun", ".begun"]),  # of several lines
        ([{"site": "Hirtshals", "masts_kg": 45}], []),  # of a line that names no other row
        ([{"site": "Hirtshals", "masts_kg": 54}], ["[0].masts_kg"]),
        ({"permit_days": 7}, [".permit_days"]),
        ({"sites": 2, "masts": 3, "useful": True, "note": None}, []),
        ({"sites": 13}, [".sites"]),
        ({"site": "Esbjerg", "mean_wind_ms": 7.1 + 0.8}, []),
        ({"site": "Esbjerg", "index": 8.4}, []),  # a name that no line has: in a finding on its row
        ({"site": "Esbjerg", "index": 8.6}, [".index"]),
        ({"site": "Esbjerg", "mast": {"note": "", "kind": "steel", "wind_ms": 8.4}}, [".mast.wind_ms"]),
        ({"best": "Hirtshals", "masts_kg": 45}, []),  # of several lines
        ({"mean": 8.15}, [".mean"]),  # computed by its author
        ({"source": "see https://wind.example/a"}, [".source"]),
        ({"quotation": 'it says "permits are quick and easy to get"'}, [".quotation"]),
    ],
)  # fmt: skip
def test_a_figure_is_found_beside_its_unit_and_its_row(value: Any, paths: list[str]) -> None:
    assert missing(value, WIND) == paths


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"country": "Rwanda", "continent": "Africa", "life_expectancy_years": 46.24}, []),
        ({"country": "Rwanda", "continent": "Africa", "life_expectancy_years": 50.728}, [".life_expectancy_years"]),
        ({"country": "Rwanda", "life_expectancy_years": 40.5}, [".life_expectancy_years"]),
        ({"country": "Rwanda", "year": 1952}, []),
        ({"country": "Rwanda", "year": 1977}, [".year"]),
    ],
)
def test_a_cell_of_a_table_has_the_head_of_its_column_and_the_names_of_its_row(value: Any, paths: list[str]) -> None:
    assert missing(value, TABLE) == paths


def test_the_heading_names_the_row_of_the_lines_below_it() -> None:
    text = "## Esbjerg\n- wind: 7.9 m/s\n## Hirtshals\n- wind: 8.4 m/s"
    assert missing([{"site": "Esbjerg", "wind_ms": 8.4}, {"site": "Hirtshals", "wind_ms": 8.4}], text) == [
        "[0].wind_ms"
    ]


LINES = """Esbjerg: 7.9 m/s
Esbjerg: 90 days
Hirtshals: 8.4 m/s
The third of all six sites: 5.5 m/s

| farm | output in gwh | staff |
|---|---|---|
| Nord | 1284 | 137 | more |
"""


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"site": "Esbjerg", "wind_ms": 90}, [".wind_ms"]),
        ({"site": "Esbjerg", "permit_days": 7.9}, [".permit_days"]),
        ({"site": "Esbjerg", "days": 7.9}, []),  # a name alone is no unit
        ({"best": "Esbjerg", "next": "Hirtshals", "wind_ms": 5.5}, [".wind_ms"]),  # in a line with one of them
        ({"best": "Esbjerg", "next": "Hirtshals", "wind_ms": 8.4}, []),
        ({"site": "The third of all six sites", "wind_ms": 7.9}, [".wind_ms"]),
        ({"farm": "Nord", "output_gwh": 1284, "staff": 137}, []),
        ({"farm": "Nord", "output_gwh": 137}, [".output_gwh"]),
    ],
)
def test_a_line_without_the_row_or_the_unit_proves_nothing(value: Any, paths: list[str]) -> None:
    assert missing(value, LINES) == paths


FINCH = """Tenant: Blue Finch Bakery (p. 1)
- Basic rent: EUR 1,850 a month, and EUR 210 for services
- Notice: 6 months
- Staff: 14
"""
SOMMER = """**Mieter:** Praxis Dr. Sommer
- Kaltmiete: 2.340,50 €
- Kündigungsfrist: 3 months
- Mitarbeiter: 21
"""


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ([{"rent_eur": 1850, "notice_months": 6, "staff": 14}, {"rent_eur": 2340.5, "staff": 21}], []),
        ([{"rent_eur": 2340.5, "notice_months": 3}, {}], ["[0].rent_eur", "[0].notice_months"]),
        ([{"rent_eur": 1850}], []),  # one row
        ([{"rent_eur": 1851}], ["[0].rent_eur"]),
        ([{"staff": 210}], ["[0].staff"]),
    ],
)  # fmt: skip
def test_a_finding_about_one_item_has_its_figures_in_other_lines_than_its_name(fields: Any, paths: list[str]) -> None:
    rows = [
        {"tenant": tenant, **more}
        for tenant, more in zip(["Blue Finch Bakery", "Praxis Dr. Sommer"], fields, strict=False)
    ]
    assert missing(rows, FINCH, SOMMER) == paths


def test_a_year_may_come_from_the_goal() -> None:
    assert missing({"site": "Esbjerg", "year": 2031}, WIND, given="How windy will it be in 2031?") == []


# --- citations ---------------------------------------------------------------------------------------


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
        ('"We never saw it"', ["t1"], False),
        ("so iea.org", ["t2"], True),
        ("so iea.org", ["t1"], False),
    ],
)
def test_a_citation_holds_only_if_the_findings_that_it_names_say_so(claim: str, named: list[str], holds: bool) -> None:
    cited = list(FOUND.citations(f"{claim} [{', '.join(named)}]", BOTH))
    assert cited == [Citation(claim=claim, subtask_ids=named)] * holds


def test_a_statement_that_is_a_whole_answer_is_looked_up_as_far_as_it_is_shown() -> None:
    began = time.process_time()
    (cited,) = FOUND.citations("1 " * 100_000 + "[t1]", BOTH)
    assert time.process_time() - began < 1
    assert len(cited.claim) <= limits.SENTENCE_BYTES


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
        ("Pears grew [t1, t2, t3].", "Pears grew [t1, t2]."),
        ("Pears grew [t1] and [t3] fell.", "Pears grew [t1] and fell."),
        ("[t1] says so.", "[t1] says so."),
        ("See [appendix] and [t1, appendix].", "See [appendix] and [t1, appendix]."),
        ("See [t3](https://example.org).", "See [t3](https://example.org)."),
        ("Pears grew [t3/t1], see [a/b].", "Pears grew [t3/t1], see [a/b]."),
    ],
)
def test_a_mark_names_only_subtasks_that_may_be_cited_and_other_brackets_stay(written: str, shown: str) -> None:
    assert with_valid_marks(written, PLANNED, {"t1", "t2"}) == shown


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Pears grew [t1].", [("Pears grew", ["t1"])]),
        ("One. Two! Three [t1, t2]", [("Three", ["t1", "t2"])]),
        ("# Fruit\n- Pears grew [t1]\n- Plums fell [t2]", [("Pears grew", ["t1"]), ("Plums fell", ["t2"])]),
        ("Pears grew [t1], plums fell [t2].", [("Pears grew", ["t1"]), ("plums fell", ["t2"])]),
        ("It fell. Nach Abs. 2 z. B. im Aug. bis ca. 3 [t1]", [("Nach Abs. 2 z. B. im Aug. bis ca. 3", ["t1"])]),
        ("[t1] [t2]", []),
        ("Pears grew [t9] a lot [t1]", [("Pears grew [t9] a lot", ["t1"])]),
        ("Pears grew.", []),
        *((f"Pears grew [t1]{mark}.", [("Pears grew", ["t1", "t2"])]) for mark in ("[t2]", " [t2]", ", [t2]")),
        # a mark that begins a sentence or line
        *((f"Pears grew [t1]{more}", [("Pears grew", ["t1"])]) for more in (". [t2] says so.", ".\n\n[t2]", "\n[t2]")),
    ],
)  # fmt: skip
def test_a_mark_cites_for_the_statement_before_it(text: str, claims: list[tuple[str, list[str]]]) -> None:
    assert [(c.claim, c.subtask_ids) for c in CitedFindings({}).citations(text, BOTH)] == claims


# --- chains ------------------------------------------------------------------------------------------


COUNT = Evidence(tool="count", output_ref="run/outputs/count")
WEIGH = Evidence(tool="weigh", output_ref="run/outputs/weigh")
LOST = Evidence(tool="look", output_ref="run/outputs/lost")
CHANGED = "run/outputs/count was changed"


def grounded(text: str, *unsupported: str, **more: Any) -> Grounded:
    """A finding behind which `count` said 4711, `weigh` said 815; the output of `look` is gone."""
    outputs = {COUNT.output_ref: "4711 pears", WEIGH.output_ref: "815 kg"}
    return Grounded(
        text=text, evidence=[COUNT, WEIGH, LOST], outputs=outputs, unsupported=["other", *unsupported], **more
    )


PEARS, DOUBTED = grounded("There are 4711 pears."), grounded("4711 pears", "4711")
REMEMBERED = grounded("4711 pears on 99 trees", grounding="knowledge")
SPOILT = grounded("4711 pears", problems=[CHANGED, "another"])
NO_OUTPUT, GOAL = "no tool output has it", "Weigh the 4711 pears"


@pytest.mark.parametrize("shown", ['"Sorry, your 48215 chairs are late."', "> Sorry, your 48215 chairs\n> are late."])
def test_a_text_that_the_planner_reworked_is_quoted_from_nowhere(shown: str) -> None:
    assert [link.problem for link in answer_chain(shown, [], {}, ["Rewrite: your 48215 chairs are late"])] == [""]
    assert [link.problem for link in answer_chain(shown, [], {}, [])] == ["no finding has it"]  # the figure
    assert [link.kind for link in answer_chain('"Sorry, your chairs are late."', [], {"t1": PEARS}, [])] == [
        "quotation"
    ]


@pytest.mark.parametrize(
    ("claimed", "goal", "findings", "expected"),
    [
        ("4711", "", [PEARS, grounded("They weigh 815 kg.")], (["t1"], [COUNT], "", "")),
        ("4711", "", [REMEMBERED], (["t1"], [COUNT], "", "")),
        ("99", "", [REMEMBERED], (["t1"], [], "the model's own knowledge, which is not checked", "")),
        ("4711", GOAL, [grounded("None.")], ([], [], "the goal or the plan", "")),
        # An author may compute: what was not found to lack support when the finding was written stands.
        ("1234", "", [grounded("1234 each")], (["t1"], [], "", "")),
        *(("1234", "", [grounded("1234 each", d)], (["t1"], [], "", NO_OUTPUT)) for d in ("1234", "1234 each", "234")),
        ("4711", "", [DOUBTED], (["t1"], [], "", NO_OUTPUT)),  # of a doubted claim no output is proof
        ("4711", GOAL, [DOUBTED], (["t1"], [], "the goal or the plan", "")),
        ("4711", GOAL, [PEARS, SPOILT], (["t1", "t2"], [COUNT, COUNT], "the goal or the plan", CHANGED)),
        ("9999", "", [SPOILT], ([], [], "", CHANGED)),  # its finding may be the one that was changed
        ("9999", "", [PEARS], ([], [], "", "no finding has it")),
        ("4711", "", [PEARS, grounded("815 kg", problems=[CHANGED])], (["t1"], [COUNT], "", "")),
    ],
)  # fmt: skip
def test_a_claim_leads_to_its_findings_and_outputs_or_has_a_problem(
    claimed: str, goal: str, findings: list[Grounded], expected: tuple[list[str], list[Evidence], str, str]
) -> None:
    by_id = {f"t{number}": finding for number, finding in enumerate(findings, 1)}
    (link,) = answer_chain(f"We have {claimed} pears, yes {claimed}.", [], by_id, [goal])
    assert (link.kind, link.text) == ("figure", claimed)
    assert (link.findings, link.outputs, link.elsewhere, link.problem) == expected


@pytest.mark.parametrize(
    ("cited", "findings", "problem"),
    [
        ("t2 t1", "t2 t1", ""),
        ("t1 t8 t9", "t1", "there is no finding of t8, t9"),
        ("t3", "t3", CHANGED),
        ("t4", "t4", "t4 lacks 90 %"),
    ],
)
def test_a_citation_rests_on_the_findings_that_it_names(cited: str, findings: str, problem: str) -> None:
    fell = grounded("It fell by 90 %.")
    by_id = {"t1": fell, "t2": fell, "t3": SPOILT, "t4": grounded("It grew 300 %.")}
    citation = Citation(claim="it fell by 90 %", subtask_ids=cited.split())
    (link,) = answer_chain("It fell.", [citation], by_id, [])
    assert (link.kind, link.text, link.findings) == ("citation", "it fell by 90 %", findings.split())
    assert link.problem == problem
    (beside,) = answer_chain("It fell by 90 % [t4]", [], by_id, [])
    assert (beside.text, beside.problem) == ("90 %", "cited as a finding of t4, which lacks it")


def test_the_fields_of_a_structured_answer_are_links_of_their_own() -> None:
    findings = {"t1": Grounded(text="Esbjerg: 7.9 m/s"), "t2": Grounded(text="Esbjerg: 90 days\nHirtshals: 180 days")}
    good, bad = answer_chain("", [], findings, [], {"site": "Esbjerg", "mean_wind_ms": 7.9, "permit_days": 180})
    assert (good.text, good.problem) == ("answer_json.mean_wind_ms: 7.9", "")
    assert (bad.text, bad.problem.split(" has")[0]) == ("answer_json.permit_days: 180", "no finding")


def test_a_row_that_code_took_leads_to_the_finding_that_handed_it_in() -> None:
    call = Evidence(tool="read", output_ref="ref")
    elm = Grounded(evidence=[call], outputs={"ref": "31.5"}, output={"tree": "elm", "height_m": 31.5, "note": ""})
    oak = Grounded(unsupported=["height_m: 28"], output={"tree": "oak", "height_m": 28})
    rows: JsonValue = {"trees": [{"tree": "elm", "height_m": 31.5}, {"tree": "oak", "height_m": 28}]}
    good, bad = answer_chain("", [], {"t1.1": elm, "t1.2": oak}, [], rows)
    assert (good.text, good.findings, good.outputs, good.problem) == ("answer_json, row 1", ["t1.1"], [call], "")
    assert (bad.findings, bad.problem) == (["t1.2"], "no tool output has height_m: 28")
    assert (bool(good.elsewhere), bool(bad.elsewhere)) == (False, True)
    mixed = answer_chain(
        "", [], {"t1.1": elm}, [], [{"tree": "elm", "height_m": 31.5}, {"tree": "elm", "height_m": 99.5}]
    )
    assert [link.text for link in mixed if link.problem][-1] == "answer_json[1].height_m: 99.5"


def test_a_row_among_others_has_no_figure_of_a_finding_that_names_another() -> None:
    findings = ("Hirtshals is fine.", "Esbjerg: a mast weighs 45 kg")
    rows = [{"site": "Hirtshals", "masts_kg": 45}, {"site": "Esbjerg", "masts_kg": 45}]
    assert missing(rows, *findings) == ["[0].masts_kg"]
    assert missing(rows[0], *findings) == []  # the only object may have its values from several
