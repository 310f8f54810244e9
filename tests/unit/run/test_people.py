"""What people decide and say in a run, what it waits for, and the Markdown for the Web UI that shows it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.finding import Finding
from supervision.contract.progress import Counts
from supervision.contract.request import RunRequest
from supervision.contract.result import Problem, SubtaskReport
from supervision.contract.status import Wait
from supervision.contract.updates import DecidePlan, DecideToolCall, Reply, RetrySubtask, SkipSubtask, Steer
from supervision.contract.usage import Usage
from supervision.results.answer import Answer
from supervision.run.board import Board
from supervision.run.decisions import ALL, Decision, Decisions, Instructions, Steering, decision_in
from supervision.run.run_state import RunState
from supervision.run.waits import Waits, breaker_note
from supervision.run.web_details import markdown
from tests.unit.shapes import ERROR, FINDING, START, Clock, any_text, plan, subtask

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
    assert decisions.take(reply(by="ann")) == f"{QUESTION.id}: reply"
    assert "the first decision stands" in decisions.take(reply("no"))
    taken = decisions.on(QUESTION)
    assert taken is not None
    assert taken.text == "yes"
    decisions.check(reply(by="bob"), ["question"], [])  # the same once more, whoever says it
    with pytest.raises(ValueError, match="decided already: reply by ann"):
        decisions.check(reply("no"), ["question"], WAITS)


def test_a_decision_holds_for_the_arguments_that_were_seen() -> None:
    decisions = Decisions()
    decisions.check(approval(), ["tool"], WAITS)
    decisions.take(approval(OTHER))
    assert decisions.on(CALL) is None
    decisions.take(approval())
    assert decisions.on(CALL) == approval()


@pytest.mark.parametrize(
    ("decision", "kinds", "waits", "why"),
    [
        (reply(id="t9/1:1.0"), ["question"], WAITS, "'t9/1:1.0' waits for a person; what does: t1/1:1.0, t2/1:1.0$"),
        (reply(id="x"), ["question"], [OUTAGE], "nothing does now"),
        (reply(id="x"), ["question"], [QUESTION] * 8, r"what does: (t1/1:1.0, ){5}t1/1:1.0$"),
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


def test_a_plan_is_decided_as_its_wait_offers() -> None:
    wait = Wait(id="plan.2", kind="plan", workflow_id="r", since="now", choices=["approve", "reject"])
    Decisions().check(Decision(id="plan.2", choice="reject"), ["plan"], [wait])
    with pytest.raises(ValueError, match="possible are approve, reject$"):
        Decisions().check(Decision(id="plan.2", choice="change"), ["plan"], [wait])


def test_a_decision_has_what_its_update_says() -> None:
    edited = plan(subtask("t1"))
    assert [
        decision_in(DecidePlan(revision=2, decision="edit", plan=edited, comment="less", by="ann")),
        decision_in(Reply(id="t1/1:1.0", text="yes", by="ann")),
        decision_in(DecideToolCall(id="t2/1:1.0", decision="deny", arguments_sha256=HASH, comment="no", by="ann")),
        decision_in(DecideToolCall(id="t2/1:1.0", decision="deny", arguments_sha256=HASH)),
    ] == [
        Decision(id="plan.2", choice="edit", plan=edited, text="less", by="ann"),
        Decision(id="t1/1:1.0", choice="reply", text="yes", by="ann"),
        Decision(id="t2/1:1.0", choice="deny", arguments_sha256=HASH, text="no", by="ann"),
        Decision(id="t2/1:1.0", choice="deny", arguments_sha256=HASH),
    ]


def test_waits_are_asked_for_by_their_ids() -> None:
    nested = QUESTION.below("t7").below("t8")
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
        steering.say("look")
    assert len(steering.instructions("t1").words) == 20
    with pytest.raises(ValueError, match="steered 20 times"):
        steering.check_word(Steer(text="look", to=ALL))


def test_each_pause_and_resume_is_told() -> None:
    steering = at_work()[1]
    assert (steering.paused, steering.now, steering.instructions("t1").number) == (False, False, 0)
    steering.resume()
    assert (steering.instructions("t1").number, steering.instructions("t1").resumes) == (1, 1)
    steering.pause(now=True)
    assert (steering.now, steering.instructions("t1").number) == (True, 2)
    steering.resume()
    assert (steering.paused, steering.now, steering.instructions("t1").number) == (False, False, 3)


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
            above.say(f"word {number}", to)
        elif what == "resume":
            above.resume()
        else:
            above.pause(now=what == "now")
        told.append(above.instructions("t1"))
    for place in [*order, len(said)]:
        below.take(told[min(place, len(said))])
    words = [f"word {number}" for number, (what, to) in enumerate(said) if what == "say" and to != "t2"]
    assert below.words_to_all == below.instructions("any").words == words
    assert (below.paused, below.now) == (above.paused, above.now)
    assert [one.number for one in told] == sorted(one.number for one in told)


def test_a_nested_run_is_resumed_as_often_as_the_run_above() -> None:
    below = Steering(board())
    told = [Instructions(number=1, resumes=1), Instructions(number=2, resumes=1, paused=True)]
    told += [told[1], Instructions(number=4, resumes=3), told[0]]
    assert [below.take(new) for new in told] == [True, False, False, True, False]
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


def waits(*below: Wait) -> Waits:
    return Waits(Clock(), lambda: [*below])


def fail(some: Waits, role: str, times: int) -> None:
    for attempt in range(times):
        some.breaker(role).admit(attempt)
        some.breaker(role).settle(attempt, False)


def test_a_wait_is_shown_until_its_end_with_its_latest_time() -> None:
    some, same = waits(), TIMED.model_copy()
    some.show(TIMED, START)
    some.show(same, SOON)
    some.show(TIMED, SOON + timedelta(minutes=1))
    assert [wait.expires_at for wait in some.current] == ["2026-01-01T00:02:00+00:00", LATER]
    some.end(TIMED)
    some.end(TIMED)
    assert some.current == [TIMED]
    some.end(same)
    assert some.current == []


def test_one_wait_for_a_provider_or_a_person_among_others_is_enough() -> None:
    asked = FOR_A_PERSON.model_copy(update={"kind": "question"})
    shown = [(some.for_provider, some.for_person) for some in (waits(TIMED, asked), waits(TIMED), waits(asked))]
    assert shown == [(True, True), (True, False), (False, True)]


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
    run.steering.pause(now=False)
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
    run.phase, run.model_notice = "done", "an extract"
    run.answer = Answer(text="# Yes\n\n![x](https://a.example/?q) and [t1] <b>\n")
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
