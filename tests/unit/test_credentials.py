"""Credentials are replaced as they are and in base64, and nothing else is taken for one."""

import base64
import json

import pytest

from supervision.trust import Credentials

SECRET = 'Zq7-Lm2_"Xw9\\Tb4/Rk6=Vd1.Hs8~'
WORDS = "it is ", " and that is that"


@pytest.mark.parametrize("secret", [SECRET, SECRET[:12]])
def test_a_credential_is_replaced_in_texts_and_in_json(secret: str) -> None:
    credentials = Credentials(["", secret])
    assert credentials.withheld(f"{secret} is wrong") == "[secret] is wrong"
    assert json.loads(credentials.withheld(json.dumps({secret: [secret]}))) == {"[secret]": ["[secret]"]}


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", range(4))
def test_of_base64_the_letters_that_the_credential_decides_are_replaced(encode: object, before: int) -> None:
    assert callable(encode)
    one, other = (encode(byte * before + SECRET.encode() + byte * 2).decode() for byte in (b"\x00", b"\xff"))
    credentials = Credentials([SECRET])
    shown = [credentials.withheld(f"{WORDS[0]}{text}{WORDS[1]}") for text in (one, other)]
    for text, kept in zip((one, other), shown, strict=True):
        left, right = kept.removeprefix(WORDS[0]).removesuffix(WORDS[1]).split("[secret]")
        assert (len(left), text.startswith(left)) == (-(-before * 4 // 3), True)
        assert text.endswith(right)
        assert len(right) <= 6


def test_words_and_parts_are_no_credentials() -> None:
    assert Credentials([SECRET]).withheld(SECRET[1:]) == SECRET[1:]
    assert Credentials(["placeholder"]).withheld("a placeholder") == "a placeholder"
    assert Credentials().withheld("anything") == "anything"
