"""What people said to a run: each child gets all of it, and takes each word once."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.updates import SkipSubtask
from supervision.run.board import Board
from supervision.run.decisions import ALL, Steering
from tests.unit.shapes import ERROR, FINDING, Clock, plan, subtask

says = st.one_of(
    st.builds(lambda to: ("say", to), st.sampled_from([ALL, "t1", "t2"])),
    st.sampled_from([("pause", ""), ("now", ""), ("resume", "")]),
)


def board() -> Board:
    return Board(plan(subtask("t1"), subtask("t2", "t1"), subtask("t3")), Clock())


@given(st.lists(says, max_size=12), st.lists(st.integers(0, 12), max_size=12))
def test_a_nested_run_hears_each_word_once_however_late_a_signal_comes(
    said: list[tuple[str, str]], order: list[int]
) -> None:
    above, below = Steering(board()), Steering(board())
    told = [above.instructions("t1")]
    for number, (what, to) in enumerate(said):
        if what == "say":
            above.say(f"word {number}", to)
        elif what == "resume":
            above.resume()
        else:
            above.pause(now=what == "now")
        told.append(above.instructions("t1"))
    for place in [*order, len(said)]:
        below.take(told[min(place, len(said))])
    words = [f"word {number}" for number, (what, to) in enumerate(said) if what == "say" and to != "t2"]
    assert below.words_to_all == [word.text for word in below.instructions("any").words] == words
    assert (below.paused, below.now) == (above.paused, above.now)
    assert [one.number for one in told] == sorted(one.number for one in told)


def test_a_skipped_subtask_keeps_what_it_had_and_one_that_completed_its_finding() -> None:
    tasks, steering = board(), Steering(board())
    steering.skip(SkipSubtask(subtask_id="t1", by="ann", comment="too slow"))
    why = steering.skips["t1"]
    assert why.message == "ann skipped it: too slow"
    tasks.begin("t1", "finder")
    tasks.skip("t1", why, FINDING)
    assert (tasks["t1"].state, tasks["t1"].finding) == ("skipped", FINDING)
    tasks.begin("t3", "finder")
    tasks.complete("t3", FINDING)
    tasks.reopen("t3")
    tasks.skip("t3", why)
    assert tasks["t3"].state == "completed"


def test_what_lacks_a_subtask_that_is_done_again_waits_again() -> None:
    tasks = board()
    tasks.begin("t1", "finder")
    tasks.fail("t1", ERROR, FINDING)
    assert tasks.skip_blocked() == ["t2"]
    tasks.reopen("t1")
    assert {report.id: report.state for report in tasks.reports()} == dict.fromkeys(("t1", "t2", "t3"), "waiting")
    tasks.close(ERROR)
    assert (tasks["t1"].state, tasks["t1"].finding) == ("cancelled", FINDING)
