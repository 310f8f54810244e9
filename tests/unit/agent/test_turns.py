"""How a worker agent turns and concludes: the loop has an end, by a call or closing lines; cut outputs are read on."""

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from temporal_supervisor.supervision.agent.agent_tools import (
    Conclusion,
    ask_tool,
    beginning,
    cells_of,
    conclude,
    finish_tool,
    output_name,
    page,
    page_chars,
    read_call,
    read_finish,
    read_output_tool,
    read_question,
)
from temporal_supervisor.supervision.agent.finding_budget import groups, kept_whole, level
from temporal_supervisor.supervision.agent.turn_rules import (
    MODEL_WRITES_PER_SECOND,
    PAUSE_TURNS,
    LoopState,
    Next,
    attempt_time,
    more_room,
    next_step,
)
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import ASK_TOOL, FINISH_TOOL
from tests.unit.shapes import any_text

REASONS = [
    "end_turn",
    "stop_sequence",
    "tool_use",
    "max_tokens",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "something_new",
]
GOES_ON = {Next.TOOLS, Next.CONTINUE, Next.ASK_AGAIN, Next.NUDGE, Next.INSIST}
EARLY, LAST = LoopState(turn=1, max_turns=3), LoopState(turn=3, max_turns=3, last=True)


@pytest.mark.parametrize(
    ("reason", "text", "calls", "early", "last"),
    [
        ("end_turn", True, 0, Next.FINISH, Next.FINISH),
        ("end_turn", False, 0, Next.NUDGE, Next.INSIST),
        ("stop_sequence", True, 0, Next.FINISH, Next.FINISH),
        ("tool_use", True, 2, Next.TOOLS, Next.FINISH_CUT),
        ("tool_use", False, 2, Next.TOOLS, Next.INSIST),
        ("tool_use", True, 0, Next.ASK_AGAIN, Next.BROKEN),
        ("refusal", True, 1, Next.REFUSED, Next.REFUSED),
        ("pause_turn", True, 0, Next.CONTINUE, Next.FINISH_CUT),
        ("max_tokens", True, 0, Next.ASK_AGAIN, Next.FINISH_CUT),
        ("max_tokens", False, 0, Next.ASK_AGAIN, Next.BROKEN),
        ("max_tokens", False, 1, Next.ASK_AGAIN, Next.BROKEN),
        ("model_context_window_exceeded", True, 0, Next.FINISH_CUT, Next.FINISH_CUT),
        ("model_context_window_exceeded", False, 0, Next.BROKEN, Next.BROKEN),
        ("something_new", True, 0, Next.ASK_AGAIN, Next.BROKEN),
    ],
)
def test_each_stop_reason_has_its_next_step(reason: str, text: bool, calls: int, early: Next, last: Next) -> None:
    assert next_step(reason, text, calls, EARLY) is early
    assert next_step(reason, text, calls, LAST) is last


@given(st.lists(st.tuples(st.sampled_from(REASONS), st.booleans(), st.integers(0, 3)), min_size=30), st.integers(1, 12))
def test_no_sequence_of_replies_takes_more_turns_than_allowed(
    replies: list[tuple[str, bool, int]], max_turns: int
) -> None:
    asked_again = pauses = insisted = 0
    for turn, reply in enumerate(replies, start=1):
        assert turn <= max_turns + 1
        state = LoopState(turn, max_turns, asked_again, pauses, last=turn >= max_turns, insisted=insisted > 0)
        step = next_step(*reply, state)
        if step not in GOES_ON:
            return
        asked_again = asked_again + 1 if step is Next.ASK_AGAIN else 0
        pauses += step is Next.CONTINUE
        insisted += step is Next.INSIST
    pytest.fail("the loop did not end")


@pytest.mark.parametrize(
    ("reply", "state", "step"),
    [
        *((("max_tokens", True, 0), {"asked_again": n}, Next.ASK_AGAIN) for n in range(limits.CUT_RETRIES)),
        (("max_tokens", True, 0), {"asked_again": limits.CUT_RETRIES}, Next.FINISH_CUT),
        (("max_tokens", True, 0), {"can_grow": False}, Next.FINISH_CUT),
        (("something_new", True, 0), {"can_grow": False}, Next.ASK_AGAIN),
        (("pause_turn", True, 0), {"pauses": PAUSE_TURNS}, Next.BROKEN),
        (("end_turn", False, 0), {"last": True, "insisted": True}, Next.TURN_LIMIT),
        (("pause_turn", False, 0), {"last": True, "insisted": True}, Next.TURN_LIMIT),
        (("tool_use", False, 1), {"last": True, "insisted": True}, Next.TURN_LIMIT),
    ],
)  # fmt: skip
def test_what_was_tried_is_not_tried_without_end(
    reply: tuple[str, bool, int], state: dict[str, Any], step: Next
) -> None:
    assert next_step(*reply, LoopState(6, 99, **state)) is step


def test_room_doubles_up_to_what_models_allow_and_an_attempt_has_the_time_to_write_that() -> None:
    assert more_room(16_000) == 32_000
    assert more_room(limits.MAX_TOKENS_CEILING) == limits.MAX_TOKENS_CEILING
    assert (more_room(1000, 5000), more_room(1000, 1500), more_room(1500, 1500)) == (2000, 1500, 1500)
    assert attempt_time(60 * MODEL_WRITES_PER_SECOND) == limits.MODEL_CALL_TIMEOUT + timedelta(seconds=60)


WEIGHTS = (0.0, 0.3, 0.5, 1.0)

findings = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2000), st.sampled_from(WEIGHTS)), max_size=12)


@given(findings, st.integers(0, 20_000))
@example([(1072, 0, 0.0), (1532, 0, 0.0), (1533, 1, 0.0), (1533, 0, 0.0)], 4137)
def test_a_finding_gives_way_only_where_that_is_needed_and_after_all_of_less_weight(
    items: list[tuple[int, int, float]], budget: int
) -> None:
    whole, short, weights = [a for a, _, _ in items], [b for _, b, _ in items], [c for _, _, c in items]
    kept = kept_whole(whole, short, weights, budget)
    taken = [size if stays else brief for size, brief, stays in zip(whole, short, kept, strict=True)]
    if not all(kept):
        gave_way = [n for n, stays in enumerate(kept) if not stays]
        last = max(gave_way, key=lambda n: (weights[n], -whole[n], n))
        assert sum(taken) - short[last] + whole[last] > budget
        for n, stays in enumerate(kept):
            assert not stays or short[n] >= whole[n] or (weights[n], -whole[n]) >= (weights[last], -whole[last])
    if sum(taken) > budget:
        assert not [n for n, stays in enumerate(kept) if stays and short[n] < whole[n]]


@pytest.mark.parametrize(
    ("whole", "weights", "budget", "expected"),
    [
        ([5000, 5000], [0.9, 0.1], 10_000, [True, True]),
        ([5000, 5000], [0.9, 0.1], 9999, [True, False]),
        ([5000, 5000], [0.9, 0.1], 6000, [True, False]),
        ([5000, 5000], [0.9, 0.1], 5999, [False, False]),
        ([5000, 6000, 7000], [0.5] * 3, 12_000, [True, True, False]),
        ([1001, 1000], [0.9, 0.1], 100, [False, True]),  # a text no longer than its summary stays
        ([], [], 100, []),
    ],
)
def test_findings_give_way_least_weight_first(
    whole: list[int], weights: list[float], budget: int, expected: list[bool]
) -> None:
    assert kept_whole(whole, [1000] * len(whole), weights, budget) == expected


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=12), st.integers(0, 20_000))
def test_only_the_larger_are_cut_and_to_one_length_that_uses_the_room(sizes: list[int], budget: int) -> None:
    most = level(sizes, budget)
    taken = sum(min(size, most) for size in sizes)
    assert taken <= budget
    assert most >= max(sizes) or budget - taken < len(sizes)


@given(st.lists(st.integers(0, 100), max_size=40), st.integers(0, 300))
@example([10, 20, 30], 60)
@example([10, 20, 31], 60)
@example([90, 90, 5, 5], 100)
def test_groups_are_consecutive_and_fit_unless_they_are_pairs(sizes: list[int], budget: int) -> None:
    found = groups(sizes, budget)
    assert [index for group in found for index in group] == list(range(len(sizes)))
    assert all(len(group) >= 2 for group in found[:-1])
    assert all(len(group) <= 2 or sum(sizes[n] for n in group) <= budget for group in found)
    for group, following in zip(found, found[1:], strict=False):
        assert sum(sizes[n] for n in group) + sizes[following[0]] > budget


# --- conclusions -------------------------------------------------------------------------------------


DONE: dict[str, Any] = {"outcome": "done", "summary": "44 pears"}


def concluded(arguments: dict[str, Any], beside: str = "") -> Conclusion:
    conclusion = read_finish(arguments, beside)
    assert conclusion is not None
    return conclusion


def test_the_tool_asks_for_all_of_its_arguments_and_for_the_work_before_the_verdict() -> None:
    tool = finish_tool()
    assert tool["name"] == FINISH_TOOL
    assert tool["input_schema"]["required"] == ["finding", "limitations", "confidence", "outcome", "summary"]
    assert list(tool["input_schema"]["properties"]) == tool["input_schema"]["required"]
    assert tool["input_schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"question": "Which?", "choices": ["red", " ", 7]}, ("Which?", ["red", "7"])),
        ({"question": "Which?", "choices": "red"}, ("Which?", ["red"])),
        ({"question": "Which?", "choices": 7}, None),
        ({"question": "Which?"}, ("Which?", [])),
        ({"question": " "}, None),
        ("Which?", None),
    ],
)
def test_a_question_is_read_with_its_choices_however_they_are_given(arguments: object, asked: object) -> None:
    assert ask_tool()["name"] == ASK_TOOL
    call = read_question(arguments)
    assert (call and (call.question, call.choices)) == asked


def test_items_that_say_nothing_are_left_out_and_an_output_is_read_cell_by_cell() -> None:
    output: JsonValue = {"tree": " oak ", "rings": [{"mm": 2.5}, None, True]}
    read = concluded({**DONE, "items": ["oak", "", {}, {"tree": "elm"}], "output": output})
    assert read.items == ["oak", {"tree": "elm"}]
    assert list(cells_of(read.output)) == [("tree", "oak"), ("rings.1.mm", "2.5"), ("rings.3", "true")]


@pytest.mark.parametrize(
    ("finding", "beside", "text"),
    [
        (None, "There are 44 pears.\n\nConfidence: 0.9", "There are 44 pears."),
        ("44 pears", "There are 44 pears.", "There are 44 pears."),
        ("45 plums", "There are 44 pears.", "There are 44 pears.\n\n45 plums"),
        ("44 pears", "45 plums", "44 pears"),
        ("See above.", "There are 44 pears.", "There are 44 pears."),
        ("Siehe oben", "I count the pears now.", "I count the pears now.\n\n44 pears"),
    ],
)
def test_a_text_beside_the_call_is_the_finding_where_it_says_more(finding: str | None, beside: str, text: str) -> None:
    conclusion = concluded({**DONE, "finding": finding}, beside)
    assert (conclusion.text, conclusion.summary) == (text, "44 pears")


@pytest.mark.parametrize(
    "arguments",
    [None, "done", [], {}, {**DONE, "summary": " "}, {**DONE, "finding": "See above.", "summary": "null"}],
    ids=str,
)
def test_what_says_nothing_is_no_conclusion(arguments: object) -> None:
    assert read_finish(arguments) is None


@pytest.mark.parametrize(("given", "read"), [(None, None), (0.5, 0.5), (1, 1.0), (2, 0.02), (101, 1.0), (-1, 0.0)])
def test_a_confidence_is_a_share_or_a_percentage(given: float | None, read: float | None) -> None:
    conclusion = concluded({**DONE, "confidence": given})
    assert conclusion.confidence == read


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"confidence": "high"}, {"confidence": None}),
        ({"confidence": "95 %"}, {"confidence": 0.95}),
        ({"confidence": "0,9"}, {"confidence": 0.9}),
        ({"limitations": ""}, {"limitations": []}),
        ({"limitations": '["old", "null"]'}, {"limitations": ["old"]}),
        ({"limitations": "- old, or older\n- thin"}, {"limitations": ["old, or older", "thin"]}),
        ({"outcome": "Done."}, {"outcome": "done", "unclear": False}),
        ({"outcome": "Completed."}, {"outcome": "done", "unclear": False}),
        ({"outcome": "Succeeded"}, {"outcome": "done", "unclear": False}),
        ({"outcome": "erledigt"}, {"outcome": "done", "unclear": False}),
        ({"outcome": "partially"}, {"outcome": "partial"}),
        ({"outcome": None}, {"outcome": "done"}),
        ({"outcome": "null", "finding": "I could not find this."}, {"outcome": "partial", "unclear": True}),
        ({"outcome": "failed"}, {"outcome": "partial", "unclear": True}),
        ({"finding": ["44 pears.", "3 plums."]}, {"text": "44 pears.\n3 plums."}),
        ({"summary": "null"}, {"summary": "There are 44 pears."}),
    ],
    ids=str,
)
def test_a_call_that_is_slightly_wrong_is_read(wrong: dict[str, Any], right: dict[str, Any]) -> None:
    conclusion = concluded({**DONE, "finding": "There are 44 pears.", **wrong})
    assert {name: getattr(conclusion, name) for name in right} == right
    assert concluded({"name": "finish", "arguments": {**DONE, "finding": "There are 44 pears.", **wrong}}) == conclusion


def test_a_confidence_in_words_is_none_and_hides_no_closing_line() -> None:
    read = conclude("Sales grew.\n\nLimitations: none\nConfidence: High", forced=True)
    assert (read.text, read.confidence, read.outcome) == ("Sales grew.", None, "done")


plain = st.lists(any_text.filter(lambda t: "onfidence" not in t.lower() and "imitation" not in t.lower()), max_size=20)
LONG = "x" * 300


@pytest.mark.parametrize(
    ("closing", "confidence", "limitations"),
    [
        ("\n**Confidence:** 0.85\n", 0.85, []),
        ("\n- **Confidence**: .15", 0.15, []),
        ("\n> Confidence: 100 %.", 1.0, []),
        ("Confidence: 1", 1.0, []),
        ("Confidence: 2", 0.02, []),
        ("Confidence: 0,85\nLimitations: keine", 0.85, []),
        ("**Konfidenz:** 85 %\nEinschränkungen: keine", 0.85, []),
        ("Confidence：0.85\nLimitation: one region", 0.85, ["one region"]),
        ("Confidence: hoch", None, []),
        ("Confidence: 0.5\r\nLimitations: none", 0.5, []),
        (f"Limitations:{LONG}\n\nConfidence: 0.5", 0.5, [LONG]),
        (
            "Confidence: 0.5\n**Limitations:** no data before 2020; one region",
            0.5,
            ["no data before 2020", "one region"],
        ),
    ],
)
def test_closing_lines_are_split_off(closing: str, confidence: float, limitations: list[str]) -> None:
    read = conclude(f"Sales grew by 4 %.\n{closing}")
    assert (read.text, read.confidence, read.limitations) == ("Sales grew by 4 %.", confidence, limitations)


@pytest.mark.parametrize(
    "line",
    [
        "Confidence: 120%", "Confidence: 101", "Confidence: 0.8 (two sources agree)", "| Confidence: 0.9 | 12 |",
        "Confidence: 0.8\nThe end.", f"Limitations:{LONG}y", "Outcome: uncertain",
    ],
)  # fmt: skip
def test_a_line_that_says_more_or_does_not_close_stays_in_the_text(line: str) -> None:
    read = conclude(f"Sales grew.\n{line}")
    assert (read.text, read.confidence, read.limitations) == (f"Sales grew.\n{line}", None, [])


@given(plain, st.integers(0, 100), st.lists(st.sampled_from(["no data", "one source", "old figures"]), max_size=3))
def test_closing_lines_come_off_any_text(lines: list[str], percent: int, limitations: list[str]) -> None:
    body = "\n".join(lines).strip()
    assert (read := conclude(body)).text == body
    assert (read.confidence, read.limitations) == (None, [])
    read = conclude(f"{body}\n\nConfidence: {percent}%\nLimitations: {'; '.join(limitations) or 'none'}")
    assert read.confidence == pytest.approx(percent / 100)
    assert read.limitations == limitations
    assert read.text == body or not body


@given(any_text | st.text("cConfidenceLimitations:=0.19%-* \n"))
def test_any_message_is_read_without_an_error_and_never_to_nothing(message: str) -> None:
    read = conclude(message)
    assert bool(read.text) == bool(message.strip())
    assert read.confidence is None or 0 <= read.confidence <= 1


@pytest.mark.parametrize(
    ("message", "forced", "outcome", "unclear"),
    [
        ("Sales grew.", False, "done", False),
        ("Sales grew.\n\nConfidence: 0.1", False, "done", False),
        ("I could not find this.", False, "partial", True),
        ("I could not find this.\n\nConfidence: 0.9", False, "done", False),
        ("I could not find this.\nOutcome: impossible", False, "impossible", False),
        ("Sales grew.\nConfidence: 0.09", False, "partial", True),
        ("Sales grew.", True, "partial", False),
        ("Sales grew.\nConfidence: 0.8", True, "done", False),
    ],
)
def test_a_text_says_its_outcome_or_is_partial(message: str, forced: bool, outcome: str, unclear: bool) -> None:
    read = conclude(message, forced)
    assert (read.outcome, read.unclear) == (outcome, unclear)
    assert bool(read.limitations) == (forced and outcome == "partial")


FROM_5 = {"output": "3-1", "offset": 5}


def pages(text: str, offset: int, most: int) -> str:
    """Reads an output to its end, as its pages say."""
    read = ""
    while True:
        shown = page(text, read_call({"output": "3-1", "offset": offset}), most)
        more = re.search(r"\n\[These are the characters \d+ to \d+ of \d+\. Continue with offset (\d+)\.\]$", shown)
        read += shown[: more.start()] if more else shown
        if more is None:
            return read
        offset = int(more[1])


@given(st.text(alphabet="ab\n数[", max_size=3000), st.integers(150, 900), st.integers(1, 700))
def test_beginning_and_pages_are_the_whole_output(text: str, limit: int, most: int) -> None:
    shown = beginning(text, "3-1", limit)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
        return
    cut = re.search(r'\n\[cut: (\d+) of \d+ characters are shown\. read_output with output "3-1" and offset \1 ', shown)
    assert cut is not None
    assert shown[: cut.start()] + pages(text, int(cut[1]), most) == text


@pytest.mark.parametrize("arguments", [{}, {"output": "3-1", "offset": -1}, None], ids=str)
def test_wrong_arguments_are_answered_with_advice(arguments: object) -> None:
    with pytest.raises(ValueError, match="output is a subtask_id, or the name .* offset is a number"):
        read_call(arguments)


def test_an_offset_beyond_the_end_is_answered_with_the_length() -> None:
    with pytest.raises(ValueError, match="only 3 characters"):
        page("abc", read_call({"output": "1-1", "offset": 3}), 10)
    assert page("", read_call({"output": "1-1"}), 10) == ""


@pytest.mark.parametrize(("window", "most"), [(8_000, 4_000), (1_000_000, limits.TOOL_OUTPUT_CHARS - 150)])
def test_a_page_is_a_small_part_of_the_window(window: int, most: int) -> None:
    assert page_chars(window) == most


def test_an_output_is_named_by_its_reply_and_call() -> None:
    assert output_name(3, 1) == "3-1"
    assert read_call({"output": output_name(12, 7)}).place == (12, 7)
    assert read_output_tool()["input_schema"]["properties"].keys() == {"output", "offset"}


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_of_exactly_the_limit_is_whole(more: int) -> None:
    shown, last = beginning("x" * (500 + more), "3-1", 500), page("x" * (15 + more), read_call(FROM_5), 10)
    assert ("350 of 501" in shown, "offset 15" in last) == (bool(more), bool(more))
    assert (shown == "x" * 500, last == "x" * 10) == (not more, not more)
