"""Runs that build on earlier ones: what is the same is taken, what changed is done again, nothing else."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from activities.reuse.earlier_runs import EarlierRuns
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.reuse.earlier import plan_again, plan_of_failed
from tests.scripted_model import Reply, Step, answer, as_json, script, text, tools, when
from tests.unit.reuse.workflow_shapes import SHAPES, below
from tests.waiting import until
from tests.workflow.plan.test_approval import asked, decide
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Lab, events, found, is_in
from tests.workflow.scripts import IMPOSSIBLE, Turns, item, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "again", "strategy": "plan", "max_subtasks": 200, "max_parallel": 50}
PLAYED = ("montage", "epigenomics", "cybershake")


def another(lab: Lab) -> Lab:
    """The same for a run that comes after it, which answers alike unless a test says otherwise."""
    later = lab.named(f"run-{uuid4().hex[:12]}")
    later.play(script(as_json({})))
    return later


def own(*subtasks: dict[str, Any]) -> dict[str, Any]:
    return {"subtasks": list(subtasks)}


def agent_calls(lab: Lab) -> list[str]:
    """The subtasks of the calls of a run's worker agents, in the order of their names."""
    return sorted(step.partition("/")[0] for step in lab.steps if "/turn." in step)


def closing_calls(lab: Lab) -> list[str]:
    return [step for step in lab.steps if "/turn." not in step]


def shaped(name: str, other: str = "") -> list[dict[str, Any]]:
    """The steps of a published shape as subtasks; one has another description."""
    return [
        {
            "id": f"{name}-{step}",
            "description": f"Do {step} of {name}{' otherwise' if step == other else ''}",
            "role": "hand",
            "depends_on": [f"{name}-{each}" for each in before],
        }
        for step, before in SHAPES[name].items()
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
async def test_of_each_published_shape_one_changed_step_costs_what_rests_on_it(lab: Lab, name: str) -> None:
    """Its first, its middle and its last step, each in a run of its own; then the whole again, as it was."""
    lab.play(script(as_json({})))
    await lab.run(plan=own(*shaped(name)))
    steps = list(SHAPES[name])
    forks = {step: another(lab) for step in (steps[0], steps[len(steps) // 2], steps[-1])}
    runs = [fork.run(plan=own(*shaped(name, step)), reuse_from=[lab.run_id]) for step, fork in forks.items()]
    same = another(lab)
    await asyncio.gather(*runs, same.run(plan=own(*shaped(name)), reuse_from=[lab.run_id]))
    for step, fork in forks.items():
        assert agent_calls(fork) == sorted(f"{name}-{each}" for each in below(SHAPES[name], step)), step
        assert closing_calls(fork) == ["synthesis.1"]
    assert same.steps == ["synthesis.1"]


async def test_what_rests_on_a_changed_step_is_done_again_and_nothing_else(lab: Lab) -> None:
    """Three published shapes in one plan, in each the step in its middle changed; fork and rerun at once."""
    middle = {name: list(SHAPES[name])[len(SHAPES[name]) // 2] for name in PLAYED}

    def plan(*, other: bool) -> dict[str, Any]:
        return own(*(each for name in PLAYED for each in shaped(name, middle[name] if other else "")))

    lab.play(script(as_json({})))
    first = await lab.run(plan=plan(other=False))
    steps = sum(len(SHAPES[name]) for name in PLAYED)
    assert (first.status, len(agent_calls(lab))) == ("completed", steps)
    assert first.saved is None
    changed, same = another(lab), another(lab)
    forked, again = await asyncio.gather(
        changed.run(plan=plan(other=True), reuse_from=[lab.run_id]),
        same.run(plan=plan(other=False), reuse_from=[lab.run_id]),
    )
    rests_on_it = sorted(f"{name}-{step}" for name in PLAYED for step in below(SHAPES[name], middle[name]))
    assert agent_calls(changed) == rests_on_it
    assert closing_calls(changed) == ["synthesis.1"]
    assert forked.saved
    assert forked.saved.model_calls == steps - len(rests_on_it)
    assert same.steps == ["synthesis.1"], "an identical run asks no worker agent"
    assert (again.status, again.usage.model_calls, again.reuse_from) == ("completed", 1, [lab.run_id])
    handle = lab.client.get_workflow_handle_for(SupervisorWorkflow.run, same.run_id)
    assert (await events(handle)).count("subtask_reused") == steps


@pytest.mark.parametrize("count", [22, pytest.param(102, marks=pytest.mark.long)])
async def test_of_many_agents_the_two_that_failed_are_paid_again(lab: Lab, store: ArtifactStore, count: int) -> None:
    parts = own(*(item(f"t{n}", "hand") for n in range(1, count + 1)))
    failed = sorted(["t17", f"t{count - 2}"])
    failing = {subtask_id: (lambda step: IMPOSSIBLE) for subtask_id in failed}
    lab.play(script(as_json({}), failing))
    first = await lab.run(plan=parts)
    assert sorted(gap.subtask_id for gap in first.gaps) == failed
    earlier = await EarlierRuns(store, lab.client).load(lab.run_id)
    assert earlier
    later = another(lab)
    plan = plan_of_failed(earlier.plan, earlier.reports, lab.run_id).model_dump()
    result = await later.run(plan=plan, reuse_from=[lab.run_id])
    assert agent_calls(later) == failed
    assert closing_calls(later) == ["synthesis.1"]
    assert (result.status, result.gaps, result.usage.model_calls) == ("completed", [], 3)
    last = another(lab)
    again = plan_again(earlier.plan, later.run_id).model_dump()
    await last.run(plan=again, reuse_from=[later.run_id, lab.run_id])
    assert last.steps == ["synthesis.1"]


async def test_what_changes_or_has_effects_is_never_taken_but_by_name(
    lab: Lab, store: ArtifactStore, tmp_path: Path
) -> None:
    """A second run tells the price again and writes again; one that repeats only what failed does neither."""
    log = tmp_path / "log"
    plan = own(item("t1", "teller"), item("t2", "scribe"), item("t3", "hand"), item("t4", "hand"))

    def turn(step: Step) -> Reply:
        if step.number > 1:
            words = "The price is 4711 euros." if step.subtask_id == "t1" else "The line stands in the log of pears."
            return text(f"{words}\n\nConfidence: 0.8\nLimitations: none")
        return tools(("price", {})) if step.subtask_id == "t1" else tools(("append", {"path": str(log)}))

    turns: Turns = {"t1": turn, "t2": turn}
    lab.play(script(as_json({}), {**turns, "t4": lambda step: IMPOSSIBLE}))
    await lab.run(plan=plan)
    later = another(lab)
    later.play(script(as_json({}), turns))
    await later.run(plan=plan, reuse_from=[lab.run_id])
    assert set(agent_calls(later)) == {"t1", "t2", "t4"}
    assert log.read_text() == "written\n" * 2
    earlier = await EarlierRuns(store, lab.client).load(lab.run_id)
    assert earlier
    last = another(lab)
    failed = plan_of_failed(earlier.plan, earlier.reports, lab.run_id).model_dump()
    await last.run(plan=failed, reuse_from=[lab.run_id])
    assert agent_calls(last) == ["t4"]
    assert log.read_text() == "written\n" * 2


async def test_only_new_and_changed_files_are_read_again(
    lab: Lab, client: Client, store: ArtifactStore, tmp_path: Path
) -> None:
    """And one that is gone leaves nothing behind; the second question has the files of the run before it."""

    async def folder(**files: str) -> dict[str, Any]:
        paths = [tmp_path / f"{name}.md" for name in files]
        for path in paths:
            path.write_text(files[path.stem])
        ref = await put_files(store, [DataFile(path.name, path) for path in sorted(paths)])
        return {"attachments": [{"name": "files", "ref": ref, "media_type": MANIFEST_TYPE}]}

    def reading(step: Step) -> Reply:
        (name,) = [name for name in ("ash.md", "elm.md", "fir.md", "oak.md") if name in step.prompt] or ["oak.md"]
        if step.number == 1:
            return tools(("read_document", {"document_id": name}))
        return text("It is about trees.\n\nConfidence: 0.8\nLimitations: none")

    plan = own(item("t1", "reader", for_each="files:*.md"), item("t2", "hand", depends_on=["t1"]))
    turns: Turns = {f"t1.{n}": reading for n in range(1, 5)}
    lab.play(script(as_json({}), turns))
    await lab.run(plan=plan, **await folder(ash="An ash.", elm="An elm.", oak="An oak."))
    later = another(lab)
    later.play(script(as_json({}), turns))
    result = await later.run(
        plan=plan, reuse_from=[lab.run_id], **await folder(elm="An elm.", fir="A fir.", oak="Two oaks.")
    )
    items = {report.id: report.description for report in result.subtasks if report.template}
    done = {items[subtask_id].split(".md")[0] for subtask_id in agent_calls(later) if subtask_id in items}
    assert done == {"fir", "oak"}
    assert [report.description.split(".md")[0] for report in result.reused] == ["elm"]
    assert agent_calls(later).count("t2") == 1, "it rests on all of them"
    same = another(lab)
    await same.run(plan=plan, reuse_from=[later.run_id])
    assert same.steps == ["synthesis.1"], "without files of its own it has those of the run before"


async def test_a_further_question_builds_on_what_was_found(lab: Lab) -> None:
    lab.play(script(subtasks(item("t1", "hand"), item("t2", "hand")), {}, answer("the pears weigh 4711 kg", ["t1"])))
    await lab.run(goal="Weigh the pears of garden 9")
    later = another(lab)
    more = item("t1", "hand", depends_on=["r1/t2"])
    later.play(script(subtasks(more), {}, answer("and they cost more", ["earlier-t2"])))
    result = await later.run(goal="And what do they cost?", reuse_from=[lab.run_id])
    asked = later.prompt("plan.1.1")
    assert "Run r1 was asked: Weigh the pears of garden 9" in asked
    assert "Its answer: the pears weigh 4711 kg" in asked
    assert "- r1/t2 (hand, Find out about part t2 of garden 1): finding of t2" in asked
    assert "finding of t2" in later.prompt("t1/1/turn.1"), "its worker agent reads that finding"
    assert agent_calls(later) == ["t1"]
    assert [(report.id, report.state) for report in result.subtasks] == [
        ("earlier-t2", "completed"),
        ("t1", "completed"),
    ]
    (taken,) = result.reused
    assert taken.reused
    assert taken.reused.place == f"{lab.run_id}/t2"
    assert [citation.subtask_ids for citation in result.citations] == [["earlier-t2"]]
    assert found(result).text_ref.startswith(run_prefix(later.run_id)), "it is a copy"
    unknown = another(lab)
    unknown.play(script(subtasks(item("t1", "hand", depends_on=["r1/t9"])), {}))
    failed = await unknown.failure(goal="And what else?", reuse_from=[lab.run_id])
    assert "'r1/t9', which is no finding of an earlier run; there are: r1/t1, r1/t2" in failed.message


async def test_a_hostile_caller_reaches_no_finding_of_another_owner(lab: Lab) -> None:
    plan = own(item("t1", "hand"))
    lab.play(script(as_json({})))
    await lab.run(plan=plan, metadata={"owner": "anna"})
    words = set()
    for run_id, owner in ((lab.run_id, "eve"), (lab.run_id, ""), ("run-unknown", "anna")):
        caller = another(lab)
        metadata = {"owner": owner} if owner else {}
        failed = await caller.failure(plan=plan, reuse_from=[run_id], metadata=metadata)
        assert (failed.type, caller.steps) == ("InvalidRequest", [])
        words.add(failed.message.replace(run_id, "RUN"))
    assert len(words) == 1, "it does not even learn that there is such a run"
    by_name = another(lab)
    stolen = {**item("t2", "hand"), "taken_from": f"{lab.run_id}/t1"}
    result = await by_name.run(plan=own(stolen, item("t3", "hand")), metadata={"owner": "eve"})
    assert [report.state for report in result.subtasks][:1] != ["completed"] or not result.reused
    assert not result.reused
    beside = another(lab)
    result = await beside.run(
        plan=own(stolen, item("t3", "hand")), reuse_from=[by_name.run_id], metadata={"owner": "eve"}
    )
    assert [report.id for report in result.reused] == ["t3"], "a run of its own opens no other one"
    (gap,) = result.gaps
    assert f"the finding {lab.run_id}/t1 is not there" in gap.reason
    failed = await another(lab).failure(
        plan=own(item("t4", "hand", depends_on=[f"{lab.run_id}/t1"])),
        reuse_from=[by_name.run_id],
        metadata={"owner": "eve"},
    )
    assert f"depends on '{lab.run_id}/t1', which is no finding of an earlier run; there are: r1/t" in failed.message
    assert "finding of t1" not in "".join(str(call.step.body) for eve in (by_name, beside) for call in eve.calls)
    same = another(lab)
    result = await same.run(plan=plan, reuse_from=[lab.run_id], metadata={"owner": "anna"})
    assert agent_calls(same) == []


async def test_of_runs_of_one_id_the_last_one_gives_what_it_has(lab: Lab) -> None:
    """The first one's findings are of another plan, though its subtasks have the same ids."""
    lab.play(script(as_json({})))
    await lab.run(plan=own(item("t1", "hand"), item("t2", "hand")))
    waits = asyncio.Event()
    lab.play(script(as_json({}), {"t2": lambda step: when(waits, text("late\n\nConfidence: 0.8\nLimitations: none"))}))
    plums = own(*({**item(each, "hand"), "description": f"Weigh the plums of {each}"} for each in ("t1", "t2")))
    handle = await lab.start(plan=plums)
    await until(lambda: is_in(handle, "completed", "t1"))
    later = another(lab)
    result = await later.run(plan=plums, reuse_from=[lab.run_id])
    assert agent_calls(later) == ["t2"]
    assert [report.id for report in result.reused] == ["t1"]
    waits.set()
    await handle.result()


async def test_a_team_within_a_team_is_taken_as_one_finding(lab: Lab) -> None:
    """With all that it has read and found; one whose tools may change is at work again."""

    def nested(step: Step) -> Reply:
        parts = [item("n1", "left"), item("n2", "right")] if "/t1/" in step.call else [item("n1", "counter")]
        return subtasks(*parts)

    usual = script(as_json({}))
    plan = own(item("t1", "pair"), item("t2", "group"), item("t3", "hand", depends_on=["t1"]))

    def reply(step: Step) -> Reply:
        return nested(step) if step.kind == "plan" else usual(step)

    lab.play(reply)
    await lab.run(plan=plan)
    assert {step.partition("/")[0] for step in lab.steps if "plan." in step} == {"t1", "t2"}
    later = another(lab)
    later.play(reply)
    result = await later.run(plan=plan, reuse_from=[lab.run_id])
    assert [report.id for report in result.reused] == ["t1", "t3"]
    assert {step.partition("/")[0] for step in later.steps} == {"t2", "synthesis.1"}
    assert result.saved
    assert result.saved.model_calls == len([step for step in lab.steps if step.startswith(("t1/", "t3/"))])
    other = another(lab)
    other.play(reply)
    result = await other.run(plan=plan, reuse_from=[lab.run_id], models={"supervisor": "claude-haiku-4-5"})
    assert result.reused == [], "its own supervisor has another model"


async def test_a_run_that_was_deleted_takes_nothing_with_it(lab: Lab, store: ArtifactStore) -> None:
    """What was taken stays; what is named and gone is a gap in clear words; a reset does the rest itself."""
    plan = own(item("t1", "hand"), item("t2", "hand", depends_on=["t1"]))
    lab.play(script(as_json({})))
    await lab.run(plan=plan)
    later = another(lab)
    handle = await later.start(plan=plan, reuse_from=[lab.run_id])
    first = await handle.result()
    after_setup = (await workflow_tasks(handle))[1]
    handle = await reset(lab.client, handle, after_setup)
    await handle.result()
    assert later.steps == ["synthesis.1"], "a reset asks for nothing again"
    lost = another(lab)
    named = {**item("t7", "hand"), "taken_from": f"{lab.run_id}/t9"}
    partial = await lost.run(plan=own(named, item("t8", "hand")), reuse_from=[lab.run_id])
    assert partial.status == "partial"
    (gap,) = partial.gaps
    assert f"the finding {lab.run_id}/t9 is not there, or no longer" in gap.reason
    assert agent_calls(lost) == ["t8"]
    await store.delete_run(run_prefix(lab.run_id))
    assert (await store.get(found(first).text_ref)).decode().startswith("finding of t1")
    last = another(lab)
    await last.run(plan=plan, reuse_from=[later.run_id])
    assert last.steps == ["synthesis.1"], "what was copied is as good as the first"
    handle = await reset(lab.client, handle, after_setup)
    anew = await handle.result()
    assert (anew.status, agent_calls(later)) == ("completed", ["t1", "t2"])
    assert [warning for warning in anew.warnings if f"nothing is taken from run '{lab.run_id}'" in warning]
    failed = await another(lab).failure(plan=plan, reuse_from=[lab.run_id])
    assert "it is unknown, was deleted" in failed.message


async def test_an_open_run_gives_what_it_has_and_a_retry_does_it_anew(lab: Lab) -> None:
    waits = asyncio.Event()

    def hanging(step: Step) -> Reply:
        async def reply() -> Any:
            await waits.wait()
            return await text("late\n\nConfidence: 0.8\nLimitations: none")()

        return reply

    plan = own(item("t1", "hand"), item("t2", "hand"))
    lab.play(script(as_json({}), {"t2": hanging}))
    handle = await lab.start(plan=plan)
    await until(lambda: is_in(handle, "completed", "t1"))
    later = another(lab)
    result = await later.run(plan=plan, reuse_from=[lab.run_id])
    assert agent_calls(later) == ["t2"]
    assert [report.id for report in result.reused] == ["t1"]
    waits.set()
    await handle.result()


async def test_a_plan_that_waits_for_approval_shows_what_is_found_already(lab: Lab) -> None:
    plan = own(item("t1", "hand"), item("t2", "hand"))
    lab.play(script(as_json({})))
    await lab.run(plan=plan)
    later = another(lab)
    changed = own(item("t1", "hand"), {**item("t2", "hand"), "description": "Weigh the plums of garden 2"})
    handle = await later.start(plan=changed, reuse_from=[lab.run_id], approve_plan=True)
    await asked(handle)
    estimate = (await handle.query("waiting", "plan.1"))["estimate"]
    assert estimate["saved"] == {"t1": f"{lab.run_id}/t1"}
    assert [part["id"] for part in estimate["parts"]] == ["t2", "supervisor"]
    assert later.steps == []
    await decide(handle, 1, "approve")
    await handle.result()
    assert agent_calls(later) == ["t2"]
