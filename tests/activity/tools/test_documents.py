"""Document search and reading: ranking, ids, and that no query and no path gets anywhere else."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from activities.tools.documents import DocumentOptions, DocumentTools
from activities.tools.files import FolderFiles, files_inside
from activities.tools.tool import Tool, ToolContext, ToolMisuse, ToolOutput
from tests.activity.files.made_tables import CACHE
from tests.office_files import pdf_bytes

BUNDLED = Path(__file__).parents[3] / "teams" / "almanac"
PATTERN = "documents/*.md"
KINDS = {"search_documents": "document_search", "read_document": "document_read"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "tides.md").write_text(
        "# Tides\n\nThe moon moves the sea.\n\n## Spring tides\n\nSun and moon in line.\n"
    )
    (documents / "bread.md").write_text("Flour, water and salt.\n\nThe dough rests.\n")
    (tmp_path / "secret.txt").write_text("canary-91c2")
    return tmp_path


async def tools(folder: Path, pattern: str = PATTERN) -> list[Tool[Any]]:
    return await DocumentTools(FolderFiles(folder, pattern, CACHE), KINDS, DocumentOptions(documents=pattern)).open()


async def search(folder: Path, query: str) -> ToolOutput:
    tool, _ = await tools(folder)
    return await tool.run(tool.arguments(query=query), ToolContext())


async def read(folder: Path, document_id: str, place: str = "", pattern: str = PATTERN) -> ToolOutput:
    _, tool = await tools(folder, pattern)
    return await tool.run(tool.arguments(document_id=document_id, place=place), ToolContext())


async def test_a_search_gives_the_best_passage_of_each_document_with_its_id(folder: Path) -> None:
    output = await search(folder, "the SUN in line?")
    assert output.text.startswith("[tides.md] Tides: Sun and moon in line.")
    assert output.sources[0] == "tides.md"


async def test_a_search_without_a_hit_lists_the_documents(folder: Path) -> None:
    output = await search(folder, "xylophone")
    assert "[bread.md] bread.md\n[tides.md] Tides" in output.text
    assert output.sources == []


async def test_files_of_one_name_but_for_folder_ending_or_owner_are_documents_of_their_own(folder: Path) -> None:
    (folder / "documents" / "moon").mkdir()
    for name in ("moon/tides.md", "tides.txt"):
        (folder / "documents" / name).write_text("The ferry waits for the tide.")
    pattern, names = "documents/**/*", ["tides.md", "moon/tides.md", "tides.txt"]
    assert ["moon" in (await read(folder, name, pattern=pattern)).text for name in names] == [True, False, False]
    _, tool = await tools(folder)
    run = ToolContext(files=FolderFiles(folder, "documents/moon/*", CACHE))
    named = [tool.arguments(document_id=name) for name in ("tides.md (of the team)", "tides.md")]
    assert ["moon" in (await tool.run(each, run)).text for each in named] == [True, False]


@pytest.mark.parametrize("document_id", ["../secret.txt", "/etc/passwd", "documents/tides.md", "/dev/zero"])
async def test_an_id_that_no_search_showed_is_answered_with_the_ids(folder: Path, document_id: str) -> None:
    with pytest.raises(ToolMisuse, match=r"\[tides\.md\] Tides") as misuse:
        await read(folder, document_id)
    assert "canary" not in str(misuse.value)


@pytest.mark.parametrize(
    ("written", "place", "text"),
    [
        ("[bread.md]", "", "Flour, water and salt.\n\nThe dough rests."),
        ("tides.md", "## spring tides", "## Spring tides\n\nSun and moon in line."),
        *((name, place, "## p. 2\n\nThe term is 9.") for name, place in
          [("lease.pdf", "2"), ("lease.pdf", "Page 2"), ("lease.pdf", "S. 2"), ("[lease.pdf p. 2]", "")]),
    ],
)  # fmt: skip
async def test_a_place_in_a_document_is_found_as_people_write_it(
    folder: Path, written: str, place: str, text: str
) -> None:
    (folder / "documents" / "lease.pdf").write_bytes(pdf_bytes(["The rent is 5.", "The term is 9."]))
    assert (await read(folder, written, place, "documents/*")).text == text
    with pytest.raises(ToolMisuse, match=r"It has: p\. 1; p\. 2"):
        await read(folder, "lease.pdf", "7", "documents/*")


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_not(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "documents" / "inside.md").symlink_to(folder / "documents" / "bread.md")
    assert len(files_inside(folder, "documents/*.md")) == 3
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.md").write_text("x")
    (folder / "documents" / "link.md").symlink_to(outside / "x.md")
    with pytest.raises(ValueError, match="leads out"):
        files_inside(folder, "documents/*.md")


FTS_SYNTAX = st.lists(
    st.sampled_from(
        ['"', "'", "*", "^", "(", ")", "NEAR", "AND", "OR", "NOT", "title:", "-", "+", "{a b}", ":", "moon", "\0"]
    )
).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(st.one_of(FTS_SYNTAX, st.text(max_size=200)))
async def test_no_query_breaks_the_search(query: str) -> None:
    tool, _ = await tools(BUNDLED)
    try:
        arguments: Any = tool.arguments(query=query)
    except ValidationError:  # empty, or lone surrogates
        return
    assert (await tool.run(arguments, ToolContext())).text


async def test_a_question_finds_the_bundled_document_about_it() -> None:
    assert "iowa-wind.md" in (await search(BUNDLED, "Why did wind power grow in Iowa?")).sources
