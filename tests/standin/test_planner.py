"""Plans follow the roles of the prompt, whatever the team."""

import json
from typing import Any

from standin.extract.kind_of_call import think
from standin.server.api_request import parse

KITCHEN = """You plan.

Roles:
- forager: Looks up recipes in books. (tools: search_recipes, read_recipe; capabilities: recipes)
- weigher: Queries the pantry's tables (and sums). (tools: list_shelves, query_shelves; capabilities: data, sums)
- scribe: Turns what the others found into a menu. (tools: format_menu; capabilities: writing)

Subtasks are few. At most 12 subtasks in all.
"""
TEXT = {"type": "string"}
IDS = {"type": "array", "items": TEXT}


def schema(roles: list[str]) -> dict[str, Any]:
    fields = {"id": TEXT, "description": TEXT, "role": {"enum": roles}, "depends_on": IDS, "attachments": IDS}
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {
            "direct_answer": {"anyOf": [TEXT, {"type": "null"}]},
            "subtasks": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        },
        "required": ["direct_answer", "subtasks"],
        "$defs": {"item": item},
    }


def plan(user: str, system: str = KITCHEN, roles: list[str] | None = None) -> Any:
    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 9000,
        "system": system,
        "messages": [{"role": "user", "content": user}],
        "output_config": {
            "format": {"type": "json_schema", "schema": schema(roles or ["forager", "weigher", "scribe", "auto"])}
        },
    }
    return json.loads(think(parse(body)).content[0]["text"])


def test_each_role_gets_a_subtask_and_the_composing_one_waits_for_the_others() -> None:
    made = plan("<goal>Plan a soup of beans and leeks for 1200 guests</goal>")["subtasks"]
    assert [one["role"] for one in made] == ["forager", "weigher", "scribe"]
    assert [one["depends_on"] for one in made] == [[], [], ["t1", "t2"]]
    assert all("beans and leeks for 1200 guests" in one["description"] for one in made)


def test_a_description_begins_with_the_part_and_leaves_the_goal_out() -> None:
    goal = "How did the harvest of leeks change from 1990 to 2020, and why? Write a short report."
    descriptions = [one["description"] for one in plan(f"<goal>{goal}</goal>")["subtasks"]]
    assert len({description.splitlines()[0] for description in descriptions}) == 3
    assert not any(goal in description or "report" in description for description in descriptions)
    assert all("harvest of leeks change from 1990 to 2020, and why" in description for description in descriptions)


def test_of_a_large_team_only_fitting_roles_work() -> None:
    roles = ["astronomer", "plumber", "baker", "pilot", "lawyer", "editor"]
    lines = {"astronomer": "stars and planets", "plumber": "pipes", "baker": "bread and dough", "pilot": "aircraft",
             "lawyer": "contracts and law", "editor": "Edits the final text"}  # fmt: skip
    system = "Roles:\n" + "\n".join(f"- {role}: {lines[role]} (tools: none)" for role in roles)
    made = plan("<goal>Which contracts does a baker of bread need?</goal>", system, roles)["subtasks"]
    assert [one["role"] for one in made] == ["baker", "lawyer", "editor"]


def test_attachments_are_handed_on_to_roles_that_read_them() -> None:
    goal = "<goal>Read the notes</goal>\n<attachments>\n- my notes, part 1.txt (12 bytes)\n</attachments>"
    made = plan(goal, KITCHEN.replace("search_recipes,", "search_recipes, read_attachment,"))["subtasks"]
    assert {one["role"]: one["attachments"] for one in made} == {
        "forager": ["my notes, part 1.txt"],
        "weigher": [],
        "scribe": [],
    }
