"""Runs with whatever may go wrong in them: they end, every subtask in one state, nothing lost and nothing paid twice.

`python -m tests.machine 1 SEED` plays one case again.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.machine.cases import case
from tests.machine.playing import batches
from tests.machine.quick_server import quick_server
from tests.machine.verdict import verdict_on
from tests.scripted_model import ScriptedModel

PLAYED = {1: 3, 51: 3, 201: 3, 301: 2, 101: 1}
MORE = {4: 17, 54: 17, 204: 17, 303: 14, 102: 7}
"""How many cases from which seed on; those from 101 on without a workflow cache. More by `make cases`."""
REPLAYED = 4  # each so-manieth: all of them by `make cases`


@pytest.fixture(scope="module")
async def own_client() -> AsyncIterator[Client]:
    """A server of their own, for all cases."""
    async with quick_server() as client:
        yield client


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("first", "count"),
    [*PLAYED.items(), *(pytest.param(*part, marks=pytest.mark.long) for part in MORE.items())],
)
async def test_whatever_goes_wrong_a_run_ends_well(
    own_client: Client, model: ScriptedModel, tmp_path: Path, first: int, count: int
) -> None:
    for group in batches(first, count):
        verdict = await verdict_on(own_client, model, group, tmp_path, replay_each=REPLAYED)
        assert not verdict.faults, "\n".join(verdict.lines())


def test_a_case_is_a_function_of_its_seed() -> None:
    assert [repr(case(seed)) for seed in range(50)] == [repr(case(seed)) for seed in range(50)]
