"""Tokens per minute: no minute has more than its own, nobody waits for ever, guesses follow what calls really use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision import limits
from supervision.provider.token_bucket import TokenBucket, TokenForecast

PER_MINUTE = 60_000
BURST = PER_MINUTE * limits.TPM_BURST_SHARE


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(1, BURST)), min_size=1, max_size=60))
def test_no_minute_has_more_than_its_tokens(calls: list[tuple[float, float]]) -> None:
    bucket, now, spent = TokenBucket(PER_MINUTE), 0.0, []
    for pause, amount in calls:
        now += pause
        wait = bucket.wait(amount, now)
        bucket.take(amount, now)
        spent.append((now + wait, amount))
    for begin, _ in spent:
        assert sum(amount for at, amount in spent if begin <= at < begin + 60) <= PER_MINUTE * 1.001


@given(st.lists(st.floats(1, PER_MINUTE), min_size=2, max_size=30))
def test_who_takes_first_goes_first(amounts: list[float]) -> None:
    bucket = TokenBucket(PER_MINUTE)
    bucket.take(BURST, 0)
    waits = []
    for _ in amounts:
        waits.append(bucket.wait(BURST, 0))
        bucket.take(BURST, 0)
    assert waits == sorted(waits)


def test_a_full_bucket_serves_a_burst_and_refills_evenly() -> None:
    bucket = TokenBucket(PER_MINUTE)
    assert bucket.wait(BURST, 0) == 0
    bucket.take(BURST, 0)
    assert bucket.wait(900, 0) == pytest.approx(1)
    assert bucket.wait(900, 1) == 0


def test_an_amount_above_the_bucket_goes_when_it_is_full_and_is_paid_off_after() -> None:
    bucket = TokenBucket(PER_MINUTE)
    assert bucket.wait(10 * BURST, 0) == 0
    bucket.take(10 * BURST, 0)
    assert bucket.wait(1, 0) == pytest.approx(60, rel=0.01)


def test_what_was_not_spent_comes_back() -> None:
    bucket = TokenBucket(PER_MINUTE)
    bucket.take(BURST, 0)
    bucket.give_back(900, 0)
    assert bucket.wait(900, 0) == 0
    bucket.give_back(-900, 0)
    assert bucket.wait(900, 0) == pytest.approx(1)


def test_those_turned_away_are_sent_to_different_moments() -> None:
    bucket = TokenBucket(PER_MINUTE)
    bucket.take(2 * BURST, 0)
    delays = [bucket.turn_away(4500, 0) for _ in range(20)]
    assert delays[:3] == pytest.approx([bucket.wait(4500, 0) + step for step in (0, 5, 10)])
    assert max(delays) == limits.TPM_DELAY_MAX.total_seconds()


def test_a_moment_that_was_given_away_comes_nearer_and_passes() -> None:
    bucket = TokenBucket(PER_MINUTE)
    bucket.turn_away(4500, 0)
    assert bucket.turn_away(4500, 2) == pytest.approx(3)
    assert bucket.turn_away(4500, 60) == 0


def test_the_first_guess_is_by_length() -> None:
    assert TokenForecast().guess(3500, 16_000) == 1000 + limits.OUTPUT_TOKENS_GUESS
    assert TokenForecast().guess(3500, 10) == 1010


def test_guesses_follow_what_calls_use() -> None:
    forecast = TokenForecast()
    for _ in range(40):
        forecast.learn(10_000, 500, 200)
    assert forecast.guess(10_000, 16_000) == pytest.approx(700, rel=0.01)


def test_the_guess_of_an_answer_moves_a_fifth_of_the_way_to_the_newest() -> None:
    forecast = TokenForecast()
    forecast.learn(0, 0, 200)
    forecast.learn(0, 0, 700)
    assert forecast.guess(0, 16_000) == pytest.approx(300)
