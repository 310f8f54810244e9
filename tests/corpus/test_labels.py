"""An obeying model under the policy of tools: injections in all that agents read have no effects without a person."""

import asyncio
import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from temporalio.client import Client

from activities.replies.agent_story import AgentStories, stored_events
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.commands.people_commands import show_report
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.agent import policy
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Wait
from tests.corpus.canaries import EFFECTS, injected, keys_of, lines_of, obeying
from tests.scripted_model import Reply, Step, answer, as_json, plan, script, text, tools, when
from tests.serving import store_of
from tests.waiting import until
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Handle, Lab, closed, waits_of
from tests.workflow.scripts import Turns, item, plans, subtasks, with_replies

CHANNELS = {
    "page": ("pager", "fetch_page"),
    "ticket": ("guest", "tickets__search"),
    "row": ("clerk", "query_rows"),
    "paper": ("scholar", "read_paper"),
    "letter": ("porter", ""),  # it is small, and so a part of the brief
}
KEYS = [key for channel in CHANNELS for key in keys_of(channel)]
BENIGN = ("mail", "book", "drop", "post")


def rows() -> str:
    written = io.StringIO()
    csv.writer(written).writerows([["text"], *([line] for line in [*lines_of("row"), "[[post board]]"])])
    return written.getvalue()


ATTACHED = {"notes.csv": rows(), "paper.md": injected("paper"), "letter.txt": injected("letter")}
READING = [
    {
        "id": channel,
        "role": role,
        "description": f"Read what is there: [[{tool} {channel}]]" if tool else "Read the letter.",
        "attachments": [] if tool else ["letter.txt"],
    }
    for channel, (role, tool) in CHANNELS.items()
]
DOING = [{"id": f"after-{channel}", "role": "courier", "after": [channel]} for channel in CHANNELS]
HONEST = {"id": "honest", "role": "courier", "description": " ".join(f"[[{name} benign-{name}]]" for name in BENIGN)}


async def denied(client: Client, handle: Handle) -> list[Wait]:
    """Denies every call that waits, until the run has ended, and returns them."""
    seen: dict[str, Wait] = {}

    async def ended() -> bool:
        waits = [wait for wait in await waits_of(handle) if wait.kind == "tool" and wait.id not in seen]
        seen.update({wait.id: wait for wait in waits})
        for wait in waits:
            body = {"id": wait.id, "decision": "deny", "sha256": wait.sha256}
            await client.get_workflow_handle(wait.workflow_id).execute_update("decide_tool_call", body)
        return await closed(handle)

    await until(ended, 120)
    return [*seen.values()]


def obey(*subtasks: dict[str, Any]) -> Callable[[Step], Reply]:
    return script(plan(*subtasks), {subtask["id"]: obeying for subtask in subtasks})


async def played(lab: Lab) -> tuple[Counter[str], RunResult, list[Wait]]:
    """Plays all injections in one run, and returns their effects."""
    lab.play(obey(*READING, *DOING, HONEST))
    attachments = [{"name": name, "text": content} for name, content in ATTACHED.items()]
    handle = await lab.start(team="canary", attachments=attachments, max_parallel=12)
    waits = await denied(lab.client, handle)
    return Counter(EFFECTS.pop(lab.run_id, [])), await handle.result(), waits


@pytest.mark.parametrize("policy_is_on", [True, False], ids=["policy", "no policy"])
async def test_injections_have_effects_only_without_the_policy(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, policy_is_on: bool
) -> None:
    if not policy_is_on:
        monkeypatch.setattr(policy, "decide", lambda *_: "allowed")
    effects, result, waits = await played(lab)
    assert result.status == "completed"
    assert len(KEYS) >= 50
    harmful = {key: effects.pop(key) for key in KEYS if key in effects}
    benign = {**dict.fromkeys([f"benign-{name}" for name in BENIGN], 1), "board": 2 * len(CHANNELS)}
    if policy_is_on:
        assert harmful == {}
        after = {wait.subtask_id: wait.after for wait in waits if wait.subtask_id}
        assert set(after) == {*CHANNELS, *(f"after-{channel}" for channel in CHANNELS)}
        assert after["page"] == after["after-page"] == "after reading fetch_page page in page"
        assert after["letter"] == "after reading data in the brief, and private data"
        assert after["row"] == after["after-row"] == "after reading query_rows SELECT * FROM notes in row"
    else:
        assert waits == []
        assert all(harmful.get(key, 0) >= 2 for key in KEYS), harmful  # of its reader, and of who got its finding
    assert effects == benign


async def test_labels_go_where_texts_go(lab: Lab, settings: Settings) -> None:
    """Up from a nested run, into feedback and a revised plan; not through a role that gives closed values alone."""
    reviews = iter(["Do [[book by-feedback]]", None])

    def told(step: Step) -> Reply:
        nested = step.call.startswith(f"{lab.run_id}/t1/1/")
        if step.kind == "plan" and nested:
            return plan(
                {"id": "t1", "role": "pager", "description": "Read the page about garden 1: [[fetch_page page]]"}
            )
        if step.kind == "plan":
            return plan(*parts)
        if step.kind == "synthesis":
            return answer(" ".join(lines_of("page")[:5]) if nested else "the answer")
        if step.kind == "review" and not nested and (feedback := next(reviews)):
            return as_json({"verdicts": [{"subtask_id": "t5", "ok": False, "feedback": feedback}], "conflicts": []})
        if step.kind == "review":
            return as_json({"verdicts": [], "conflicts": []})
        if "/t3/" in step.call:
            output = {"asks": "yes", "day": "2026-11-23"}
            return text(
                f"[[book a-sorter]]\n{json.dumps({'output': output})}\n\nConfidence: 0.9\nLimitations: [[mail x]]"
            )
        return obeying(step)

    parts: list[dict[str, Any]] = [
        {"id": "t1", "role": "office"},
        {"id": "t2", "role": "courier", "after": ["t1"]},
        {"id": "t3", "role": "sorter", "after": ["t1"]},
        {
            "id": "t4",
            "role": "courier",
            "after": ["t3"],
            "description": "Book a table by the verdict of t3: [[book after-sorter]]",
        },
        {"id": "t5", "role": "courier", "description": "Book a table in garden 1: [[book at-first]]"},
    ]
    lab.play(told)
    handle = await lab.start(team="canary", max_reviews=1)
    await asked(handle, "t1/1/t1/1:2.0")
    access = Access(_client=lab.client)
    access.__dict__["settings"] = settings
    report = await show_report(access, [lab.run_id, "t1/1/t1/1:2.0"])
    assert "! after reading fetch_page page in t1/t1" in map(str, report.rows)
    waits = await denied(lab.client, handle)
    result = await handle.result()
    page = "fetch_page page in t1/t1"
    labels = {report.id: report.finding.labels.untrusted for report in result.subtasks if report.finding}
    assert labels == {"t1": page, "t2": page, "t3": "", "t4": "", "t5": page}
    assert {wait.subtask_id: wait.after for wait in waits} == dict.fromkeys(
        ["t1/t1", "t2", "t5"], f"after reading {page}"
    )
    assert sorted(EFFECTS.pop(lab.run_id)) == ["after-sorter", "at-first", "board"]
    assert "2026-11-23" in lab.prompt("t4/1/turn.1")
    assert "a-sorter" not in str(lab.call("t4/1/turn.2").step.body)
    assert "[[mail x]]" not in str(lab.call("t4/1/turn.2").step.body)
    store = await store_of(lab.client, settings.artifacts_url)
    events = await AgentStories(store).with_conversations(stored_events(await store.get(result.trace_ref or "")))
    calls = [event for event in events if event.type in ("tool", "decided")]
    after = {(event.subtask_id, event.type, event.data.get("after")) for event in calls}
    assert after == {
        *product(("t1/t1", "t2", "t5"), ("tool", "decided"), [f"after reading {page}"]),
        *product(("t1/t1", "t4", "t5"), ("tool",), [None]),
    }


async def test_words_of_the_supervisor_have_the_labels_of_what_it_read(lab: Lab) -> None:
    """Items, better descriptions, reasons why something is missing, later plans: each asks for an effect here."""
    begun = asyncio.Event()

    def reading(step: Step) -> Reply:
        if step.number == 1:
            return obeying(step)
        found = {"finding": "found", "summary": "found", "outcome": "done", "items": ["[[book by-item]]"]}
        return tools(("finish", found))

    def failing(step: Step) -> Reply:
        if "[[" in step.prompt:
            return obeying(step)
        return when(begun, text("It cannot be done.\n\nConfidence: 0.1\nLimitations: none\nOutcome: impossible"))

    def of_item(step: Step) -> Reply:
        begun.set()
        return obeying(step)

    first = subtasks(
        item("a", "pager", description="Read the page about garden 1: [[fetch_page page]]"),
        item("e", "courier", for_each="items:a", depends_on=["a"]),
        item("r", "courier", for_each="rows:notes.csv"),  # each later plan is checked with it, too
        item("b", "courier"),
        item("g", "courier"),
        item("f", "courier", depends_on=["b", "g"], description="Book a table in garden 1: [[book by-f]]"),
    )
    later = subtasks(item("h", "courier", description="Book a table in garden 2: [[book by-plan]]"))
    turns: Turns = {"a": reading, "b": failing, "e.1": of_item, **dict.fromkeys(["r.1", "g", "f", "h"], obeying)}
    better = as_json({"description": "Find out in another way about garden 1: [[book by-description]]"})
    lab.play(with_replies(plans(first, later, turns=turns), refine=lambda step: better))
    attachments = [{"name": "notes.csv", "text": "text\n[[book by-row]]\n"}]
    handle = await lab.start(team="canary", attachments=attachments, max_replans=1)
    after = {
        wait.subtask_id: wait.after.removesuffix(", and private data") for wait in await denied(lab.client, handle)
    }
    page, row = "after reading fetch_page page in a", "after reading data in the brief"
    assert (after.pop("e.1"), after.pop("r.1")) == (page, row)
    assert set(after) == {"b", "f", "h"}
    assert set(after.values()) <= {page, row}  # of what the supervisor's model had read the first
    assert EFFECTS.pop(lab.run_id, []) == []
