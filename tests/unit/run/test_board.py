"""The board under a random scheduler: what may start starts at once, and every subtask ends in one state."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.contract.plan import Plan
from supervision.contract.progress import Counts
from supervision.contract.result import Gap, Problem
from supervision.contract.usage import Usage
from supervision.run.board import Board
from tests.unit.shapes import ERROR, FINDING, START, Clock, acyclic_plans, completed, plan, subtask

ENDED = {"completed", "failed", "skipped", "cancelled"}


def in_state(board: Board, *states: str) -> set[str]:
    return {report.id for report in board.reports() if report.state in states}


def may_start(board: Board, candidate: Plan) -> set[str]:
    """The rule in other words: all dependencies ended, and not all of them in vain."""
    ended, completed = in_state(board, *ENDED), in_state(board, "completed")
    return {
        s.id
        for s in candidate.subtasks
        if board[s.id].state == "waiting"
        and ended >= set(s.depends_on)
        and (not s.depends_on or completed & {*s.depends_on})
    }


def end(board: Board, subtask_id: str, outcome: str) -> None:
    if outcome == "completed":
        board.complete(subtask_id, FINDING)
    elif outcome == "failed":
        board.fail(subtask_id, ERROR)
    else:
        board.cancel(subtask_id, ERROR)


@given(acyclic_plans(), st.integers(1, 4), st.data())
def test_any_order_of_outcomes_runs_a_plan_to_its_end(candidate: Plan, slots: int, data: st.DataObject) -> None:
    board = Board(candidate, Clock())
    skipped: list[str] = []
    for _ in range(2 * len(candidate.subtasks) + 1):
        skipped += board.skip_blocked()
        assert board.skip_blocked() == []
        counted = Counter[str](report.state for report in board.reports())
        assert board.counts() == Counts(total=len(candidate.subtasks), **counted)
        free = slots - len(in_state(board, "running"))
        allowed = may_start(board, candidate)
        ready = list(board.ready())
        assert ready == [s.id for s in candidate.subtasks if s.id in allowed]
        for subtask_id in ready[:free]:
            assert board.start(subtask_id, f"run/{subtask_id}/1") == 1
        running = sorted(in_state(board, "running"))
        if not running:
            break
        assert len(running) <= slots
        end(
            board, data.draw(st.sampled_from(running)), data.draw(st.sampled_from(["completed", "failed", "cancelled"]))
        )
    assert not in_state(board, "waiting") | in_state(board, "running")
    assert board.counts().ended == board.counts().total == len(candidate.subtasks)
    assert sorted(skipped) == sorted(in_state(board, "skipped"))
    for s in candidate.subtasks:
        hopeless = bool(s.depends_on) and not in_state(board, "completed") & {*s.depends_on}
        assert (board[s.id].state == "skipped") == hopeless
        assert (board[s.id].attempts == 0) == hopeless
        assert {gap.subtask_id for gap in board.missing_for(s.id)} | {r.id for r in board.completed_for(s.id)} == {
            *s.depends_on
        }
    assert {gap.subtask_id for gap in board.gaps()} == in_state(board, *ENDED - {"completed"})


def test_a_failure_skips_all_that_depend_on_it_alone() -> None:
    board = Board(
        plan(
            subtask("d", "c", "b"),
            subtask("c", "b"),
            subtask("b", "a"),
            subtask("a"),
            subtask("e", "b", "f"),
            subtask("f"),
        ),
        Clock(),
    )
    board.start("a", "w")
    board.start("f", "w")
    board.complete("f", FINDING)
    board.fail("a", ERROR)
    assert sorted(board.skip_blocked()) == ["b", "c", "d"]
    assert list(board.ready()) == ["e"]
    assert board.missing_for("e")[0].reason == "skipped: DependenciesFailed: none of its dependencies succeeded: a"


def test_an_attempt_follows_the_last_and_what_both_consumed_adds_up() -> None:
    clock = Clock()
    board = Board(plan(subtask("a")), clock)
    assert board.start("a", "run/a/1") == 1
    board.record("a", 3, Usage(model_calls=3, usd=0.5))
    clock.tick()
    assert board.start("a", "run/a/2") == 2
    board.record("a", 2, Usage(model_calls=2, usd=None))
    clock.tick()
    board.complete("a", FINDING)
    report = board["a"]
    assert (report.attempts, report.turns, report.usage.model_calls, report.usage.usd) == (2, 5, 5, None)
    assert report.workflow_id == "run/a/2"
    assert report.started_at == START.isoformat()
    assert report.finished_at == clock().isoformat()


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_what_has_ended_never_changes_again(outcome: str) -> None:
    board = Board(plan(subtask("a")), Clock())
    board.start("a", "w")
    end(board, "a", outcome)
    before = board["a"].model_copy(deep=True)
    for again in ("completed", "failed", "cancelled"):
        with pytest.raises(ValueError, match=f"'a' is {outcome}"):
            end(board, "a", again)
    with pytest.raises(ValueError, match=f"'a' is {outcome}"):
        board.start("a", "w")
    board.close(ERROR)
    assert board["a"] == before


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_nothing_ends_that_did_not_start(outcome: str) -> None:
    board = Board(plan(subtask("a")), Clock())
    with pytest.raises(ValueError, match="'a' is waiting"):
        end(board, "a", outcome)


def test_stopping_closes_what_waits_and_what_runs() -> None:
    board = Board(plan(subtask("a"), subtask("b", "a"), subtask("c")), Clock())
    board.start("a", "w")
    board.close(Problem(type="DeadlineExceeded", message="too late"))
    assert in_state(board, "cancelled") == {"a", "b", "c"}
    assert not in_state(board, "waiting") | in_state(board, "running")
    assert [gap.subtask_id for gap in board.gaps()] == ["a", "b", "c"]


def test_closing_keeps_the_finding_of_what_was_reopened() -> None:
    board = Board(plan(subtask("a"), subtask("b")), Clock())
    for subtask_id in ("a", "b"):
        board.start(subtask_id, "w")
        board.complete(subtask_id, FINDING)
        board.reopen(subtask_id)
    board.start("b", "w")
    board.close(ERROR)
    assert in_state(board, "completed") == {"a", "b"}
    assert board.gaps() == []


def test_a_board_of_nothing_has_ended() -> None:
    board = Board(Plan(), Clock())
    assert not in_state(board, "waiting") | in_state(board, "running")
    assert ([*board.ready()], board.skip_blocked(), board.gaps()) == ([], [], [])


def test_gaps_of_nested_runs_are_listed_up_to_a_limit_and_then_counted() -> None:
    board = Board(plan(*[subtask(f"t{n}") for n in range(8)]), Clock())
    for report in board.reports():
        board.start(report.id, f"run/{report.id}/1")
        board.complete(report.id, FINDING)
        board.record(report.id, 0, Usage(), [Gap(subtask_id=f"s{n}", reason="failed") for n in range(20)])
    gaps = board.gaps()
    assert len(gaps) == limits.GAPS_SHOWN + 3
    assert gaps[0] == Gap(subtask_id="t0/s0", reason="failed")
    assert gaps[-1] == Gap(subtask_id="t7", reason="20 gaps in the answer of its team")


@pytest.mark.parametrize(
    ("estimates", "sizes"),
    [([9000, 3000, 0], [1.5, 0.5, 1.0]), ([1, 3], [0.5, 1.5]), ([500], [1.0]), ([0, 0], [1.0, 1.0])],
)
def test_the_size_of_a_subtask_is_its_estimate_against_the_mean_of_all(
    estimates: list[int], sizes: list[float]
) -> None:
    planned = [subtask(f"t{n}").model_copy(update={"estimated_tokens": own}) for n, own in enumerate(estimates)]
    board = Board(plan(*planned), Clock())
    assert [board.size(item.id) for item in planned] == sizes


def test_stopping_gives_its_reason_to_what_was_stopped_before_without_one() -> None:
    board = Board(plan(subtask("a"), subtask("b")), Clock())
    own = Problem(type="Cancelled", message="by a person")
    board.cancel("a", None)
    board.cancel("b", own)
    board.close(ERROR)
    assert (board["a"].error, board["b"].error) == (ERROR, own)


# --- findings -----------------------------------------------------------------------------------------


def test_a_board_has_no_finding_before_the_first() -> None:
    board = Board(plan(subtask("a"), subtask("b")), Clock())
    assert not board.has_finding
    assert board.text_ref("a") is None


@pytest.mark.parametrize("course", ["completed", "reopened", "failed", "cancelled"])
def test_a_finding_counts_whatever_becomes_of_its_subtask(course: str) -> None:
    board = Board(plan(subtask("a"), subtask("b")), Clock())
    board.start("a", "w")
    if course == "failed":
        board.fail("a", ERROR, FINDING)
    elif course == "cancelled":
        board.cancel("a", ERROR, FINDING)
    else:
        board.complete("a", FINDING)
    if course == "reopened":
        board.reopen("a")
    assert board.has_finding
    assert board.text_ref("a") == FINDING.text_ref
    assert [report.id for report in board.usable()] == ["a"]


def test_completed_subtasks_that_rest_on_a_changed_finding_are_stale() -> None:
    candidate = plan(subtask("a"), subtask("b"), subtask("c", "b", "a"), subtask("d", "b"), subtask("e", "a"))
    board = completed("a", "b", "c", "d", candidate=candidate)
    assert board.mark_stale(["a"]) == {"c": ["a"]}
    assert {report.id for report in board.reports() if report.stale} == {"c"}


def test_a_new_finding_is_not_stale() -> None:
    board = completed("a", "b", candidate=plan(subtask("a"), subtask("b", "a")))
    board.mark_stale(["a"])
    board.reopen("b")
    board.start("b", "w")
    board.complete("b", FINDING)
    assert not board["b"].stale
