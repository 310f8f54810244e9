"""Texts that models read: ordinary sentences, without the words of a house dialect that small models have to guess."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.teams import toolbox
from activities.tools.tool import Arguments

assert toolbox.KINDS  # it imports the tools of all kinds
ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for pattern in (
        "activities/prompts/*.py", "activities/questions/*.py", "activities/replies/*.py", "activities/tools/**/*.py",
        *(f"temporal_supervisor/supervision/{rules}.py" for rules in ("agent/*", "planning/*", "base/prompt_marks")),
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
            yield from texts(part) if name not in ("sql", "question", "example") else ()
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    elif isinstance(value, str):
        yield value


# What a model may take for data: figures of two digits and more, and names within a sentence. The scale of confidence
# and the usual weight are the values of their own fields.
FIGURE = re.compile(r"(?<![\w.])\d[\d.,]*\d(?!\w)")
SCALE = {"0.95", "0.8", "0.6", "0.3", "0.5"}
NAME = re.compile(r"(?<=[a-z,;(\[] )[A-Z][a-z]+\b")
NO_NAMES = {"Markdown"}
PATTERN = re.compile(r"\*\.\w")  # files:*.pdf
PROMPTS = [path for path in MODULES if path.parent.name in ("prompts", "questions") or path.name == "agent_tools.py"]


def taken_for_data(text: str) -> list[str]:
    """The figures and names of a text that could come back as data."""
    figures = [figure for figure in FIGURE.findall(text) if figure not in SCALE]
    names = [name for name in NAME.findall(text) if name not in NO_NAMES]
    return figures + names + PATTERN.findall(text)


def descriptions(schema: Any) -> Iterator[str]:
    """Yields the descriptions in a schema."""
    if isinstance(schema, dict):
        for name, part in schema.items():
            yield from [part] if name == "description" and isinstance(part, str) else descriptions(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from descriptions(part)


@pytest.mark.parametrize("text", ["in Norway", "as in 134 (1,234)", "files:*.pdf", "(79.4 / 40.2)", "from 1952"])
def test_an_example_that_could_be_data_is_noticed(text: str) -> None:
    assert taken_for_data(f"Write it {text}.")


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_example_of_a_prompt_could_be_data(path: Path) -> None:
    assert [(text, found) for text in constants(path.read_text()) if (found := taken_for_data(text))] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("teams/*/team.toml")), ids=lambda path: path.parent.name)
def test_no_example_of_a_bundled_team_could_be_data(path: Path) -> None:
    team = tomllib.loads(path.read_text())
    prompts = [role.get("system_prompt", "") for role in team["roles"]]  # a role that is a team or a person has none
    said = [team.get("planning", {}).get("instructions", ""), *prompts]
    assert [(text, found) for text in said if (found := taken_for_data(text))] == []


@pytest.mark.parametrize("arguments", [*Arguments.__subclasses__()], ids=lambda arguments: arguments.__name__)
def test_no_example_of_a_tool_could_be_data(arguments: type[Arguments]) -> None:
    said = [text for text in descriptions(arguments.model_json_schema()) if "numbers, + - *" not in text]
    assert [(text, found) for text in said if (found := taken_for_data(text))] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_for_models_are_ordinary_sentences(path: Path) -> None:
    assert [(text, match[0]) for text in constants(path.read_text()) for match in DIALECT.finditer(text)] == []


# Bytes of the demo's first requests to a model with a large window, by their sections in docs/prompts.md. Each call of
# each run pays for them: a rule that is worth more than it costs takes the place of another.
SIZES = {
    "plan.1.1": 11_791, "t1/1/turn.1": 5_894, "t2/1/turn.1": 5_282, "review.1": 15_000, "synthesis.1": 8_800,
}  # fmt: skip
SHORT_SIZES = {"plan.1.1": 5_400, "t1/1/turn.1": 5_300}


def sizes(page: str) -> dict[str, int]:
    """The bytes of each request on a page of prompts."""
    found = {}
    for section in page.split("\n## `")[1:]:
        blocks = re.findall(r"````(\w+)\n(.*?)\n````", section, re.DOTALL)
        parts = [json.dumps(json.loads(part)) if kind == "json" else part for kind, part in blocks]
        found[section.partition("`")[0]] = sum(len(part.encode()) for part in parts)
    return found


def test_prompts_do_not_grow() -> None:
    full, short = (ROOT / "docs/prompts.md").read_text(encoding="utf-8").split("# What a model with a small window")
    grown = [sizes(page) for page in (full, short)]
    for found, most in zip(grown, (SIZES, SHORT_SIZES), strict=True):
        assert {name: size for name, size in found.items() if size > most.get(name, size)} == {}
        assert most.keys() <= found.keys()


@pytest.mark.parametrize("path", sorted(ROOT.glob("teams/*/team.toml")), ids=lambda path: path.parent.name)
def test_bundled_teams_speak_in_ordinary_sentences(path: Path) -> None:
    said = texts(tomllib.loads(path.read_text()))
    assert [(text, match[0]) for text in said for match in DIALECT.finditer(text)] == []
