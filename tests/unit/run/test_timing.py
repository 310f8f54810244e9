"""Times of a run: no parallelism beats the longest chain, no chain is longer than all the work."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.plan import Plan
from supervision.run.run_state import timing
from tests.unit.shapes import START, acyclic_plans, report

durations = st.none() | st.floats(0, 10_000)


@given(acyclic_plans(), st.data(), st.floats(0, 100), st.floats(0, 100))
def test_the_critical_path_lies_between_the_longest_subtask_and_all_of_them(
    plan: Plan, data: st.DataObject, planning: float, synthesis: float
) -> None:
    reports = [report(s.id, data.draw(durations), *s.depends_on) for s in plan.subtasks]
    times = timing(reports, 50.0, planning + synthesis, START)
    alone = [timing([r], 50.0, planning + synthesis, START).sequential_seconds for r in reports]
    assert max(alone) <= times.critical_path_seconds <= times.sequential_seconds
    assert times.speedup == pytest.approx(times.sequential_seconds / 50.0, abs=0.01)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=8))
def test_a_chain_is_all_critical_and_a_fan_is_its_longest(seconds: list[float]) -> None:
    chain = [report(f"t{n}", s, *([f"t{n - 1}"] if n else [])) for n, s in enumerate(seconds)]
    fan = [report(f"t{n}", s) for n, s in enumerate(seconds)]
    as_chain, as_fan = (timing(list(reversed(r)), 1.0, 0, START) for r in (chain, fan))
    assert as_chain.critical_path_seconds == as_chain.sequential_seconds
    assert as_fan.critical_path_seconds == pytest.approx(max(seconds), abs=0.001)
    assert as_fan.sequential_seconds == as_chain.sequential_seconds


def test_what_still_runs_counts_until_now_and_what_never_started_takes_no_time() -> None:
    running = report("t1", 0).model_copy(update={"state": "running", "finished_at": None})
    times = timing([running, report("t2", None, "t1")], 8.0, 3.0, START + timedelta(seconds=5))
    assert (times.sequential_seconds, times.critical_path_seconds, times.speedup) == (8.0, 8.0, 1.0)
