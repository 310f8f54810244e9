"""Credentials are found in any form that hides nothing, whole or in part, and nothing else is taken for one."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision import limits
from supervision.provider.credentials import Credentials

SECRET = "Zq7-Lm2_Xw9+Tb4/Rk6=Vd1.Hs8~"
WINDOW = limits.SECRET_WINDOW
letters = st.text(st.sampled_from("ac ?"), max_size=30)


def encoded(before: int) -> str:
    """The secret within a longer text, in base64."""
    return base64.b64encode(b"\xff" * before + SECRET.encode() + b"\xff\xff").decode()


@pytest.mark.parametrize(
    "form",
    [SECRET, SECRET[::-1], SECRET.encode().hex(), SECRET.encode().hex().upper(), *map(encoded, range(4))],
)
def test_a_credential_is_found_in_every_form(form: str) -> None:
    assert Credentials([SECRET]).are_in(f"it is {form}.")


@given(letters, letters, st.integers(0, len(SECRET) - WINDOW))
def test_a_part_is_found_wherever_it_stands(before: str, after: str, start: int) -> None:
    credentials = Credentials(["", SECRET])
    assert credentials.are_in(before + SECRET[start : start + WINDOW] + after)
    assert not credentials.are_in(f"{before}{SECRET[start : start + WINDOW - 1]} {after}")


def test_a_part_is_found_across_the_strings_of_a_value() -> None:
    credentials = Credentials([SECRET])
    assert credentials.are_in({"a": [1, SECRET[:9], None, {"": SECRET[9:]}]})
    assert credentials.are_in({SECRET[:6]: SECRET[6:]})
    assert credentials.are_in([{"": SECRET[:6]}, SECRET[6:]])
    assert not credentials.are_in([SECRET[6:12], SECRET[:6]])
    assert not credentials.are_in({"a": [1.5, "b", None, True]})


@pytest.mark.parametrize("secret", [SECRET, SECRET[:WINDOW]])
@pytest.mark.parametrize("before", range(4))
def test_just_the_letters_of_base64_that_the_credential_decides_count(secret: str, before: int) -> None:
    one, other = (base64.b64encode(byte * before + secret.encode() + byte).decode() for byte in (b"\x00", b"\xff"))
    credentials, parts = Credentials([secret]), range(len(one) - WINDOW + 1)
    decided = [start for start in parts if one[start : start + WINDOW] == other[start : start + WINDOW]]
    assert [start for start in parts if credentials.are_in(one[start : start + WINDOW])] == decided


def test_one_letter_less_than_a_part_does_not_count() -> None:
    credentials = Credentials([SECRET])
    assert not credentials.are_in(SECRET[: WINDOW - 1])
    assert not credentials.are_in(SECRET[1 - WINDOW :])
    assert Credentials([SECRET[:WINDOW]]).are_in(SECRET[:WINDOW])
    assert not Credentials([SECRET[: WINDOW - 1]]).are_in(SECRET[: WINDOW - 1])


def test_the_public_beginning_of_keys_does_not_count() -> None:
    credentials = Credentials([f"sk-ant-api03-{SECRET}"])
    assert not credentials.are_in("a key such as sk-ant-api03-... is needed")
    assert credentials.are_in(SECRET)
    assert Credentials([f"sk-ant-api03-{SECRET[:4]}sk-ant-{SECRET[4:]}"]).are_in(f"{SECRET[:4]}sk-ant-{SECRET[4]}")


def test_a_message_is_shown_without_the_credential() -> None:
    credentials = Credentials(["k3y", SECRET])
    assert credentials.withheld("k3y is wrong") == "[secret] is wrong"
    assert credentials.withheld(f"{SECRET} is wrong") == "[secret] is wrong"
    assert credentials.withheld(f"{SECRET[1:]} is wrong") == "[withheld: it holds the credential]"
    assert Credentials().withheld("anything") == "anything"


def test_without_credentials_nothing_is_one() -> None:
    assert not Credentials().are_in(SECRET)
    assert not Credentials(["short"]).are_in("short")
