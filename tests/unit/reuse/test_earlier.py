"""Plans that build on earlier runs, plans that are carried out once more, and what changed since."""

from typing import Any

import pytest

from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.request import parse_request
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.reuse.changes import (
    names_of,
    repeats,
    row_changes,
    text_changes,
)
from temporal_supervisor.supervision.reuse.earlier import (
    EarlierFinding,
    EarlierWork,
    plan_again,
    plan_of_failed,
    with_earlier,
)

WORKS = [
    EarlierWork(
        run_id="run/one",
        place="r1",
        findings=[
            EarlierFinding(id="t2", role="finder", description="Weigh the pears"),
            EarlierFinding(id="t3.1", role="gone", description="Weigh the elm"),
            EarlierFinding(id="t3.2", role="finder", description="Weigh the ash"),
        ],
    ),
    EarlierWork(run_id="two", place="r2", findings=[EarlierFinding(id="t2", role="finder")]),
]


def subtask(subtask_id: str, *before: str, **more: Any) -> Subtask:
    return Subtask(id=subtask_id, description=f"Do {subtask_id}", depends_on=list(before), **more)


def done(subtask_id: str, state: str = "completed", **more: Any) -> SubtaskReport:
    finding = Finding(summary="found", text_ref=f"run/outputs/{subtask_id}")
    return SubtaskReport.model_validate({"id": subtask_id, "state": state, "finding": finding, **more})


def test_findings_of_earlier_runs_that_a_plan_names_come_first_as_subtasks() -> None:
    plan = Plan(subtasks=[subtask("t1", "r1/t2", "run/one/t2", "two/t2"), subtask("t2", "t1", "r1/t3")])
    made, problems = with_earlier(plan, WORKS, ["finder"], "finder")
    assert problems == []
    taken = {each.id: (each.taken_from, each.role) for each in made.subtasks if each.taken_from}
    assert taken == {
        "earlier-t2": ("run/one/t2", "finder"),
        "earlier2-t2": ("two/t2", "finder"),
        "earlier-t3-1": ("run/one/t3.1", "finder"),
        "earlier-t3-2": ("run/one/t3.2", "finder"),
    }
    by_id = {each.id: each.depends_on for each in made.subtasks}
    assert by_id["t1"] == ["earlier-t2", "earlier2-t2"]
    assert by_id["t2"] == ["t1", "earlier-t3-1", "earlier-t3-2"]


def test_a_name_that_no_earlier_run_has_is_a_problem_with_those_that_there_are() -> None:
    _, problems = with_earlier(Plan(subtasks=[subtask("t1", "r1/t9")]), WORKS, [], "finder")
    assert len(problems) == 1
    assert "r1/t2" in problems[0]
    assert with_earlier(Plan(subtasks=[subtask("t1", "t9")]), WORKS, [], "finder")[1] == []


def test_a_plan_once_more_is_as_it_was_named_without_what_was_replaced() -> None:
    template = subtask("t3", "t1", for_each="items:t1")
    items = [subtask(f"t3.{n}", replaces=["t3"], item=f"tree {n}") for n in (1, 2)]
    plan = Plan(
        revision=3,
        subtasks=[
            subtask("t1"),
            subtask("t2"),
            template,
            subtask("t4", "t3.1", "t3.2"),
            subtask("t5", replaces=["t2"]),
            subtask("earlier-t9", taken_from="first/t9"),
            *items,
        ],
    )
    again = plan_again(plan, "run")
    assert [each.id for each in again.subtasks] == ["t1", "t3", "t4", "t5", "earlier-t9"]
    assert again.subtask("t4").depends_on == ["t3"]
    assert again.subtask("earlier-t9").taken_from == "run/earlier-t9"
    assert (again.revision, again.subtask("t5").replaces) == (1, [])


def test_of_a_plan_with_failures_all_is_taken_but_what_failed_and_what_rests_on_that() -> None:
    plan = Plan(
        subtasks=[
            subtask("t4", "t2", "t3"),
            subtask("t1"),
            subtask("t2", "t1"),
            subtask("t3"),
            subtask("t5", "t2"),
            subtask("t6", for_each="files:*"),
            subtask("t7", "t6"),
        ]
    )
    template = SubtaskReport(id="t6", state="completed", counts=Counts(total=3, completed=2, failed=1))
    reports = [*map(done, ("t1", "t2", "t4", "t5", "t7")), done("t3", "failed"), template]
    again = plan_of_failed(plan, reports, "run")
    taken = {each.id for each in again.subtasks if each.taken_from}
    assert taken == {"t1", "t2", "t5", "t6"}
    assert again.subtask("t6").taken_from == "run/t6"
    assert [each.id for each in again.subtasks] == [each.id for each in plan.subtasks]


def test_what_changed_since_is_new_gone_or_side_by_side() -> None:
    before = {"t1": "Sales were 10.\nCosts were 4.", "ash.md": "An ash.", "oak.md": "An oak."}
    after = {"t1": "Sales were 12.\nCosts were 4.", "oak.md": "An oak.", "fir.md": "A fir."}
    found = text_changes(before, after)
    assert [(each.kind, each.name, each.before, each.after) for each in found] == [
        ("new", "fir.md", "", "A fir."),
        ("gone", "ash.md", "An ash.", ""),
        ("changed", "t1", "Sales were 10.", "Sales were 12."),
    ]
    old = [{"rent": "900", "city": "Lyon", "item": "t1.1", "source": "a.pdf"}]
    new = [
        {"rent": "950", "city": "Lyon", "item": "t1.2", "source": "a.pdf"},
        {"rent": "700", "city": "Nice", "item": "t1.1", "source": "b.pdf"},
    ]
    rows = row_changes("t1.csv", old, new)
    assert [(each.kind, each.name, each.before, each.after) for each in rows] == [
        ("new", "t1.csv: b.pdf", "", "rent: 700; city: Nice"),
        ("changed", "t1.csv: a.pdf", "rent: 900", "rent: 950"),
    ]


def test_a_further_question_repeats_no_run() -> None:
    first = RunResult(subtasks=[done("t1"), done("t2"), done("t2.1", description="ash.md: Read it")])
    assert repeats(first, RunResult(subtasks=[done("t1"), done("t2")]))
    assert not repeats(first, RunResult(subtasks=[done("earlier-t1"), done("t1")]))
    assert names_of(first)["t2.1"] == "ash.md: Read it"


def test_a_request_names_at_most_ten_runs_each_once() -> None:
    runs = [f"run-{number}" for number in range(11)]
    assert parse_request({"goal": "Weigh it", "reuse_from": [*runs[:10], runs[0]][1:]}).reuse_from
    assert parse_request({"goal": "Weigh it", "reuse_from": ["a", "b", "a"]}).reuse_from == ["a", "b"]
    with pytest.raises(SupervisionError, match="reuse_from"):
        parse_request({"goal": "Weigh it", "reuse_from": runs})
