"""Findings as real models hand them in: text beside the call, closing lines forgotten, all fields filled, no tools."""

import json
from typing import Any

import pytest

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.standin.server.api_reply import text_block, tool_block
from temporal_supervisor.supervision.contract.finding import Finding, FindingRecord
from tests.scripted_model import Reply, answer, as_json, message, script, text, tools
from tests.workflow.runs import Lab, found
from tests.workflow.scripts import in_order, item, reviewed, subtasks, verdicts, with_replies

USUAL = {"team": "orchard"}

LONG = "The garden yielded 4,412 kg of pears in 2009, as the harvest book says on its first page."
BOOK = tools(("harvest", {"year": 2009}))
WHOLE = {"finding": LONG, "limitations": [], "confidence": 0.9, "outcome": "done", "summary": "4,412 kg of pears"}
ONE = subtasks(item("t1", "clerk"))
KNOWS: dict[str, Any] = {
    "name": "school",
    "generalist": "teacher",
    "roles": [{"name": "teacher", "description": "Explains.", "system_prompt": "Explain.", "grounding": "knowledge"}],
}


def finish(beside: str = "", **fields: Any) -> Reply:
    """A turn that concludes, with a text beside the call or without."""
    blocks = [text_block(beside)] if beside else []
    return message([*blocks, tool_block("finish", {**WHOLE, **fields})], "tool_use")


async def record(store: ArtifactStore, finding: Finding) -> FindingRecord:
    return FindingRecord.model_validate_json(await store.get(finding.record_ref))


async def test_a_finding_of_the_last_turn_without_its_closing_lines_is_partial(lab: Lab) -> None:
    lab.play(script(ONE, {"t1": in_order(BOOK, text(LONG))}, answer(LONG, cites=["t1"])))
    result = await lab.run(max_turns=2)
    asked = str(lab.call("t1/1/turn.2").step.body["messages"][-1])
    assert "Confidence: <0 to 1>" in asked
    assert (found(result).outcome, bool(found(result).limitations), result.status) == ("partial", True, "partial")


async def test_a_finding_written_before_the_last_calls_or_as_json_is_not_lost(lab: Lab, store: ArtifactStore) -> None:
    early = message([text_block(LONG), tool_block("harvest", {"year": 2009})], "tool_use")
    as_text = text(f"```json\n{json.dumps({'name': 'finish', 'arguments': WHOLE})}\n```")
    plan = subtasks(item("t1", "clerk"), item("t2", "clerk"))
    turns = {"t1": in_order(early, finish(finding="See above.", summary="See above.")), "t2": in_order(BOOK, as_text)}
    lab.play(script(plan, turns, answer(LONG, cites=["t1"])))
    result = await lab.run()
    for number in (0, 1):
        assert (await store.get(found(result, number).text_ref)).decode() == LONG
        assert (found(result, number).confidence, found(result, number).outcome) == (0.9, "done")


async def test_a_tool_call_written_as_text_is_run_and_what_follows_it_is_left_out(lab: Lab) -> None:
    call = '<tool_call>{"name": "harvest", "arguments": {"year": 2009}}</tool_call>\nThe harvest was 12 kg of plums.'
    lab.play(script(ONE, {"t1": in_order(text(call), finish())}, answer(LONG, cites=["t1"])))
    result = await lab.run()
    asked, answered = lab.call("t1/1/turn.2").step.body["messages"][-2:]
    assert [block["name"] for block in asked["content"]] == ["harvest"]
    assert "4412" in str(answered)
    assert "plums" not in str(asked)
    assert (result.subtasks[0].turns, found(result).summary) == (2, "4,412 kg of pears")


NOT_DONE = "I could not do this: no source has the swans. Confidence: 0.0"


async def test_a_text_that_reads_as_if_nothing_was_found_is_asked_once_what_it_is(lab: Lab) -> None:
    lab.play(script(ONE, {"t1": in_order(BOOK, text(NOT_DONE), text(NOT_DONE))}, answer(cites=["t1"])))
    result = await lab.run()
    asked = lab.call("t1/1/turn.3").step.prompt
    assert "done (everything that was asked is answered), partial" in asked
    assert (found(result).outcome, result.subtasks[0].turns, result.status) == ("partial", 3, "partial")


async def test_a_role_may_answer_from_knowledge_which_is_marked_and_not_sent_back(
    lab: Lab, store: ArtifactStore
) -> None:
    says = "Port 8080 serves HTTP, a gateway that times out answers 504, and water freezes at 0 °C after 30 seconds."
    plan = subtasks(item("t1", "teacher"), item("t2", "teacher", depends_on=["t1"]))
    lab.play(reviewed(plan, verdicts(), turns={"t1": in_order(text(says)), "t2": in_order(text(says))}))
    result = await lab.run(team=KNOWS, max_reviews=1)
    assert (found(result).grounding, found(result).unsupported, result.unsupported) == ("knowledge", [], [])
    assert [report.turns for report in result.subtasks] == [1, 1]
    kept = await record(store, found(result))
    assert (kept.grounding, kept.checked) == ("knowledge", [])
    for step in ("t1/1/turn.1", "t2/1/turn.1"):
        system = str(lab.call(step).step.body["system"])
        assert "your own knowledge" in system
        assert "a program checks each one" not in system
    assert 'grounding="knowledge"' in lab.call("t2/1/turn.1").step.prompt
    assert "written from the model's own knowledge" in lab.call("review.1").step.prompt


async def test_the_reviewer_sees_where_code_found_each_figure_and_whom_it_is_from(
    lab: Lab, store: ArtifactStore
) -> None:
    says = f"{LONG} Plums were 2.18 % of that, and cherries 731 kg."
    turns = in_order(BOOK, tools(("calculate", {"expression": "96 / 4412 * 100"})), finish(finding=says))
    again = reviewed(ONE, verdicts(), turns={"t1": turns})
    lab.play(again)
    result = await lab.run(max_reviews=1)
    shown = lab.call("review.1").step.prompt
    assert '"4,412 kg" <- harvest 2009: pears,4412' in shown
    assert '"2.18 %" <- calculate 96 / 4412 * 100: ' in shown
    assert '"731 kg" <- nowhere' in shown
    assert '2009" <-' not in shown
    assert "Source: harvest book" in shown
    assert "Calls: harvest, calculate" in shown
    kept = await record(store, found(result))
    assert kept.sources == found(result).sources == ["harvest book"]
    assert [claim.text for claim in kept.checked if not claim.source] == found(result).unsupported == ["731 kg"]


# --- what a finding rests on ---------------------------------------------------------------------------


KNOWN = "The wars of the roses were fought by York and Lancaster."


async def test_a_finding_that_rests_on_nothing_goes_back_once_and_is_marked(lab: Lab) -> None:
    listed = tools(("calculate", {"expression": "2 + 2"}))
    lab.play(reviewed(ONE, verdicts(), turns={"t1": in_order(listed, text(KNOWN))}))
    result = await lab.run(max_reviews=1)
    assert "no tool has shown you any data" in lab.call("t1/1/turn.3").step.prompt
    assert (result.subtasks[0].turns, found(result).grounding) == (3, "knowledge")
    assert (result.status, result.grounding) == ("completed", "knowledge")
    assert result.confidence is not None
    assert result.confidence <= 0.7
    shown = lab.call("review.1").step.prompt
    assert 'grounding="knowledge"' in shown
    assert "Calls: calculate" in shown


async def test_the_reviewer_is_told_that_nothing_was_called(lab: Lab) -> None:
    lab.play(reviewed(ONE, verdicts(), turns={"t1": in_order(text(KNOWN))}))
    await lab.run(max_reviews=1)
    assert "Calls: none" in lab.call("review.1").step.prompt


async def test_a_finding_rests_on_data_on_a_finding_or_on_an_attached_text(lab: Lab) -> None:
    plan = subtasks(
        item("t1", "clerk"), item("t2", "clerk", depends_on=["t1"]), item("t3", "clerk", attachments=["notes.txt"])
    )
    attached = [{"name": "notes.txt", "text": "Pears ripen in September."}]
    lab.play(script(plan, {"t1": in_order(BOOK, finish())}, answer(cites=["t1", "t2", "t3"])))
    result = await lab.run(attachments=attached)
    assert [found(result, number).grounding for number in range(3)] == ["tools"] * 3
    assert [report.turns for report in result.subtasks] == [2, 1, 1]
    assert result.grounding == "tools"


async def test_an_answer_without_a_confidence_has_the_bound_of_what_it_rests_on(lab: Lab) -> None:
    lab.play(script(ONE, {"t1": in_order(BOOK, finish())}, as_json({"answer": f"{LONG} [t1]", "contradictions": []})))
    result = await lab.run()
    assert result.confidence == 0.9


# --- words that are no finding -------------------------------------------------------------------------

DONE = text("I am done.")
ANNOUNCES = text("I will look up the figures and hand in the whole finding again.")
MISSES = tools(("harvest", {"year": 1066}))


async def test_words_that_are_no_finding_go_back_twice_and_then_end_the_attempt(lab: Lab) -> None:
    turns = {"t1": in_order(BOOK, ANNOUNCES, DONE, DONE), "t2": in_order(BOOK, finish())}
    plan = subtasks(item("t1", "clerk"), item("t2", "clerk"))
    lab.play(with_replies(script(plan, turns, answer(LONG, cites=["t2"])), refine=lambda step: as_json({})))
    result = await lab.run()
    assert "was not accepted as a finding" in lab.call("t1/1/turn.3").step.prompt
    failed = result.subtasks[0]
    assert (failed.state, failed.turns) == ("failed", 4)
    assert failed.error is not None
    assert (failed.error.type, "I am done." in failed.error.message) == ("CannotDo", True)
    assert (result.status, [gap.subtask_id for gap in result.gaps]) == ("partial", ["t1"])


async def test_words_that_are_no_finding_are_followed_by_one(lab: Lab) -> None:
    lab.play(script(ONE, {"t1": in_order(ANNOUNCES, BOOK, finish())}, answer(LONG, cites=["t1"])))
    result = await lab.run()
    assert (result.status, found(result).summary) == ("completed", "4,412 kg of pears")


async def test_a_conclusion_after_a_failed_call_goes_back(lab: Lab) -> None:
    said = text("The harvest was good in the year of the conquest.")
    lab.play(script(ONE, {"t1": in_order(MISSES, said, BOOK, finish())}, answer(LONG, cites=["t1"])))
    result = await lab.run()
    assert "Your last call failed" in lab.call("t1/1/turn.3").step.prompt
    assert (result.status, found(result).summary) == ("completed", "4,412 kg of pears")


@pytest.mark.parametrize("after", [DONE, finish(finding="Plums were 8.5 % of it.")], ids=["empty", "worse"])
async def test_of_a_finding_and_what_came_of_sending_it_back_the_better_one_is_kept(lab: Lab, after: Reply) -> None:
    mixed = f"{LONG} Plums were 8.5 % of that."
    lab.play(script(ONE, {"t1": in_order(BOOK, finish(finding=mixed), after, after, after)}, answer(cites=["t1"])))
    result = await lab.run()
    assert (found(result).supported, found(result).unsupported) == (2, ["8.5 %"])
    assert ("8.5 %", "t1") in [(item.text, item.where) for item in result.unsupported]


async def test_a_conversation_that_repeats_itself_begins_anew_with_what_its_tools_returned(
    lab: Lab, store: ArtifactStore
) -> None:
    lab.play(script(ONE, {"t1": in_order(BOOK, DONE, DONE, finish())}, answer(LONG, cites=["t1"])))
    result = await lab.run()
    own, anew = (lab.call(f"t1/1/turn.{number}").step for number in (3, 4))
    assert len(own.body["messages"]) == 5, "the first time it goes on"
    [first] = anew.body["messages"]
    assert "I am done." not in str(first)
    shown = anew.prompt
    assert "<earlier_outputs>\nharvest" in shown
    assert "pears,4412" in shown
    assert "was not accepted as a finding" in shown
    assert (found(result).unsupported, found(result).sources) == ([], ["harvest book"])
    kept = await record(store, found(result))
    assert [claim.source for claim in kept.checked] == ["harvest 2009"]
    assert [item.tool for item in kept.evidence] == ["harvest"]
