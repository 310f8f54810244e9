"""Foreign text on a terminal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.base.terminal import look_alikes, revealed, safe, safe_json

CORPUS = {
    "\x1b[31mred\x1b[0m": "red",
    "a\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\b": "alinkb",
    "\x1b]0;title\x07text": "text",
    "\x1b]52;c;aGVsbG8=\x07clipboard": "clipboard",
    "\x1bP+q544e\x1b\\dcs": "dcs",
    "\x9b2Jcleared": "cleared",
    "\x9d0;title\x9ctext": "text",
    "\x1b[2J\x1b[Hhome": "home",
    "\x1b]0;never ends": "0;never ends",
    "user\u202etxt.exe": "usertxt.exe",
    "\u2066isolated\u2069": "isolated",
    "zero\u200bwidth\ufeff": "zerowidth",
    "tag\U000e0041\U000e0042": "tag",
    "bell\a backspace\b": "bell backspace",
    "one\r\ntwo\rthree\u2028four": "one\ntwo\nthree\nfour",
    "lone \ud800 surrogate": "lone \ufffd surrogate",
    "tab\tstays": "tab\tstays",
    "👩\u200d🔬 日本語 é": "👩\u200d🔬 日本語 é",
}


@pytest.mark.parametrize(("text", "shown"), CORPUS.items())
def test_sequences_and_hidden_characters_go_and_text_stays(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_survives(text: str) -> None:
    shown = safe(text)
    shown.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\n\t" or 0x7F <= ord(c) <= 0x9F for c in shown)
    assert safe(shown) == shown


@pytest.mark.parametrize("text", CORPUS)
def test_json_keeps_every_character_and_shows_none_of_the_dangerous_ones(text: str) -> None:
    shown = safe_json({"text": text})
    assert safe(shown) == shown
    assert json.loads(shown) == {"text": text}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user\u202etxt.exe", "user<U+202E>txt.exe"),
        ("a\x1b[2Jb", "a<U+001B>[2Jb"),
        ("one\ntwo\tthree", "one\ntwo<U+0009>three"),
        ("pay\u200d\u3164pal\ufe0f", "pay<U+200D><U+3164>pal<U+FE0F>"),
        ("no\u00a0break", "no<U+00A0>break"),
        ("日本語 é 👩", "日本語 é 👩"),
    ],
)
def test_what_can_not_be_seen_is_shown_where_a_person_decides(text: str, shown: str) -> None:
    assert revealed(text) == shown


@given(st.text())
def test_what_is_shown_to_decide_steers_no_terminal_and_loses_nothing(text: str) -> None:
    shown = revealed(text)
    assert safe(shown) == shown
    assert len(shown) >= len(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("to=board@p\u0430ypal.com", ["U+0430 CYRILLIC SMALL LETTER A in p\u0430ypal"]),
        ("to=\u0430\u0440\u0440\u04cf\u0435.com", ["U+0430", "U+0440", "U+04CF", "U+0435"]),
        ("\uff41dmin", ["U+FF41 FULLWIDTH LATIN SMALL LETTER A in \uff41dmin"]),
        ("Москва и сор", []),
        ("Москва и p\u0430ypal", ["U+0430"]),
        ("café, naïve, Ångström, 日本語", []),
    ],
)
def test_letters_that_look_latin_are_named(text: str, named: list[str]) -> None:
    found = look_alikes(text)
    assert [line[: len(name)] for line, name in zip(found, named, strict=True)] == named
