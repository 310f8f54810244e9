"""The board and its plan: worker agents of candidates, and what a later revision changes."""

from supervision.contract.plan import Plan, Subtask
from supervision.contract.progress import Counts
from supervision.run.board import Board
from tests.unit.shapes import ERROR, FINDING, Clock, completed, plan, subtask


def in_state(board: Board, *states: str) -> set[str]:
    return {report.id for report in board.reports() if report.state in states}


# --- worker agents ------------------------------------------------------------------------------------


def wide(subtask_id: str, candidates: int) -> Subtask:
    return subtask(subtask_id).model_copy(update={"candidates": candidates})


def test_each_candidate_is_a_worker_agent_and_running_subtasks_come_first() -> None:
    board = Board(plan(wide("a", 1), wide("b", 2), wide("c", 3)), Clock())
    board.start("c", "w")
    assert [board.agents(slots) for slots in (0, 1, 2, 3, 9)] == [0, 3, 4, 6, 6]


def test_without_candidates_each_unfinished_subtask_is_a_worker_agent() -> None:
    board = completed("a", candidate=plan(subtask("a"), subtask("b"), subtask("c")))
    board.start("b", "w")
    assert [board.agents(slots) for slots in (1, 2, 9)] == [1, 2, 2]


# --- revisions ----------------------------------------------------------------------------------------


def revised(*changed: Subtask, candidate: Plan) -> Plan:
    """The next revision: subtasks with a known id take the place of the former ones."""
    subtasks = {item.id: item for item in (*candidate.subtasks, *changed)}
    return Plan(subtasks=list(subtasks.values()), revision=candidate.revision + 1)


def replacing(subtask_id: str, old: str) -> Subtask:
    return subtask(subtask_id).model_copy(update={"replaces": [old]})


CHAIN = plan(subtask("a"), subtask("b", "a"), subtask("c", "b"))


def failed_chain() -> Board:
    board = Board(CHAIN, Clock())
    board.start("a", "w")
    board.fail("a", ERROR)
    assert board.skip_blocked() == ["b", "c"]
    return board


def test_what_was_skipped_waits_again_for_the_replacement_of_what_failed() -> None:
    board = failed_chain()
    board.extend(revised(replacing("a2", "a"), subtask("b", "a2"), candidate=CHAIN))
    assert in_state(board, "waiting") == {"a2", "b", "c"}
    assert (board["b"].depends_on, board["b"].error, board["c"].error) == (["a2"], None, None)
    assert (list(board.ready()), board.skip_blocked()) == (["a2"], [])


def test_a_dependency_that_has_not_ended_is_hope_enough() -> None:
    board = failed_chain()
    board.extend(revised(subtask("a2"), subtask("b", "a", "a2"), candidate=CHAIN))
    assert in_state(board, "waiting") == {"a2", "b", "c"}


def test_what_was_skipped_stays_so_where_a_revision_gives_it_no_hope() -> None:
    board = failed_chain()
    board.extend(revised(subtask("d"), candidate=CHAIN))
    assert in_state(board, "skipped") == {"b", "c"}
    assert board["b"].error is not None


def test_one_dependency_that_completed_is_hope_enough() -> None:
    candidate = plan(*CHAIN.subtasks, subtask("d"))
    board = Board(candidate, Clock())
    board.start("a", "w")
    board.fail("a", ERROR)
    board.start("d", "w")
    board.complete("d", FINDING)
    board.skip_blocked()
    board.extend(revised(subtask("b", "a", "d"), candidate=candidate))
    assert list(board.ready()) == ["b"]


def test_a_revision_counts_its_new_subtasks_as_waiting_and_keeps_finished_work() -> None:
    board = completed("a", candidate=CHAIN)
    before = board["a"].model_copy(deep=True)
    board.extend(revised(subtask("d"), candidate=CHAIN))
    assert board.counts() == Counts(total=4, waiting=3, completed=1)
    assert board["a"] == before


def test_the_last_revision_is_without_what_it_replaced() -> None:
    board = failed_chain()
    board.extend(revised(replacing("a2", "a"), candidate=CHAIN))
    assert board["a"].replaced_by == "a2"
    assert [report.id for report in board.current()] == ["b", "c", "a2"]


def test_a_revision_with_candidates_counts_each_as_a_worker_agent() -> None:
    board = Board(CHAIN, Clock())
    board.extend(revised(wide("d", 2), candidate=CHAIN))
    assert board.agents(9) == 5
