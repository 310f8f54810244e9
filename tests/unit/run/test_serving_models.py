"""Fallback chains: which model of one goes on, by what calls have met, and what waits while one is away."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.base.errors import ErrorKind
from supervision.run.serving_models import ServingModels
from tests.unit.shapes import Clock

CHAIN = ["large", "middle", "small"]


def test_the_first_model_that_serves_is_chosen() -> None:
    models = ServingModels(Clock())
    assert models.choose(CHAIN) == "large"
    assert models.failed("large", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0) == "middle"
    assert models.choose(CHAIN) == "middle"
    assert models.following(CHAIN, "middle") == "small"
    assert models.following(CHAIN, "small") is None


def test_a_model_comes_back_after_its_outage_and_an_unserved_one_by_a_person() -> None:
    clock = Clock()
    models = ServingModels(clock)
    models.failed("large", CHAIN, ErrorKind.CIRCUIT_OPEN, 60)
    models.failed("middle", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0)
    assert models.choose(CHAIN) == "small"
    clock.tick(60)
    assert models.choose(CHAIN) == "large"
    assert models.following(CHAIN, "large") == "small"
    models.retry_all()
    assert models.following(CHAIN, "large") == "middle"


def test_without_any_other_model_the_one_that_comes_back_first_is_awaited() -> None:
    models = ServingModels(Clock())
    models.failed("large", CHAIN, ErrorKind.CIRCUIT_OPEN, 90)
    models.failed("middle", CHAIN, ErrorKind.CIRCUIT_OPEN, 60)
    assert models.failed("small", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0) == "middle"
    gone = ["first", "second"]
    models.failed("first", gone, ErrorKind.MODEL_NOT_SERVED, 0)
    assert models.failed("second", gone, ErrorKind.MODEL_NOT_SERVED, 0) == "second"
    assert models.choose(gone) == "first"


def test_a_prompt_too_long_for_one_window_goes_to_the_next_model_and_leaves_none_out() -> None:
    models = ServingModels(Clock())
    assert models.failed("large", CHAIN, ErrorKind.CONTEXT_OVERFLOW, 0) == "middle"
    assert models.failed("small", CHAIN, ErrorKind.CONTEXT_OVERFLOW, 0) == "small", "the last one's failure stands"
    assert models.choose(CHAIN) == "large"


# --- outages ------------------------------------------------------------------------------------------


class _Work:
    """A piece of work that calls a model."""


def _waits(models: ServingModels, model: str, work: _Work) -> bool:
    """Has work wait for a model as runs do: first, or with the others. False if the model is not known to be away."""
    outage = models.outage(model)
    if outage is None:
        return False
    if outage.first is None:
        outage.first = work
    elif outage.first is not work:
        outage.waiting.add(work)
    return True


def test_a_late_answer_to_other_work_ends_nothing() -> None:
    models, first, late = ServingModels(Clock()), _Work(), _Work()
    outage = models.went_away("large", first, "busy")
    assert not models.answered("large", late), "before any goes first, too"
    outage.first = first
    assert not models.answered("large", late)
    assert not models.answered("small", first)
    assert models.outage("large") is outage
    assert outage.first is first


def test_rounds_count_the_failures_of_what_went_first_and_its_words_are_the_last() -> None:
    models, first, other = ServingModels(Clock()), _Work(), _Work()
    models.went_away("large", first, "busy")
    outage = models.went_away("large", other, "busier")
    assert (outage.rounds, outage.why) == (0, "busier")
    outage.first = first
    models.went_away("large", other, "as busy")
    assert (outage.rounds, outage.first) == (0, first)
    again = models.went_away("large", first, "down")
    assert (again.rounds, again.first, again.why) == (1, None, "down")
    assert again is outage


def test_an_answer_brings_a_model_back_before_its_time() -> None:
    models, work = ServingModels(Clock()), _Work()
    models.failed("large", ["large"], ErrorKind.CIRCUIT_OPEN, 600)
    models.went_away("large", work, "busy").first = work
    assert models.choose(["large", "small"]) == "small"
    assert models.answered("large", work)
    assert models.choose(["large", "small"]) == "large"


@given(st.lists(st.tuples(st.sampled_from(["fails", "answered", "leaves", "waits"]), st.integers(0, 3))))
def test_one_goes_first_until_it_is_answered_fails_or_leaves(steps: list[tuple[str, int]]) -> None:
    models, works = ServingModels(Clock()), [_Work() for _ in range(4)]
    rounds = 0
    for step, index in steps:
        work, before = works[index], models.outage("large")
        first = before.first if before else None
        others = before.waiting - {work} if before else set()
        match step:
            case "fails":
                outage = models.went_away("large", work, "busy")
                assert before in (None, outage)
                rounds = rounds + (first is work) if before else 0
                assert outage.rounds == rounds
                assert outage.first is (None if first is work else first)
            case "answered":
                ended = models.answered("large", work)
                assert ended == (first is work)
                assert models.outage("large") is (None if ended else before)
            case "leaves":
                models.leave(work)
                left = others or first not in (None, work)
                assert models.outage("large") is (before if left else None)
                assert before is None or (before.waiting, before.first) == (others, None if first is work else first)
            case "waits":
                assert _waits(models, "large", work) == (before is not None)
                assert before is None or before.first is (first or work)
        assert models.is_away(["large"]) == (models.outage("large") is not None)
