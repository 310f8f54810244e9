"""Decisions of people: which are possible, and that the first one stands."""

from collections.abc import Callable
from typing import Any

import pytest

from supervision.contract.progress import Counts, NestedRun
from supervision.contract.status import Wait
from supervision.contract.updates import RetrySubtask, SkipSubtask, Steer
from supervision.run.board import Board
from supervision.run.decisions import ALL, Decision, Decisions, Steering
from supervision.run.waits import Waits
from tests.unit.shapes import ERROR, FINDING, START, Clock, plan, subtask

HASH, OTHER = "a" * 64, "b" * 64
QUESTION = Wait(id="t1/1:1.0", kind="question", workflow_id="r", subtask_id="t1", since="now")
CALL = Wait(id="t2/1:1.0", kind="tool", workflow_id="r", subtask_id="t2", since="now", arguments_sha256=HASH)
OUTAGE = Wait(id="t3/1", kind="provider", workflow_id="r", subtask_id="t3", since="now")
HELP = Wait(id="t4/3", kind="finding", workflow_id="r", subtask_id="t4", since="now", choices=["reply", "retry"])
WAITS = [QUESTION, CALL, OUTAGE]


def reply(text: str = "yes", **more: Any) -> Decision:
    return Decision(**{"id": QUESTION.id, "choice": "reply", "text": text, **more})


def approval(sha256: str = HASH) -> Decision:
    return Decision(id=CALL.id, choice="approve", arguments_sha256=sha256)


def test_the_first_decision_stands() -> None:
    decisions = Decisions()
    assert decisions.on(QUESTION) is None
    assert decisions.take(reply(by="ann"))
    assert not decisions.take(reply("no"))
    taken = decisions.on(QUESTION)
    assert taken is not None
    assert taken.text == "yes"
    decisions.check(reply(by="bob"), ["question"], [])  # the same once more, whoever says it
    with pytest.raises(ValueError, match=r"decided already: reply by ann \(yes\)"):
        decisions.check(reply("no"), ["question"], WAITS)


def test_a_decision_holds_for_the_arguments_that_were_seen() -> None:
    decisions = Decisions()
    decisions.check(approval(), ["tool"], WAITS)
    decisions.take(approval(OTHER))
    assert decisions.on(CALL) is None
    assert decisions.take(approval())
    assert decisions.on(CALL) == approval()


@pytest.mark.parametrize(
    ("decision", "kinds", "waits", "why"),
    [
        (reply(id="t9/1:1.0"), ["question"], WAITS, "'t9/1:1.0' waits for a person; what does: t1/1:1.0, t2/1:1.0$"),
        (reply(id="x"), ["question"], [OUTAGE], "nothing does now"),
        (reply(id="x"), ["question"], [QUESTION] * 8, "and 2 more"),
        (reply(id="x"), ["question"], [QUESTION] * 6, r"t1/1:1.0$"),
        (reply(), ["tool"], WAITS, "of the kind 'question'"),
        (approval(OTHER), ["tool"], WAITS, f"their SHA-256 is {HASH}"),
    ],
)
def test_what_cannot_be_decided_says_what_can(decision: Decision, kinds: Any, waits: list[Wait], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Decisions().check(decision, kinds, waits)


def test_a_decision_may_come_back_before_its_wait_once_the_run_was_reset() -> None:
    decisions = Decisions()
    decisions.in_advance = True
    decisions.check(reply(), ["question"], [])
    with pytest.raises(ValueError, match="other arguments"):
        decisions.check(approval(OTHER), ["tool"], WAITS)


def test_ids_of_nested_waits_are_paths() -> None:
    nested = QUESTION.below("t7").below("t8")
    assert (nested.id, nested.subtask_id, nested.levels, nested.own_id) == (
        "t8/t7/t1/1:1.0",
        "t8/t7/t1",
        2,
        QUESTION.id,
    )
    waits = Waits(Clock(), lambda: [nested])
    waits.show(CALL, None, '{"to": "all"}')
    waits.show(OUTAGE, START)
    waits.show(Wait(id="plan.2", kind="plan", workflow_id="r", since="now"), None)
    assert waits.of_subtasks() == {"t8", "t2"}
    assert (waits.asked(CALL.id).content, waits.asked(nested.id).content) == ('{"to": "all"}', None)
    with pytest.raises(ValueError, match="'t1' waits"):
        waits.asked("t1")


def test_only_a_subtask_that_failed_for_good_asks_for_help() -> None:
    waits = Waits(Clock(), list)
    waits.show(QUESTION, None)
    waits.show(HELP, None)
    assert waits.for_help("t4") == HELP
    assert (waits.for_help("t1"), waits.for_help("t3")) == (None, None)


# --- steering -------------------------------------------------------------------------------------


def at_work() -> tuple[Board, Steering]:
    """A board with a subtask in each state, and what people say to its run."""
    ids = ("waiting", "running", "done", "failed", "replaced")
    board = Board(plan(*map(subtask, ids), subtask("blocked", "failed")), Clock())
    for subtask_id in ids[1:]:
        board.begin(subtask_id, "finder")
    board.complete("done", FINDING)
    board.fail("failed", ERROR)
    board.fail("replaced", ERROR)
    board.skip_blocked()
    board["replaced"].replaced_by = "r1"
    board["running"].nested, board["running"].workflow_id = NestedRun(), "run/running/1"
    return board, Steering(board)


@pytest.mark.parametrize(
    ("subtask_id", "why"),
    [
        ("waiting", "is yet to be worked on"),
        ("running", "is being worked on: steer it"),
        ("replaced", "was replaced: retry 'r1'"),
        ("blocked", "lacks its dependencies: retry failed"),
        ("fail", "did you mean 'failed'"),
        ("running/t2", "send this to the workflow 'run/running/1', with the id 't2'"),
        ("done/t2", "the plan has no subtask 'done/t2'"),
        ("running/", "the plan has no subtask"),
    ],
)
def test_what_cannot_be_done_again_says_why(subtask_id: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        at_work()[1].check_retry(RetrySubtask(subtask_id=subtask_id), "executing", has_time=True)


def test_what_has_ended_is_done_again_while_there_is_time() -> None:
    board, steering = at_work()
    new = RetrySubtask(subtask_id="done", instruction="once more")
    for subtask_id in ("done", "failed"):
        steering.check_retry(RetrySubtask(subtask_id=subtask_id), "validating", has_time=True)
    with pytest.raises(ValueError, match="too late"):
        steering.check_retry(new, "synthesizing", has_time=True)
    with pytest.raises(ValueError, match="extend the deadline"):
        steering.check_retry(new, "executing", has_time=False)
    steering.retry(new)
    assert steering.retries == {"done": "once more"}
    with pytest.raises(ValueError, match="yet to be worked on"):
        steering.check_retry(new, "executing", has_time=True)
    steering.retry(RetrySubtask(subtask_id="failed"))
    assert steering.retries["failed"] == ""
    board["waiting"].counts = Counts(total=3)
    with pytest.raises(ValueError, match=r"stands for 3 items: name one of them, such as 'waiting.1'"):
        steering.check_retry(RetrySubtask(subtask_id="waiting"), "executing", has_time=True)


@pytest.mark.parametrize(("subtask_id", "possible"), [("waiting", True), ("running", True), ("done", False)])
def test_only_what_has_not_ended_is_steered_and_skipped(subtask_id: str, possible: bool) -> None:
    checks: list[Callable[[], None]] = [
        lambda: at_work()[1].check_word(Steer(text="look", to=subtask_id)),
        lambda: at_work()[1].check_skip(SkipSubtask(subtask_id=subtask_id)),
    ]
    for check in checks:
        if possible:
            check()
        else:
            with pytest.raises(ValueError, match="has ended"):
                check()


def test_a_run_takes_a_bounded_number_of_words() -> None:
    steering = at_work()[1]
    for _ in range(20):
        steering.check_word(Steer(text="look", to=ALL))
        steering.say("look")
    assert [word.number for word in steering.instructions("t1").words] == [*range(1, 21)]
    with pytest.raises(ValueError, match="steered 20 times"):
        steering.check_word(Steer(text="look", to=ALL))


def test_a_resume_without_a_pause_tells_nothing() -> None:
    steering = at_work()[1]
    assert (steering.paused, steering.now, steering.instructions("t1").number) == (False, False, 0)
    steering.resume()
    assert steering.instructions("t1").number == 0
    steering.pause(now=True)
    assert (steering.now, steering.instructions("t1").number) == (True, 1)
    steering.resume()
    assert (steering.paused, steering.now, steering.instructions("t1").number) == (False, False, 2)
