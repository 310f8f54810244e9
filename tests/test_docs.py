"""The documents against the code: errors, settings, commands, and the files that they name."""

import re
from pathlib import Path

import pytest
import typer.main

import starter
from temporal_supervisor.supervision.base import errors
from temporal_supervisor.supervision.contract import RunRequest, RunResult
from tests.test_public_names import variables

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
_ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
_PATH = re.compile(r"`((?:workflows|activities|temporal_supervisor|benchmarks|tests|docs)/[\w./-]+)`")
# "`Planner.parse_reply` of `activities/questions/planner.py`"
_SYMBOL = re.compile(r"`(?:\w+\.)?(\w+)` (?:of|in) `([\w/]+\.py)`")


def rows(section: str) -> list[list[str]]:
    """The cells of the tables of a section of the reference."""
    text = REFERENCE.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def test_every_error_is_documented() -> None:
    assert {cells[0].strip("`") for cells in rows("Errors") if cells[1]} == set(map(str, errors.ErrorKind))


def test_every_error_of_a_run_says_what_to_do() -> None:
    advice = {cells[0].strip("`") for cells in rows("Errors") if len(cells) == 3 and cells[2]}
    assert advice == {str(kind) for kind in errors.RUN_KINDS}


def test_every_field_of_a_request_and_of_a_result_is_documented() -> None:
    def names(section: str) -> set[str]:
        return {name for cells in rows(section) for name in re.findall(r"`(\w+)`", cells[0])}

    assert names("Request") == set(RunRequest.model_fields)
    assert names("Result") == set(RunResult.model_fields)


def test_every_setting_and_every_command_is_documented() -> None:
    documented = {name for cells in rows("Settings") for name in re.findall(r"`([A-Z_]+)`", cells[0])}
    assert documented >= variables()
    commands = {name for cells in rows("Command line") for name in re.findall(r"`([a-z]+)", cells[0])}
    assert commands == set(typer.main.get_group(starter.app).commands)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_programs_on_the_page_for_python_are_the_examples() -> None:
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    files = (ROOT / "examples/python").rglob("*.py")
    assert shown == {file.read_text(encoding="utf-8") for file in files}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [link for link in _LINK.findall(text) if not (page.parent / link).exists()]
    missing += [path for path in _PATH.findall(text) if not (ROOT / path).exists()]
    links = _ANCHOR.findall(text)
    missing += [anchor for file, anchor in links if anchor not in anchors(page.parent / file if file else page)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_a_file_are_defined_there(page: Path) -> None:
    missing: list[str] = []
    for name, file in _SYMBOL.findall(page.read_text(encoding="utf-8")):
        path = ROOT / file
        if not path.exists():
            continue  # short for a path that stands before it
        is_defined = re.compile(rf"\b(?:def|class) {name}\b|^ *{name}(?:: [^=\n]+)? = ", re.MULTILINE)
        if not is_defined.search(path.read_text(encoding="utf-8")):
            missing.append(f"{name} in {file}")
    assert missing == []


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_at_most_700_words_of_prose() -> None:
    text = re.sub(r"```.*?```|<!--.*?-->", "", README, flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "    ", "#", "Sources: "))]
    words = re.sub(r"\]\([^)]*\)", "]", "\n".join(prose)).split()
    assert len(words) <= 700


def test_the_readme_names_the_command_of_the_tests_and_compares_in_ten_rows() -> None:
    assert re.search(r"^    make test\b", README, re.MULTILINE)
    table = README.split("## Beside others\n")[1].split("\n\nSources: ")[0].split("\n\n")[-1]
    header, _, *rows = table.splitlines()
    assert len(rows) == 10
    assert {len(row.split(" | ")) for row in rows} == {len(header.split(" | "))}
    named = {int(number) for number in re.findall(r"\[(\d)\]", table)}
    sources = README.split("\nSources: ")[1].splitlines()[0]
    assert named == {int(number) for number in re.findall(r"\[(\d)\] \[", sources)}


def test_one_name_is_used_for_the_program() -> None:
    shown = {page.name: re.findall(r"(?<!worker_main, )\S*starter\.py (?:[a-z]+)", page.read_text()) for page in PAGES}
    shown |= {page.name: re.findall(r"\.venv/bin/temporal-supervisor", page.read_text()) for page in PAGES[2:]}
    assert {name: found for name, found in shown.items() if found} == {}


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r": ([\w/.-]+\.md)$", nav, re.MULTILINE))
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")} | {
        "decisions/README.md",
        "upstream/README.md",
    }
