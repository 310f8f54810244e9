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
