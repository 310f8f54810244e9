"""A role's `output_schema`: the finding of an item is a row, and code makes the table of them, and the answer."""

import csv
import io
import json
from typing import Any

import pytest

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.contract.result import RunResult
from tests.scripted_model import Reply, Step, answer, text, tools
from tests.workflow.runs import Lab, details
from tests.workflow.scripts import GIVES_UP, in_order, item, plans, subtasks

pytestmark = pytest.mark.usefixtures("short_rest")

FIELDS: dict[str, Any] = {
    "tree": {"type": "string"},
    "height_m": {"type": ["number", "null"]},
    "where": {"type": "object", "properties": {"page": {"type": "integer"}, "quotation": {"type": "string"}}},
    "note": {"type": "string"},
    "summary": {"type": "string"},
}
TREE = {"type": "object", "required": ["tree", "height_m"], "additionalProperties": False, "properties": FIELDS}
TEAM: dict[str, Any] = {
    "name": "grove",
    "generalist": "hand",
    "roles": [
        {"name": "hand", "description": "Helps.", "system_prompt": "Help."},
        {"name": "ranger", "description": "Measures.", "system_prompt": "Measure.", "output_schema": TREE},
    ],
}
ROW = {"type": "object", "required": ["tree", "height_m"], "properties": {n: FIELDS[n] for n in ("tree", "height_m")}}
ROWS = {"type": "object", "required": ["trees"], "properties": {"trees": {"type": "array", "items": ROW}}}
EACH = subtasks(item("t1", "ranger", for_each="lines:trees"))
NOTES = "elm: 31.5 m, p. 14\noak: 28.25 m, p. 15\nash: 40.75 m, p. 16"
HEIGHTS = {"t1.1": ("elm", 31.5), "t1.2": ("oak", 28.25), "t1.3": ("ash", 40.75)}

USUAL = {"team": TEAM, "max_reviews": 0, "attachments": [{"name": "trees", "text": NOTES}]}


def measured(output: Any) -> Reply:
    """A turn that hands in an output."""
    said = {"finding": "It was measured.", "limitations": [], "confidence": 0.9, "outcome": "done", "summary": "done"}
    return tools(("finish", {**said, "output": output}))


def row(step: Step) -> dict[str, Any]:
    tree, height = HEIGHTS[step.subtask_id or ""]
    return {"tree": tree, "height_m": height}


def grove(**turns: Any) -> Any:
    """A run whose items hand in their rows; those named otherwise."""
    usual = {subtask_id: lambda step: measured(row(step)) for subtask_id in HEIGHTS}
    return plans(EACH, turns={**usual, **{name.replace("_", "."): turn for name, turn in turns.items()}})


async def table(store: ArtifactStore, result: RunResult) -> list[dict[str, str]]:
    (artifact,) = [artifact for artifact in result.artifacts if artifact.name == "t1.csv"]
    assert artifact.media_type == "text/csv"
    return list(csv.DictReader(io.StringIO((await store.get(artifact.ref)).decode(), newline="")))


async def finding_text(store: ArtifactStore, result: RunResult, subtask_id: str) -> str:
    (finding,) = [report.finding for report in result.subtasks if report.id == subtask_id]
    assert finding
    return (await store.get(finding.text_ref)).decode()


async def test_code_makes_the_answers_rows_of_what_the_items_handed_in(lab: Lab, store: ArtifactStore) -> None:
    lab.play(grove())
    result = await lab.run(answer_schema=ROWS)
    assert (result.status, result.gaps, result.unsupported) == ("completed", [], [])
    assert result.answer_json == {"trees": [{"tree": t, "height_m": h} for t, h in HEIGHTS.values()]}
    assert [(r["tree"], r["height_m"], r["item"], r["source"]) for r in await table(store, result)] == [
        ("elm", "31.5", "t1.1", "elm: 31.5 m, p. 14"),
        ("oak", "28.25", "t1.2", "oak: 28.25 m, p. 15"),
        ("ash", "40.75", "t1.3", "ash: 40.75 m, p. 16"),
    ]
    asked = lab.call("synthesis.1").step
    assert "answer_json" not in json.dumps(asked.body)
    assert "A table of 3 rows, one for each item of t1" in asked.prompt
    assert "\noak,28.25," in asked.prompt
    assert ',t1.2,"oak: 28.25 m' in asked.prompt
    assert "It was measured" not in asked.prompt
    finish = next(tool for tool in lab.call("t1.1/1/turn.1").step.body["tools"] if tool["name"] == "finish")
    assert finish["input_schema"]["properties"]["output"]["required"] == ["tree", "height_m"]
    assert "output" in finish["input_schema"]["required"]
    stored = json.loads(await store.get(next(r.finding.output_ref for r in result.subtasks if r.finding)))
    assert stored == {"tree": "elm", "height_m": 31.5}
    assert json.loads(await store.get(result.result_ref or ""))["answer_json"] == result.answer_json


AS_WRITTEN = {
    "t1_1": measured('```json\n{"tree": "elm", "height_m": 31.5}\n```'),
    "t1_2": measured({"tree": "oak", "height_m": 28.25, "where": None, "note": None}),
    "t1_3": text('It is tall.\n```json\n{"tree": "ash", "height_m": 40.75}\n```\nConfidence: 0.9\nLimitations: none'),
}


async def test_an_output_is_taken_as_models_write_it(lab: Lab, store: ArtifactStore) -> None:
    """Fenced, with all fields filled, without a call."""
    lab.play(grove(**{name: lambda step: AS_WRITTEN[(step.subtask_id or "").replace(".", "_")] for name in AS_WRITTEN}))
    result = await lab.run(answer_schema=ROWS, max_turns=1)
    assert (result.status, result.gaps) == ("completed", [])
    assert result.answer_json == {"trees": [{"tree": t, "height_m": h} for t, h in HEIGHTS.values()]}
    for subtask_id, (_, height) in HEIGHTS.items():
        assert f"- height_m: {height}" in await finding_text(store, result, subtask_id)
    assert 'as JSON: {"output": ...}' in lab.prompt("t1.1/1/turn.1")


async def test_a_row_in_plain_text_with_a_field_that_a_conclusion_has_is_a_row(lab: Lab, store: ArtifactStore) -> None:
    lab.play(grove(t1_2=lambda step: text('{"tree": "oak", "height_m": 28.25, "summary": "a tall one"}')))
    result = await lab.run(answer_schema=ROWS)
    assert (result.status, len(lab.steps)) == ("completed", 5)
    assert (await table(store, result))[1]["summary"] == "a tall one"


async def test_a_table_of_empty_cells_is_a_gap(lab: Lab) -> None:
    empty = {"tree": "elm", "height_m": None}
    lab.play(grove(**dict.fromkeys(AS_WRITTEN, lambda step: measured(empty))))
    result = await lab.run(answer_schema=ROWS)
    assert result.status == "partial"
    assert [(gap.subtask_id, gap.reason) for gap in result.gaps] == [("t1", "3 of 6 cells are empty")]


MISFIT = {"tree": "elm", "height_m": "tall", "girth": 3}


async def test_an_output_that_does_not_fit_goes_back_once_with_the_exact_errors(lab: Lab) -> None:
    lab.play(grove(t1_1=in_order(measured(MISFIT), measured({"tree": "elm", "height_m": 31.5}))))
    result = await lab.run(answer_schema=ROWS)
    told = lab.prompt("t1.1/1/turn.2")
    assert "- output.height_m: 'tall' is not of type 'number', 'null'" in told
    assert "- output: Additional properties are not allowed ('girth' was unexpected)" in told
    assert (result.status, len(lab.steps)) == ("completed", 6)


async def test_an_output_that_never_fits_is_a_partial_finding_and_nothing_is_lost(
    lab: Lab, store: ArtifactStore
) -> None:
    lab.play(grove(t1_1=lambda step: measured(MISFIT), t1_2=lambda step: measured("tall")))
    handle = await lab.start(answer_schema=ROWS)
    result = await handle.result()
    assert result.status == "partial"
    (gap,) = result.gaps
    assert gap.subtask_id == "t1"
    assert gap.reason.startswith("t1.1: ")
    assert "output" in gap.reason
    assert result.answer_json == {"trees": [{"tree": "ash", "height_m": 40.75}]}
    rows = [(r["item"], r["tree"], r["height_m"]) for r in await table(store, result)]
    assert rows == [("t1.1", "elm", "tall"), ("t1.2", "", ""), ("t1.3", "ash", "40.75")]
    for subtask_id in ("t1.1", "t1.2"):
        assert "tall" in await finding_text(store, result, subtask_id)
        turns = [f"{subtask_id}/1/turn.1", f"{subtask_id}/1/turn.2"]
        assert [step for step in lab.steps if step.startswith(f"{subtask_id}/")] == turns
    assert "3/3, 2 in part" in await details(handle)


async def test_rows_of_failed_items_are_missing_and_counted_once(lab: Lab, store: ArtifactStore) -> None:
    lab.play(grove(t1_2=lambda step: GIVES_UP))
    result = await lab.run(answer_schema=ROWS, max_turns=1)
    assert [(gap.subtask_id, gap.reason) for gap in result.gaps] == [("t1", "1 of 3 items: t1.2")]
    assert [r["item"] for r in await table(store, result)] == ["t1.1", "t1.3"]
    assert result.answer_json == {"trees": [{"tree": t, "height_m": h} for t, h in HEIGHTS.values() if t != "oak"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"trees": {"type": "array", "items": ROW}, "tallest": {"type": "string"}}},
        {"type": "array", "items": {"type": "object", "properties": {"girth": {"type": "number"}}}},
    ],
    ids=["more than rows", "a field that no item has"],
)
async def test_a_form_that_the_rows_do_not_cover_is_the_models_to_fill(
    lab: Lab, store: ArtifactStore, schema: dict[str, Any]
) -> None:
    own: Any = [] if schema["type"] == "array" else {"trees": [], "tallest": "ash"}
    usual = {subtask_id: lambda step: measured(row(step)) for subtask_id in HEIGHTS}
    lab.play(plans(EACH, turns=usual, answer_reply=answer("the answer", ["t1.1"], answer_json=own)))
    result = await lab.run(answer_schema=schema)
    assert (result.status, result.answer_json) == ("completed", own)
    assert "It was measured" in lab.prompt("synthesis.1")
    assert len(await table(store, result)) == 3


async def test_a_table_that_is_too_long_for_the_result_is_whole_in_the_store(lab: Lab, store: ArtifactStore) -> None:
    notes = {n: f"{HEIGHTS[n][0]} " * 6000 for n in HEIGHTS}
    turns = {n.replace(".", "_"): lambda step: measured({**row(step), "note": notes[step.subtask_id]}) for n in HEIGHTS}
    lab.play(grove(**turns))
    schema = {
        "type": "array",
        "items": {**ROW, "properties": {name: FIELDS[name] for name in ("tree", "height_m", "note")}},
    }
    result = await lab.run(answer_schema=schema)
    assert (result.status, result.answer_json, result.truncated) == ("completed", None, True)
    whole = json.loads(await store.get(result.result_ref or ""))["answer_json"]
    assert [line["note"] for line in whole] == [*notes.values()]
    assert len(lab.prompt("synthesis.1")) < 10_000
