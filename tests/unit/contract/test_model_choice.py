"""Chains of models and efforts as people write them."""

import pytest
from pydantic import TypeAdapter, ValidationError

from supervision.contract.model_choice import MODEL_CHAIN, Efforts, ModelChain, chain_of

CHAINS: TypeAdapter[list[str]] = TypeAdapter(ModelChain)


@pytest.mark.parametrize(("written", "chain"), [("a", ["a"]), (["a"], ["a"]), (["b", "a"], ["b", "a"])])
def test_one_model_or_several_are_a_chain_in_their_order(written: object, chain: list[str]) -> None:
    assert CHAINS.validate_python(written) == chain


def names(count: int) -> list[str]:
    return [f"model-{n}" for n in range(count)]


def test_a_chain_has_as_many_models_as_allowed() -> None:
    assert CHAINS.validate_python(names(MODEL_CHAIN)) == names(MODEL_CHAIN)


@pytest.mark.parametrize("written", [[], ["a", "b", "a"], names(MODEL_CHAIN + 1), "", None, [1]], ids=str)
def test_what_is_no_chain_is_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        CHAINS.validate_python(written)


def test_a_setting_names_models_by_commas() -> None:
    assert chain_of(" a,b , c") == ["a", "b", "c"]


def test_a_setting_that_names_a_model_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        chain_of("a, a")


def test_one_word_is_the_effort_of_every_attempt() -> None:
    efforts = Efforts.model_validate("low")
    assert [efforts.of_attempt(number) for number in (1, 2, 3)] == ["low", "low", "low"]


def test_later_attempts_may_have_another_effort_than_the_first() -> None:
    efforts = Efforts.model_validate({"first": "low", "later": "high"})
    assert [efforts.of_attempt(number) for number in (1, 2, 3)] == ["low", "high", "high"]


def test_without_a_word_the_effort_is_the_models_own() -> None:
    assert Efforts().of_attempt(1) is None
