"""The board under a random scheduler: what may start starts at once, and every subtask ends in one state."""

import contextlib
from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
from temporal_supervisor.supervision.contract.result import Gap, Problem, Reused, SubtaskReport, SubtaskState
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.planning.expansion import items_of, with_items
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.gaps import gap_of, gaps_of
from tests.unit.shapes import ERROR, FINDING, Clock, acyclic_plans, completed, end, plan, subtask, work

ENDED = {"completed", "failed", "skipped", "cancelled"}


def in_state(board: Board, *states: str) -> set[str]:
    return {report.id for report in board.reports() if report.state in states}


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
        for subtask_id in list(board.ready())[:free]:
            assert board.start(subtask_id, "hand").attempts == 1
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


HALF = FINDING.model_copy(update={"outcome": "partial"})
OTHER = FINDING.model_copy(update={"text_ref": "run/outputs/def"})

STEPS: dict[str, Callable[[Board, str], object]] = {
    "start": lambda board, each: board.start(each, "hand"),
    "begin": lambda board, each: board.begin(each, "foot"),
    "complete": lambda board, each: board.complete(each, OTHER),
    "in part": lambda board, each: board.complete(each, HALF),
    "fail": lambda board, each: board.end(each, "failed", ERROR),
    "cancel": lambda board, each: board.end(each, "cancelled"),
    "put back": Board.put_back,
    "reopen": Board.reopen,
    "skip": lambda board, each: board.skip(each, ERROR),
    "keep": Board.keep_finding,
    "take over": lambda board, each: board.take_over(each, OTHER, Reused(run_id="r", subtask_id="t1")),
    "book": lambda board, each: board.book(each, 1, Usage(model_calls=1)),
    "workflow": lambda board, each: board.set_workflow(each, f"r/{each}/1"),
    "model": lambda board, each: board.set_model(each, "m"),
    "nested": lambda board, each: board.set_nested(each, NestedRun(waits=1)),
    "stale": lambda board, each: board.mark_stale([each]),
    "left out": lambda board, each: board.leave_out(each, 2, "there are many"),
    "skip blocked": lambda board, each: board.skip_blocked(),
    "close": lambda board, each: board.close(ERROR),
    "revise": lambda board, each: board.extend(revised(subtask("n", replaces=[each]), candidate=as_planned(board))),
}
COURSES: list[tuple[str, ...]] = [(), ("start",), ("start", "complete"), ("start", "fail"), ("start", "cancel")]


@pytest.mark.parametrize("step", STEPS)
def test_who_reads_only_what_has_changed_knows_the_whole_board(step: str) -> None:
    taken = 0
    for course, before, each in product(COURSES, "abzt", ("a", "b", "t", "t.1", "t.2", "z")):
        board = board_with_items(2)
        for earlier in course:
            for item in ["t.1", "t.2"] if before == "t" else [before]:
                with contextlib.suppress(ValueError):
                    STEPS[earlier](board, item)
        known = {report.id: report.model_copy(deep=True) for report in board.reports()}
        version = board.version
        try:
            STEPS[step](board, each)
        except ValueError:  # the board refuses it
            continue
        taken += board.version > version
        known |= {report.id: report for report in board.changed_since(version)}
        assert [known[report.id] for report in board.reports()] == board.reports()
        assert board.changed_since(board.version) == []
    assert taken


def as_planned(board: Board) -> Plan:
    """The plan of a board."""
    return Plan(subtasks=[board.subtask(report.id) for report in board.reports()])


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_what_has_ended_never_changes_again(outcome: str) -> None:
    board = Board(plan(subtask("a")), Clock())
    work(board, "a", outcome)
    before = board["a"].model_copy(deep=True)
    for again in ("completed", "failed", "cancelled"):
        with pytest.raises(ValueError, match=f"'a' is {outcome}"):
            end(board, "a", again)
    with pytest.raises(ValueError, match=f"'a' is {outcome}"):
        board.start("a", "hand")
    board.close(ERROR)
    assert board["a"] == before


def test_stopping_closes_what_waits_and_what_runs_and_keeps_the_finding_of_what_was_reopened() -> None:
    board = completed("d", "e", candidate=plan(*map(subtask, "ade"), subtask("b", "a"), subtask("c")))
    board.reopen("d")
    board.reopen("e")
    board.start("a", "hand")
    board.start("e", "hand")
    board.close(Problem(type="DeadlineExceeded", message="too late"))
    assert in_state(board, "cancelled") == {"a", "b", "c"}
    assert in_state(board, "completed") == {"d", "e"}
    assert [gap.subtask_id for gap in board.gaps()] == ["a", "b", "c"]


# --- findings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("course", ["completed", "reopened", "failed", "cancelled"])
def test_a_finding_counts_whatever_becomes_of_its_subtask(course: str) -> None:
    board = Board(plan(subtask("a"), subtask("b")), Clock())
    work(board, "a", "completed" if course == "reopened" else course, FINDING)
    if course == "reopened":
        board.reopen("a")
    assert board.has_finding
    assert board.text_ref("a") == FINDING.text_ref
    assert [report.id for report in board.usable()] == ["a"]


def test_subtasks_that_were_done_with_a_finding_before_it_changed_are_stale() -> None:
    shape = [subtask("a"), subtask("b"), subtask("c", "b", "a"), subtask("d", "b")]
    board = completed("a", "b", "c", "d", candidate=plan(*shape, *(subtask(each, "a") for each in "efg")))
    board.start("e", "hand")
    board.begin("f", "hand")  # no attempt yet: it reads the finding as it is now
    assert board.mark_stale(["a"]) == {"c": ["a"]}
    board.start("f", "hand")
    for subtask_id in ("e", "f"):
        end(board, subtask_id)
    assert {report.id for report in board.reports() if report.stale} == {"c", "e"}
    board = board_with_items(1)
    work(board, "t.1")
    assert board.mark_stale(["b"]) == {"t.1": ["b"]}


def test_another_finding_of_a_subtask_makes_what_rests_on_it_stale() -> None:
    board = completed("a", "b", candidate=plan(subtask("a"), subtask("b", "a")))
    finding = board["a"].finding
    assert finding
    for again in (finding, finding.model_copy(update={"text_ref": "other"})):
        board.reopen("a")
        board.start("a", "hand")
        board.complete("a", again)
        assert board["b"].stale == (again is not finding)


# --- worker agents ------------------------------------------------------------------------------------


def test_each_candidate_is_a_worker_agent_and_running_subtasks_come_first() -> None:
    board = Board(plan(subtask("a"), subtask("b", candidates=2), subtask("c", candidates=3)), Clock())
    board.start("c", "hand")
    assert [board.agent_count(slots) for slots in (0, 1, 2, 3, 9)] == [0, 3, 4, 6, 6]


def test_others_that_are_ready_could_begin_at_once() -> None:
    board = Board(plan(subtask("a"), subtask("b", "a"), subtask("d"), subtask("e")), Clock())
    board.start("e", "hand")
    assert (board.ready_beside("a"), board.ready_beside("e")) == (1, 2)
    work(board, "a")
    assert board.ready_beside("a") == 2
    assert [each.id for each in board.unfinished()] == ["b", "d", "e"]


# --- revisions ----------------------------------------------------------------------------------------


def revised(*changed: Subtask, candidate: Plan) -> Plan:
    """The next revision: subtasks with a known id take the place of the former ones."""
    subtasks = {item.id: item for item in (*candidate.subtasks, *changed)}
    return Plan(subtasks=list(subtasks.values()), revision=candidate.revision + 1)


def test_what_was_skipped_stays_so_until_a_revision_gives_it_ground() -> None:
    shape = plan(subtask("a"), subtask("b", "a"), subtask("c"), subtask("e", "b"), subtask("f", "a"))
    board = completed("c", candidate=shape)
    work(board, "a", "failed")
    assert board.skip_blocked() == ["b", "e", "f"]
    board.extend(revised(subtask("d"), candidate=shape))
    assert (board["b"].state, list(board.ready())) == ("skipped", ["d"])
    board.extend(revised(subtask("d", replaces=["a"]), subtask("b", "d", "c"), candidate=shape))
    assert (in_state(board, "waiting"), list(board.ready())) == ({"d", "b", "e"}, ["d"])
    assert (board["b"].depends_on, board["b"].error, board["e"].error) == (["d", "c"], None, None)


# --- items --------------------------------------------------------------------------------------------

EACH = subtask("t", "a", "b", for_each="items:a")
WITH_ITEMS = plan(subtask("a"), subtask("b"), EACH, subtask("z", "t"))


def board_with_items(count: int = 3) -> Board:
    """A board whose template has so many items; a, which names them, and b have completed."""
    board = completed("a", "b", candidate=WITH_ITEMS)
    board.extend(with_items(WITH_ITEMS, items_of(EACH, [str(number) for number in range(count)])))
    return board


def test_a_template_waits_for_its_items_and_takes_no_part_once_it_has_them() -> None:
    board = completed("a", candidate=WITH_ITEMS)
    assert (board.expandable(), list(board.ready())) == ([], ["b"])
    assert [board.names_items(name) for name in "abz"] == [True, False, False]
    assert Board(plan(*WITH_ITEMS.subtasks, subtask("y", for_each="rows:r")), Clock()).names_items("a")
    work(board, "b", "failed")
    assert (board.expandable(), list(board.ready())) == (["t"], [])
    assert completed("a", "b", candidate=plan(*WITH_ITEMS.subtasks[:2])).expandable() == []
    board = board_with_items()
    assert (board.expandable(), board.item_count, list(board.ready())) == ([], 3, ["t.1", "t.2", "t.3"])
    assert board["t"].counts == Counts(total=3, waiting=3)
    assert board.counts() == Counts(total=6, completed=2, waiting=4)
    assert (board["t"].state, board["z"].depends_on) == ("running", ["t.1", "t.2", "t.3"])


@pytest.mark.parametrize(
    ("outcomes", "state", "error"),
    [
        (["completed", "failed"], "completed", None),
        (["failed", "completed"], "completed", None),
        (["failed", "failed"], "failed", ERROR),
        (["failed", "cancelled"], "cancelled", ERROR),
    ],
)
def test_a_template_comes_to_what_its_items_come_to(
    outcomes: list[str], state: SubtaskState, error: Problem | None
) -> None:
    board = board_with_items(2)
    board.start("t.1", "hand")
    assert board["t"].counts == Counts(total=2, running=1, waiting=1)
    end(board, "t.1", outcomes[0])
    assert (board["t"].state, board["t"].error) == ("running", None)
    board.start("t.2", "hand")
    assert board["t"].state == "running"
    end(board, "t.2", outcomes[1])
    assert (board["t"].state, board["t"].error) == (state, error)
    counts = board["t"].counts
    assert counts is not None
    assert (counts.total, counts.ended, counts.completed) == (2, 2, outcomes.count("completed"))


def test_partial_items_are_counted_once_and_no_longer_when_they_are_whole() -> None:
    board = board_with_items(3)
    found = ["t.3", "t.1", "t.2", "t.2", "t.1", "t.3", "t.2"], [FINDING, HALF, FINDING, FINDING, FINDING, HALF, HALF]
    for subtask_id, finding in zip(*found, strict=True):
        if board[subtask_id].state == "completed":
            board.reopen(subtask_id)
        work(board, subtask_id, finding=finding)
    counts = board["t"].counts
    assert counts is not None
    assert counts.partial == 2


def test_items_that_get_no_subtask_are_named_with_the_reason() -> None:
    board = board_with_items(1)
    for subtask_id in ("t.1", "z"):
        work(board, subtask_id)
    board.leave_out("t", 0, "nothing")
    assert board.gaps() == []
    board.leave_out("t", 4, "max_items is 1")
    assert [(gap.subtask_id, gap.reason) for gap in board.gaps()] == [
        ("t", "4 of 5 items; 4 of them were left out, because max_items is 1")
    ]
    board.leave_out("t", 1, "it is lost")
    assert board.gaps()[0].reason.endswith("because max_items is 1; 1 of them were left out, because it is lost")
    board.leave_out("b", 4, "it has none")
    assert board["b"].counts is None


def test_what_has_not_ended_of_a_template_are_its_items() -> None:
    board = board_with_items()
    work(board, "t.1")
    board.start("t.2", "hand")
    assert board.open_parts("t") == ["t.2", "t.3"]
    assert (board.open_parts("z"), board.open_parts("a"), board.open_parts("t.1")) == (["z"], [], [])


def test_the_items_of_a_replaced_template_are_replaced_with_it() -> None:
    board = board_with_items(1)
    before = with_items(WITH_ITEMS, items_of(EACH, ["0"]))
    board.extend(revised(subtask("n", replaces=["t"]), candidate=before))
    assert {report.id for report in board.current()} == {"a", "b", "z", "n"}


def test_a_template_whose_items_were_stopped_has_the_reason_of_the_end() -> None:
    board = board_with_items(1)
    board.start("t.1", "hand")
    board.end("t.1", "cancelled", None)
    for error in (ERROR, Problem(type="Other", message="later")):
        board.close(error)
        assert [board[each].error for each in ("t", "t.1")] == [ERROR, ERROR]
    assert board["t"].state == "cancelled"


# --- sums ---------------------------------------------------------------------------------------------


def test_what_attempts_consume_adds_up_and_agents_at_work_are_counted_by_role() -> None:
    clock = Clock()
    board = Board(plan(subtask("a"), subtask("b")), clock)
    board.begin("b", "hand")
    began = clock().isoformat()
    for number in (1, 2):
        assert board.in_flight() == {"hand": 1}
        assert board.start("a", "hand").attempts == number
        assert board.in_flight() == {"hand": 2}
        clock.tick()
        board.book("a", 2, Usage(model_calls=3))
        board.put_back("a")
    assert (board["a"].turns, board["a"].usage.model_calls, board["a"].started_at) == (4, 6, began)


def report(subtask_id: str, state: SubtaskState = "completed", **fields: object) -> SubtaskReport:
    return SubtaskReport.model_validate({"id": subtask_id, "state": state, **fields})


def missing(*reports: SubtaskReport) -> list[str]:
    return [gap.subtask_id for gap in gaps_of({r.id: r for r in reports}, {})]


# --- replacements ---------------------------------------------------------------------------------


def test_a_chain_of_replacements_counts_by_its_end() -> None:
    first, second = report("t1", "failed", replaced_by="t2"), report("t2", "skipped", replaced_by="t3")
    assert missing(first, second, report("t3")) == []
    assert missing(first, second, report("t3", "failed")) == ["t1", "t2", "t3"]


# --- nested runs ----------------------------------------------------------------------------------


def nested(subtask_id: str, gaps: int) -> SubtaskReport:
    """A completed subtask whose team's answer has so many gaps."""
    made = report(subtask_id)
    made.gaps = [Gap(subtask_id=f"s{n}", reason="why", description="what") for n in range(gaps)]
    return made


def test_beyond_the_limit_a_nested_runs_gaps_are_one_with_their_number() -> None:
    reports = {"t1": nested("t1", limits.GAPS_SHOWN - 2), "t2": nested("t2", 3)}
    last = gaps_of(reports, {})[-1]
    assert last.subtask_id == "t2"
    assert "3 gaps" in last.reason
    assert len(gaps_of({**reports, "t2": nested("t2", 2)}, {})) == limits.GAPS_SHOWN


# --- the words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error", "reason"),
    [
        ("failed", Problem(type="TurnLimit", message="no finding"), "failed: TurnLimit: no finding"),
        ("cancelled", Problem(type="Cancelled", message="by its owner"), "cancelled: by its owner"),
        ("cancelled", Problem(type="DeadlineExceeded", message="late"), "cancelled: DeadlineExceeded: late"),
        ("skipped", Problem(type="Cancelled", message="ann skipped it"), "ann skipped it"),
        ("skipped", Problem(type="DependenciesFailed", message="none"), "skipped: DependenciesFailed: none"),
        ("waiting", None, "it is waiting"),
    ],
)
def test_a_gap_says_how_its_subtask_ended_and_why(state: SubtaskState, error: Problem | None, reason: str) -> None:
    assert gap_of(report("t1", state, error=error), {}, {}).reason == reason


@pytest.mark.parametrize(("count", "rest"), [(20, ""), (21, ", ...")])
def test_of_items_that_are_missing_the_first_are_named(count: int, rest: str) -> None:
    items = {f"t.{n}": report(f"t.{n}", "failed") for n in range(1, count + 1)}
    template = report("t", "failed", counts={"total": count, "failed": count})
    named = ", ".join(f"t.{n}" for n in range(1, 21))
    gap = gap_of(template, {**items, "u": report("u", "failed")}, {})
    assert gap.reason == f"{count} of {count} items: {named}{rest}"


def change(board: Board, subtask_id: str, way: int) -> None:
    """Has a subtask take one of the steps that its state allows."""
    match board[subtask_id].state:
        case "waiting":
            board.begin(subtask_id, "hand")
        case "running":
            if way == 2:
                board.put_back(subtask_id)
            else:
                end(board, subtask_id, ("completed", "failed")[way])
        case "completed":
            board.reopen(subtask_id)


@given(acyclic_plans(), st.data())
def test_after_any_changes_it_is_what_a_look_at_the_plan_finds(shape: Plan, data: st.DataObject) -> None:
    board = Board(shape, Clock())
    steps = st.tuples(st.sampled_from([each.id for each in shape.subtasks]), st.integers(0, 2))
    for subtask_id, way in data.draw(st.lists(steps, max_size=16)):
        change(board, subtask_id, way)
        ready: list[str] = []
        blocked: list[str] = []
        for report in board.reports():
            states = {board[dependency].state for dependency in report.depends_on}
            if report.state == "waiting" and not states & {"waiting", "running"}:
                (ready if "completed" in states or not states else blocked).append(report.id)
        assert list(board.ready()) == ready
        if way == 2:
            assert set(blocked) <= set(board.skip_blocked())
