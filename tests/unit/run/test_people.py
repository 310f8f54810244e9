"""What people decide and say in a run, what it waits for, and the Markdown for the Web UI that shows it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
from temporal_supervisor.supervision.contract.status import Wait
from temporal_supervisor.supervision.contract.updates import (
    Decide,
    DecidePlan,
    DecideToolCall,
    Reply,
    RetrySubtask,
    SkipSubtask,
    Steer,
    read_update,
)
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.answer import Answer
from temporal_supervisor.supervision.run.attempt_rules import supervisor_of
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.decisions import ALL, Decision, Decisions, Instructions, Steering, decision_in
from temporal_supervisor.supervision.run.run_state import RunState
from temporal_supervisor.supervision.run.waits import Waits, breaker_note
from temporal_supervisor.supervision.run.web_details import markdown
from tests.unit.shapes import ERROR, FINDING, START, Clock, any_text, plan, subtask

HASH, OTHER = "a" * 64, "b" * 64
QUESTION = Wait(id="t1/1:1.0", kind="question", workflow_id="r", subtask_id="t1", since="now").bound_to("head")
CALL = Wait(id="t2/1:1.0", kind="tool", workflow_id="r", subtask_id="t2", since="now", arguments_sha256=HASH).bound_to(
    "head"
)
OUTAGE = Wait(id="t3/1", kind="provider", workflow_id="r", subtask_id="t3", since="now").bound_to()
HELP = Wait(id="t4/3", kind="finding", workflow_id="r", subtask_id="t4", since="now", choices=["reply", "retry"])
WAITS = [QUESTION, CALL, OUTAGE]


def reply(text: str = "yes", **more: Any) -> Decision:
    said = {"id": QUESTION.id, "choice": "reply", "about": ("question", "finding"), "text": text}
    return Decision(**{**said, **more})


def approval(**more: Any) -> Decision:
    return Decision(**{"id": CALL.id, "choice": "approve", "about": ("tool",), **more})


def test_the_first_decision_stands() -> None:
    decisions = Decisions()
    told: list[str] = []
    decisions.on_taken = told.append
    assert decisions.decision_about(QUESTION) is None
    assert decisions.accept(reply(by="ann"), WAITS) == f"{QUESTION.id}: reply"
    assert "the first decision stands" in decisions.accept(reply("no"), WAITS)
    taken = decisions.decision_about(QUESTION)
    assert taken is not None
    assert taken.text == "yes"
    assert told == [QUESTION.sha256]
    for again in (reply(by="bob"), reply(by="bob", sha256=QUESTION.sha256)):
        decisions.check(again, [])  # the same once more, whoever says it
    with pytest.raises(ValueError, match="decided already: reply by ann"):
        decisions.check(reply("no"), WAITS)


def test_a_decision_holds_for_what_was_seen() -> None:
    decisions = Decisions()
    for seen in ({"sha256": CALL.sha256}, {"arguments_sha256": HASH}, {}):
        decisions.check(approval(**seen), WAITS)
    decisions.accept(approval(sha256=OTHER), [])
    assert decisions.decision_about(CALL) is None
    decisions.accept(approval(sha256=CALL.sha256), WAITS)
    assert decisions.decision_about(CALL) == approval(sha256=CALL.sha256)
    assert decisions.decision_about(CALL.bound_to("another head")) is None


def test_a_decision_without_a_hash_holds_for_what_waits_when_it_arrives() -> None:
    decisions = Decisions()
    decisions.accept(reply(), WAITS)
    assert decisions.decision_about(QUESTION) is not None
    assert decisions.decision_about(QUESTION.bound_to("another head")) is None


@pytest.mark.parametrize(
    ("decision", "waits", "why"),
    [
        (reply(id="t9/1:1.0"), WAITS, "'t9/1:1.0' waits for a person; what does: t1/1:1.0, t2/1:1.0$"),
        (reply(id="x"), [OUTAGE], "nothing does now"),
        (reply(id="x"), [QUESTION] * 8, r"what does: (t1/1:1.0, ){5}t1/1:1.0$"),
        (approval(id=QUESTION.id), WAITS, "of the kind 'question'"),
        (approval(arguments_sha256=OTHER), WAITS, f"their SHA-256 is {HASH}"),
        (approval(sha256=OTHER), WAITS, f"its SHA-256 is {CALL.sha256}"),
        (reply(sha256=CALL.sha256), WAITS, f"its SHA-256 is {QUESTION.sha256}"),
    ],
)
def test_what_cannot_be_decided_says_what_can(decision: Decision, waits: list[Wait], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Decisions().check(decision, waits)


def test_a_decision_about_content_may_come_back_before_its_wait_once_the_run_was_reset() -> None:
    decisions = Decisions()
    decisions.in_advance = True
    decisions.check(reply(sha256=QUESTION.sha256), [])
    with pytest.raises(ValueError, match="nothing with the id"):
        decisions.check(reply(), [])
    with pytest.raises(ValueError, match="something else than"):
        decisions.check(approval(sha256=OTHER), WAITS)


def test_a_decision_of_another_kind_keeps_nobody_from_deciding() -> None:
    decisions = Decisions()
    decisions.in_advance = True
    decisions.accept(reply(id=CALL.id, sha256=CALL.sha256), [])
    assert decisions.decision_about(CALL) is None
    decisions.check(approval(sha256=CALL.sha256), WAITS)


def test_a_plan_is_decided_as_its_wait_offers() -> None:
    wait = Wait(id="plan.2", kind="plan", workflow_id="r", since="now", choices=["approve", "reject"])
    Decisions().check(Decision(id="plan.2", choice="reject", about=("plan",)), [wait])
    with pytest.raises(ValueError, match="possible are approve, reject$"):
        Decisions().check(Decision(id="plan.2", choice="change", about=("plan",)), [wait])


def test_a_decision_has_what_its_update_says() -> None:
    edited = plan(subtask("t1"))
    assert [
        decision_in(DecidePlan(revision=2, decision="edit", plan=edited, comment="less", by="ann", sha256=HASH)),
        decision_in(DecidePlan(revision=2, decision="approve"), "t3/1/"),
        decision_in(Reply(id="t1/1:1.0", text="yes", by="ann")),
        decision_in(DecideToolCall(id="t2/1:1.0", decision="deny", arguments_sha256=HASH, comment="no", by="ann")),
        decision_in(DecideToolCall(id="t2/1:1.0", decision="deny", sha256=OTHER)),
    ] == [
        Decision(id="plan.2", choice="edit", about=("plan",), plan=edited, text="less", by="ann", sha256=HASH),
        Decision(id="t3/1/plan.2", choice="approve", about=("plan",)),
        reply(by="ann"),
        approval(choice="deny", arguments_sha256=HASH, text="no", by="ann"),
        approval(choice="deny", sha256=OTHER),
    ]


def test_a_list_of_decisions_has_each_as_its_own_update() -> None:
    listed = [
        {"revision": 2, "decision": "approve"},
        {"id": "plan.3", "decision": "reject", "sha256": HASH},
        {"id": "t1/1:1.0", "text": "yes"},
        {"id": "t2/1:1.0", "decision": "deny", "sha256": HASH},
    ]
    assert read_update(Decide, {"decisions": listed}).decisions == [
        DecidePlan(revision=2, decision="approve"),
        DecidePlan(revision=3, decision="reject", sha256=HASH),
        Reply(id="t1/1:1.0", text="yes"),
        DecideToolCall(id="t2/1:1.0", decision="deny", sha256=HASH),
    ]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"decisions": []}, "decisions"),
        ({}, "decisions"),
        ({"decisions": [{"id": "t1/1:1.0", "decision": "approve"}]}, "arguments_sha256 or sha256"),
        ({"decisions": [{"id": "t1/1:1.0", "text": "yes"}] * 101}, "100"),
        ({"decisions": ["yes"]}, "decisions"),
        ({"decisions": [{"id": "plan.x", "decision": "approve", "sha256": "0"}]}, "sha256"),
    ],
)
def test_what_is_no_list_of_decisions_is_refused(body: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_update(Decide, body)


@pytest.mark.parametrize(
    ("wait_id", "there"),
    [
        ("plan.2", "r"),
        ("t3/1", "r"),
        ("t3/1:4.0", "r"),
        ("t3/1.2:4.0", "r"),
        ("t3/1/plan.2", "r/t3/1"),
        ("t3/1/t2/1:4.0", "r/t3/1"),
        ("t3/1/t2/2/t9/1.3:4.0.0", "r/t3/1/t2/2"),
        ("", "r"),
        ("t3/t2/1:4.0", "r"),
    ],
)
def test_an_id_says_in_which_run_it_waits(wait_id: str, there: str) -> None:
    assert supervisor_of("r", wait_id) == there


def test_waits_are_asked_for_by_their_ids() -> None:
    waits = Waits(Clock())
    waits.add(CALL, None, '{"to": "all"}')
    waits.add(OUTAGE, START)
    waits.add(Wait(id="plan.2", kind="plan", workflow_id="r", since="now"), None)
    assert waits.of_subtasks() == {"t2"}
    assert waits.with_content(CALL.id).content == '{"to": "all"}'
    assert [wait.id for wait in waits.current] == [CALL.id, OUTAGE.id, "plan.2"]
    for unknown in ("t1", "t8/1/t7/1/t1/1:1.0"):
        with pytest.raises(ValueError, match=f"'{unknown}' waits"):
            waits.with_content(unknown)


def test_a_wait_of_a_nested_run_is_shown_above_under_the_path_of_its_subtask() -> None:
    nested = QUESTION.as_nested_in("t7").as_nested_in("t8")
    assert (nested.subtask_id, nested.id) == (f"t8/t7/{QUESTION.subtask_id}", QUESTION.id)


def test_only_a_subtask_that_failed_for_good_asks_for_help() -> None:
    waits = Waits(Clock())
    waits.add(QUESTION, None)
    waits.add(HELP, None)
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
    board.end("failed", "failed", ERROR)
    board.end("replaced", "failed", ERROR)
    board.skip_blocked()
    board["replaced"].replaced_by = "r1"
    return board, Steering(board)


@pytest.mark.parametrize(
    ("subtask_id", "why"),
    [
        ("waiting", "has not ended: steer it"),
        ("running", "has not ended: steer it"),
        ("replaced", "was replaced: retry 'r1'"),
        ("blocked", "lacks its dependencies: retry failed"),
        ("fail", "did you mean 'failed'"),
        ("running/t2", "'running/t2' is in a nested run: send this to its workflow"),
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
    with pytest.raises(ValueError, match="has not ended"):
        steering.check_retry(new, "executing", has_time=True)
    steering.retry(RetrySubtask(subtask_id="failed"))
    assert steering.retries["failed"] == ""
    board["waiting"].counts = Counts(total=3)
    with pytest.raises(ValueError, match=r"stands for items: name one, such as 'waiting.1'"):
        steering.check_retry(RetrySubtask(subtask_id="waiting"), "executing", has_time=True)


@pytest.mark.parametrize(("subtask_id", "possible"), [("waiting", True), ("running", True), ("done", False)])
def test_only_what_has_not_ended_is_steered_and_skipped(subtask_id: str, possible: bool) -> None:
    checks: list[Callable[[], None]] = [
        lambda: at_work()[1].check_word(Steer(text="look", to=subtask_id)),
        lambda: at_work()[1].check_open(subtask_id),
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
        steering.add_word("look")
    assert len(steering.instructions("t1").words) == 20
    with pytest.raises(ValueError, match="steered 20 times"):
        steering.check_word(Steer(text="look", to=ALL))


def test_each_pause_and_resume_is_told() -> None:
    steering = at_work()[1]
    assert (steering.paused, steering.at_once, steering.instructions("t1").number) == (False, False, 0)
    steering.resume()
    assert (steering.instructions("t1").number, steering.instructions("t1").resumes) == (1, 1)
    steering.pause(at_once=True)
    assert (steering.at_once, steering.instructions("t1").number) == (True, 2)
    steering.resume()
    assert (steering.paused, steering.at_once, steering.instructions("t1").number) == (False, False, 3)


# --- steering of nested runs -------------------------------------------------------------------------


says = st.one_of(
    st.builds(lambda to: ("say", to), st.sampled_from([ALL, "t1", "t2"])),
    st.sampled_from([("pause", ""), ("now", ""), ("resume", "")]),
)


def test_a_subtask_of_a_nested_run_is_asked_for_there() -> None:
    tasks, steering = at_work()
    tasks["running"].workflow_id = "run/running/1"
    with pytest.raises(ValueError, match="send this to 'run/running/1', as 't2'"):
        steering.check_open("running/t2")


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
            above.add_word(f"word {number}", to)
        elif what == "resume":
            above.resume()
        else:
            above.pause(at_once=what == "now")
        told.append(above.instructions("t1"))
    for place in [*order, len(said)]:
        below.follow(told[min(place, len(said))])
    words = [f"word {number}" for number, (what, to) in enumerate(said) if what == "say" and to != "t2"]
    assert below.words_to_all == below.instructions("any").words == words
    assert (below.paused, below.at_once) == (above.paused, above.at_once)
    assert [one.number for one in told] == sorted(one.number for one in told)


def test_a_nested_run_is_resumed_as_often_as_the_run_above() -> None:
    below = Steering(board())
    told = [Instructions(number=1, resumes=1), Instructions(number=2, resumes=1, paused=True)]
    told += [told[1], Instructions(number=4, resumes=3), told[0]]
    assert [below.follow(new) for new in told] == [True, False, False, True, False]
    assert (below.resumes, below.paused, below.instructions("t1").number) == (3, False, 3)


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
    tasks.end("t1", "failed", ERROR, FINDING)
    assert tasks.skip_blocked() == ["t2"]
    tasks.reopen("t1")
    assert {report.id: report.state for report in tasks.reports()} == dict.fromkeys(("t1", "t2", "t3"), "waiting")
    tasks.close(ERROR)
    assert (tasks["t1"].state, tasks["t1"].finding) == ("cancelled", FINDING)


# --- waits -------------------------------------------------------------------------------------------


LATER = "2026-01-01T00:01:00+00:00"
SOON = datetime.fromisoformat(LATER)
TIMED = Wait(
    id="t1/1",
    kind="provider",
    workflow_id="r",
    subtask_id="t1",
    prompt_preview="overloaded",
    since=START.isoformat(),
    expires_at=LATER,
    model="m",
)
FOR_A_PERSON = TIMED.model_copy(
    update={"id": "t2/1", "subtask_id": "t2", "kind": "resume", "prompt_preview": "no credit"}
)


def waits(*shown: Wait) -> Waits:
    some = Waits(Clock())
    for wait in shown:
        some.add(wait, datetime.fromisoformat(wait.expires_at) if wait.expires_at else None)
    return some


def fail(some: Waits, role: str, times: int) -> None:
    for attempt in range(times):
        some.breaker(role).admit(attempt)
        some.breaker(role).settle(attempt, False)


def test_a_wait_is_shown_until_its_end_with_its_latest_time() -> None:
    some, same = waits(), TIMED.model_copy()
    some.add(TIMED, START)
    some.add(same, SOON)
    some.add(TIMED, SOON + timedelta(minutes=1))
    assert [wait.expires_at for wait in some.current] == ["2026-01-01T00:02:00+00:00", LATER]
    some.remove(TIMED)
    some.remove(TIMED)
    assert some.current == [TIMED]
    some.remove(same)
    assert some.current == []


def test_one_wait_for_a_provider_or_a_person_among_others_is_enough() -> None:
    asked = FOR_A_PERSON.model_copy(update={"kind": "question"})
    shown = [(some.for_provider, some.for_people) for some in (waits(TIMED, asked), waits(TIMED), waits(asked))]
    assert shown == [(True, 1), (True, 0), (False, 1)]


def test_breakers_of_failing_roles_and_of_providers_have_cards_and_open_ones_and_people_notes() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    some.breaker("planter")
    fail(some, "finder", 2)
    fail(some, "digger", 3)
    closed, opened, provider = some.cards()
    assert closed == {"role": "finder", "state": "closed", "failures": 2, "retry_at": None}
    assert opened == {"role": "digger", "state": "open", "failures": 3, "retry_at": "2026-01-01T00:00:10+00:00"}
    assert provider == {"provider": "m", "state": "open", "waiting": "t1", "retry_at": LATER, "why": "overloaded"}
    assert some.notes() == [
        "role digger has an open breaker after 3 failed attempts in a row: next try at 2026-01-01T00:00:10+00:00",
        f"t1 waits for the provider of m: next try at {LATER}",
        "t2 waits for resume: no credit",
    ]
    assert breaker_note({**opened, "retry_at": None}).endswith("it is being tried")


REPORTS = [
    SubtaskReport(id="t1", role="analyst", description="Sum the sales", state="completed", attempts=2, turns=3),
    SubtaskReport(id="t2", role="writer", state="skipped", depends_on=["t1"], error=Problem(type="X", message="why")),
    SubtaskReport(id="t3", state="failed", counts=Counts(total=3), attempts=1, replaced_by="t4"),
]
awkward = any_text | st.text("a|\\\n`*")


def a_run(goal: str, *reports: SubtaskReport, error: str | None = None) -> RunState:
    run = RunState(RunRequest(goal="g"), Clock(), START)
    run.request = run.request.model_copy(update={"goal": goal})
    run.adopt(plan(*(subtask(each.id) for each in reports)))
    for each in reports:
        for name, value in each:
            setattr(run.board[each.id], name, value)
    run.error = None if error is None else Problem(type="Timeout", message=error)
    return run


def test_a_run_reads_at_a_glance() -> None:
    run = a_run("Which region?", *REPORTS, error="too late")
    run.time_and_budget.ledger.settle_call(0, Usage(model_calls=4, tool_calls=2, input_tokens=1500, usd=0.25))
    run.phase = "executing"
    run.steering.pause(at_once=False)
    assert markdown(run).splitlines() == [
        "**Which region?**",
        "",
        "Phase **executing** (paused) · 0 of 3 subtasks · 4 model calls, 2 tool calls"
        " · 1,500 input tokens, 0 output tokens · $0.2500",
        "",
        "| subtask | role | state | after | turns | what |",
        "|---|---|---|---|---|---|",
        "| t1 | analyst | ✔ completed (attempt 2) |  | 3 | Sum the sales |",
        "| t2 | writer | – skipped | t1 |  | why |",
        "| t3 |  | ✘ failed 0/3, replaced by t4 |  |  |  |",
        "",
        "> Timeout: too late",
    ]


def test_an_answer_comes_first_and_leads_nowhere() -> None:
    partial = Finding(outcome="partial", summary="Half.", text_ref="r")
    report = SubtaskReport(id="t1", state="completed", finding=partial)
    run = a_run("G", report)
    run.phase = "done"
    run.models.describe("an extract", extract=True)
    run.answer.replace(Answer(text="# Yes\n\n![x](https://a.example/?q) and [t1] <b>\n"))
    lines = markdown(run).split("\n")
    assert lines[:3] == ["> an extract", "", "**G**"]
    assert lines[4:7] == ["# Yes", "", r"!\[x\](https://a.example/?q) and \[t1\] \<b\>"]
    assert "| t1 |  | ◐ partial |" in lines[-1]


@pytest.mark.parametrize(("count", "last"), [(60, "| t59 |"), (61, "and 1 more |")])
def test_a_long_plan_is_shown_by_its_beginning(count: int, last: str) -> None:
    assert last in markdown(a_run("G", *(SubtaskReport(id=f"t{n}") for n in range(count)))).splitlines()[-1]


@given(awkward, awkward, awkward)
def test_no_text_breaks_the_table(goal: str, description: str, note: str) -> None:
    report = SubtaskReport(id="t1", role="analyst", description=description)
    lines = markdown(a_run(goal, report, error=note)).split("\n")
    assert len(lines) == 9
    row = lines[6]
    assert len(re.sub(r"\\.", "", row).split("|")) == 8
    "\n".join(lines).encode("utf-8")


def test_foreign_text_is_shown_as_it_is() -> None:
    text = "<img src=x> [here](http://evil) **done** `x` # all is well a | b ![x](y) &lt;b&gt; _x_"
    reports = [
        SubtaskReport(id="t1", role="analyst", description=text),
        SubtaskReport(id="t2", role="analyst", state="failed", error=Problem(type="X", message=text)),
    ]
    lines = markdown(a_run(text, *reports, error=text)).splitlines()
    for line in (lines[0], lines[6], lines[7], lines[9]):
        ours = line.removeprefix("**").removesuffix("**").removeprefix("> ").replace(" | ", "  ")
        assert not re.search(r"(?<!\\)[`*_\[\]<>!#~&]", ours), line
        assert text in re.sub(r"\\(.)", r"\1", line)
