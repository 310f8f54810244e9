"""Texts that models read: ordinary sentences, without the words of a house dialect that small models have to guess."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for pattern in (
        "activities/prompts/*.py", "activities/questions/*.py", "activities/replies/*.py", "activities/tools/**/*.py",
        "supervision/agent/*.py", "supervision/planning/*.py", "supervision/base/prompt_marks.py",
    )
    for path in ROOT.glob(pattern)
)  # fmt: skip
DIALECT = re.compile(
    r"\b(nobody|told|anew|whoever|rest(s|ed)? on|go(es|ing)? on|(?<!there )is no\b(?! longer)|is none\b(?! of)|"
    r"whole (reply|goal|answer|question|plan)|one whole|address(es)?|code (looks|compares|checks)|mend(s|ing|ed)?|"
    r"in vain|for lack of|by code)\b",
    re.IGNORECASE,
)


def constants(source: str) -> Iterator[str]:
    """Yields the string constants of a module beside docstrings, single words and lists of words."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docs else None
        if isinstance(text, str) and " " in text and ("." in text or len(text) < 300):
            yield text


def texts(value: Any) -> Iterator[str]:
    """Yields the texts of a team file, without its queries."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from texts(part) if name not in ("sql", "question") else ()
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_for_models_are_ordinary_sentences(path: Path) -> None:
    assert [(text, match[0]) for text in constants(path.read_text()) for match in DIALECT.finditer(text)] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("teams/*/team.toml")), ids=lambda path: path.parent.name)
def test_bundled_teams_speak_in_ordinary_sentences(path: Path) -> None:
    said = texts(tomllib.loads(path.read_text()))
    assert [(text, match[0]) for text in said for match in DIALECT.finditer(text)] == []
