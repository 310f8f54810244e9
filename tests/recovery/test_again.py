"""kill -9 amid runs that build on an earlier one: nothing that was found before, or stored, is paid again.

Each step of them is one at which the only Worker process dies: the look-up of earlier findings, the plan of a further
question, a turn of a subtask that is done again, the answer. Then the run is reset, and asks for nothing once more.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.run.again_requests import built_on, once_more, with_subtask_description
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.contract.request import Attachment, RunRequest
from temporal_supervisor.supervision.contract.result import RunResult
from tests.scripted_model import Reply, Script, Step, answer, as_json, script, text, tools, when
from tests.serving import WorkerProcesses, store_of
from tests.waiting import until
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Handle, Lab, found
from tests.workflow.scripts import item, subtasks
from workflows.supervisor import SupervisorWorkflow

PLAN = {
    "subtasks": [
        item("t1", "hand"),
        item("t2", "hand", depends_on=["t1"]),
        item("t3", "hand", depends_on=["t2"]),
        item("t4", "hand"),
    ]
}
USUAL = script(as_json({}))


async def first_run(lone: Lab, store: ArtifactStore, **fields: Any) -> Run:
    """Returns a run that has ended, with a finding for each of its subtasks."""
    result = await (await lone.start(**{"team": "again", "plan": PLAN, **fields})).result()
    assert result.status == "completed"
    return Run(lone.client, lone.run_id)


def later(lone: Lab) -> Lab:
    """Returns the same for a run that comes after it."""
    return lone.named(f"run-{uuid4().hex[:12]}")


async def begun(lab: Lab, request: RunRequest) -> Handle:
    """Starts a run of that request, as a command does."""
    start = lab.client.start_workflow
    return await start(SupervisorWorkflow.run, request, id=lab.run_id, task_queue="supervisor")


async def killed_at(lab: Lab, workers: WorkerProcesses, request: RunRequest, usual: Script, *moments: str) -> Handle:
    """Starts a run, and kills the Worker while each of these calls is under way: it is asked for once more."""
    released = {moment: asyncio.Event() for moment in moments}

    def reply(step: Step) -> Reply:
        moment = step.call.removeprefix(f"{lab.run_id}/")
        return when(released[moment], usual(step)) if moment in released else usual(step)

    lab.play(reply)
    handle = await begun(lab, request)
    for moment in moments:
        await until(lab.sent(moment), 60)
        workers.kill()
        released[moment].set()
        await workers.start()
    return handle


async def ended(handle: Handle) -> RunResult:
    """Returns the result of a run, once it has ended."""
    return await asyncio.wait_for(handle.result(), 120)


def places(result: RunResult) -> dict[str, str]:
    """Returns where each finding that was taken comes from."""
    return {report.id: report.reused.place for report in result.subtasks if report.reused}


async def asks_nothing_after_resets(lab: Lab, handle: Handle, first: RunResult) -> None:
    """Resets a run to its first, its middle and its last step: it ends as before, and no call is sent."""
    calls = list(lab.steps)
    tasks = await workflow_tasks(handle)
    for event in dict.fromkeys((tasks[0], tasks[len(tasks) // 2], tasks[-1])):
        again = await ended(await reset(lab.client, handle, event))
        assert (again.status, again.answer) == (first.status, first.answer)
        assert places(again) == places(first)
    assert lab.steps == calls


def once_each(lab: Lab, *killed: str) -> set[str]:
    """Returns the calls of a run; only those under way at a kill were sent more than once."""
    assert set(lab.repeated) <= set(killed)
    return set(lab.steps)


@pytest.mark.long
async def test_a_kill_amid_a_fork_repeats_only_the_call_in_flight(lone: Lab, workers: WorkerProcesses) -> None:
    lone.play(USUAL)
    await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    run = await first_run(lone, store)
    forked = later(lone)
    request = with_subtask_description(await once_more(run, store), "t2", "Weigh the plums of garden 3")
    handle = await killed_at(forked, workers, request, USUAL, "t2/1/turn.1")
    result = await ended(handle)
    assert result.status == "completed"
    assert [report.id for report in result.reused] == ["t1", "t4"]
    assert once_each(forked, "t2/1/turn.1") == {"t2/1/turn.1", "t3/1/turn.1", "synthesis.1"}
    assert result.usage.model_calls == 3


@pytest.mark.long
async def test_kills_amid_a_rerun_read_new_and_changed_files_once(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    async def folder(**files: str) -> list[Attachment]:
        paths = [tmp_path / f"{name}.md" for name in sorted(files)]
        for path in paths:
            path.write_text(files[path.stem])
        ref = await put_files(store, [DataFile(path.name, path) for path in paths])
        return [Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)]

    def reading(step: Step) -> Reply:
        if step.number > 1:
            return text("It is about trees.\n\nConfidence: 0.8\nLimitations: none")
        name = next(name for name in ("ash.md", "elm.md", "fir.md", "oak.md") if name in step.prompt)
        return tools(("read_document", {"document_id": name}))

    usual = script(as_json({}), {f"t1.{number}": reading for number in range(1, 5)})
    plan = {"subtasks": [item("t1", "reader", for_each="files:*.md"), item("t2", "hand", depends_on=["t1"])]}
    lone.play(usual)
    await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    run = await first_run(lone, store, plan=plan, attachments=await folder(ash="An ash.", elm="An elm.", oak="An oak."))
    monday = later(lone)
    attached = await folder(ash="An ash.", elm="An elm.", fir="A fir.", oak="Two oaks.")
    request = (await once_more(run, store)).model_copy(update={"attachments": attached})
    killed = ("t1.3/1/turn.1", "t1.4/1/turn.2", "synthesis.1")
    handle = await killed_at(monday, workers, request, usual, *killed)
    result = await ended(handle)
    assert (result.status, result.gaps) == ("completed", [])
    assert [report.id for report in result.reused] == ["t1.1", "t1.2"]
    turns = {f"t1.{number}/1/turn.{turn}" for number in (3, 4) for turn in (1, 2)}
    assert once_each(monday, *killed, *turns) == {*turns, "t2/1/turn.1", "synthesis.1"}
    assert monday.steps.count("t2/1/turn.1") == 1
    await asks_nothing_after_resets(monday, handle, result)


@pytest.mark.long
async def test_kills_amid_a_further_question_repeat_only_the_calls_in_flight(
    lone: Lab, workers: WorkerProcesses
) -> None:
    lone.play(USUAL)
    await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    await first_run(lone, store)
    asked = later(lone)
    request = RunRequest(goal="And what do they cost?", max_reviews=0, max_replans=0)
    request = await built_on(lone.client, request, [lone.run_id])
    more = subtasks(item("t1", "hand", depends_on=["r1/t4"]), item("t2", "hand", depends_on=["t1"]))
    usual = script(more, {}, answer("They cost more", ["earlier-t4"]))
    killed = ("plan.1.1", "t1/1/turn.1", "synthesis.1")
    handle = await killed_at(asked, workers, request, usual, *killed)
    result = await ended(handle)
    assert [(report.id, report.state) for report in result.subtasks] == [
        ("earlier-t4", "completed"),
        ("t1", "completed"),
        ("t2", "completed"),
    ]
    assert once_each(asked, *killed) == {*killed, "t2/1/turn.1"}
    assert "finding of t4" in asked.prompt("t1/1/turn.1")
    await asks_nothing_after_resets(asked, handle, result)


@contextlib.contextmanager
def held_back(file: Path) -> Iterator[None]:
    """Lets nobody read a file to its end: who opens it waits for words that do not come."""
    content = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    try:
        yield
    finally:
        file.unlink()
        file.write_bytes(content)


def is_read(file: Path) -> bool:
    """True if somebody waits for the words of a file that is held back."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:  # nobody has it open
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("kind", ["rerun", "fork", "ask on"])
async def test_a_kill_amid_the_look_up_of_earlier_findings_loses_none(
    lone: Lab, workers: WorkerProcesses, kind: str
) -> None:
    lone.play(USUAL)
    await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    run = await first_run(lone, store)
    request = await once_more(run, store)
    calls = {"synthesis.1"}
    if kind == "fork":
        request = with_subtask_description(request, "t4", "Weigh the plums of garden 3")
        calls = {"t4/1/turn.1", "synthesis.1"}
    if kind == "ask on":
        words = RunRequest(goal="And what do they cost?", max_reviews=0, max_replans=0)
        request = await built_on(lone.client, words, [lone.run_id])
        calls = {"plan.1.1", "t9/1/turn.1", "synthesis.1"}
    (latest,) = [key for key in await store.list_keys(f"{lone.run_id}/") if key.startswith(f"{lone.run_id}/latest.")]
    (file,) = workers.artifacts.rglob(Path(latest).name)
    after = later(lone)
    after.play(script(subtasks(item("t9", "hand", depends_on=["r1/t1"]))))
    with held_back(file):
        handle = await begun(after, request)
        await until(lambda: is_read(file), 60)
        workers.kill()
    await workers.start()
    result = await ended(handle)
    assert result.status == "completed"
    assert set(after.steps) == calls
    assert after.repeated == []
    taken = {"rerun": ["t1", "t2", "t3", "t4"], "fork": ["t1", "t2", "t3"], "ask on": ["earlier-t1"]}
    assert [report.id for report in result.reused] == taken[kind]


@pytest.mark.long
async def test_two_forks_at_once_pay_each_for_its_own_change(lone: Lab, workers: WorkerProcesses) -> None:
    """Both are under way when the Worker dies; the run that they build on stays as it was."""
    lone.play(USUAL)
    await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    run = await first_run(lone, store)
    objects = {key: await store.get(key) for key in await store.list_keys(f"{lone.run_id}/")}
    request = await once_more(run, store)
    released, one, other = asyncio.Event(), later(lone), later(lone)
    handles = []
    for fork, subtask_id in ((one, "t2"), (other, "t4")):
        fork.play(lambda step: when(released, USUAL(step)))
        handles.append(
            await begun(fork, with_subtask_description(request, subtask_id, f"Weigh {subtask_id} of garden 3"))
        )
    await until(lambda: one.sent("t2/1/turn.1")() and other.sent("t4/1/turn.1")(), 60)
    workers.kill()
    released.set()
    await workers.start()
    first, second = [await ended(handle) for handle in handles]
    await asks_nothing_after_resets(one, handles[0], first)
    assert once_each(one, "t2/1/turn.1") == {"t2/1/turn.1", "t3/1/turn.1", "synthesis.1"}
    assert once_each(other, "t4/1/turn.1") == {"t4/1/turn.1", "synthesis.1"}
    assert [report.id for report in first.reused] == ["t1", "t4"]
    assert [report.id for report in second.reused] == ["t1", "t2", "t3"]
    assert {key: await store.get(key) for key in objects} == objects


@pytest.mark.long
async def test_a_run_that_is_deleted_under_one_that_builds_on_it_takes_nothing_with_it(
    lone: Lab, workers: WorkerProcesses
) -> None:
    """Deleted while the Worker is down: what was taken stays, and a reset before the look-up does the work anew."""
    lone.play(USUAL)
    await workers.start()
    store = await store_of(lone.client, workers.artifacts)
    run = await first_run(lone, store)
    forked, released = later(lone), asyncio.Event()
    request = with_subtask_description(await once_more(run, store), "t2", "Weigh the plums of garden 3")
    held = {"t2/1/turn.1"}

    def reply(step: Step) -> Reply:
        usual = USUAL(step)
        return when(released, usual) if step.call.removeprefix(f"{forked.run_id}/") in held else usual

    forked.play(reply)
    handle = await begun(forked, request)
    await until(forked.sent("t2/1/turn.1"), 60)
    workers.kill()
    await store.delete_run(run_prefix(lone.run_id))
    released.set()
    await workers.start()
    result = await ended(handle)
    assert (result.status, result.gaps, result.warnings) == ("completed", [], [])
    assert [report.id for report in result.reused] == ["t1", "t4"]
    assert (await store.get(found(result).text_ref)).decode().startswith("finding of t1")
    assert "finding of t1" in forked.prompt("t2/1/turn.1")
    after_setup = (await workflow_tasks(handle))[1]
    anew = await ended(await reset(lone.client, handle, after_setup))
    assert (anew.status, anew.gaps, anew.reused) == ("completed", [], [])
    gone = f"nothing is taken from run '{lone.run_id}': it was deleted, or has no plan"
    assert gone in anew.warnings
    assert once_each(forked, "t2/1/turn.1", "synthesis.1") >= {"t1/1/turn.1", "t4/1/turn.1"}
