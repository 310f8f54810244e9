"""Many waits at once: what a decision costs does not grow with how many others wait."""

from collections import Counter
from typing import Any

from temporalio.api.enums.v1 import EventType

from temporal_supervisor.supervision.contract.status import Wait
from tests.scripted_model import plan, script
from tests.waiting import until
from tests.workflow.runs import Handle, Lab, settled, status_of

AT_ONCE = 50


def people(count: int) -> list[dict[str, Any]]:
    """Returns so many subtasks of a person."""
    return [{"id": f"t{number}", "role": "counsel"} for number in range(1, count + 1)]


async def waits_of(handle: Handle, count: int) -> list[Wait]:
    """Returns all waits, once there are so many."""
    found: list[Wait] = []

    async def all_wait() -> bool:
        found.clear()
        cursor: int | None = 0
        while cursor is not None:
            page = await handle.query("status", cursor, result_type=type(await status_of(handle)))
            found.extend(wait for wait in page.waiting if wait.for_decision)
            cursor = page.next_cursor
        return len(found) >= count

    await until(all_wait, 60)
    return found


async def events(lab: Lab) -> Counter[str]:
    """Returns how many events of each type the run's history has."""
    history = await lab.client.get_workflow_handle(lab.run_id).fetch_history()
    return Counter(EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in history.events)


async def replied_one_by_one(lab: Lab, count: int) -> tuple[float, Counter[str]]:
    """Returns the events of a decision of such a run, on average."""
    lab.play(script(plan(*people(count))))
    handle = await lab.start(team="people", max_subtasks=count, max_parallel=8)
    waits = await waits_of(handle, count)
    await settled(handle)
    before = await events(lab)
    for wait in waits:
        await handle.execute_update("reply", {"id": wait.id, "text": "known", "sha256": wait.sha256})
    result = await handle.result()
    assert result.status == "completed"
    after = await events(lab)
    after.subtract(before)
    return after.total() / count, after


async def test_a_decision_costs_the_same_however_many_others_wait(lab: Lab) -> None:
    few, _ = await replied_one_by_one(lab, 10)
    many, of_many = await replied_one_by_one(lab.named(f"{lab.run_id}-many"), 30)
    assert many <= 17, of_many
    assert many <= few * 1.1, (few, many, of_many)
    # All share a timer; with one each there were thirty.
    assert of_many["TIMER_STARTED"] <= 10, of_many


async def test_many_decisions_in_one_update_cost_next_to_nothing(lab: Lab) -> None:
    count = 2 * AT_ONCE
    lab.play(script(plan(*people(count))))
    handle = await lab.start(team="people", max_subtasks=count)
    waits = await waits_of(handle, count)
    await settled(handle)
    before = await events(lab)
    for start in (0, AT_ONCE):
        listed = [{"id": w.id, "text": "known", "sha256": w.sha256} for w in waits[start : start + AT_ONCE]]
        said = await handle.execute_update("decide", {"decisions": listed})
        assert (said["accepted"], len(said["results"])) == (True, AT_ONCE)
        assert all(each["accepted"] for each in said["results"])
    result = await handle.result()
    assert (result.status, len(result.subtasks)) == ("completed", count)
    after = await events(lab)
    after.subtract(before)
    assert after.total() <= 1.5 * count, after
