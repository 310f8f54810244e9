"""A limit that nobody set, found on a real server: its queue is lowered with the reason, and raised again."""

from datetime import timedelta

import pytest
from temporalio.client import Client

from runtime.queues.queue_config import QueueConfig
from runtime.settings import Settings
from supervision import limits
from supervision.queues import MODEL_QUEUE
from tests.scripted_model import Reply, ScriptedModel, Step, answer, plan, script, status, text
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from worker_main import serving

SUBTASKS = 30


@pytest.mark.timeout(180)
async def test_a_429_lowers_the_rate_of_the_queue_and_quiet_raises_it(
    model: ScriptedModel, settings: Settings, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FOUND_RECOVERY_MIN", "FOUND_RECOVERY_MAX", "FOUND_PROBE", "FOUND_TICK"):
        monkeypatch.setattr(limits, name, timedelta(seconds=0.5))
    ids = [f"t{number}" for number in range(SUBTASKS)]
    refused = 0

    def first_is_refused(step: Step) -> Reply:
        nonlocal refused
        refused += 1
        return status(429, "rate_limit_error") if refused == 1 else text("found")

    played = script(plan(*[{"id": subtask_id} for subtask_id in ids]), {"t0": first_is_refused}, answer(cites=ids[:1]))
    model.play(run_id, played)
    finding = settings.model_copy(update={"model_find_rpm": True})
    async with own_server() as client, serving(client, finding):
        await runs.start(client, run_id, "lab", max_subtasks=SUBTASKS, max_parallel=SUBTASKS)
        lowered: list[float] = []

        async def is_lowered() -> bool:
            rate, reason = await configured(client)
            if rate is not None and "429 at" in reason:
                lowered.append(rate)
            return bool(lowered)

        async def is_raised() -> bool:
            rate, _ = await configured(client)
            return rate is None or rate > lowered[0]

        await until(is_lowered, 60)
        await until(is_raised, 60)


async def configured(client: Client) -> tuple[float | None, str]:
    """Returns the rate of the model queue and its reason, as the server has them."""
    view = await QueueConfig(client).read(MODEL_QUEUE)
    return view.rate, view.reason
