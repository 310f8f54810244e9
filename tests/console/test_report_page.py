"""The command `report`: its page in a real browser, from a store alone, of large, hostile and open runs."""

import shutil
import tarfile
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from markdown_it.utils import read_fixture_file

from activities.contracts.run_contracts import Published, RunFacts
from activities.model.conversation import ConversationStore, Entry, Opening
from activities.model.port import ModelMessage, ModelUsage
from activities.store.artifacts import ArtifactStore
from activities.store.store_urls import open_store
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.report.report_data import AnswerEvidence, ReportData, SubtaskPart, report_data
from temporal_supervisor.console.report.report_page import PAGE_BYTES, report_page
from temporal_supervisor.console.run.run_outcome import outcome_so_far
from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import connect, namespace_id
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.store_keys import call_key, named_key
from temporal_supervisor.supervision.contract.finding import ArtifactRef, CheckedClaim, Evidence, Finding, FindingRecord
from temporal_supervisor.supervision.contract.result import (
    Citation,
    Contradiction,
    Gap,
    Problem,
    RunResult,
    SubtaskReport,
    Unsupported,
)
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.contract.usage import Spend, Usage
from temporal_supervisor.supervision.grounding.answer_chain import Grounded, Link
from tests.console.browser import Browser, browsing
from tests.console.conftest import GOAL, Cli, Model
from tests.test_packaging import ROOT, uv
from tests.waiting import until

BEGAN = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
HOSTILE = "\n".join(
    [
        "<script>window.pwned = 1</script></style></title></textarea></pre></svg><script>window.pwned = 1</script>",
        '"><img src=x onerror="window.pwned=1"><svg/onload=window.pwned=1> \' onmouseover=window.pwned=1 x=',
        "[a](javascript:window.pwned=1) [b](JaVaScRiPt&colon;window.pwned=1) [c](data:text/html,<script>1</script>)",
        "[d](vbscript:x) [e](file:///etc/passwd) [f](<javascript:window.pwned=1>) <javascript:window.pwned=1>",
        "![g](http://127.0.0.1:9/pixel.png) ![h](data:image/svg+xml;base64,PHN2Zy8+) [i](//127.0.0.1:9/x)",
        "[bank](https://bank.example@evil.example/login) <https://evil.example/?q=1>",
        "[t1]: https://evil.example/t1",
        "\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u202egnp.exe\u2066 \u200b\U000e0041 p\u0430ypal",
        "{{ 7 * 7 }} {% include '/etc/passwd' %} <base href=http://evil.example> <meta http-equiv=refresh content=0>",
        "&lt;script&gt;window.pwned=1&lt;/script&gt; `<script>` ~~~<b>~~~ \ud800".encode("utf-8", "replace").decode(),
    ]
)


async def make_run(store: ArtifactStore, run_id: str, count: int, spice: str = "", output: str = "") -> None:
    """Stores a run that has ended, as Workers do: `spice` is in every foreign text, `output` in each tool output."""
    conversations, reports, names = ConversationStore(store), [], [f"t{number}" for number in range(1, count + 1)]

    async def put(text: str) -> str:
        return await store.put_output(run_id, text.encode())

    for number, name in enumerate(names, 1):
        said, line = f"In village {name} the well gave {1000 + number} kg. {spice}", f"{name} | {1000 + number} kg"
        found, tool = await put(f"village | yield\n{line}\n{spice}\n{output}"), f"wells{spice}"[:300]
        use = {"type": "tool_use", "id": "call-1", "name": tool, "input": {"village": f"{name} {spice}"}}
        asked: JsonObject = {"role": "user", "content": [{"type": "text", "text": f"Ask {name} {spice}"}]}
        reply = ModelMessage(content=[use], stop_reason="tool_use", usage=ModelUsage(), model="m")
        entry = Entry(opening=Opening(system=spice, model="m"), input=[asked], reply=reply, at=BEGAN.isoformat())
        await conversations.save(call_key(run_id, "first", f"{run_id}/{name}/1", "turn.1", "ab" * 32), entry)
        record = FindingRecord(
            checked=[
                CheckedClaim(text=f"{1000 + number} kg", source=f"wells {name}{spice}"[:200], line=line, ref=found)
            ],
            evidence=[Evidence(tool=tool, arguments=f"{use['input']}", output_ref=found)],
        )
        finding = Finding(
            summary=said,
            text_ref=await put(said),
            record_ref=await put(record.model_dump_json()),
            sources=[f"wells.csv {spice}"],
            limitations=[spice] if spice else [],
        )
        start = BEGAN + timedelta(seconds=number % 40)
        report = SubtaskReport(id=name, role=f"counter{spice}"[:300], description=f"Measure the well of {name} {spice}")
        report.depends_on, report.finding = names[max(0, number // 10 - 2) : number // 10], finding
        report.started_at, report.finished_at = start.isoformat(), (start + timedelta(seconds=number % 7)).isoformat()
        report.state = "completed"
        reports.append(report)
    reports[-1].state, reports[-1].error = "failed", Problem(type=ErrorKind.CANNOT_DO, message=f"no well {spice}")
    told = [(f"{1000 + number} kg", name) for number, name in enumerate(names[:50], 1)]
    marks = " ".join(f"{claim} [{name}]." for claim, name in told) + "".join(f" [{name}]" for name in names[50:])
    answer = f"# Wells\n\n{marks} Altogether 77,777 kg. {spice}"
    usage = Usage(model_calls=2 * count, tool_calls=count, input_tokens=9000, output_tokens=800, usd=0.12)
    result = RunResult(
        status="partial",
        answer=answer,
        answer_ref=await put(answer),
        answer_json={"wells": [{f"name{spice}": spice or "t1", "kg": 1001}]},
        confidence=0.8,
        gaps=[Gap(subtask_id=names[-1], description=spice, reason=f"no well {spice}")],
        contradictions=[Contradiction(subtask_ids=names[:2], description=f"they differ {spice}", resolution=spice)],
        citations=[Citation(claim=claim, subtask_ids=[name]) for claim, name in told],
        unsupported=[Unsupported(text="77,777 kg", where="answer"), Unsupported(text=spice or "x", where="t1")],
        subtasks=reports,
        artifacts=[ArtifactRef(name=f"wells{spice}.md", ref=await put(answer))],
        usage=usage,
        spend=[Spend(role=f"counter{spice}"[:200], model=f"m{spice}"[:200], usage=usage)],
        warnings=[f"beware {spice}"],
    )
    events = [
        TraceEvent(seq=at, at=(BEGAN + timedelta(seconds=10 * at)).isoformat(), type=kind, data=data)
        for at, (kind, data) in enumerate(
            [
                ("plan_accepted", {"subtasks": count, "revision": 1, "reasoning": f"because {spice}"}),
                ("steered", {"word": f"only wells {spice}", "by": f"ada{spice}", "why": f"less {spice}"}),
                ("decided", {"id": "plan.1", "kind": "plan", "decision": "approve", "by": f"ada{spice}"}),
                ("phase", {"phase": "done"}),
            ]
        )
    ]
    goal, notice = f"How much do the wells give? {spice}", f"answers come from the stand-in model {spice}"
    ended = Published(
        result_ref=await put(result.model_dump_json()),
        trace_ref=await put(f"[{','.join(event.model_dump_json() for event in events)}]"),
        facts=RunFacts(goal_ref=await put(goal), team="wells", phase="done", notice=notice),
    )
    await store.create(named_key("ended", run_id, "first"), ended.model_dump_json().encode())


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A browser for the module."""
    async with browsing() as page:
        yield page


async def written(folder: Path, run_id: str) -> Path:
    """The page of a stored run with its prompts, made where there is no server."""
    access = Access(address="127.0.0.1:1")
    access.settings = Settings(artifacts_url=str(folder / "store"))
    page = report_page(await report_data(access, run_id, prompts=True))
    path = folder / f"{run_id}.html"
    path.write_text(page, encoding="utf-8")
    return path


async def open_page(browser: Browser, path: Path, width: int = 1280) -> None:
    """Opens a page, which loads and logs nothing, is not wider than the window, and has no link to nowhere."""
    await browser.open(path, width)
    assert browser.requests == [path.as_uri()]
    assert browser.trouble == []
    assert await browser.value("document.documentElement.scrollWidth <= innerWidth")
    links = "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))"
    assert await browser.value(f"{links}.filter(id => !document.getElementById(id))") == []
    ids = "[...document.querySelectorAll('[id]')].map(e => e.id)"
    assert await browser.value(f"new Set({ids}).size == {ids}.length")


async def follow(browser: Browser, link: str) -> str:
    """Follows the first such link as a person does, and returns the text there, which is visible then."""
    await browser.value(f"document.querySelector('{link}').click()")
    assert await browser.value("document.querySelector(':target').checkVisibility()")
    return str(await browser.value("document.querySelector(':target').innerText"))


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.long)])
async def test_a_large_report_leads_from_each_claim_to_the_output_behind_it(
    browser: Browser, tmp_path: Path, count: int
) -> None:
    store = open_store(tmp_path / "store", "a-namespace")
    await make_run(store, "wells", count, output='<a&"quote">' * 800)
    path = await written(tmp_path, "wells")
    assert path.stat().st_size < PAGE_BYTES
    for width in (390, 1280):
        await open_page(browser, path, width)
    assert "In village t2 the well gave 1002 kg" in await follow(browser, '.answer a.cite[href="#s2"]')
    assert "t2 | 1002 kg" in await follow(browser, "#s2 table a")
    assert "verified" in await follow(browser, "#s2 a.claim")
    assert "t2 | 1002 kg" in await follow(browser, ":target li a")
    assert "no finding has it" in await follow(browser, ".answer a.doubt")
    assert await browser.value("document.body.innerText.includes('temporal-supervisor artifact wells/outputs/')")


async def test_whatever_a_run_says_is_only_text(browser: Browser, tmp_path: Path) -> None:
    await make_run(open_store(tmp_path / "store", "a-namespace"), "hostile", 3, HOSTILE)
    path = await written(tmp_path, "hostile")
    await open_page(browser, path, 390)
    assert await browser.value("window.pwned === undefined && document.scripts.length + document.images.length == 0")
    elements = "[...document.querySelectorAll('*')]"
    names = set(await browser.value(f"[...new Set({elements}.map(e => e.localName))]"))
    assert names.isdisjoint({"script", "img", "iframe", "object", "embed", "form", "base", "input", "textarea", "b"})
    attributes = set(await browser.value(f"[...new Set({elements}.flatMap(e => e.getAttributeNames()))]"))
    assert {name for name in attributes if name.startswith("on")} == set()
    assert await browser.value("document.querySelectorAll('meta[http-equiv]').length") == 1
    links = await browser.value("[...document.links].map(a => [a.getAttribute('href'), a.rel, a.parentNode.innerText])")
    outward = [link for link in links if not link[0].startswith("#")]
    assert {href.partition(":")[0] for href, _, _ in outward} == {"http", "https"}
    assert {rel for _, rel, _ in outward} == {"noreferrer noopener"}
    bank = next(text for href, _, text in outward if "bank.example" in href)
    assert "bank (evil.example)" in bank
    written_text = path.read_text(encoding="utf-8")
    assert not any(char in written_text for char in "\x1b\x07\u202e\u2066\u200b\U000e0041")
    shown = await browser.value("document.body.innerText")
    for words in ("<U+202E>", "<U+001B>", "{{ 7 * 7 }}", "CYRILLIC SMALL LETTER A", "<script>window.pwned"):
        assert words in shown


async def test_an_output_that_was_changed_in_the_store_is_named(tmp_path: Path) -> None:
    await make_run(open_store(tmp_path / "store", "a-namespace"), "wells", 3)
    outputs = (tmp_path / "store" / "a-namespace" / "wells" / "outputs").iterdir()
    changed = next(path for path in outputs if b"t2 | 1002 kg" in path.read_bytes()[:40])
    changed.write_bytes(changed.read_bytes().replace(b"1002", b"1009"))
    call = next((tmp_path / "store").rglob("wells%2Ft1%2F1/turn*/*"))
    call.write_text("{")
    page = (await written(tmp_path, "wells")).read_text()
    assert f"{changed.name}&#39; in artifact store" in page
    assert f"{call.name}&#39;: restore it" in page
    assert "5 of 8 verified<small>3 in doubt" in page


async def test_report_result_and_trace_of_a_run_that_the_server_has_forgotten_are_the_same(
    cli: Cli, alone: Cli, place: Path, browser: Browser
) -> None:
    assert (await cli("run", GOAL, "--id", "page-1")).code == 0
    clients = [await connect(address=each.environ["TEMPORAL_ADDRESS"]) for each in (cli, alone)]
    here, there = [await namespace_id(client) for client in clients]
    shutil.copytree(place / "artifacts" / here / "page-1", place / "artifacts" / there / "page-1")
    store = open_store(str(place / "artifacts"), there)
    assert (await outcome_so_far(Run(clients[1], "page-1"), store)).forgotten  # the Web UI has no page of it
    pages = []
    for number, each in enumerate((cli, alone)):
        path = place / f"page-{number}.html"
        assert (await each("report", "page-1", "-o", str(path))).code == 0
        pages.append(path.read_text().partition("<footer>")[0])
    assert pages[0] == pages[1]
    for command, *options in (["result"], ["trace"], ["trace", "--json"]):
        assert await alone.out(command, "page-1", *options) == await cli.out(command, "page-1", *options)
    await open_page(browser, place / "page-0.html")
    shown = await browser.value("document.body.innerText")
    claims = (await cli.json("verify", "page-1"))["claims"]
    for words in (GOAL, f"{len(claims)} of {len(claims)} verified", "answers come from the stand-in model", "t3"):
        assert words in shown
    again = await cli("report", "page-1", "-o", str(place / "page-0.html"))
    assert (again.code, "exists already" in again.err) == (1, True)


async def test_the_report_of_an_open_run_has_what_there_is_so_far(
    cli: Cli, standin: Model, place: Path, browser: Browser
) -> None:
    standin.fails("page-2/t1*turn.2", stall_after=2)
    assert (await cli("run", GOAL, "--id", "page-2", "--detach")).code == 0

    async def has_begun() -> bool:
        return "t1 turn 1: " in (await cli("trace", "page-2")).out

    await until(has_begun, 60)
    path = place / "page-2.html"
    assert (await cli("report", "page-2", "-o", str(path), "--prompts")).code == 0
    await cli("cancel", "page-2")
    await open_page(browser, path)
    shown = await browser.value("document.body.innerText")
    for words in (GOAL, "This run has not ended", "There is no answer yet", "Prompts and replies"):
        assert words in shown


# --- CommonMark's and markdown-it's own cases as texts of a run ----------------------------------------------

FOLDER = ROOT / ".cache" / "markdown-cases"
ELEMENTS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s"}
ELEMENTS |= {"a", "br", "hr", "table", "thead", "tbody", "tr", "th", "td", "span"}
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
        parts.append(SubtaskPart(name, report, Grounded(text=text)))
    result = RunResult(status="completed", subtasks=[part.report for part in parts], unsupported=doubted)
    evidence = AnswerEvidence("\n\n".join(texts), [], {}, [])
    made_at = datetime(2026, 11, 2, tzinfo=UTC)
    return report_page(
        ReportData("cases", RunOutcome("completed", result), made_at=made_at, evidence=evidence, subtasks=parts)
    )


def test_confidence_in_an_answer_of_which_nothing_can_be_looked_up_is_not_measured() -> None:
    result = RunResult(status="completed", answer="Yes.", confidence=1.0)
    evidence = AnswerEvidence("Yes.", [], {}, [])
    made_at = datetime(2026, 11, 2, tzinfo=UTC)
    data = ReportData("r", RunOutcome("completed", result), made_at=made_at, evidence=evidence, subtasks=[])
    page = report_page(data)
    assert "<dt>Confidence</dt><dd>not measured<small>" in page

    checked = Link(kind="figure", text="4 kg")
    page = report_page(replace(data, evidence=replace(evidence, links=[checked])))
    assert "<dt>Confidence</dt><dd>100%<small>" in page


async def test_the_cases_of_commonmark_and_markdown_it_are_inert(browser: Browser, tmp_path: Path) -> None:
    texts = cases()
    assert len(texts) > 900
    path = tmp_path / "cases.html"
    path.write_text(page_of(texts), encoding="utf-8")
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
