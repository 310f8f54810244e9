"""Parsers on the event loop: twice the text takes at most three times as long, and the longest a second at most."""

import json
import re
import tomllib
from collections.abc import Callable
from typing import NamedTuple

import pytest
import sqlglot

from activities.model.structured import first_json
from activities.replies import schema_rules
from activities.replies.plan_drafts import PlanDraft, plan_of
from activities.tools.calculator import evaluate
from activities.tools.documents import Document
from console.terminal import safe
from supervision import limits
from supervision.agent.closing_lines import conclude
from supervision.contract.request import RunRequest, describe_errors
from supervision.planning.plan_graph import plan_problems
from supervision.text import cap, clean, one_line, slug
from tests.corpus.growth import grows_too_fast, seconds

REPLY = 400_000  # characters: the longest output of a model, and some
LONGEST = 2.0  # CPU seconds of a parser at its cap; the watchdog gives the loop 15


class Family(NamedTuple):
    """Texts `prefix + unit * n + suffix`, up to `most` characters."""

    parser: str
    prefix: str
    unit: str
    suffix: str = ""
    most: int = REPLY

    def text(self, n: int) -> str:
        return self.prefix + self.unit * n + self.suffix

    @property
    def units(self) -> int:
        """How many fit below the cap, as a power of two."""
        return 1 << (((self.most - len(self.prefix + self.suffix)) // len(self.unit)).bit_length() - 1)


def plan(text: str) -> object:
    return plan_problems(plan_of(PlanDraft.model_validate(first_json(text)), "goal", 1), 12)


def complaints(text: str) -> object:
    try:
        return RunRequest.model_validate(json.loads(text))
    except ValueError as error:
        return describe_errors(error)  # type: ignore[arg-type]


def toml(text: str) -> object:
    return tomllib.loads(text)


def passages(text: str) -> object:
    return Document("id", "title", clean(text)).passages()


def sql_tokens(text: str) -> object:
    return sqlglot.tokenize(text, read="duckdb")


def schema(text: str) -> object:
    value = json.loads(text)
    return schema_rules.complaint(value), schema_rules.as_sent(value)


PARSERS: dict[str, Callable[[str], object]] = {
    "first_json": first_json,
    "plan": plan,
    "complaints": complaints,
    "clean": clean,
    "cap": lambda text: cap(text, limits.TOOL_OUTPUT_CHARS),
    "one_line": lambda text: one_line(text, 300),
    "slug": slug,
    "conclude": conclude,
    "passages": passages,
    "safe": safe,
    "calculator": evaluate,
    "sql_tokens": sql_tokens,
    "schema": schema,
    "toml": toml,
}

BRACKETS = ["{", "[", '{"a":', '["', '{"a" 1} ', "[1 ", "{ ", "[[1]", '{"a":[', "{x} ", "[-", '"{', "\\{"]
BLANKS = [" ", "\n", "\t \n", "\r\n", "\u2028", "\x0b"]
ESCAPES = [
    "\x1b",
    "\x1b[",
    "\x1b[0",
    "\x1b]",
    "\x1b]a",
    "\x1bP",
    "\x1b(",
    "\x9b",
    "\u202e",
    "\ud800",
    "\x00",
    "\x1b]8;;",
]
MARKDOWN = ["#", "# ", "# a\n", "\n\n", "\n \n", "# \n", "> ", "- a\n", "*", "| a ", "`", "[a](", "\n\n\n \t"]
CLOSING = ["confidence", "confidence: ", "Limitations: ", "* - > ", "- ", "1. ", "confidence: 1 out of ", "; ", "_*"]

FAMILIES = [
    *(Family("first_json", "", unit) for unit in [*BRACKETS, *BLANKS]),
    *(Family("first_json", '{"a": ', unit, "1") for unit in BRACKETS),
    *(Family("first_json", "words ", unit, '{"a": 1}') for unit in BRACKETS),
    Family("first_json", '{"a": "', "\\u0041"),
    Family("first_json", '{"a": [', "1,", "1]}"),
    Family("first_json", '{"a": [', '{"b":1},', "1]}"),
    Family("plan", '{"subtasks": [', '{"id": "a", "role": "r", "description": "d"},', '{"id": "b"}]}'),
    Family(
        "plan", '{"subtasks": [{"id": "a", "role": "r", "description": "some words", "depends_on": [', '"a",', '"b"]}]}'
    ),
    Family("plan", '{"subtasks": [', '{"id": 1},', "2]}"),
    Family("plan", '{"subtasks": [{"id": "a", "role": "r", "description": "', " ", '"}]}'),
    Family("complaints", '{"goal": "g", "attachments": [', "{},", "{}]}"),
    Family("complaints", '{"goal": "', " ", '"}'),
    Family("complaints", '{"goal": "g", "success": "', "1", '/2"}'),
    *(Family(parser, "", unit) for parser in ("clean", "cap", "one_line", "slug", "safe") for unit in ESCAPES + BLANKS),
    *(Family(parser, "\x1b[", unit) for parser in ("clean", "safe") for unit in ("0", " ", ";", "?")),
    *(Family("passages", "", unit) for unit in MARKDOWN + BLANKS),
    *(Family("passages", "# ", unit, "x") for unit in BLANKS),
    *(Family("conclude", "", unit) for unit in CLOSING + BLANKS),
    *(Family("conclude", "Limitations:\n", unit) for unit in CLOSING),
    *(Family("conclude", "confidence: ", unit, "!") for unit in ("1", ".", " ", "*", "%")),
    *(Family("calculator", "", unit, "1", limits.CALCULATOR_CHARS) for unit in ("(", "-", "1+", "9**", "sqrt(", "1 ")),
    *(
        Family("sql_tokens", "SELECT ", unit, "1", limits.SQL_CHARS)
        for unit in ("(", "'", '"', "--", "/*", "$$", "a.", "1e", "\\", " JOIN t")
    ),
    *(
        Family("schema", prefix, unit, suffix, limits.ANSWER_SCHEMA_BYTES)
        for prefix, unit, suffix in (
            ('{"enum": [', "1,", "1]}"),
            ('{"anyOf": [', "{},", "{}]}"),
            ('{"$defs": {"a": {}}, "anyOf": [', '{"$ref": "#/$defs/a"},', "{}]}"),
            ('{"properties": {"a": {"$ref": "#', "/properties", '"}}}'),
            ('{"required": ["', "a", '"]}'),
            ('{"pattern": "', "a?", '"}'),
            ('{"pattern": "', "(", '"}'),
        )
    ),
    *(
        Family("toml", prefix, unit, suffix, limits.TEAM_FILE_BYTES)
        for prefix, unit, suffix in (
            ('name = "', "a", '"'),
            ("", "# a\n", ""),
            ("x = [", "1,", "]"),
            ("", "[[roles]]\n", ""),
            ("x = '''", "'", "a'''"),
        )
    ),
]


@pytest.mark.parametrize(
    "family", FAMILIES, ids=lambda family: f"{family.parser}-{ascii(family.prefix[:12] + family.unit)}"
)
def test_twice_the_text_takes_at_most_three_times_as_long(family: Family) -> None:
    parse = PARSERS[family.parser]
    assert seconds(parse, family.text(family.units)) < LONGEST
    assert grows_too_fast(parse, family.text, family.units) is None


def test_the_corpus_is_large_enough() -> None:
    assert len(FAMILIES) >= 120
    assert {family.parser for family in FAMILIES} == set(PARSERS)


@pytest.mark.parametrize(
    ("parse", "make"),
    [
        (lambda text: re.search(r"a*a*b", text), lambda n: "a" * n),
        (lambda text: [text[i:] for i in range(0, len(text), 4)], lambda n: "x" * 64 * n),
    ],
)
def test_the_measure_catches_a_quadratic_parser(parse: Callable[[str], object], make: Callable[[int], str]) -> None:
    # A busy machine may hide a growth once, by a slow measure of the smaller text.
    assert any(grows_too_fast(parse, make, 1 << 14) for _ in range(3))
