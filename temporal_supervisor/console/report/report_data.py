"""The report of a run as data, with the answer's evidence recomputed from the store."""

import asyncio
import contextlib
import csv
import io
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote

from activities.model.conversation import ConversationStore, Entry
from activities.replies.agent_story import ToolUse, read_tool_uses
from activities.store.artifacts import (
    ArtifactChanged,
    ArtifactError,
    ArtifactMissing,
    ArtifactStore,
)
from activities.store.reading import read_text
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.run.found_runs import find_run, listed_facts, recorded_goal
from temporal_supervisor.console.run.run_outcome import (
    full_trace,
    outcome_so_far,
    read_result,
    stored_end,
    stored_trace,
)
from temporal_supervisor.console.run.standstill import waits_of_status
from temporal_supervisor.console.view.answer_text import answer_file, rows_of
from temporal_supervisor.messages import NoRun
from temporal_supervisor.outcomes import RunOutcome, is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import ConnectionFailed
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import FINISH_TOOL
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.contract.finding import Finding, FindingRecord
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.grounding.answer_chain import Grounded, Link, answer_chain
from temporal_supervisor.supervision.reuse.changes import (
    Change,
    names_of,
    repeats,
    row_changes,
    text_changes,
)
from temporal_supervisor.supervision.run.attempt_rules import subtask_path

_CALL_SEGMENTS = 5  # of the key of a stored model call


@dataclass(frozen=True)
class AnswerEvidence:
    """An answer as it was written, a link for each of its claims, and its findings.

    `changed` lists texts that differ from what was stored.
    """

    answer: str
    links: list[Link]
    findings: dict[str, Grounded]
    changed: list[str]


async def evidence_of(store: ArtifactStore, result: RunResult) -> AnswerEvidence:
    """Returns the evidence of a result's answer."""
    problems: list[str] = []
    answer = result.answer
    if result.answer_ref:
        answer = await verified_text(store, result.answer_ref, problems) or answer
    current: dict[str, Finding] = {}
    for report in result.subtasks:
        if report.finding and not report.replaced_by:
            current[report.id] = report.finding
    read = await asyncio.gather(*(read_grounds(store, finding) for finding in current.values()))
    findings = dict(zip(current, read, strict=True))
    planned = [subtask.description for subtask in result.subtasks]
    links = answer_chain(answer, result.citations, findings, planned, result.answer_json)
    for finding in read:
        problems += finding.problems
    return AnswerEvidence(answer, links, findings, list(dict.fromkeys(problems)))


async def read_grounds(store: ArtifactStore, finding: Finding) -> Grounded:
    """Reads a finding, its record and the outputs behind it; the store verifies each hash."""
    problems: list[str] = []
    text = await verified_text(store, finding.text_ref, problems)
    record = FindingRecord()
    if finding.record_ref:
        stored = await verified_text(store, finding.record_ref, problems)
        record = FindingRecord.model_validate_json(stored) if stored else record
    refs = {item.output_ref for item in record.evidence if item.output_ref}
    outputs = {ref: await verified_text(store, ref, problems) for ref in sorted(refs)}
    output = None
    if finding.output_ref:
        stored = await verified_text(store, finding.output_ref, problems)
        output = json.loads(stored) if stored else None
    return Grounded(**dict(record), text=text, outputs=outputs, problems=problems, output=output)


async def verified_text(store: ArtifactStore, ref: str, problems: list[str]) -> str:
    """Returns the text at a reference; empty, with a problem, if it is lost or changed."""
    try:
        return (await store.get(ref)).decode("utf-8", "replace")
    except (ArtifactChanged, ArtifactMissing) as error:
        problems.append(str(error))
        return ""


@dataclass(frozen=True)
class StoredCall:
    """A stored model call; `subtask` is the path of its subtask, "" for the supervisor."""

    subtask: str
    workflow_id: str
    step: str
    key: str

    @property
    def work(self) -> str:
        """The subtask, or the kind of the supervisor's own step."""
        return self.subtask or self.step.partition(".")[0]


async def stored_calls(store: ArtifactStore, run_id: str) -> list[StoredCall]:
    """Returns the stored model calls of a run in no order."""
    calls = []
    for key in await store.list_keys(run_prefix(run_id)):
        segments = key.split("/")
        if len(segments) != _CALL_SEGMENTS:
            continue
        workflow_id, step = unquote(segments[2]), unquote(segments[3])
        calls.append(StoredCall(subtask_path(workflow_id, run_id), workflow_id, step, key))
    return calls


async def entries_of(
    conversations: ConversationStore,
    calls: list[StoredCall],
    problems: list[str],
) -> list[tuple[StoredCall, Entry]]:
    """Returns the calls with their entries by time; lost and changed ones become `problems`."""
    entries = await conversations.entries((call.key for call in calls), problems)
    known = ((call, entries[call.key]) for call in calls if call.key in entries)
    return sorted(known, key=lambda pair: pair[1].at or "")


async def added_by(conversations: ConversationStore, entry: Entry) -> list[tuple[str, str]]:
    """Returns the parts that a call added to its conversation, each with its author."""
    parts: list[tuple[str, str]] = []
    if entry.opening:
        parts.append(("system", entry.opening.system))
    if entry.opening and entry.opening.tools:
        names = [str(tool.get("name")) for tool in entry.opening.tools]
        parts.append(("tools", ", ".join(names)))
    added = await conversations.resolve(entry.input)
    for message in [*added, {"role": "reply", "content": entry.reply.content}]:
        for block in message["content"]:
            parts.append((f"{message['role']}: {block.get('type')}", _block_text(block)))
    return parts


def _block_text(block: JsonObject) -> str:
    """Returns the content of a message's block: text, a tool's output, or JSON."""
    content = block.get(str(block.get("type")), block.get("content"))
    if isinstance(content, str):
        return content
    shown = {name: value for name, value in block.items() if name not in ("type", "signature")}
    return json.dumps(shown, ensure_ascii=False, indent=2)


_TABLE_ROWS = 100

Prompt = tuple[StoredCall, Entry, list[tuple[str, str]]]
"""A stored model call with the parts that it added to its conversation, each with its author."""


@dataclass(frozen=True)
class SubtaskPart:
    """A subtask by its path, such as `t1/t2` in a nested run."""

    path: str
    report: SubtaskReport
    found: Grounded = field(default_factory=Grounded)
    calls: list[ToolUse] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)


class AnswerTable(NamedTuple):
    """A table of the answer: its first rows, and the number of all rows."""

    name: str
    columns: list[str]
    rows: list[list[str]]
    total: int
    ref: str


@dataclass
class ReportData:
    """A run for its report.

    `waits` are the reasons why an open run waits. `prompts` are the supervisor's own. `changes` are
    the differences from the earlier run that this one `repeats`.
    """

    run_id: str
    outcome: RunOutcome
    events: list[TraceEvent] = field(default_factory=list)
    goal: str = ""
    team: str = ""
    notice: str = ""
    waits: list[str] = field(default_factory=list)
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    evidence: AnswerEvidence = field(default_factory=lambda: AnswerEvidence("", [], {}, []))
    tables: list[AnswerTable] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    repeats: str = ""
    subtasks: list[SubtaskPart] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def result(self) -> RunResult:
        """The result; an empty one if there is none."""
        return self.outcome.result or RunResult(status="partial")


async def report_data(access: Access, given: str | None, *, prompts: bool = False) -> ReportData:
    """Returns the report of a run.

    Without a server, it needs the run's whole id and a store with its end.
    """
    try:
        client = await access.client()
    except ConnectionFailed:
        stores = await access.stores_with_end(given) if given else []
        if given is None or len(stores) != 1:
            raise
        store = stores[0]
        ended = await _from_stored_end(given, store)
        if ended is None:
            raise
        data = ended
    else:
        store = await access.store()
        data = await _run_facts(Run(client, await find_run(client, given)), store)
    await _add_content(data, store, with_prompts=prompts)
    with contextlib.suppress(ArtifactError, ValueError):  # the earlier run may have been deleted
        await _add_changes(data, store)
    return data


async def _add_changes(data: ReportData, store: ArtifactStore) -> None:
    """Adds the differences from the repeated run, if that is still stored."""
    own = data.result
    if not own.reuse_from:
        return
    earlier = await stored_end(own.reuse_from[0], store)
    if earlier is None:
        return
    _, outcome = earlier
    before = outcome.result
    if before is None or not repeats(before, own):
        return

    data.repeats = own.reuse_from[0]
    old_tables = await rows_by_table(store, before)
    new_tables = await rows_by_table(store, own)
    for name, rows in new_tables.items():
        data.changes += row_changes(name, old_tables.get(name, []), rows)
    in_tables = {name.removesuffix(".csv") for name in new_tables}
    texts = [await _texts(store, result, in_tables) for result in (before, own)]
    data.changes += text_changes(*texts)


async def _texts(
    store: ArtifactStore,
    result: RunResult,
    left_out: Collection[str],
) -> dict[str, str]:
    """Returns the texts of findings by name, without items whose table is compared."""
    names = names_of(result)
    texts: dict[str, str] = {}
    for report in result.subtasks:
        is_compared = report.id in names and report.template not in left_out
        if report.finding and is_compared:
            texts[names[report.id]] = await read_text(store, report.finding.text_ref)
    return texts


async def rows_by_table(store: ArtifactStore, result: RunResult) -> dict[str, list[dict[str, str]]]:
    """Returns the rows of the tables that code made of items, by the table's name."""
    found = {}
    for table in result.tables:
        text = await read_text(store, table.ref)
        found[table.name] = list(csv.DictReader(io.StringIO(text), restval=""))
    return found


async def _run_facts(run: Run, store: ArtifactStore) -> ReportData:
    """Returns the facts about a run without findings and calls. Raises CommandFailed."""
    ended = await _from_stored_end(run.id, store)
    try:
        described = await run.require()
    except NoRun:
        if ended is None:
            raise
        return ended
    # In another state, a stored end may be that of an earlier execution.
    if ended and state_word(described) in ("completed", "failed", "cancelled"):
        return ended
    _, team, _ = await listed_facts(described)
    outcome = await outcome_so_far(run, store)
    events = await full_trace(run, store)
    data = ReportData(run.id, outcome, events, await recorded_goal(run), team)
    if is_open(described):
        status = await run.status()
        data.notice = status.model_notice or ""
        data.waits = [standstill.cause for standstill in waits_of_status(status, run.id)]
    return data


async def _from_stored_end(run_id: str, store: ArtifactStore) -> ReportData | None:
    """Builds the report from the stored result; None if there is none."""
    stored = await stored_end(run_id, store)
    if stored is None:
        return None
    published, outcome = stored
    data = ReportData(run_id, outcome, await stored_trace(run_id, store) or [])
    known = published.facts
    if known:
        data.goal = await read_text(store, known.goal_ref)
        data.team = known.team
        data.notice = known.notice or ""
    return data


async def _add_content(data: ReportData, store: ArtifactStore, *, with_prompts: bool) -> None:
    """Adds stored content: evidence, findings, calls and, if wanted, prompts."""
    conversations = ConversationStore(store)
    answered = set[str]()  # model calls whose tool calls were read
    calls = defaultdict[str, list[ToolUse]](list)
    prompts = defaultdict[str, list[Prompt]](list)
    data.evidence = await evidence_of(store, data.result)
    known = await stored_calls(store, data.run_id)
    for stored, entry in await entries_of(conversations, known, data.evidence.changed):
        asking = entry.ancestors[-1] if entry.ancestors else ""
        try:
            if asking and asking not in answered:
                answered.add(asking)
                calls[stored.subtask] += await _answered_by(conversations, asking, entry)
            if with_prompts:
                parts = await added_by(conversations, entry)
                prompts[stored.subtask].append((stored, entry, parts))
        except ArtifactError as error:
            data.evidence.changed.append(str(error))
    data.tables = [table async for table in _tables(store, data.result)]
    subtasks = _subtasks(store, data.result.subtasks, data.evidence.findings, calls, prompts)
    data.subtasks = [part async for part in subtasks]
    data.prompts = prompts[""]


async def _answered_by(
    conversations: ConversationStore,
    asking: str,
    entry: Entry,
) -> list[ToolUse]:
    """Returns the tool calls in an entry, with their outputs in the next entry."""
    before = await conversations.entry(asking)
    uses = await read_tool_uses(conversations, [before, entry])
    own = uses[: len(before.reply.tool_uses())]
    return [use for use in own if use.name != FINISH_TOOL]


async def _subtasks(
    store: ArtifactStore,
    reports: Sequence[SubtaskReport],
    known: Mapping[str, Grounded],
    calls: Mapping[str, list[ToolUse]],
    prompts: Mapping[str, list[Prompt]],
    above: str = "",
) -> AsyncIterator[SubtaskPart]:
    """Yields the subtasks, each before those of its nested run."""
    for report in reports:
        path = f"{above}{report.id}"
        found = known.get(report.id) or Grounded()
        if report.id not in known and report.finding:
            found = await read_grounds(store, report.finding)
        own = [*calls.get(path, [])]
        listed = {call.output_ref for call in own}
        # The evidence of a finding is listed wherever its call was made.
        for item in found.evidence:
            ref = item.output_ref
            if ref in found.outputs and ref not in listed:
                own.append(ToolUse(item.tool, item.arguments, found.outputs[ref], ref))
        yield SubtaskPart(path, report, found, own, prompts.get(path, []))
        if report.nested and report.nested.result_ref:
            with contextlib.suppress(ArtifactError):
                nested = await read_result(store, report.nested.result_ref)
                async for part in _subtasks(store, nested.subtasks, {}, calls, prompts, f"{path}/"):
                    yield part


async def _tables(store: ArtifactStore, result: RunResult) -> AsyncIterator[AnswerTable]:
    """Yields the tables that code made of items, else the table in the answer's JSON."""
    for table in result.tables:
        with contextlib.suppress(ArtifactError, csv.Error):
            yield _answer_table(table.name, await read_text(store, table.ref), table.ref)
    if not result.tables and rows_of(result.answer_json):
        with contextlib.suppress(csv.Error):
            text = answer_file(result, ".csv").decode()
            yield _answer_table("answer.json", text, result.result_ref or "")


def _answer_table(name: str, text: str, ref: str) -> AnswerTable:
    columns, *rows = csv.reader(io.StringIO(text))
    return AnswerTable(name, columns, rows[:_TABLE_ROWS], len(rows), ref)
