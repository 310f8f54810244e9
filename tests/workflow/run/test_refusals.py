"""A provider that refuses calls (429), whatever their rate: a run is slower by its waits, and nothing else."""

from datetime import timedelta
from itertools import count

import pytest

from supervision.base import limits
from tests.scripted_model import Reply, Step, answer, plan, script, status, text, tools
from tests.workflow.runs import Lab

SUBTASKS, TURNS = 4, 2
CALLS = 1 + SUBTASKS * TURNS + 1


@pytest.mark.timeout(90)
async def test_a_run_is_answered_by_a_provider_that_refuses_a_third_of_its_calls(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MODEL_RETRY_INITIAL", timedelta(seconds=0.2))
    ids = [f"t{number}" for number in range(SUBTASKS)]

    def turn(step: Step) -> Reply:
        return tools(("lookup", {"query": f"{step.number}"})) if step.number < TURNS else text("found")

    played = script(plan(*[{"id": subtask_id} for subtask_id in ids]), dict.fromkeys(ids, turn), answer(cites=ids[:1]))
    requests, refused = count(), list[str]()

    def three_of_nine(step: Step) -> Reply:
        if 3 <= next(requests) % 9 < 6:
            refused.append(step.call)
            return status(429, "rate_limit_error")
        return played(step)

    lab.play(three_of_nine)
    own = {
        "supervisor": f"{lab.run_id}-supervisor",
        "workers": f"{lab.run_id}-workers",
    }  # a gate remembers refusals by model
    result = await lab.run(max_subtasks=SUBTASKS, models=own)
    assert result.status == "completed"
    assert len(lab.calls) - len(refused) == CALLS
    assert result.timing.wall_seconds < 60
