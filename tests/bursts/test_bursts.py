"""A small burst of each kind at once; `make bursts` plays the large ones."""

import psutil
import pytest

from tests.bursts.playing import MIB, WORKER_MIB, Burst, figures_of, scene
from tests.corpus.loop_monitor import SILENCE


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_small_burst_neither_stops_an_honest_run_nor_silences_the_loop() -> None:
    # This process may have run other tests before, and has what they left.
    before = psutil.Process().memory_info().rss / MIB
    async with scene() as played:
        figures = await figures_of(played, Burst(files=8, schemas=2, queries=6), honest=1)
    assert figures.silent < SILENCE
    assert figures.worker_mib - before < WORKER_MIB
    assert figures.children <= 6 + 4 + 2  # at work, at rest, and those that check schemas
