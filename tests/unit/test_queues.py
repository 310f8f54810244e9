"""Fairness keys fit the server's limit and tell runs apart."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.limits import FAIRNESS_KEY_BYTES
from supervision.queues import fairness_key

ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(ids)
def test_every_key_fits(run_id: str) -> None:
    assert 0 < len(fairness_key(run_id).encode()) <= FAIRNESS_KEY_BYTES


@given(ids, ids, st.sampled_from(["", "x" * 100]))
def test_different_runs_have_different_keys(one: str, other: str, head: str) -> None:
    assert (fairness_key(head + one) == fairness_key(head + other)) == (one == other)


def test_an_ordinary_id_is_its_own_key() -> None:
    assert fairness_key("supervise-which-region-grew-most-4f2a") == "supervise-which-region-grew-most-4f2a"
