"""`for_each`: a subtask for each file, row, line or item, in a revision that no model is asked for."""

import asyncio
import functools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.contract.plan import Plan
from tests.scripted_model import Reply, as_json, hang, text, tools, when
from tests.serving import store_of
from tests.waiting import until
from tests.workflow.plan.test_approval import decide, proposed
from tests.workflow.runs import Handle, Lab, closed, details, events, status_of
from tests.workflow.scripts import GIVES_UP, item, plans, subtasks, with_replies
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew", "max_turns": 1}

pytestmark = pytest.mark.usefixtures("short_rest")

EACH = item("t2", for_each="items:t1", depends_on=["t1"])


def names(*items: Any) -> Reply:
    """The finding of a subtask that names items."""
    return tools(("finish", {"finding": "finding of t1", "outcome": "done", "summary": "some", "items": list(items)}))


def naming(count: int, *failing: str) -> dict[str, Any]:
    """The turns of a run in which t1 names so many trees, and some subtasks fail."""
    trees = [f"tree {number}" for number in range(1, count + 1)]
    return {"t1": lambda step: names(*trees), **{subtask_id: lambda step: GIVES_UP for subtask_id in failing}}


@pytest.fixture
async def files_ref(client: Client, settings: Settings, tmp_path: Path) -> str:
    """A stored folder: two leases, a list, a table."""
    paths = {"lease-b.pdf.md": "About b.", "lease-a.pdf.md": "About a.", "notes.txt": "one\n\n## p. 2\nthree\n"}
    paths |= {"orders.csv": "city,amount\nParis,3\nLyon,4\n", "sums.xlsx": "no spreadsheet"}
    for name, content in paths.items():
        (tmp_path / name).write_text(content)
    store = await store_of(client, settings.artifacts_url)
    return await put_files(store, [DataFile(name, tmp_path / name) for name in sorted(paths)])


def folder(ref: str) -> dict[str, Any]:
    return {"attachments": [{"name": "data", "ref": ref, "media_type": MANIFEST_TYPE}]}


async def test_named_items_take_the_place_of_their_template_and_those_that_fail_are_one_gap(lab: Lab) -> None:
    """Nor are they a reason to replan; and what else the template waits for may fail."""
    each = item("t2", for_each="items:t1", depends_on=["t1", "t0"])
    first = subtasks(item("t1"), each, item("t3", depends_on=["t2"]), item("t0", importance="optional"))
    lab.play(plans(first, turns=naming(3, "t2.1", "t0")))
    handle = await lab.start(max_replans=2, max_reviews=1)
    result = await handle.result()
    ids = ["t2.1", "t2.2", "t2.3"]
    assert (result.status, result.plan_revisions) == ("partial", 2)
    assert {gap.subtask_id: gap.reason for gap in result.gaps}["t2"] == "1 of 3 items: t2.1"
    assert "1 of 3 items: t2.1" in lab.prompt("t3/1/turn.1")
    assert [report.id for report in result.subtasks] == ["t1", "t2", "t3", "t0", *ids]
    template = result.subtasks[1]
    assert (template.state, template.attempts) == ("completed", 0)
    assert template.counts
    assert (template.counts.completed, template.counts.total) == (2, 3)
    plan: Plan = await handle.query(SupervisorWorkflow.plan)
    assert [plan.subtask(subtask_id).replaces for subtask_id in ids] == [["t2"]] * 3
    assert plan.subtask("t3").depends_on == ids
    assert [step for step in lab.steps if step.startswith("plan")] == ["plan.1.1"]
    brief = lab.prompt("t2.2/1/turn.1")
    assert "<item>\ntree 2\n</item>" in brief
    assert "part t2 of garden 1" in brief
    assert "finding of t1" not in brief
    assert all(f"finding of {subtask_id}" in lab.prompt("t3/1/turn.1") for subtask_id in ids[1:])
    assert "items_planned" in await events(handle)
    status = await status_of(handle)
    assert (status.counts.total, status.counts.completed) == (6, 4)
    assert "2/3" in await details(handle)
    assert "| t2.1" not in await details(handle)


ITEMS = {
    "files:lease-*": ["lease-a.pdf.md", "lease-b.pdf.md"],
    "rows:orders": ['{"city": "Paris", "amount": "3"}', '{"city": "Lyon", "amount": "4"}'],
    "lines:notes.txt": ["one", "## p. 2", "three"],
}


async def test_files_rows_and_lines_of_the_data_are_items_of_a_callers_plan(lab: Lab, files_ref: str) -> None:
    own = {"subtasks": [item(f"t{number}", for_each=source) for number, source in enumerate(ITEMS)]}
    lab.play(plans(as_json({})))
    result = await lab.run(plan=own, **folder(files_ref))
    assert result.status == "completed"
    assert "plan.1.1" not in lab.steps, "no planner is asked"
    found = {report.id: report.description for report in result.subtasks if "." in report.id}
    for number, items in enumerate(ITEMS.values()):
        for place, words in enumerate(items, 1):
            assert f"<item>\n{words}\n</item>" in lab.prompt(f"t{number}.{place}/1/turn.1")
            assert found.pop(f"t{number}.{place}").startswith(words[:20])
    assert found == {}


@pytest.mark.parametrize(
    ("pattern", "steps", "gap"),
    [
        (
            "[nos]*",
            2,
            "1 of 3 items; 1 of them were left out, because 1 of 3 files can't be read: sums.xlsx (it is no ",
        ),
        ("*.xlsx", 0, "failed: CannotDo: 1 of 1 files can't be read: sums.xlsx (it is no spreadsheet that can be "),
    ],
)
async def test_a_file_that_cannot_be_read_is_a_gap_with_the_reason_and_asks_no_model(
    lab: Lab, files_ref: str, pattern: str, steps: int, gap: str
) -> None:
    lab.play(plans(as_json({})))
    plan = {"subtasks": [item("t0"), item("t1", for_each=f"files:{pattern}")]}
    result = await lab.run(plan=plan, max_replans=0, **folder(files_ref))
    assert [each.reason.startswith(gap) for each in result.gaps] == [True], result.gaps
    assert len([step for step in lab.steps if step.startswith("t1")]) == steps


async def test_a_template_without_items_or_success_is_replanned_as_one(lab: Lab) -> None:
    first = subtasks(item("t1"), EACH, item("t3", depends_on=["t2"]))
    second = subtasks(item("t5", "reader", replaces=["t2"]))
    lab.play(plans(first, second, turns=naming(2, "t2.1", "t2.2")))
    result = await lab.run(max_replans=1)
    assert (result.status, result.gaps) == ("completed", [])
    assert {report.id: report.depends_on for report in result.subtasks}["t3"] == ["t5"]
    told = lab.prompt("plan.3.1")
    assert "0 of 2 items completed" in told
    assert "t2.1" not in told


async def test_a_producer_that_never_names_items_fails_and_its_finding_stays(lab: Lab) -> None:
    lab.play(plans(subtasks(item("t1"), EACH), turns={"t1": lambda step: text("elm and oak\n\nConfidence: 0.8")}))
    result = await lab.run(max_turns=3, max_replans=0)
    reasons = {gap.subtask_id: gap.reason for gap in result.gaps}
    assert reasons["t1"].startswith("failed: CannotDo: its finding names no items: the field items of finish is miss")
    assert (result.subtasks[0].state, result.subtasks[1].state) == ("failed", "skipped")
    assert result.subtasks[0].finding
    assert Counter(lab.steps)["t1/1/turn.2"] == 1
    assert "t1/1/turn.3" not in lab.steps


async def held(handle: Handle) -> bool:
    """True if a subtask was put back to wait for its next attempt."""
    return "subtask_held" in await events(handle)


async def test_a_subtask_that_waits_for_its_next_attempt_keeps_what_it_has_when_the_run_is_stopped(lab: Lab) -> None:
    better = asyncio.Event()
    turns = {"t1": lambda step: text("elm and oak\n\nConfidence: 0.8"), "t3": lambda step: hang()}
    usual = plans(subtasks(item("t1"), EACH, item("t3")), turns=turns)
    lab.play(with_replies(usual, refine=lambda step: when(better, as_json({"description": "Name the trees"}))))
    handle = await lab.start(max_turns=3, max_parallel=1)
    await until(lab.sent("t3/1/turn.1"))
    better.set()
    await until(functools.partial(held, handle))
    await handle.cancel()
    await until(functools.partial(closed, handle))
    (producer, *_) = (await handle.query(SupervisorWorkflow.result)).subtasks
    assert (producer.state, producer.finding and producer.finding.summary) == ("cancelled", "elm and oak")


async def test_items_that_the_budget_has_no_room_for_are_left_out(lab: Lab) -> None:
    lab.play(plans(subtasks(item("t1"), {**EACH, "estimated_tokens": 20_000}), turns=naming(12)))
    result = await lab.run(budget={"tokens": 200_000})
    (gap,) = result.gaps
    counts = result.subtasks[1].counts
    assert counts is not None
    assert 5 <= counts.completed < counts.total == 12
    left = 12 - counts.completed
    assert gap.reason == f"{left} of 12 items; {left} of them were left out, because the budget has no room for them"
    assert len(await lab.started_children()) == 1 + counts.completed


async def test_a_step_after_approved_items_is_estimated_with_them(lab: Lab) -> None:
    first, each, after = item("t1"), EACH, item("t3", depends_on=["t2"])
    steps = [subtasks(first), subtasks(each), subtasks(after), as_json({"finished": True, "subtasks": []})]
    handle = await proposed(lab, plans(*steps, turns=naming(2)), strategy="step")
    await decide(handle, 1, "approve")
    result = await handle.result()
    assert (result.status, [report.id for report in result.subtasks]) == (
        "completed",
        ["t1", "t2", "t3", "t2.1", "t2.2"],
    )
