"""Tools that hand text through: formatting and attachments."""

from typing import Any

import pytest

from activities.tools.text_tools import PAGE, format_document, read_attachment
from activities.tools.tool import ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits


async def render(title: str, *sections: tuple[str, str]) -> ToolOutput:
    tool = format_document("format_document")
    parts = [{"heading": heading, "body": body} for heading, body in sections]
    return await tool.run(tool.arguments.model_validate({"title": title, "sections": parts}), ToolContext())


async def test_a_document_is_rendered_and_kept_as_a_file() -> None:
    output = await render("Life & Wealth", ("Figures", "- 82.6 years\n"), ("", "Only text."))
    assert output.text == "# Life & Wealth\n\n## Figures\n\n- 82.6 years\n\nOnly text.\n"
    (artifact,) = output.artifacts
    assert (artifact.name, artifact.media_type) == ("life-wealth.md", "text/markdown")
    assert artifact.data.decode() == output.text


async def test_control_characters_never_reach_the_document() -> None:
    output = await render("# A\x1b]0;title\x07\nB\x00", ("H\r\n## x", "a\x1b[2Jb\u202ec\r\nd"))
    assert output.text == "# A B\n\n## H ## x\n\nabc\nd\n"


async def test_a_title_without_letters_still_names_a_file() -> None:
    assert (await render("日本", ("x", "y"))).artifacts[0].name == "document.md"


@pytest.mark.parametrize(("title", "sections"), [("\x00 #", [("a", "b")]), ("T", [("", " \x00")])])
async def test_an_empty_document_is_a_misuse(title: str, sections: list[tuple[str, str]]) -> None:
    with pytest.raises(ToolMisuse, match="empty"):
        await render(title, *sections)


async def read(context: ToolContext, **arguments: Any) -> ToolOutput:
    tool = read_attachment("read_attachment")
    return await tool.run(tool.arguments.model_validate(arguments), context)


def attached(**texts: str) -> ToolContext:
    def reader(text: str) -> Any:
        async def give() -> str:
            return text

        return give

    return ToolContext(attachments={name: reader(text) for name, text in texts.items()})


async def test_a_long_attachment_is_read_in_pages_without_loss() -> None:
    text = "".join(chr(97 + n % 26) for n in range(2 * PAGE + 100))
    context = attached(big=text)
    pages, offset = [], 0
    while offset < len(text):
        output = (await read(context, name="big", offset=offset)).text
        assert len(output) <= limits.TOOL_OUTPUT_CHARS
        pages.append(output.split("\n[characters")[0])
        offset += PAGE
    assert "".join(pages) == text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"name": "../notes"}, "It has: notes"), ({"name": "notes", "offset": 99}, "only 5 characters")],
)
async def test_a_wrong_name_or_offset_is_explained(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolMisuse, match=problem):
        await read(attached(notes="hello"), **arguments)
