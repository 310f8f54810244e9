"""The verdict on a conclusion: a table of replies, and of attempts in which they come."""

from typing import Any

import pytest

from activities.contracts.turn_contracts import TurnReply
from activities.prompts.agent_prompts import NO_ITEMS
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.usage import Usage
from workflows.children.child_contracts import LoopProgress
from workflows.tool_loop.verdicts import Accept, AskAgain, GiveUp, Object, Verdict, verdict_on

SOUND = Finding(summary="44 pears", text_ref="f1")
DOUBTFUL = Finding(summary="44 pears", text_ref="f1", doubts=["no row was counted"])
EARLIER = Finding(summary="40 pears", text_ref="f0")
SUPPORTED = Finding(summary="40 pears", text_ref="f0", supported=3)

FRESH = LoopProgress()
OBJECTED = LoopProgress(objected=True)
ASKED_OUT = LoopProgress(empty_replies=limits.EMPTY_REPLIES)


def verdict(
    finding: Finding, progress: LoopProgress, /, *, left: bool = True, items: bool = False, **fields: Any
) -> Verdict:
    given = {"finding": finding, **fields}
    reply = TurnReply(head="h", stop_reason="end_turn", preview="Well.", usage=Usage(), **given)
    return verdict_on(reply, finding, progress, has_a_turn_left=left, names_items=items)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("progress", [FRESH, OBJECTED, ASKED_OUT])
def test_a_sound_finding_is_accepted_whatever_was_before(progress: LoopProgress, left: bool) -> None:
    assert verdict(SOUND, progress, left=left) == Accept()


@pytest.mark.parametrize(
    ("finding", "fields", "misfit"),
    [
        (DOUBTFUL, {}, []),
        (SOUND, {"unclear": True}, []),
        (SOUND, {"ungrounded": True}, []),
        (SOUND, {"misfit": ["no column for the tree"]}, ["no column for the tree"]),
    ],
)
def test_a_faulty_finding_goes_back_once_and_only_while_there_is_a_turn(
    finding: Finding, fields: dict[str, Any], misfit: list[str]
) -> None:
    assert verdict(finding, FRESH, **fields) == Object(finding, misfit)
    assert verdict(finding, OBJECTED, **fields) == Accept()
    assert verdict(finding, FRESH, left=False, **fields) == Accept()


def test_a_finding_without_the_items_that_it_must_list_goes_back_and_then_ends_the_attempt() -> None:
    listed = SOUND.model_copy(update={"items_ref": "i1"})
    assert verdict(SOUND, FRESH, items=True) == Object(SOUND, [NO_ITEMS])
    assert verdict(listed, FRESH, items=True) == Accept()
    second = verdict(SOUND, OBJECTED, items=True)
    assert isinstance(second, GiveUp)
    assert second.keeps_finding


@pytest.mark.parametrize(
    ("progress", "left", "expected"),
    [
        (FRESH, True, AskAgain("says_nothing")),
        (FRESH, False, GiveUp("its last words are no finding: Well.")),
        (ASKED_OUT, True, GiveUp("its last words are no finding: Well.")),
        (ASKED_OUT.model_copy(update={"returned": EARLIER}), True, Accept()),
        (FRESH.model_copy(update={"returned": EARLIER}), False, Accept()),
    ],
)
def test_empty_words_are_asked_about_until_an_earlier_finding_or_nothing_is_left(
    progress: LoopProgress, left: bool, expected: Verdict
) -> None:
    assert verdict(SOUND, progress, left=left, empty="says_nothing") == expected


@pytest.mark.parametrize(
    ("returned", "expected"),
    [(None, GiveUp("44 pears")), (EARLIER, GiveUp("44 pears")), (SUPPORTED, Accept())],
)
def test_an_impossible_subtask_ends_the_attempt_unless_an_earlier_finding_is_supported(
    returned: Finding | None, expected: Verdict
) -> None:
    progress = FRESH.model_copy(update={"returned": returned})
    assert verdict(SOUND, progress, impossible=True) == expected


def test_a_finding_of_an_earlier_turn_is_accepted_with_its_faults() -> None:
    assert verdict(DOUBTFUL, FRESH, finding=None, items=True, misfit=["no column"]) == Accept()


def test_a_verdict_changes_nothing() -> None:
    progress = FRESH.model_copy(deep=True)
    verdict(DOUBTFUL, progress)
    verdict(SOUND, progress, empty="no_rows")
    assert progress == FRESH
