"""How SUPERVISOR_MODEL_RPM is shared out over the queues of model calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision import limits
from supervision.provider.queue_rates import QueueView, share

IDLE = QueueView()
BACKLOG = QueueView(waiting=9)
VIEWS = st.builds(QueueView, waiting=st.integers(0, 3), dispatched=st.floats(0, 20))


def test_a_queue_that_is_busy_alone_has_nearly_all() -> None:
    assert share(10, "a", {"a": BACKLOG, "b": IDLE, "c": IDLE}) == pytest.approx(9)


def test_an_idle_queue_keeps_enough_to_begin() -> None:
    assert share(10, "b", {"a": BACKLOG, "b": IDLE}) == pytest.approx(0.5)


def test_a_queue_is_busy_while_calls_wait_or_went_out_lately() -> None:
    assert BACKLOG.is_busy
    assert not IDLE.is_busy
    assert QueueView(dispatched=limits.SHARE_BUSY_RATE).is_busy
    assert not QueueView(dispatched=limits.SHARE_BUSY_RATE * 0.99).is_busy


def test_queues_that_are_all_idle_have_equal_parts() -> None:
    assert share(10, "a", {"a": IDLE, "b": IDLE}) == pytest.approx(5)


def test_the_reserves_of_many_idle_queues_leave_half_to_a_busy_one() -> None:
    queues = dict.fromkeys(map(str, range(49)), IDLE) | {"a": BACKLOG}
    assert share(10, "0", queues) == pytest.approx(0.1)
    assert share(10, "a", queues) == pytest.approx(5.1)


def test_two_busy_queues_have_equal_parts() -> None:
    queues = {"a": BACKLOG, "b": BACKLOG}
    assert share(10, "a", queues) == share(10, "b", queues) == pytest.approx(5)


def test_a_queue_that_wants_less_leaves_it_to_the_other() -> None:
    queues = {"a": BACKLOG, "b": QueueView(dispatched=2)}
    assert share(10, "b", queues) == pytest.approx(3)
    assert share(10, "a", queues) == pytest.approx(7)


def test_a_queue_rises_only_into_what_the_other_has_left() -> None:
    assert share(10, "a", {"a": BACKLOG, "b": QueueView(rate=9.5, waiting=1)}) == pytest.approx(0.5)


def test_one_queue_has_all() -> None:
    assert share(10, "a", {"a": IDLE}) == share(10, "a", {"a": BACKLOG}) == pytest.approx(10)


@given(st.dictionaries(st.sampled_from("abcdefgh"), VIEWS, min_size=1), st.floats(0.1, 100))
def test_all_parts_together_never_exceed_the_whole(queues: dict[str, QueueView], total: float) -> None:
    parts = [share(total, name, queues) for name in queues]
    assert all(part > 0 for part in parts)
    assert sum(parts) <= total * 1.001
