"""Files that are trusted, hosts that get a credential, and credentials that are replaced in stored texts."""

import base64
import json
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from temporal_supervisor.supervision.base.trust import (
    Credentials,
    distrust,
    host_and_port,
    is_readable_by_others,
    require_http,
    unshared,
)

ME = 1000


def folder(mode: int, uid: int = ME, gid: int = ME) -> os.stat_result:
    return os.stat_result((stat.S_IFDIR | mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        *((folder(mode), None) for mode in (0o700, 0o755, 0o775, 0o500)),
        (folder(0o775, uid=0, gid=0), None),
        (folder(0o750, gid=20), None),
        (folder(0o770, gid=20), "others can write to it"),
        (folder(0o700, uid=1001), "it belongs to the user with number 1001"),
        *((folder(mode), "others can write to it") for mode in (0o777, 0o1777, 0o702)),
    ],
)
def test_only_what_its_owner_alone_can_change_is_trusted(status: os.stat_result, reason: str | None) -> None:
    assert distrust(status, ME) == reason


@pytest.mark.parametrize(
    ("mode", "gid", "readable"),
    [
        *((0o700, 20, False), (0o750, 20, True), (0o704, 20, True)),
        *((0o700, ME, False), (0o750, ME, False), (0o710, ME, False), (0o701, ME, True)),
    ],
)
def test_others_can_read_by_the_groups_and_everybodys_permissions(mode: int, gid: int, readable: bool) -> None:
    assert is_readable_by_others(folder(mode, gid=gid)) is readable


@pytest.mark.parametrize(
    ("mode", "secret", "why"),
    [(0o755, False, ""), (0o755, True, "others can read it"), (0o700, True, ""), (0o702, False, "others can")],
)
def test_a_file_that_others_share_is_not_read(mode: int, secret: bool, why: str) -> None:
    with pytest.raises(ValueError, match=f"team.toml is not read: {why}") if why else nullcontext():
        unshared("team.toml", folder(mode), ME, secret=secret)


@pytest.mark.parametrize(
    ("url", "secret", "problem"),
    [
        ("https://a.example", True, None),
        ("http://a.example", False, None),
        ("http://localhost:1", True, None),
        ("http://[::1]:1", True, None),
        ("http://10.0.0.1:8080", True, "would send its headers unencrypted"),
        ("http://a.example", True, "would send its headers unencrypted"),
        ("ftp://a.example", False, "is not an http or https URL"),
        ("http://a.example:x", False, "is not an http or https URL"),
        ("https://", False, "it must name a host"),
        ("https://me:pass@a.example", False, "no user or password"),
    ],
)
def test_a_server_of_tools_has_a_url_that_keeps_its_secrets(url: str, secret: bool, problem: str | None) -> None:
    found = require_http(url, secret=secret)
    assert (found is None) == (problem is None)
    assert (problem or "") in (found or "")


@pytest.mark.parametrize(
    ("url", "place", "refusal"),
    [
        ("http://example.org/v1", "example.org:80", ""),
        ("https://example.org", "example.org:443", ""),
        ("https://example.org:8443/v1", "example.org:8443", ""),
        ("ftp://example.org", "", "not an http"),
        ("http://a:x", "", "not an http"),
        ("http://:80", "", "http or https URL of a host"),
    ],
)
def test_an_endpoint_has_a_host_and_the_port_of_its_kind(url: str, place: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal) if refusal else nullcontext():
        assert host_and_port(url) == place


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
