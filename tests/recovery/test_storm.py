"""A storm: the provider answers 529 to all. It costs a handful of requests, no run is lost, all end soon after."""

import asyncio
import logging
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from activities.model import gate
from temporal_supervisor.supervision.base import limits
from tests.scripted_model import Reply, Step, answer, plan, script, status
from tests.serving import settings_for
from tests.waiting import until
from tests.workflow.runs import Lab
from worker_main import serving

RUNS = 24
UNDER_WAY = 12  # when the storm begins; the others start in it
REQUESTS = 10  # of one process to one model until its breaker is open
PROBES = 3  # of each model that fail before the storm is over

USUAL = script(plan({"id": "t1"}, {"id": "t2", "role": "counter"}), {}, answer(cites=["t1", "t2"]))


def failed_probes(log: pytest.LogCaptureFixture) -> Counter[str]:
    """The probes that failed until now, by model."""
    found = [re.match(r"provider breaker of (.*): half_open -> open", line) for line in log.messages]
    return Counter(match[1] for match in found if match)


@pytest.mark.timeout(200)
async def test_a_storm_costs_few_requests_and_no_run(
    lone: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BREAKER_COOLDOWN", timedelta(seconds=1))  # a probe a second in place of one in ten
    caplog.set_level(logging.WARNING, gate.__name__)
    ids = [f"{lone.run_id}-{number}" for number in range(RUNS)]
    raging = False
    refused: Counter[str] = Counter()
    served: list[str] = []
    answered_before: Counter[str] = Counter()

    def reply(step: Step) -> Reply:
        if raging:
            refused[step.body["model"]] += 1
            return status(529, "overloaded_error")
        served.append(step.call)
        if not refused:
            answered_before[step.body["model"]] += 1
        return USUAL(step)

    for run_id in ids:
        lone.model.play(run_id, reply)
    async with serving(lone.client, settings_for(lone.model.url, tmp_path / "artifacts")):
        handles = await asyncio.gather(*(lone.named(run_id).start(max_reviews=3) for run_id in ids[:UNDER_WAY]))
        await until(lambda: any("/turn." in call for call in served), 60)
        raging = True
        handles += await asyncio.gather(*(lone.named(run_id).start(max_reviews=3) for run_id in ids[UNDER_WAY:]))
        await until(lambda: sum(number >= PROBES for number in failed_probes(caplog).values()) == 2, 90)
        raging = False
        results = await asyncio.gather(*(handle.result() for handle in handles))
    assert [result.status for result in results] == ["completed"] * RUNS
    assert len(served) == len(set(served)) > 0
    probes = failed_probes(caplog)
    assert set(refused) == set(probes)
    for model, requests in refused.items():
        # It opens on half of the distinct calls of the last seconds: what was answered in them has to be outweighed.
        assert requests <= REQUESTS + probes[model] + answered_before[model]
