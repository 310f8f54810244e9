"""Texts are cut and cleaned, errors have one row for each kind, fairness keys tell runs apart."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base.errors import RETRIED, ErrorKind, call_kind, run_kind
from temporal_supervisor.supervision.base.queues import fairness_key, pool_queue
from temporal_supervisor.supervision.base.text import (
    NAME_SHOWN_BYTES,
    cap,
    clean,
    cut,
    did_you_mean,
    has_whole,
    label,
    money,
    one_line,
    quoted,
    size,
    slug,
)
from tests.unit.shapes import any_text


@given(any_text, st.integers(0, 60))
@example("four", 4)
def test_a_cut_text_is_valid_and_within_its_bytes(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode("utf-8")) <= limit
    whole = text.encode("utf-8", "replace").decode()
    assert whole.startswith(short.removesuffix("…"))
    assert size(text) == len(whole.encode())
    assert (short == whole) == (size(text) <= limit)
    if limit >= 3 and short != whole:
        assert short.endswith("…")
        assert len(short.encode("utf-8")) > limit - 4  # no more is dropped than one character needs


@given(any_text, st.integers(0, 60))
def test_one_line_is_one_line_within_its_bytes(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line.encode("utf-8")) <= limit
    assert len(line.splitlines()) <= 1
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]|\s\s", line)


@given(any_text, st.integers(1, 60))
def test_a_slug_is_fit_for_an_id(text: str, limit: int) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug(text, limit))
    assert len(slug(text, limit)) <= max(limit, len("goal"))


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (slug, ("Which region grew most in 2024?",), "which-region-grew-most-in-2024"),
        (slug, ("漢字!",), "goal"),
        (one_line, ("\x1b[2Jall\r\n good\x00", 50), "[2Jall good"),
        (one_line, ("\U0001f469\u200d\U0001f52c", 50), "\U0001f469\u200d\U0001f52c"),  # joined letters stay joined
        (one_line, ("a\u202e\u2066b\n\u200b\ufeff\U000e0041\u00adc", 50), "ab c"),  # they change how others are shown
        (label, ("[Pay](http://evil) ![x](y) <b>\\[z]", 200), r"\[Pay\](http://evil) !\[x\](y) \<b>\\\[z\]"),
        (label, ("Sum the sales of 2001", 200), "Sum the sales of 2001"),
        (quoted, ("a\nb",), "'a b'"),
        (quoted, ("x" * 500,), f"'{'x' * (NAME_SHOWN_BYTES - 3)}…'"),
        (cap, ("x" * 1000, 1000), "x" * 1000),
        (money, (None,), "cost unknown"),
        (money, (0.0,), "$0"),
        (money, (0.99994,), "$0.9999"),
        (money, (1.0,), "$1.00"),
        (money, (1234.5,), "$1,234.50"),
        (pool_queue, ("far",), "supervisor.far"),
        (ErrorKind, ("Strange",), "Unexpected"),
        (run_kind, (ErrorKind.TIMEOUT,), "DeadlineExceeded"),
        (run_kind, (ErrorKind.INVALID_PLAN,), "InvalidPlan"),
    ],
)
def test_texts_and_names_are_made_as_people_read_them(
    function: Callable[..., str], arguments: tuple[Any, ...], expected: str
) -> None:
    assert function(*arguments) == expected


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]52;c;YQ==\x1b\\x", "x"),
        ("\x1bP1$r\x1b\\x\x1b(Bx\x1bc", "xx"),
        ("\x1b", ""),
        ("a\x00\x08\x7f\x9bb", "ab"),
        ("\ud800x\udfff", "\ufffdx\ufffd"),
        ("a\u202eb\u200bc\ufeff\U000e0041\u00add", "abcd"),
        ("日本 é 👩‍💻", "日本 é 👩‍💻"),
    ],
)
def test_text_is_cleaned(text: str, plain: str) -> None:
    assert clean(text) == plain


@given(st.text(st.characters(codec=None), max_size=300), st.integers(100, 300))
def test_any_text_becomes_storable_and_short(text: str, limit: int) -> None:
    shown = cap(text, limit)
    assert len(shown) <= limit
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not {c for c in shown if ord(c) < 32} - {"\n", "\t"}
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("serch", ["look", "search"], ", did you mean 'search'?"),
        ("Web-Search", ["web_search", "web_searches"], ", did you mean 'web_search'?"),
        ("look_up", ["LOOK-UP"], ", did you mean 'LOOK-UP'?"),
        ("search", ["search", "searches"], ", did you mean 'search'?"),
        ("serch", [], ""),
    ],
)
def test_the_closest_known_name_is_suggested(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint


@pytest.mark.parametrize(
    ("text", "words", "is_found"),
    [
        ("sales of the far north", "far north", True),
        ("sales of the northern part", "north", False),
        ("sales of the south", "north", False),
        ("C++ (2011)", "(2011)", True),
    ],
)
def test_words_are_found_whole_in_a_text(text: str, words: str, is_found: bool) -> None:
    assert has_whole(text, words) is is_found


@pytest.mark.parametrize(
    ("hidden", "letters", "kept"),
    [(300, 100, 100), (299, 101, 20), (301, 100, 20), (390, 110, 10), (0, 10_000_000, 20)],
)
def test_a_cut_says_how_much_is_missing(hidden: int, letters: int, kept: int) -> None:
    """Only the first four times `limit` characters are cleaned: later ones count as left out."""
    total, shown = hidden + letters, cap("\u200b" * hidden + "a" * letters, 100)
    cut_off = f"\n[cut: {total - kept} of {total} characters are left out]"
    assert shown == "a" * kept + (cut_off if kept < 100 else "")


def test_errors_that_outlived_their_retries_are_one_kind_and_others_keep_their_name() -> None:
    outlived = {*RETRIED, ErrorKind.PROCESS_DIED, ErrorKind.UNEXPECTED}
    assert {call_kind(kind) for kind in outlived} == {ErrorKind.MODEL_UNAVAILABLE}
    assert [call_kind(kind) for kind in ErrorKind if kind not in outlived] == [
        k for k in ErrorKind if k not in outlived
    ]


ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(ids, ids, st.sampled_from(["", "x" * 100]))
def test_every_key_fits_and_differs_from_those_of_other_runs(one: str, other: str, head: str) -> None:
    assert 0 < len(fairness_key(head + one).encode()) <= 64
    assert (fairness_key(head + one) == fairness_key(head + other)) == (one == other)
