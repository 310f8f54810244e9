"""The state of a run: what its queries show, its result is made of, how long it took, what each event of it costs."""

import sys
from datetime import timedelta
from types import FrameType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Labels
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import Citation, Contradiction, Problem, Timing
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.answer import Answer
from temporal_supervisor.supervision.results.timing import longest_chain, timing
from temporal_supervisor.supervision.run.decisions import Instructions
from temporal_supervisor.supervision.run.nested_runs import NestedGrant
from temporal_supervisor.supervision.run.run_state import RunState
from temporal_supervisor.supervision.run.serving_models import Outage
from temporal_supervisor.supervision.run.status_and_result import result_of, status_of
from temporal_supervisor.supervision.run.web_details import markdown
from tests.unit.shapes import ERROR, FINDING, START, Clock, plan, report, subtask, work


def state(candidate: Plan | None = None, **changes: object) -> RunState:
    made = RunState(RunRequest.model_validate({"goal": "Sum the sales", **changes}), Clock(), START)
    if candidate:
        made.adopt(candidate)
    return made


@given(st.integers(0, 350))
@example(2 * limits.STATUS_PAGE)
def test_pages_of_the_status_show_every_subtask_once(count: int) -> None:
    run = state(plan(*[subtask(f"t{n}") for n in range(count)]))
    seen: list[str] = []
    cursor: int | None = 0
    while cursor is not None:
        page = status_of(run, cursor)
        assert bool(count) <= len(page.subtasks) <= limits.STATUS_PAGE
        assert page.counts.total == count
        seen += [report.id for report in page.subtasks]
        cursor = page.next_cursor
    assert seen == [f"t{n}" for n in range(count)]


def test_the_status_since_a_version_has_what_has_changed_and_all_of_another_plan() -> None:
    first = plan(*[subtask(f"t{n}") for n in range(150)])
    run = state(first)
    before = status_of(run, execution="e")
    assert (len(before.subtasks), before.since) == (limits.STATUS_PAGE, "")
    run.board.start("t7", "hand")
    run.board.start("t140", "hand")

    after = status_of(run, since=before.version, execution="e")
    assert [report.id for report in after.subtasks] == ["t7", "t140"]
    assert (after.since, after.next_cursor, after.counts.total) == (before.version, None, 150)
    assert status_of(run, since=after.version, execution="e").subtasks == []

    for other in ("", "nonsense", f"{after.version}x"):
        assert len(status_of(run, since=other, execution="e").subtasks) == limits.STATUS_PAGE
    was_reset = status_of(run, since=after.version, execution="f")
    assert (len(was_reset.subtasks), was_reset.since) == (limits.STATUS_PAGE, "")
    run.adopt(first.model_copy(update={"revision": 2}))
    assert len(status_of(run, since=after.version, execution="e").subtasks) == limits.STATUS_PAGE


def test_a_finding_may_come_while_work_is_under_way_that_is_not_refused() -> None:
    run = state(plan(subtask("t1"), subtask("t2")))
    run.board.begin("t1", "finder")
    assert run.first_finding.may_come
    run.first_finding.refuse("t1")
    assert not run.first_finding.may_come
    assert run.slots.occupy("t2")
    assert run.first_finding.may_come


def test_a_full_status_page_stays_below_the_hard_cap() -> None:
    long = [subtask(f"t{n}", description="漢字 " * 1000) for n in range(250)]
    page = status_of(state(plan(*long)))
    assert len(page.model_dump_json().encode()) <= limits.PAYLOAD_HARD_BYTES


@pytest.mark.parametrize(
    ("phase", "answer", "outcome", "status", "ending"),
    [
        ("executing", "", "completed", "running", None),
        ("done", "Yes.", "completed", "completed", "completed"),
        ("done", "Yes.", "failed", "partial", "partial"),
        ("failed", "", "failed", "partial", "failed"),
        ("failed", "Yes.", "completed", "partial", "failed"),
        ("cancelled", "Yes.", "completed", "partial", "cancelled"),
        ("done", "", "completed", "partial", "partial"),
    ],
)
def test_a_result_is_completed_only_with_an_answer_and_every_subtask(
    phase: Phase, answer: str, outcome: str, status: str, ending: str | None
) -> None:
    run = state(plan(subtask("a")))
    work(run.board, "a", outcome)
    run.phase = phase
    run.answer.replace(Answer(text=answer))
    result = result_of(run)
    assert (result.status, run.ending) == (status, ending)
    assert [gap.subtask_id for gap in result.gaps] == ([] if outcome == "completed" else ["a"])
    assert ("Missing from this answer" in result.answer) == (bool(answer) and outcome == "failed")


def test_the_first_contradiction_between_the_same_subtasks_stands() -> None:
    run = state(plan(subtask("a"), subtask("b"), subtask("c")))
    first = Contradiction(subtask_ids=["a", "b"], description="40 or 42", resolution="42")
    run.answer.add_contradiction(first)
    run.answer.add_contradiction(Contradiction(subtask_ids=["b", "a"], description="again"))
    other = Contradiction(subtask_ids=["a", "c"], description="red or green")
    run.answer.add_contradiction(other)
    assert result_of(run).contradictions == [first, other]


# --- Points, warnings -------------------------------------------------------------------


def test_a_point_is_open_until_its_finding_is_better() -> None:
    run = state(plan(subtask("a"), subtask("b")))
    run.board.skip_blocked()
    for subtask_id in ("a", "b"):
        work(run.board, subtask_id)
    run.open_points.set_gap("a", "x" * 700)
    run.open_points.set_gap("b", "no unit")
    run.open_points.set_gap("answer", "empty")
    run.open_points.set_of_plan(["the weight of the basket"])
    assert [gap.subtask_id for gap in run.answer.gaps] == ["a", "b", "answer", "plan"]
    assert [(gap.description, len(gap.reason.encode())) for gap in run.open_points.of_subtasks] == [
        (run.board.subtask("a").description, 600),
        (run.board.subtask("b").description, 7),
        ("", 5),
    ]
    run.open_points.resolve("a")
    run.open_points.resolve("nobody")
    assert [gap.subtask_id for gap in run.open_points.of_subtasks] == ["b", "answer"]


def test_a_warning_is_said_once_as_that_of_unknown_prices() -> None:
    run = state(budget={"usd": 1.0})
    for usd, warnings in ((0.1, 0), (None, 1), (None, 1)):
        run.add_spending("hand", "m", Usage(usd=usd))
        assert len(run.warnings) == warnings
    assert run.warnings == ["the dollar budget is not kept: the price of m is unknown"]
    run = state(budget={"usd": None})
    run.add_spending("hand", "m", Usage(usd=None))
    for _ in range(2):
        run.warn("one")
    assert run.warnings == ["one"]


@pytest.mark.parametrize(
    ("own", "usual", "seconds"), [(None, None, None), (None, "PT7S", 7.0), (3.0, "PT7S", 3.0), (3.0, None, 3.0)]
)
def test_the_plans_own_time_of_a_subtask_goes_before_the_requests(
    own: float | None, usual: str | None, seconds: float | None
) -> None:
    item = subtask("a", timeout_seconds=own)
    assert state(plan(item), subtask_timeout=usual).timeout_of("a") == seconds


def test_a_finding_counts_here_and_above_when_a_nested_run_began() -> None:
    run = state(plan(subtask("a")))
    assert not run.first_finding.exists
    work(run.board, "a")
    assert run.first_finding.exists
    nested = state()
    nested.begin_nested(Labels(), Instructions(), has_finding=True)
    assert nested.first_finding.exists


def test_a_model_is_away_longer_after_each_failed_try_and_without_a_time_until_a_person_resumes() -> None:
    run, work = state(), object()
    run.model_away("m", work, "busy", 5)
    outage = run.models.outage("m")
    assert outage
    assert outage.until == START + limits.PROVIDER_PAUSE
    for rounds in (1, 2):
        outage.first = work
        run.model_away("m", work, "busy", 5)
        assert outage.until == START + limits.PROVIDER_PAUSE * limits.PROVIDER_PAUSE_FACTOR**rounds
    run.model_away("m", object(), "busy", 700, 1.0)
    assert outage.until == START + timedelta(seconds=700) * (1 + limits.RETRY_JITTER)
    run.model_away("m", object(), "the account is empty")
    assert run.models.outage("m") == Outage("the account is empty", rounds=2)
    assert run.trace.page().events[-1].type == "waiting_provider"


@pytest.mark.parametrize(
    ("ends", "success", "kind"),
    [("cc", "all", None), ("cf", "any", None), ("cf", "all", "QuorumNotMet"), ("ff", "any", "AllSubtasksFailed")],
)
def test_what_completed_is_enough_or_says_why_not(ends: str, success: str, kind: str | None) -> None:
    run = state(plan(subtask("a"), subtask("b")), success=success)
    for subtask_id, end in zip("ab", ends, strict=True):
        work(run.board, subtask_id, "completed" if end == "c" else "failed")
    if kind is None:
        run.check_success()
    else:
        with pytest.raises(SupervisionError) as raised:
            run.check_success()
        assert raised.value.kind == kind


def test_without_a_finding_the_end_of_budget_or_time_is_the_reason() -> None:
    poor, late, stopped = state(budget={"tokens": 1}), state(), state()
    late.time_and_budget.extend(None, timedelta())
    stopped.time_and_budget.stopped_because = "its history is full"
    for run, why in ((poor, "no finding within the budget"), (late, "the deadline came"), (stopped, "its history")):
        with pytest.raises(SupervisionError, match=why):
            run.check_success()


def test_findings_stand_in_for_an_answer_unless_there_is_one() -> None:
    run = answered(None)
    run.answer.replace_by_findings("the model is away")
    assert (run.answer.current.is_findings, run.answer.gaps) == (False, [])
    run.answer.replace(Answer())
    run.answer.replace_by_findings("the model is away")
    assert (run.answer.current.is_findings, run.answer.gaps[0].reason) == (
        True,
        "no answer could be written: the model is away",
    )


# --- Confidence -----------------------------------------------------------------------------------


def answered(confidence: float | None) -> RunState:
    """A run with one completed subtask, which its answer cites."""
    run = state(plan(subtask("a")))
    work(run.board, "a")
    cited = [Citation(claim="c", subtask_ids=["a"])]
    run.answer.replace(Answer(text="Yes.", confidence=confidence, citations=cited))
    return run


def test_an_answer_with_a_fault_is_no_surer_than_its_basis_allows() -> None:
    run = answered(0.95)
    run.open_points.set_gap("a", "no unit")
    bounded = result_of(run).confidence
    assert bounded is not None
    assert 0 < bounded < 0.95


def test_without_a_confidence_of_its_own_an_answer_has_the_bound_that_code_computes() -> None:
    run = answered(None)
    assert result_of(run).confidence == 1.0
    run.open_points.set_gap("a", "no unit")
    assert result_of(run).confidence == 0.65
    run.models.describe(None, extract=True)
    assert result_of(run).confidence is None, "an extract is no answer"


def test_a_run_without_an_answer_has_no_confidence() -> None:
    run = answered(None)
    run.answer.replace(Answer())
    assert result_of(run).confidence is None
    run.answer.replace(Answer(text="Ask the librarian."))
    run.phase = "failed"
    assert result_of(run).confidence is None


@pytest.mark.parametrize("gap", ["none", "of the plan", "of a review"])
def test_an_answer_that_lists_what_is_missing_is_partial(gap: str) -> None:
    run = answered(0.95)
    run.phase = "done"
    if gap == "of the plan":
        run.open_points.set_of_plan(["the weight of the basket"])
    elif gap == "of a review":
        run.open_points.set_gap("a", "a review still finds: no unit")
    assert (result_of(run).status == "partial") == bool(run.answer.gaps) == (gap != "none")


# --- What is shown --------------------------------------------------------------------------------


def test_a_run_that_was_reset_has_its_whole_deadline_again() -> None:
    clock = Clock()
    run = RunState(RunRequest.model_validate({"goal": "g", "deadline": "PT60S"}), clock, START)
    clock.tick(50)
    run.restart()
    assert (run.time_and_budget.deadline_at - clock.at).total_seconds() == 60
    assert run.decisions.in_advance, "a decision may come back before its wait"


def test_a_run_has_an_owner_is_paused_until_its_end_and_keeps_to_the_operators_ceilings() -> None:
    run = state(metadata={"owner": "Ann\n"})
    assert (run.owner, run.flags.paused, run.waits.breaker("digger").role) == ("Ann", False, "digger")
    run.steering.pause(at_once=False)
    assert run.flags.paused
    run.finished_at = START
    assert not run.flags.paused
    run.take_setup(None, "lab")
    assert run.request.budget.tokens == 1_000_000
    run.take_setup(Ceilings(tokens=5), "lab")
    assert run.request.budget.tokens == run.time_and_budget.budget.tokens == 5


def test_words_of_a_team_about_the_goal_are_left_out_where_the_callers_plan_can_not_run() -> None:
    own = {"subtasks": [{"id": "t1", "role": "nobody", "description": "Dig the garden"}]}
    problem = Problem(type=ErrorKind.INVALID_PLAN, message="'nobody' is not a role")
    for candidate, advice in ((own, ""), (None, "Say in the goal what is wanted.")):
        run = state(plan=candidate)
        run.take_setup(None, "lab", advice="Say in the goal what is wanted.")
        run.fail(problem)
        assert run.advice == advice


def test_a_status_says_what_was_used_on_all_levels_of_which_revision() -> None:
    run = state(max_reviews=0)
    assert (status_of(run).revision, status_of(run).review, run.planned) == (0, "off", 0)
    run.adopt(Plan(direct_answer="Yes."))
    assert result_of(run).plan_revisions == 1
    run = state(plan(subtask("a"), subtask("b")), max_reviews=2, goal="x" * 500)
    run.nested.begin("r/a/1", "a", NestedGrant(slots=1, subtasks=2))
    run.nested.report("r/a/1", 0, Usage(model_calls=2), waits_for_people=False)
    status = status_of(run)
    assert (status.revision, status.review, status.usage.model_calls) == (1, "up to 2 rounds", 2)
    assert len(status.goal.encode()) == 400
    run.adopt(plan(subtask("a"), subtask("b"), subtask("c")))
    assert run.planned == 2, "by the first plan"
    assert [run.next_number(series) for series in ("judge", "judge", "synthesis")] == [1, 2, 1]


def test_a_result_has_the_artifacts_and_the_time_without_that_of_people() -> None:
    clock, one, table = Clock(), ArtifactRef(name="chart", ref="r1"), ArtifactRef(name="table", ref="r2")
    run = RunState(RunRequest(goal="g"), clock, START)
    run.adopt(plan(subtask("a"), subtask("b"), subtask("c")))
    for subtask_id in ("a", "b"):
        run.board.start(subtask_id, "hand")
    clock.tick(2)
    run.board.complete("a", FINDING.model_copy(update={"artifacts": [one]}))
    run.time_and_budget.hold("q")
    clock.tick(1.23456)
    run.time_and_budget.hold("q", wanted=False)
    run.answer.replace_tables([table])
    run.answer.replace(Answer(text="Yes.", json_ref="r3"))
    result = result_of(run)
    assert (result.artifacts, result.truncated, result_of(state()).truncated) == ([table, one], True, False)
    assert [report.held_seconds for report in result.subtasks] == [0, 1.235, 0]
    assert result.timing.sequential_seconds == 4


def test_the_details_are_of_what_the_plan_names_and_have_the_answer_once_it_is_done() -> None:
    run = state(plan(subtask("t", for_each="rows:trees"), subtask("t.1")))
    run.answer.replace(Answer(text="Forty."))
    first = markdown(run)
    assert ("Forty." in first, "\n>" in first, "| t |" in first, "| t.1 |" in first) == (False, False, True, False)
    run.adopt(run.plan.model_copy(update={"revision": 2}))
    run.phase, run.error = "done", ERROR
    assert "\nForty." in markdown(run)
    assert markdown(run).splitlines()[-2:] == ["> plan revision 2", "> TurnLimit: no finding after 10 turns"]


def test_a_partial_finding_is_a_gap_with_what_limits_it_once() -> None:
    run = state(plan(subtask("a"), subtask("b"), subtask("c")))
    for subtask_id, words in (("a", ["no table has 2025"]), ("b", []), ("c", ["stale"])):
        partial = FINDING.model_copy(update={"outcome": "partial", "limitations": words, "summary": "Half."})
        work(run.board, subtask_id, finding=partial)
    run.open_points.set_gap("c", "a review still finds: no unit")
    role = run.board["a"].role
    assert [(gap.subtask_id, gap.reason) for gap in run.answer.gaps] == [
        ("a", f"{role}: no table has 2025"),
        ("b", f"{role}: only a part: Half."),
        ("c", "a review still finds: no unit"),
    ]


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=8))
def test_a_chain_is_all_critical_and_a_fan_is_its_longest(seconds: list[float]) -> None:
    chain = [report(f"t{n}", s, *([f"t{n - 1}"] if n else [])) for n, s in enumerate(seconds)]
    fan = [report(f"t{n}", s) for n, s in enumerate(seconds)]
    as_chain, as_fan = (timing(list(reversed(r)), 1.0, 0, START) for r in (chain, fan))
    assert as_chain.critical_path_seconds == as_chain.sequential_seconds
    assert as_fan.critical_path_seconds == pytest.approx(max(seconds), abs=0.001)
    assert as_fan.sequential_seconds == as_chain.sequential_seconds


def test_the_longest_chain_is_that_of_the_last_to_come_without_what_never_began() -> None:
    reports = [report("a", 10), report("b", 20), report("c", 5, "a", "b"), report("d", None, "c")]
    assert longest_chain(reports, START) == (timedelta(seconds=25), ["b", "c"])


def test_times_leave_out_what_people_were_awaited_for() -> None:
    asked = report("t1", 100).model_copy(update={"held_seconds": 90.0})
    times = timing([asked, report("t2", 10)], 104.0004, 4.0, START, 90.0004)
    assert times == Timing(
        wall_seconds=104, held_seconds=90, sequential_seconds=24, critical_path_seconds=14, speedup=1.71
    )


def test_what_still_runs_counts_until_now_and_what_never_started_takes_no_time() -> None:
    running = report("t1", 0).model_copy(update={"state": "running", "finished_at": None})
    times = timing([running, report("t2", None, "t1")], 8.0, 3.0, START + timedelta(seconds=5))
    assert (times.sequential_seconds, times.critical_path_seconds, times.speedup) == (8.0, 8.0, 1.0)
    assert timing([running], 8.0, 0.0, START, 8.0).speedup == 0, "all of it was a wait for people"


# --- the cost of an event ----------------------------------------------------------------------------


def calls_of_events(subtasks: int) -> int:
    """Returns the function calls of 20 events in a run with 200 subtasks under way, and its other ones waiting.

    An event ends a subtask with a finding, and begins the next one the way a dispatch does.
    """
    run, calls = state(plan(*[subtask(f"t{i}") for i in range(subtasks)]), budget={"tokens": 10**9}), 0
    board, budget, used = run.board, run.time_and_budget, Usage(model_calls=1, input_tokens=10)

    def end(subtask_id: str) -> None:
        budget.ledger.settle(f"{subtask_id}.0", used)
        board.book(subtask_id, 1, used)
        board.complete(subtask_id, FINDING)
        assert run.first_finding.exists

    def begin_next() -> None:
        assert board.skip_blocked() == []
        subtask_id = next(board.ready())
        assert board.in_flight().get("hand", 0) == board.counts().running
        board.start(subtask_id, "hand")
        run.trace.note("subtask_started", subtask_id)
        assert budget.ledger.grant(f"{subtask_id}.0", budget.shares(board.agent_count(limits.MAX_PARALLEL))) is not None
        assert not run.flags.waiting_provider

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for _ in range(min(subtasks // 2, limits.MAX_PARALLEL)):
        begin_next()
    for _ in range(20):
        running = next(report.id for report in board.reports() if report.state == "running")
        sys.setprofile(count)
        try:
            end(running)
            begin_next()
        finally:
            sys.setprofile(None)
    return calls


def test_an_event_costs_the_same_in_a_plan_of_any_size() -> None:
    small, large = calls_of_events(500), calls_of_events(limits.MAX_SUBTASKS)
    assert large < 1.05 * small
