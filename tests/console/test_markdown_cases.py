"""CommonMark's and markdown-it's own cases as texts of a run: inert in the report, each within its place."""

import tarfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from markdown_it.utils import read_fixture_file

from console.report.report_data import ANSWER_BYTES, FINDING_BYTES, Excerpt, ReportData, SubtaskPart
from console.report.report_page import report_page
from supervision.contract.finding import Finding
from supervision.contract.result import RunResult, SubtaskReport, Unsupported
from tests.console.browser import browsing
from tests.test_packaging import ROOT, uv

FOLDER = ROOT / ".cache" / "markdown-cases"
ELEMENTS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a", "br"}
ELEMENTS |= {"hr", "table", "thead", "tbody", "tr", "th", "td", "span"}
ATTRIBUTES = {"a": {"href", "rel", "title", "class"}, "ol": {"start"}, "code": {"class"}, "span": {"class"}}
ATTRIBUTES |= {"th": {"style"}, "td": {"style"}}  # the alignment of a column
FOUND = """[...document.querySelectorAll('.prose')].map(text => [...text.querySelectorAll('*')].map(
    e => [e.localName, e.getAttributeNames().map(name => [name, e.getAttribute(name)])]))"""


def cases() -> list[str]:
    """The texts of all cases in the source package that the lock names, got by pip once."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    (package,) = (package for package in lock["package"] if package["name"] == "markdown-it-py")
    named = FOLDER / package["sdist"]["url"].rpartition("/")[2]
    if not named.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        wanted = FOLDER / "requirements.txt"
        wanted.write_text(f"markdown-it-py=={package['version']} --hash={package['sdist']['hash']}\n")
        try:
            uv("tool", "run", "pip", "download", "--no-deps", "--no-binary=:all:", "-d", FOLDER, "-r", wanted, cwd=ROOT)
        except AssertionError as refused:
            pytest.skip(f"no source package of markdown-it-py: {refused}")
    with tarfile.open(named) as archive:
        archive.extractall(FOLDER, filter="data")
    files = sorted(FOLDER.glob(f"{named.name.removesuffix('.tar.gz')}/tests/test_port/fixtures/*.md"))
    return [text for file in files for _, _, text, _ in read_fixture_file(file)]


def page_of(texts: list[str]) -> str:
    """A report with each text as a finding and all of them as the answer, in which words of them are claims."""
    doubted = [Unsupported(text=word, where="answer") for word in ("foo", "bar")]
    parts = []
    for number, text in enumerate(texts, 1):
        finding = Finding(summary=text[:200], text_ref="", unsupported=["foo"])
        name = {1: "foo", 2: "bar"}.get(number, f"t{number}")  # the cases' own names of links are marks then
        report = SubtaskReport(id=name, role="reader", description="Read", state="completed", finding=finding)
        parts.append(SubtaskPart(name, report, Excerpt.of(text, "", FINDING_BYTES)))
    result = RunResult(status="completed", subtasks=[part.report for part in parts], unsupported=doubted)
    answer = Excerpt.of("\n\n".join(texts), "", ANSWER_BYTES)
    made_at = datetime(2026, 11, 2, tzinfo=UTC)
    return report_page(
        ReportData("cases", "completed", "", result, [], [], made_at=made_at, answer=answer, subtasks=parts)
    )


async def test_the_cases_of_commonmark_and_markdown_it_are_inert(tmp_path: Path) -> None:
    texts = cases()
    assert len(texts) > 900
    path = tmp_path / "cases.html"
    path.write_text(page_of(texts), encoding="utf-8")
    async with browsing() as browser:
        await browser.open(path)
        assert browser.requests == [path.as_uri()]
        assert browser.trouble == []
        assert await browser.value("document.scripts.length + document.images.length") == 0
        found = await browser.value(FOUND)
        assert len(found) == 1 + len(texts)
        for text, elements in zip(["", *texts], found, strict=True):
            for element, attributes in elements:
                assert element in ELEMENTS, text
                assert {name for name, _ in attributes} <= ATTRIBUTES.get(element, set()), text
                href = dict(attributes).get("href", "#")
                assert href.lower().startswith(("#", "http://", "https://", "mailto:")), text
