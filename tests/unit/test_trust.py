"""Files that are trusted, hosts that get a credential, and credentials that are replaced in what is kept."""

import base64
import json
import stat
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from supervision.base.trust import (
    Credentials,
    distrust,
    host_and_port,
    is_loopback,
    is_readable_by_others,
    require_private,
)

ME = 1000


@dataclass(frozen=True)
class Status:
    st_uid: int
    st_gid: int
    st_mode: int


def folder(mode: int, uid: int = ME, gid: int = ME) -> Status:
    return Status(uid, gid, stat.S_IFDIR | mode)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775, 0o500])
def test_what_only_its_owner_can_change_is_trusted(mode: int) -> None:
    assert distrust(folder(mode), ME) is None
    assert distrust(folder(mode, uid=0, gid=0), ME) is None


def test_what_belongs_to_somebody_else_is_not_trusted() -> None:
    assert distrust(folder(0o700, uid=1001), ME) == "it belongs to the user with number 1001"
    assert distrust(folder(0o700, uid=1001), 0) == "it belongs to the user with number 1001"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_what_everybody_can_write_to_is_not_trusted(mode: int) -> None:
    assert distrust(folder(mode), ME) == "every user of this machine can write to it"


def test_what_a_common_group_can_write_to_is_not_trusted() -> None:
    assert distrust(folder(0o770, gid=20), ME) == "the group with number 20 can write to it"
    assert distrust(folder(0o750, gid=20), ME) is None


@pytest.mark.parametrize(
    ("mode", "gid", "readable"),
    [(0o700, 20, False), (0o750, 20, True), (0o750, ME, False), (0o701, ME, True), (0o704, 20, True)],
)
def test_others_are_seen_when_they_can_read(mode: int, gid: int, readable: bool) -> None:
    assert is_readable_by_others(folder(mode, gid=gid)) is readable


@pytest.mark.parametrize("mode", [0o710, 0o700])
def test_the_owners_own_group_is_nobody_else(mode: int) -> None:
    assert not is_readable_by_others(folder(mode, gid=ME))


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, own: bool) -> None:
    assert is_loopback(host) is own


# --- the model's endpoint -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["https://api.example.org", "https://127.0.0.1", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:1"],
)
def test_a_key_travels_encrypted_or_inside_this_machine(url: str) -> None:
    require_private(url)


@pytest.mark.parametrize("url", ["http://api.example.org", "http://10.0.0.1:8080", "http://"])
def test_a_key_never_travels_as_plain_text(url: str) -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        require_private(url)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://example.org/v1", "example.org:80"),
        ("https://example.org", "example.org:443"),
        ("https://example.org:8443/v1", "example.org:8443"),
    ],
)
def test_an_endpoint_has_a_host_and_the_port_of_its_kind(url: str, place: str) -> None:
    assert host_and_port(url) == place


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://example.org", "not an http"),
        ("example.org", "not an http"),
        ("http://a:x", "not an http"),
        ("http://:80", "no host"),
    ],
)
def test_what_is_no_endpoint_says_what_is_wrong(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        host_and_port(url)


# --- credentials -----------------------------------------------------------------------------------

SECRET = 'Zq7-Lm2_"Xw9\\Tb4/Rk6=Vd1.Hs8~'
WORDS = "it is ", " and that is that"


@pytest.mark.parametrize("secret", [SECRET, SECRET[:12]])
def test_a_credential_is_replaced_in_texts_and_in_json(secret: str) -> None:
    credentials = Credentials(["", secret])
    assert credentials.withheld(f"{secret} is wrong") == "[secret] is wrong"
    assert json.loads(credentials.withheld(json.dumps({secret: [secret]}))) == {"[secret]": ["[secret]"]}


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", range(4))
def test_the_letters_of_base64_that_it_decides_are_replaced(encode: Callable[[bytes], bytes], before: int) -> None:
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
