"""Parsers of foreign text: twice the text takes at most three times as long.

Patterns alone are looked at in test_patterns: here are the parsers around them, and those of libraries.
"""

import json
import tomllib
from collections.abc import Callable
from typing import NamedTuple

import pytest

from activities.files.document_files import _html_text, text_passages
from activities.prompts.prompt_blocks import plain
from activities.questions.planner import PlanDraft, plan_of
from activities.replies import schema_rules
from activities.teams.team_files import TEAM_FILE_BYTES
from activities.tools.plain_tools import CALCULATOR_CHARS, evaluate
from temporal_supervisor.console.base.terminal import safe
from temporal_supervisor.supervision.agent.agent_tools import conclude
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cap, clean, one_line, slug
from temporal_supervisor.supervision.contract.request import RunRequest, describe_errors
from temporal_supervisor.supervision.grounding.calculations import calculated
from temporal_supervisor.supervision.grounding.claims import claims, plain_text
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check
from temporal_supervisor.supervision.grounding.written_figures import figures
from temporal_supervisor.supervision.planning.plan_graph import plan_problems
from temporal_supervisor.supervision.replies.loose_json import first_json
from temporal_supervisor.supervision.replies.thinking import without_thinking
from temporal_supervisor.supervision.replies.written_calls import first_call
from tests.corpus.growth import LONGEST, ON_THE_LOOP, grows_too_fast

REPLY = 400_000  # characters: the longest output of a model, and some
GROUNDED = 50_000  # characters, a quarter of the cap
SHORT = 2_000  # characters: shorter texts are read whole


class Family(NamedTuple):
    """Texts `prefix + unit * n + suffix`."""

    prefix: str
    unit: str
    suffix: str = ""

    def text(self, n: int) -> str:
        return self.prefix + self.unit * n + self.suffix

    def units(self, most: int) -> int:
        """How many fit into so many characters, as a power of two."""
        return 1 << (((most - len(self.prefix + self.suffix)) // len(self.unit)).bit_length() - 1)


class Parser(NamedTuple):
    """A parser, texts that it reads, and the longest of them."""

    parse: Callable[[str], object]
    families: list[Family]
    most: int = REPLY
    on_the_loop: bool = False

    @property
    def longest(self) -> float:
        """CPU seconds that it may take for the longest text."""
        return ON_THE_LOOP if self.on_the_loop else LONGEST


def units(*repeated: str) -> list[Family]:
    return [Family("", unit) for unit in repeated]


def plan(text: str) -> object:
    return plan_problems(plan_of(PlanDraft.model_validate(first_json(text)), "goal", 1), 12)


def complaints(text: str) -> object:
    try:
        return RunRequest.model_validate(json.loads(text))
    except ValueError as error:
        return describe_errors(error)  # type: ignore[arg-type]


def schema(text: str) -> object:
    value = json.loads(text)
    return schema_rules.complaint(value), schema_rules.as_sent(value)


def call(text: str) -> object:
    return first_call(text, {"query_data": {"required": ["sql"]}})


def texts(text: str) -> object:
    return clean(text), cap(text, limits.TOOL_OUTPUT_CHARS), one_line(text, 300), slug(text), safe(text), plain(text)


def grounded(text: str) -> object:
    return check(text, [Source(text), Source(text, "computed", text)])


BRACKETS = ["{", "[", '{"a":', '["', '{"a" 1} ', "[1 ", "{ ", "[[1]", '{"a":[', "{x} ", "[-", '"{', "\\{"]
BLANKS = [" ", "\n", "\t \n", "\u2028"]
ESCAPES = ["\x1b", "\x1b[", "\x1b]", "\x1b]a", "\x1bP", "\x9d", "\x9b", "\u202e", "\ud800", "\x00", "\x1b]8;;"]
MARKDOWN = ["#", "# ", "# a\n", "\n\n", "\n \n", "> ", "- a\n", "*", "| a ", "`", "[a](", "\n\n\n \t"]
FIGURES = ["1 ", "1,", "12,345 ", "1.5 kg ", "about 5 million dollars, ", "1 000 ", "9e9 ", "5 m and 5 kg, ", "[t1] "]
SUMS = ["13+14=27 ", "27 (13+14) ", "13+", "13 (", "((", "13=", "13 × 14 = ", "1,234 + 1,234 = 13 %; "]
MARKUP = [
    "<!", "<!--", "<?", "</", "<![CDATA[", "<", "<p>", "<td>a", '<a b="', "<a b='", "<a =", "<script>",
    "</scrip", "&a;", "&",
]  # fmt: skip
QUOTES = ['"', '"a b c d e" ', "“", "> a b c d\n", "www.a.de ", "a@b.c ", "https://", "10.1234/", "a.", "`1", "```\n"]

CALLS = [
    "<tool_call>",
    "[TOOL_CALLS]",
    "\n{",
    "\n{'",
    "\n[ {",
    "<function=query_data>{",
    "<parameter=a>",
    "```tool_code\n",
]
WRITTEN = '{"name": "query_data", "arguments": {"sql": "1"}}'
TAGS = ["<think>", "</think>\n", "<think></think>", "[THINK]", "<|channel|>final<|message|>"]

PARSERS = {
    "first_json": Parser(
        first_json,
        [
            *units(*BRACKETS, *BLANKS),
            *(Family('{"a": ', unit, "1") for unit in BRACKETS),
            *(Family("words ", unit, '{"a": 1}') for unit in BRACKETS),
            Family('{"a": "', "\\u0041"),
            Family('{"a": [', "1,", "1]}"),
            Family('{"a": [', '{"b":1},', "1]}"),
        ],
        on_the_loop=True,
    ),
    "first_call": Parser(
        call,
        [
            *units(*BRACKETS, *BLANKS, *CALLS),
            *(Family("words\n", unit, WRITTEN) for unit in (*BRACKETS, *CALLS)),
            *(Family(WRITTEN[:-1], unit) for unit in BLANKS),
            Family("[query_data(sql=", "[", "1"),
            Family("```sql\n", "`` ", "\n```"),
        ],
        on_the_loop=True,
    ),
    "without_thinking": Parser(
        without_thinking,
        [*units(*BLANKS, *TAGS), *(Family("<think>", unit) for unit in TAGS)],
        on_the_loop=True,
    ),
    "plan": Parser(
        plan,
        [
            Family('{"subtasks": [', '{"id": "a", "role": "r", "description": "d"},', '{"id": "b"}]}'),
            Family(
                '{"subtasks": [{"id": "a", "role": "r", "description": "some words", "depends_on": [', '"a",', '"b"]}]}'
            ),
            Family('{"subtasks": [', '{"id": 1},', "2]}"),
            Family('{"subtasks": [{"id": "a", "role": "r", "description": "', " ", '"}]}'),
        ],
        on_the_loop=True,
    ),
    "complaints": Parser(
        complaints,
        [
            Family('{"goal": "g", "attachments": [', "{},", "{}]}"),
            Family('{"goal": "', " ", '"}'),
            Family('{"goal": "g", "success": "', "1", '/2"}'),
        ],
        on_the_loop=True,
    ),
    "texts": Parser(texts, [*units(*ESCAPES, *BLANKS), Family("\x1b[", "0"), Family("<", " ", "y")], on_the_loop=True),
    "passages": Parser(lambda text: list(text_passages(text)), units(*MARKDOWN, *BLANKS)),
    "markup": Parser(lambda text: list(_html_text(text)), units(*MARKUP, *BLANKS)),
    "conclude": Parser(
        conclude,
        [*units("confidence: ", "- ", "; ", "_*", *BLANKS), Family("Limitations:\n", "* - > ")],
        on_the_loop=True,
    ),
    "calculator": Parser(
        evaluate, [Family("", unit, "1") for unit in ("(", "-", "1+", "9**", "sqrt(", "1 ")], CALCULATOR_CHARS
    ),
    "schema": Parser(
        schema,
        [
            Family('{"enum": [', "1,", "1]}"),
            Family('{"anyOf": [', "{},", "{}]}"),
            Family('{"$defs": {"a": {}}, "anyOf": [', '{"$ref": "#/$defs/a"},', "{}]}"),
            Family('{"properties": {"a": {"$ref": "#', "/properties", '"}}}'),
            *(
                Family(f'{{"$defs": {{"a": {{{said}}}}}, "anyOf": [', f"{{{refers}}},", "{}]}")
                for said, refers in (
                    ('"$anchor": "a"', '"$ref": "#a"'),
                    ('"$dynamicAnchor": "a"', '"$dynamicRef": "#a"'),
                    ('"$dynamicAnchor": "a"', '"$ref": "#a"'),
                    ('"$id": "a"', '"$ref": "#/$defs/a"'),
                )
            ),
            *(Family(f'{{"{word}": [', '{"$anchor": "a"},', "{}]}") for word in ("allOf", "oneOf", "prefixItems")),
            Family('{"$defs": {"a": {"$anchor": "a"}}, "allOf": [', '{"items": {"$ref": "#a"}},', "{}]}"),
            Family('{"required": ["', "a", '"]}'),
            Family('{"pattern": "', "a?", '"}'),
            Family('{"pattern": "', "(", '"}'),
        ],
        limits.ANSWER_SCHEMA_BYTES,
    ),
    "toml": Parser(
        tomllib.loads,
        [
            Family('name = "', "a", '"'),
            Family("", "# a\n"),
            Family("x = [", "1,", "]"),
            Family("", "[[roles]]\n"),
            Family("x = '''", "'", "a'''"),
        ],
        TEAM_FILE_BYTES,
    ),
    "claims": Parser(lambda text: list(claims(text)), [*units(*QUOTES, *MARKDOWN), Family("`", "a")], GROUNDED),
    "figures": Parser(lambda text: list(figures(text)), units(*FIGURES), GROUNDED),
    "calculations": Parser(lambda text: calculated(text, lambda figure: True), units(*SUMS), GROUNDED),
    "plain_text": Parser(plain_text, units(*BLANKS, "*", "ﷺ"), limits.GROUNDED_CHARS),
    "grounding": Parser(grounded, [*units(*FIGURES, *QUOTES), Family("base64: `", "iVBORw0KGgo")], GROUNDED // 4),
}


# A growth that would outlast `longest` at the whole size is well above the noise at an eighth of it.
@pytest.mark.parametrize(
    "share", [pytest.param(8, id="an eighth"), pytest.param(1, id="whole", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", PARSERS)
def test_twice_the_text_takes_at_most_three_times_as_long(name: str, share: int) -> None:
    parser = PARSERS[name]
    most = parser.most if parser.most <= SHORT else parser.most // share
    for family in parser.families:
        assert grows_too_fast(parser.parse, family.text, family.units(most), parser.longest) is None, family


@pytest.mark.parametrize("parse", [lambda text: [text.count("x", i) for i in range(0, len(text), 16)]])
def test_the_measure_catches_a_quadratic_parser(parse: Callable[[str], object]) -> None:
    # A busy machine may hide a growth once, by a slow measure of the smaller text.
    assert any(grows_too_fast(parse, lambda n: "x" * 64 * n, 1 << 10) for _ in range(3))
