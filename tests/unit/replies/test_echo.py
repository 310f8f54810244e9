"""Prompts that a model repeats before its reply."""

import pytest

from temporal_supervisor.supervision.agent.agent_tools import conclude, read_finish
from temporal_supervisor.supervision.replies.echo import without_echo

ECHO = "<subtask>\nFind the life expectancy in Rwanda in 1992.\n</subtask>\n\n"
SAID = "The life expectancy in Rwanda in 1992 is 23.599 years."


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (ECHO + SAID, SAID),
        (f"<goal>\nWhy?\n</goal>\n{ECHO}{SAID}", SAID),
        (SAID, SAID),
        (ECHO, ECHO),
        (f"{SAID}\n{ECHO}", f"{SAID}\n{ECHO}"),
        (f"<subtask>\nFind it. {SAID}", f"<subtask>\nFind it. {SAID}"),
        ("<b>\n12\n</b> pears", "<b>\n12\n</b> pears"),
    ],
)
def test_a_reply_begins_after_what_it_repeats(text: str, rest: str) -> None:
    assert without_echo(text) == rest.strip() or without_echo(text) == rest


def test_a_finding_is_without_its_subtask() -> None:
    assert conclude(f"{ECHO}{SAID}\n\nConfidence: 0.9").text == SAID
    finished = read_finish({"finding": ECHO + SAID, "outcome": "done"})
    assert finished is not None
    assert finished.text == SAID
