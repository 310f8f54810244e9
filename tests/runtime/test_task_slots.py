"""Large workflows are replayed one after the other, and nothing else waits for longer than that takes."""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.worker import (
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerTuner,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowSlotInfo,
)

from runtime.queues.task_slots import TaskSlots
from runtime.queues.whole_tasks import WholeTasks

LARGE, SMALL, EACH, MOST = "Rounds", "Small", 2, 4
TURNS = 5  # of the event loop: whatever it was given is done by then
CACHED = cast(SlotReserveContext, SimpleNamespace(is_sticky=True))
OTHER = cast(SlotReserveContext, SimpleNamespace(is_sticky=False))


class Info(WorkflowSlotInfo):
    """What the SDK tells of a task."""

    def __init__(self, workflow_type: str) -> None:
        self.workflow_type = workflow_type
        self.is_sticky = False


def used(slots: TaskSlots, permit: SlotPermit, workflow_type: str) -> None:
    info = SimpleNamespace(slot_info=Info(workflow_type), permit=permit)
    slots.mark_slot_used(cast(SlotMarkUsedContext, info))


def released(slots: TaskSlots, permit: SlotPermit) -> None:
    slots.release_slot(SlotReleaseContext(slot_info=None, permit=permit))


async def waits(slots: TaskSlots, ctx: SlotReserveContext) -> asyncio.Task[SlotPermit]:
    """Returns the wait for a permit, which is not given at once."""
    waiting = asyncio.create_task(slots.reserve_slot(ctx))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert not waiting.done()
    return waiting


def slots_for_two(patience: float = 60.0, longest: float = 60.0) -> TaskSlots:
    return TaskSlots(EACH, MOST, {LARGE}, patience, longest)


async def test_there_are_so_many_for_cached_workflows_and_one_who_waits_gets_what_is_released() -> None:
    slots = slots_for_two()
    first, _ = [await slots.reserve_slot(CACHED) for _ in range(EACH)]
    waiting = await waits(slots, CACHED)
    released(slots, first)
    assert await waiting is not None
    assert await slots.reserve_slot(OTHER) is not None  # those have their own


async def test_while_it_is_not_known_what_comes_there_is_no_second_one() -> None:
    slots = slots_for_two()
    first = await slots.reserve_slot(OTHER)
    waiting = await waits(slots, OTHER)
    assert await slots.reserve_slot(CACHED) is not None
    used(slots, first, SMALL)
    second = await waiting
    used(slots, second, SMALL)
    third = await waits(slots, OTHER)  # both are in use
    released(slots, first)
    assert await third is not None


async def one_large(slots: TaskSlots) -> asyncio.Task[SlotPermit]:
    """Takes a task of a large workflow, and returns the wait for the next one."""
    used(slots, await slots.reserve_slot(OTHER), LARGE)
    return await waits(slots, OTHER)


async def test_nothing_comes_while_a_large_workflow_is_replayed() -> None:
    slots = slots_for_two(patience=0.001)
    used(slots, await slots.reserve_slot(OTHER), LARGE)
    slots.replay_begins(LARGE)
    slots.goes_on(SMALL)
    waiting = await waits(slots, OTHER)
    slots.goes_on(LARGE)
    assert await waiting is not None


async def test_a_large_workflow_that_is_new_holds_up_nothing() -> None:
    slots = slots_for_two()
    waiting = await one_large(slots)
    slots.goes_on(LARGE)
    assert await waiting is not None


async def test_a_large_workflow_that_was_in_the_cache_all_the_same_holds_up_others_for_a_moment() -> None:
    slots = slots_for_two(patience=0.05)
    async with asyncio.timeout(10):
        assert await (await one_large(slots)) is not None


async def test_a_task_that_the_sdk_lost_holds_up_others_for_a_moment() -> None:
    slots = slots_for_two(patience=0.05)
    await slots.reserve_slot(OTHER)
    async with asyncio.timeout(10):
        assert await (await waits(slots, OTHER)) is not None


async def test_a_replay_that_is_lost_holds_up_others_no_longer_than_the_longest() -> None:
    slots = slots_for_two(patience=0.01, longest=0.05)
    used(slots, await slots.reserve_slot(OTHER), LARGE)
    slots.replay_begins(LARGE)
    async with asyncio.timeout(10):
        assert await (await waits(slots, OTHER)) is not None


async def test_a_task_that_ends_while_its_workflow_is_replayed_holds_up_nothing() -> None:
    slots = slots_for_two()
    large = await slots.reserve_slot(OTHER)
    used(slots, large, LARGE)
    slots.replay_begins(LARGE)
    waiting = await waits(slots, OTHER)
    released(slots, large)
    assert await waiting is not None


async def test_a_replay_of_another_is_no_word_about_a_task_that_is_not_there_yet() -> None:
    slots = slots_for_two()
    await slots.reserve_slot(OTHER)
    slots.goes_on(LARGE)
    await waits(slots, OTHER)


async def test_tasks_that_take_longer_than_the_longest_replay_do_not_count_but_there_are_not_any_number() -> None:
    slots = slots_for_two(patience=0.01, longest=0.05)
    taken = []
    async with asyncio.timeout(10):
        for _ in range(MOST):
            taken.append(await slots.reserve_slot(CACHED))
            used(slots, taken[-1], SMALL)
    waiting = await waits(slots, CACHED)
    await asyncio.sleep(0.1)  # however long it waits
    assert not waiting.done()
    released(slots, taken[0])
    assert await waiting is not None


async def test_a_poll_that_brings_no_task_counts_however_long_it_takes() -> None:
    slots = slots_for_two(patience=0.01, longest=0.01)
    for _ in range(EACH):
        await slots.reserve_slot(CACHED)
    waiting = await waits(slots, CACHED)
    await asyncio.sleep(0.1)
    assert not waiting.done()
    waiting.cancel()


async def test_one_who_gives_up_waiting_takes_no_slot() -> None:
    slots = slots_for_two()
    first = await slots.reserve_slot(OTHER)
    waiting = await waits(slots, OTHER)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    released(slots, first)
    assert await slots.reserve_slot(OTHER) is not None


async def test_the_sdk_tells_of_tasks_in_threads_of_its_own() -> None:
    slots = slots_for_two()
    first = await slots.reserve_slot(OTHER)
    waiting = await waits(slots, OTHER)
    threading.Thread(target=used, args=(slots, first, SMALL)).start()
    async with asyncio.timeout(10):
        assert await waiting is not None


RUNS, ROUNDS = 4, 12


@workflow.defn
class Rounds:
    """Waits for a signal so many times, each time in a workflow task of its own."""

    def __init__(self) -> None:
        self.heard = 0

    @workflow.signal
    def hear(self) -> None:
        self.heard += 1

    @workflow.query
    def count(self) -> int:
        return self.heard

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self.heard > ROUNDS)


class Recorded(UnsandboxedWorkflowRunner):
    """Notes of which run each replayed activation was, and takes its time with it."""

    def __init__(self) -> None:
        self.replayed: list[str] = []

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        activate = instance.activate

        def noted(act: WorkflowActivation) -> WorkflowActivationCompletion:
            if act.is_replaying:
                self.replayed.append(act.run_id)
                time.sleep(0.02)
            return activate(act)

        instance.activate = noted  # type: ignore[method-assign]
        return instance


async def changes_of_run(client: Client, queue: str, *, in_turn: bool) -> int:
    """Returns how often another run was replayed than the moment before, when all are replayed in a new Worker."""
    recorded = Recorded()

    def worker() -> Worker:
        slots = TaskSlots(3, 9, {"Rounds"}, patience=60.0, longest=60.0)
        runner = WholeTasks(recorded, slots)
        fixed = FixedSizeSlotSupplier(10)
        workflow_slots: TaskSlots | FixedSizeSlotSupplier = slots if in_turn else fixed
        tuner = WorkerTuner.create_composite(
            workflow_supplier=workflow_slots,
            activity_supplier=fixed,
            local_activity_supplier=fixed,
            nexus_supplier=fixed,
        )
        serving = Worker(client, task_queue=queue, workflows=[Rounds], workflow_runner=runner, tuner=tuner)
        runner.serve(serving)
        return serving

    async with worker():
        handles = [
            await client.start_workflow(Rounds.run, id=f"{queue}-{number}", task_queue=queue) for number in range(RUNS)
        ]
        for handle in handles:
            for heard in range(1, ROUNDS + 1):
                await handle.signal(Rounds.hear)
                assert await handle.query(Rounds.count) == heard  # so that each has a task of its own
    recorded.replayed.clear()
    for handle in handles:
        await handle.signal(Rounds.hear)
    async with worker():
        await asyncio.gather(*(handle.result() for handle in handles))
    assert len(recorded.replayed) > RUNS * ROUNDS / 2
    return sum(one != other for one, other in zip(recorded.replayed, recorded.replayed[1:], strict=False))


async def test_after_a_restart_they_are_replayed_one_after_the_other(client: Client, run_id: str) -> None:
    assert await changes_of_run(client, run_id, in_turn=True) == RUNS - 1


async def test_without_it_they_are_replayed_side_by_side(client: Client, run_id: str) -> None:
    assert await changes_of_run(client, run_id, in_turn=False) > RUNS - 1
