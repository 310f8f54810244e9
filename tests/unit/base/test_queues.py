"""Fairness keys fit the server's limit and tell runs apart."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.base.queues import FAIRNESS_KEY_BYTES, fairness_key, pool_queue

ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(ids)
def test_every_key_fits(run_id: str) -> None:
    assert 0 < len(fairness_key(run_id).encode()) <= FAIRNESS_KEY_BYTES


@given(ids, ids, st.sampled_from(["", "x" * 100]))
def test_different_runs_have_different_keys(one: str, other: str, head: str) -> None:
    assert (fairness_key(head + one) == fairness_key(head + other)) == (one == other)


def test_a_short_id_is_its_own_key_and_a_long_one_a_beginning_and_a_hash() -> None:
    longest = "x" * FAIRNESS_KEY_BYTES
    assert fairness_key(longest) == longest
    key = fairness_key(longest + "x")
    assert len(key) == FAIRNESS_KEY_BYTES
    assert key.startswith("x" * (FAIRNESS_KEY_BYTES - 33) + "~")


def test_a_pool_has_a_queue_of_its_own() -> None:
    assert pool_queue("far") == "supervisor.far"
