"""Plans follow the roles of the prompt, whatever the team; replies are valid, cited, and say what findings say."""

import json
from typing import Any

import jsonschema
import pytest

from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.api_request import parse
from tests.standin.conftest import FOOTER

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
IDS = {"type": "array", "items": TEXT}


def item(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


ANSWER = item(
    answer=TEXT,
    confidence={"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]},
    contradictions={"type": "array", "items": item(subtask_ids=IDS, description=TEXT, resolution=TEXT)},
)
FINDINGS = """<goal>How large is the pear crop?</goal>
<findings>
<finding subtask_id="t1" role="reader">
- Pears need sun &amp; water. [n-1]
</finding>
<finding subtask_id="t2" role="counter">
- Hill: pear crop went from 20 (1980) to 44 (2020).

| farm | crop |
| --- | --- |
| Hill | 44 |

Confidence: 0.8
</finding>
</findings>
"""


def ask(user: str, schema: dict[str, Any], system: str = "") -> Any:
    body = {
        "model": "m", "max_tokens": 9000, "system": system, "messages": [{"role": "user", "content": user}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }  # fmt: skip
    value = json.loads(think(parse(body)).content[0]["text"])
    jsonschema.validate(value, schema)
    return value


def test_a_finished_document_is_the_answer() -> None:
    document = (
        '<finding subtask_id="t3" role="scribe">\n# Pears\n\n## Figures\n\nThe crop is 44.\n</finding></findings>'
    )
    value = ask(FINDINGS.replace("</findings>", document), ANSWER)
    assert value["answer"].startswith("# Pears\n")
    assert value["answer"].count(FOOTER) == 1


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
(item(level={"type": "integer", "minimum": 50, "maximum": 60}), {"level": 50}),
(item(a={"const": 3}, b={"enum": ["x", "y"]}, c={"type": ["null", "string"]}), {"a": 3, "b": "x", "c": None}),
(item(two={"type": "array", "items": {"type": "boolean"}, "minItems": 2}), {"two": [False, False]}),
(item(either={"anyOf": [item(kind={"const": "k"}), TEXT]}), {"either": {"kind": "k"}}),
(item(reason=TEXT, choice={"type": "integer"}), {"reason": "The stand-in model does not judge.", "choice": 1}),
(item(verdicts={"type": "array"}), {"verdicts": []}),
(item(description=TEXT), {"description": ""}),
],
)  # fmt: skip
def test_other_schemas_are_filled_with_defaults_and_from_the_findings(schema: dict[str, Any], expected: Any) -> None:
    assert ask(FINDINGS, schema) == expected


def test_a_figure_is_the_last_of_the_line_about_it_and_no_year() -> None:
    value = ask(FINDINGS, item(answer=TEXT, answer_json=item(pear_crop=NUMBER, farm={"enum": ["Mill", "Hill"]})))
    assert value["answer_json"] == {"pear_crop": 44, "farm": "Hill"}


def test_an_empty_list_does_not_read_like_none_found() -> None:
    rows = item(breaches={"type": "array", "items": item(supplier=TEXT)})
    value = ask(FINDINGS, item(answer=TEXT, answer_json=rows))
    assert value["answer_json"] == {"breaches": []}
    assert "fills in no lists" in value["answer"]


KITCHEN = """You plan.

Roles:
- forager: Looks up recipes in books. (tools: search_recipes, read_recipe; capabilities: recipes)
- weigher: Queries the pantry's tables (and sums). (tools: list_shelves, query_shelves; capabilities: data, sums)
- scribe: Turns what the others found into a menu. (tools: format_menu; capabilities: writing)

Subtasks are few. At most 12 subtasks in all.
"""


def plan(goal: str, system: str = KITCHEN, roles: str = "forager weigher scribe auto") -> Any:
    """The subtasks that are planned."""
    of_plan = item(id=TEXT, description=TEXT, role={"enum": roles.split()}, depends_on=IDS, attachments=IDS)
    listed = {"type": "array", "items": {"$ref": "#/$defs/item"}}
    form = {**item(direct_answer={"anyOf": [TEXT, {"type": "null"}]}, subtasks=listed), "$defs": {"item": of_plan}}
    return ask(goal, form, system)["subtasks"]


def test_each_role_gets_a_subtask_and_the_composing_one_waits_for_the_others() -> None:
    made = plan("<goal>Plan a soup of beans and leeks for 1200 guests</goal>")
    assert [one["role"] for one in made] == ["forager", "weigher", "scribe"]
    assert [one["depends_on"] for one in made] == [[], [], ["t1", "t2"]]
    assert all("beans and leeks for 1200 guests" in one["description"] for one in made)
    assert plan('<goal>A soup</goal><planned id="t1" role="forager" state="failed">Look</planned>') == []


def test_a_description_begins_with_the_part_and_leaves_the_goal_out() -> None:
    goal = "How did the harvest of leeks change from 1990 to 2020, and why? Write a short report."
    descriptions = [one["description"] for one in plan(f"<goal>{goal}</goal>")]
    assert len({description.splitlines()[0] for description in descriptions}) == 3
    assert not any(goal in description or "report" in description for description in descriptions)
    assert all("harvest of leeks change from 1990 to 2020, and why" in description for description in descriptions)


CATALOGUE = """<data>
- table shelves (Shelf: A, B; "Beans kg": 2 to 90; "Packed on": 2024-01-02 to 2025-03-09; rows: 40)
- document recipes.md: Soups
</data>"""


def planned(goal: str, more: str = "") -> list[tuple[str, str]]:
    """The roles of a plan over some data, with their questions."""
    made = plan(f"<goal>{goal}</goal>\n{CATALOGUE}{more}")
    return [(one["role"], one["description"].partition("Question: ")[2]) for one in made]


def test_with_a_list_of_data_each_part_goes_to_the_role_that_has_it() -> None:
    both = planned("What is the total of beans kg on shelf A, and why do beans burst?")
    assert both == [("forager", "why do beans burst"), ("weigher", "What is the total of beans kg on shelf A")]
    assert planned("What is the total of beans kg?") == [("weigher", "What is the total of beans kg")]
    report = planned("What is the total of beans kg? Write a short report.")
    assert [role for role, _ in report] == ["weigher", "scribe"]


def test_a_part_that_says_little_gets_the_words_before_it() -> None:
    (first, _) = planned("How did beans kg of shelf A change from 2024 to 2025, and why?")
    assert first == ("forager", "why (beans kg shelf)")


def test_what_failed_is_tried_once_by_another_role() -> None:
    of_plan = item(id=TEXT, description=TEXT, role={"enum": ["forager", "weigher"]}, depends_on=IDS, replaces=IDS)
    form = item(subtasks={"type": "array", "items": of_plan})
    failed = '<planned id="t1" role="forager" state="failed">\nLook. Question: Are beans in stock?\n</planned>'
    (made,) = ask(f"<goal>Are beans in stock?</goal>{failed}", form, KITCHEN)["subtasks"]
    assert (made["role"], made["replaces"], made["id"]) == ("weigher", ["t1"], "t2")
    assert made["description"].endswith("Question: Are beans in stock")
    again = failed + '<planned id="t2" role="weigher" state="failed">\nLook.\n</planned>'
    assert ask(f"<goal>Are beans in stock?</goal>{again}", form, KITCHEN)["subtasks"] == []


def test_a_cell_is_filled_with_what_stands_under_its_name() -> None:
    cell = {"type": ["string", "null"]}
    value = ask(
        '<goal>x</goal><findings><finding subtask_id="t1" role="reader">\nTown: Aarau\nRent = 1,200.50 EUR\n'
        "</finding></findings>",
        item(answer=TEXT, answer_json=item(town=cell, rent={"type": ["number", "null"]}, tenant=cell)),
    )
    assert value["answer_json"] == {"town": "Aarau", "rent": 1200.5, "tenant": None}


def test_attachments_are_handed_on_to_roles_that_read_them() -> None:
    goal = "<goal>Read the notes</goal>\n<attachments>\n- my notes, part 1.txt (12 bytes)\n</attachments>"
    made = plan(goal, KITCHEN.replace("search_recipes,", "search_recipes, read_attachment,"))
    handed_on = [one["role"] for one in made if one["attachments"] == ["my notes, part 1.txt"]]
    assert (handed_on, [one["attachments"] for one in made].count([])) == (["forager"], 2)
