"""Every pattern of the packages is linear: whatever text it reads, twice the text takes twice the time."""

import re

import pytest

from tests.corpus.growth import slow_text
from tests.corpus.patterns import Found, all_patterns


def test_no_pattern_outgrows_its_text() -> None:
    found = all_patterns()
    slow = {one.name: (one.pattern.pattern, text) for one in found if (text := slow_text(one)) is not None}
    assert slow == {}, "\n".join(f"{name}: {pattern}" for name, (pattern, _) in slow.items())
    names = {one.name for one in found}
    assert len(names) >= 150
    # A global, one in a collection, one of a class, one in the body of a function.
    assert "activities.prompts.prompt_blocks._OWN_TAG" in names
    assert any(re.search(r"\.\d+$", name) for name in names)
    assert any(re.search(r":\d+$", name) for name in names)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"<(?=\s*/?\s*(?:goal|subtask)\b)", "search"),
        (r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)", "search"),
        (r"(\d+) tokens", "search"),
        (r"(.+?)\s*\[(\w+)\]", "fullmatch"),
        (r"(a+)+$", "match"),
        (r"x(?:y|yy)*z", "match"),
    ],
)
def test_the_measure_finds_a_pattern_that_is_not(pattern: str, method: str) -> None:
    assert slow_text(Found("a pattern", re.compile(pattern), method)) is not None


def test_a_pattern_that_is_only_matched_is_tried_so() -> None:
    pattern = re.compile(r"\s*[-*]\s+")
    assert slow_text(Found("a pattern", pattern, "match")) is None
    assert slow_text(Found("a pattern", pattern, "search")) is not None
