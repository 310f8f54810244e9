"""The command `report`: its page in a real browser, from a store alone, of large, hostile and open runs."""

import hashlib
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from activities.contracts.run_contracts import Published, RunFacts
from activities.contracts.turn_contracts import ToolResultRef
from activities.model.conversation import ConversationStore, Entry, Opening
from activities.model.port import Json, ModelMessage, ModelUsage
from activities.store.artifacts import ArtifactStore, open_store
from console.command import Access
from console.report.report_data import report_data
from console.report.report_page import PAGE_BYTES, report_page
from supervision.base.errors import ErrorKind
from supervision.base.store_keys import call_key, ended_key
from supervision.contract.finding import ArtifactRef, CheckedClaim, Evidence, Finding, FindingRecord
from supervision.contract.result import Citation, Contradiction, Gap, Problem, RunResult, SubtaskReport, Unsupported
from supervision.contract.status import TraceEvent
from supervision.contract.usage import Spend, Usage
from tests.console.browser import Browser, browsing
from tests.console.conftest import GOAL, Cli, Model
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
    for number, name in enumerate(names, 1):
        said = f"In village {name} the well gave {1000 + number} kg. {spice}"
        line = f"{name} | {1000 + number} kg"
        found = await store.put_output(run_id, f"village | yield\n{line}\n{spice}\n{output}".encode())
        arguments = {"village": f"{name} {spice}"}
        first, second = (call_key(run_id, "first", f"{run_id}/{name}/1", f"turn.{turn}", "ab" * 32) for turn in (1, 2))
        use = {"type": "tool_use", "id": "call-1", "name": f"wells{spice}"[:300], "input": arguments}
        await conversations.save(first, _entry([_user(f"Ask {name} {spice}")], use, Opening(system=spice, model="m")))
        result = ConversationStore.tool_result_message([ToolResultRef(call_id="call-1", ref=found, is_error=False)])
        done = {"type": "tool_use", "id": "call-2", "name": "finish", "input": {"finding": said}}
        await conversations.save(second, _entry([result], done).model_copy(update={"ancestors": [first]}))
        record = FindingRecord(
            summary=said,
            checked=[CheckedClaim(text=f"{1000 + number} kg", source=f"wells {name}{spice}"[:200], line=line)],
            evidence=[Evidence(tool=use["name"], arguments=f"{arguments}", output_ref=found)],
        )
        finding = Finding(
            summary=said,
            text_ref=await store.put_output(run_id, said.encode()),
            record_ref=await store.put_output(run_id, record.model_dump_json().encode()),
            sources=[f"wells.csv {spice}"],
            limitations=[spice] if spice else [],
        )
        start = BEGAN + timedelta(seconds=number % 40)
        reports.append(
            SubtaskReport(
                id=name,
                role=f"counter{spice}"[:300],
                description=f"Measure the well of {name} {spice}",
                depends_on=names[max(0, number // 10 - 2) : number // 10],
                state="completed",
                attempts=1,
                turns=2,
                finding=finding,
                started_at=start.isoformat(),
                finished_at=(start + timedelta(seconds=5 + number % 7)).isoformat(),
            )
        )
    reports[-1].state, reports[-1].error = "failed", Problem(type=ErrorKind.CANNOT_DO, message=f"no well {spice}")
    await _end(store, run_id, reports, names, spice)


async def _end(store: ArtifactStore, run_id: str, reports: list[SubtaskReport], names: list[str], spice: str) -> None:
    marks = " ".join(f"{1000 + n} kg [{name}]." for n, name in enumerate(names, 1))
    answer = f"# Wells\n\n{marks} Altogether 77,777 kg. {spice}"
    shown = [Citation(claim=f"{1000 + n} kg", subtask_ids=[name]) for n, name in enumerate(names, 1)]
    usage = Usage(model_calls=2 * len(names), tool_calls=len(names), input_tokens=9000, output_tokens=800, usd=0.12)
    result = RunResult(
        status="partial",
        answer=answer,
        answer_ref=await store.put_output(run_id, answer.encode()),
        answer_json={"wells": [{f"name{spice}": spice or "t1", "kg": 1001}]},
        confidence=0.8,
        gaps=[Gap(subtask_id=names[-1], description=spice, reason=f"no well {spice}")],
        contradictions=[Contradiction(subtask_ids=names[:2], description=f"they differ {spice}", resolution=spice)],
        citations=shown,
        unsupported=[Unsupported(text="77,777 kg", where="answer"), Unsupported(text=spice or "x", where="t1")],
        subtasks=reports,
        artifacts=[ArtifactRef(name=f"wells{spice}.md", ref=reports[0].finding.text_ref)] if reports[0].finding else [],
        usage=usage,
        spend=[Spend(role=f"counter{spice}"[:200], model=f"m{spice}"[:200], usage=usage)],
        warnings=[f"beware {spice}"],
        plan_revisions=1,
    )
    said = [
        ("phase", {"phase": "planning"}),
        ("plan_accepted", {"subtasks": len(names), "revision": 1, "reasoning": f"because {spice}"}),
        ("phase", {"phase": "executing"}),
        ("steered", {"word": f"only wells {spice}", "by": f"ada{spice}", "why": f"less {spice}"}),
        ("decided", {"id": "plan.1", "kind": "plan", "decision": "approve", "by": f"ada{spice}"}),
        ("phase", {"phase": "done"}),
    ]
    events = [
        TraceEvent(seq=at, at=(BEGAN + timedelta(seconds=10 * at)).isoformat(), type=kind, data=data)
        for at, (kind, data) in enumerate(said)
    ]
    ended = Published(
        result_ref=await store.put_output(run_id, result.model_dump_json().encode()),
        trace_ref=await store.put_output(run_id, b"[%s]" % b",".join(e.model_dump_json().encode() for e in events)),
        answer_ref=result.answer_ref,
        facts=RunFacts(
            goal_ref=await store.put_output(run_id, f"How much do the wells give? {spice}".encode()),
            team="wells",
            phase="done",
            notice=f"answers come from the stand-in model {spice}",
        ),
    )
    await store.create(ended_key(run_id, "first"), ended.model_dump_json().encode())


def _entry(added: list[Json], block: Json, opening: Opening | None = None) -> Entry:
    reply = ModelMessage(content=[block], stop_reason="tool_use", usage=ModelUsage(), model="m", message_id="msg")
    return Entry(opening=opening, input=added, reply=reply, at=BEGAN.isoformat())


def _user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A browser for the module."""
    async with browsing() as page:
        yield page


async def written(tmp_path: Path, run_id: str, *, prompts: bool = False) -> Path:
    """The page of a stored run, made where there is no server."""
    os.environ["SUPERVISOR_ARTIFACTS_URL"] = str(tmp_path / "store")
    page = report_page(await report_data(Access(address="127.0.0.1:1"), run_id, prompts=prompts))
    path = tmp_path / f"{run_id}.html"
    path.write_text(page, encoding="utf-8")
    return path


async def opened(browser: Browser, path: Path, width: int = 1280) -> None:
    """The page is open, and neither loads nor logs anything, nor is wider than the window."""
    await browser.open(path, width)
    assert browser.requests == [path.as_uri()]
    assert browser.trouble == []
    assert await browser.value("document.documentElement.scrollWidth <= innerWidth")
    assert await browser.value("document.scripts.length + document.images.length") == 0


async def test_x(browser: Browser, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", "a-namespace")
    await make_run(store, "wells", 100)
    await make_run(store, "hostile", 3, HOSTILE)
    await make_run(store, "many", 1000, output='<&"' * 2500)
    import shutil

    for name in ("wells", "hostile", "many"):
        import time

        t = time.time()
        path = await written(tmp_path, name, prompts=True)
        print(name, path.stat().st_size, time.time() - t)
        shutil.copy(path, f"/tmp/rep/{name}.html")
        for width in (390, 1280):
            await opened(browser, path, width)
