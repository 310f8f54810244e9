"""The rule that finds a provider's limit, and the words in which a queue's configuration keeps it."""

import pytest

from supervision import limits
from supervision.provider.found_limit import FoundLimit, QueueLimit

AT = "2026-01-02T03:04:05.678+00:00"


def test_a_refusal_halves_the_rate_and_quiet_brings_it_back() -> None:
    found = FoundLimit.first(2.0, AT)
    assert found.rate == pytest.approx(2.0 * limits.FOUND_TOP * limits.FOUND_CUT)
    recovered = found.calmer(min(limits.FOUND_RECOVERY_CALLS / 2.0, limits.FOUND_RECOVERY_MAX.total_seconds()))
    assert recovered.rate == pytest.approx(2.0 * limits.FOUND_TOP, rel=0.02)


def test_beyond_the_refused_rate_it_rises_ever_faster() -> None:
    found = FoundLimit.first(2.0, AT).calmer(limits.FOUND_RECOVERY_MAX.total_seconds())
    rates = [found.calmer(seconds).rate for seconds in (0, 5, 10, 15, 20)]
    steps = [later - earlier for earlier, later in zip(rates, rates[1:], strict=False)]
    assert steps == sorted(steps)
    assert found.calmer(2 * limits.FOUND_PROBE.total_seconds()).rate >= 5 * 2.0 * limits.FOUND_TOP


def test_a_refusal_halves_the_rate() -> None:
    found = FoundLimit.first(1.0, AT).calmer(2.0)
    again = found.refused_again(AT)
    assert again.refused == pytest.approx(found.rate)
    assert again.rate == pytest.approx(found.rate * limits.FOUND_TOP * limits.FOUND_CUT)


def test_a_queue_never_stands_still() -> None:
    found = FoundLimit.first(1.0, AT)
    for _ in range(50):
        found = found.refused_again(AT)
    assert found.rate > 0


def test_rates_after_any_time_follow_from_the_words_alone() -> None:
    found = FoundLimit.first(1.0, AT).calmer(3.0).refused_again(AT).calmer(17.3)
    written = QueueLimit(found=found, named=1.5, share=9.0, total=10.0, by_hand=2.0, why="quota: 120/min")
    read = QueueLimit.read(written.rate, written.reason())
    assert read.found is not None
    assert read.found.rate == pytest.approx(found.rate, rel=0.01)
    assert read.found.calmer(60).rate == pytest.approx(found.calmer(60).rate, rel=0.01)
    assert read.named == pytest.approx(1.5, rel=0.01)
    assert read.total == pytest.approx(10.0)
    assert read.by_hand == pytest.approx(2.0)
    assert read.why == "quota: 120/min"


def test_a_rate_set_by_hand_is_a_ceiling_and_comes_back_when_the_refusals_end() -> None:
    limit = QueueLimit.read(2.0, "agreed with the provider")
    assert limit.ceiling == 2.0
    assert limit.is_by_hand_alone
    lowered = QueueLimit(found=FoundLimit.first(2.0, AT), by_hand=limit.by_hand, why=limit.why)
    assert lowered.rate is not None
    assert lowered.rate < 2.0
    assert "by hand: at most 120/min, agreed with the provider" in lowered.reason()
    raised = QueueLimit(found=FoundLimit.first(2.0, AT).calmer(300), by_hand=limit.by_hand, why=limit.why)
    assert raised.rate == 2.0
    assert raised.reason() == "agreed with the provider"


def test_a_pause_by_hand_is_kept() -> None:
    paused = QueueLimit.read(0.0, "maintenance")
    assert QueueLimit(found=FoundLimit.first(1.0, AT), by_hand=paused.by_hand, why=paused.why).rate == 0.0


def test_a_named_limit_is_never_exceeded() -> None:
    found = FoundLimit.first(1.0, AT).calmer(600)
    assert QueueLimit(found=found, named=2.0).rate == pytest.approx(2.0 * limits.FOUND_NAMED_SHARE)


def test_nothing_known_is_no_limit() -> None:
    assert QueueLimit.read(None, "").rate is None


@pytest.mark.parametrize("words", ["temporal-supervisor: ", "temporal-supervisor: 429 at soon", "x" * 900])
def test_words_that_nobody_wrote_do_no_harm(words: str) -> None:
    QueueLimit.read(1.0, words).reason()


# --- the curve at its corners ---------------------------------------------------------------------


@pytest.mark.parametrize(("refused", "seconds"), [(1.0, 34.0), (4.0, 18.75), (10.0, 12.0)])
def test_the_rate_is_back_after_so_many_calls_within_bounds_of_time(refused: float, seconds: float) -> None:
    found = FoundLimit.first(refused, AT)
    top = limits.FOUND_TOP * refused
    assert found.calmer(seconds - 0.5).rate < top
    assert found.calmer(seconds).rate == pytest.approx(top)
    assert found.calmer(seconds + 0.5).rate > top


def test_a_refusal_at_the_recovered_rate_is_a_new_and_lower_limit() -> None:
    found = FoundLimit.first(4.0, AT).calmer(18.75)
    assert found.refused_again(AT).refused == pytest.approx(4.0 * limits.FOUND_TOP)


@pytest.mark.parametrize(("rate", "seconds"), [(0.1, limits.FOUND_WINDOW_CALLS / 0.1), (100.0, 2.0)])
def test_refusals_of_a_few_calls_are_one_also_at_low_rates(rate: float, seconds: float) -> None:
    found = FoundLimit(rate / limits.FOUND_TOP / limits.FOUND_CUT, AT)
    assert found.window == pytest.approx(seconds)


def test_without_a_ceiling_refusals_are_forgotten_at_twenty_times_the_refused_rate() -> None:
    found = FoundLimit.first(4.0, AT)
    over = next(seconds for seconds in range(1000) if found.calmer(seconds).is_over(None))
    assert found.calmer(over).rate >= 20 * 4.0 > found.calmer(over - 1).rate


def test_a_ceiling_is_out_of_danger_once_twice_of_it_would_be_sent() -> None:
    rate = FoundLimit.first(4.0, AT).rate
    assert FoundLimit.first(4.0, AT).is_over(rate / 2)
    assert not FoundLimit.first(4.0, AT).is_over(rate / 1.99)


@pytest.mark.parametrize(("named", "ceiling"), [(5.0, 1.0), (0.5, 0.5 * limits.FOUND_NAMED_SHARE)])
def test_the_lower_one_of_what_is_set_and_what_is_named_is_the_ceiling(named: float, ceiling: float) -> None:
    assert QueueLimit(share=1.0, named=named).ceiling == pytest.approx(ceiling)


@pytest.mark.parametrize("share", [None, 9.0])
def test_a_share_is_written_while_the_queue_has_one(share: float | None) -> None:
    written = QueueLimit(found=FoundLimit.first(2.0, AT), share=share, total=10.0).reason()
    assert ("a share of SUPERVISOR_MODEL_RPM 600" in written) == (share is not None)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0.05, "3/min"),
        (16.508, "990.5/min"),
        (20.5083, "1230/min"),
        (166.664, "10000/min"),
        (200.0, "12000/min"),
        (20_000.0, "1200000/min"),
    ],
)
def test_a_rate_is_written_in_four_figures_and_never_with_an_exponent(rate: float, words: str) -> None:
    limit = QueueLimit(named=rate)
    assert f" {words}" in limit.reason()
    assert QueueLimit.read(limit.rate, limit.reason()).named == pytest.approx(rate, rel=0.001)
