"""The documents of the installed version, as the command `docs` shows them, and the hints that lead there."""

import ast
import re
from pathlib import Path

import pytest
from rich.console import Console

from temporal_supervisor.bundled import DOCUMENTS
from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.commands.reading.docs_command import docs_report
from temporal_supervisor.console.commands.reading.examples_command import examples_report
from tests.console.conftest import ROOT

_HINTED = re.compile(r"hint\(['\"]docs['\"], ['\"]([\w#/-]+)['\"]\)")
_NAMED = re.compile(r"^_EXAMPLE = \"([^\"]+)\"", re.MULTILINE)
_LINKED = re.compile(r"\]\(([\w/-]+)\.md\)")


async def test_the_first_page_leads_to_every_other_one() -> None:
    first = await docs_report("index")
    linked = {*_LINKED.findall(first.text())}
    assert linked >= {file.stem for file in DOCUMENTS.glob("*.md")} - {"index"}
    assert "docs own-files`" in first.notes[0]
    for page in linked:
        assert (await docs_report(page)).text().startswith("# ")


async def test_a_page_is_found_as_it_is_written_in_links() -> None:
    written = (DOCUMENTS / "own-files.md").read_text(encoding="utf-8")
    for name in ("own-files", "own-files.md", "docs/own-files.md"):
        assert (await docs_report(name)).text().strip() == written.strip()
    assert (await docs_report("examples")).text() == (await docs_report("examples/README.md")).text()


async def test_a_section_ends_where_the_next_one_begins() -> None:
    shown = (await docs_report("own-files#every-monday")).text()
    assert re.findall("^## .+$", shown, re.MULTILINE) == ["## Every Monday"]
    assert shown.rstrip() in (DOCUMENTS / "own-files.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("own-file", "there is no page 'own-file', did you mean 'own-files'"),
        ("../README", "there is no page '../README'; there are: .*own-files"),
        ("own-files#every-mondays", "has no section 'every-mondays', did you mean 'every-monday'"),
    ],
)
async def test_what_is_not_there_is_said_with_what_is(page: str, said: str) -> None:
    with pytest.raises(CommandFailed, match=said) as refused:
        await docs_report(page)
    assert refused.value.code == 2


async def test_on_a_terminal_a_page_is_rendered_and_names_the_pages_of_its_links() -> None:
    report = await docs_report("one-agent")
    (page,) = report.rows
    screen = Console(width=80, force_terminal=True, color_system=None)
    with screen.capture() as captured:
        for part in page.renderables(screen):  # type: ignore[union-attr]
            screen.print(part)
    assert "**" not in captured.get()
    assert "benchmarks (benchmarks.md)" in " ".join(captured.get().split())


async def test_what_hints_name_is_there_and_no_hint_names_a_file_of_the_checkout() -> None:
    programs = [*(ROOT / "temporal_supervisor").rglob("*.py"), *(ROOT / "activities").rglob("*.py")]
    texts = [file.read_text(encoding="utf-8") for file in programs]
    hinted = {page for text in texts for page in (*_HINTED.findall(text), *_NAMED.findall(text)) if page}
    assert len(hinted) >= 4
    for page in hinted:
        assert (await docs_report(page)).text()
    shown = [string for text in texts for string in _strings(text) if re.search(r"\bdocs/[\w/-]+\.md", string)]
    assert shown == []


def _strings(program: str) -> list[str]:
    """Returns the texts of a program, docstrings left out: a user may see them."""
    tree = ast.parse(program)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [node.value for node in constants if isinstance(node.value, str) and id(node) not in docstrings]


def test_the_image_holds_them_too() -> None:
    for folder in ("docs", "examples"):
        assert f"COPY {folder} {folder}\n" in (ROOT / "Dockerfile").read_text()
        assert f"!{folder}" in (ROOT / ".dockerignore").read_text().split()


async def test_examples_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "wrote examples/shop" in (await examples_report("shop")).text()
    assert (tmp_path / "examples/shop/data/notes/returns.md").is_file()
    with pytest.raises(CommandFailed, match="examples/shop exists already"):
        await examples_report(None)
    with pytest.raises(CommandFailed, match="no example 'shops', did you mean 'shop'"):
        await examples_report("shops")
