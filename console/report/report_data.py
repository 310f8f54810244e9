"""What the report of a run says, as data, with the evidence of its answer recomputed from the store."""

import asyncio
import contextlib
import csv
import io
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from activities.model.conversation import ConversationStore, Entry
from activities.model.port import Json
from activities.replies.agent_story import read_tool_uses
from activities.store.artifacts import ArtifactChanged, ArtifactError, ArtifactMissing, ArtifactStore
from activities.store.reading import read_text
from console.base.command import DONE, Access, CommandFailed
from console.run.run_handle import RunHandle, facts, find_run, is_open, state_word
from console.run.run_outcome import RunOutcome, full_trace, read_result, run_outcome, stored_end, stored_trace
from console.run.standstill import stated
from console.view.answer_text import answer_file, rows_of, tables_of
from runtime.connection import ConnectionFailed
from supervision.base import limits
from supervision.base.prompt_marks import FINISH_TOOL
from supervision.base.store_keys import run_prefix
from supervision.base.text import cut, size
from supervision.contract.finding import CheckedClaim, Finding, FindingRecord
from supervision.contract.result import RunResult, SubtaskReport
from supervision.contract.status import TraceEvent
from supervision.grounding.chain import Grounded, Link, answer_chain, field_links
from supervision.grounding.support import BRIEF
from supervision.run.attempt_rules import subtask_path

_CALL_SEGMENTS = 5  # of the key of a stored model call


@dataclass(frozen=True)
class AnswerEvidence:
    """An answer as it was written, a link for each of its claims, its findings, what was changed in the store."""

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
    current = [(report.id, report.finding) for report in result.subtasks if report.finding and not report.replaced_by]
    read = await asyncio.gather(*(grounded(store, finding) for _, finding in current))
    findings = dict(zip([subtask_id for subtask_id, _ in current], read, strict=True))
    planned = [subtask.description for subtask in result.subtasks]
    links = answer_chain(answer, result.citations, findings, planned)
    links += field_links(result.answer_json, findings, planned)
    problems += [problem for finding in read for problem in finding.problems]
    return AnswerEvidence(answer, links, findings, list(dict.fromkeys(problems)))


async def grounded(store: ArtifactStore, finding: Finding) -> Grounded:
    """Reads a finding, its record and the outputs behind it; the store compares each with its hash."""
    problems: list[str] = []
    text = await verified_text(store, finding.text_ref, problems)
    stored = await verified_text(store, finding.record_ref, problems) if finding.record_ref else ""
    record = FindingRecord.model_validate_json(stored) if stored else FindingRecord()
    refs = {item.output_ref for item in record.evidence if item.output_ref}
    outputs = {ref: await verified_text(store, ref, problems) for ref in sorted(refs)}
    output = (
        json.loads(await verified_text(store, finding.output_ref, problems) or "null") if finding.output_ref else None
    )
    return Grounded(**dict(record), text=text, outputs=outputs, problems=problems, output=output)


async def verified_text(store: ArtifactStore, ref: str, problems: list[str]) -> str:
    """Returns the text at a reference; empty, with a problem, if it is not what was stored there."""
    try:
        return (await store.get(ref)).decode("utf-8", "replace")
    except (ArtifactChanged, ArtifactMissing) as error:
        problems.append(str(error))
        return ""


@dataclass(frozen=True)
class StoredCall:
    """A stored model call: `subtask` is the path of the one that it was for, "" for the supervisor itself."""

    subtask: str
    workflow_id: str
    step: str
    key: str
    stored_at: datetime

    @property
    def work(self) -> str:
        """The subtask, or the kind of the supervisor's own work."""
        return self.subtask or self.step.partition(".")[0]


async def stored_calls(store: ArtifactStore, run_id: str) -> list[StoredCall]:
    """Returns the stored model calls of a run, in no order."""
    calls = []
    async for meta in store.objects(run_prefix(run_id)):
        parts = meta["path"].split("/")
        if len(parts) == _CALL_SEGMENTS:
            workflow_id, step = unquote(parts[2]), unquote(parts[3])
            subtask, at = subtask_path(workflow_id, run_id), meta["last_modified"].astimezone(UTC)
            calls.append(StoredCall(subtask, workflow_id, step, meta["path"], at))
    return calls


async def entries_of(conversations: ConversationStore, calls: list[StoredCall]) -> list[tuple[StoredCall, Entry]]:
    """Returns the calls with their entries, by time."""
    reading = asyncio.Semaphore(limits.STORE_READS)

    async def entry(call: StoredCall) -> Entry:
        async with reading:
            return await conversations.entry(call.key)

    read = zip(calls, await asyncio.gather(*map(entry, calls)), strict=True)
    return sorted(read, key=lambda pair: call_time(*pair))


def call_time(call: StoredCall, entry: Entry) -> datetime:
    """Returns when the answer of a call was stored."""
    return datetime.fromisoformat(entry.at) if entry.at else call.stored_at


async def said_in(conversations: ConversationStore, entry: Entry) -> list[tuple[str, str]]:
    """Returns the parts of what a call added to its conversation, each behind who says it, and those of the reply."""
    parts = [("system", entry.opening.system)] if entry.opening else []
    if entry.opening and entry.opening.tools:
        parts.append(("tools", ", ".join(str(tool.get("name")) for tool in entry.opening.tools)))
    for message in [*await conversations.resolve(entry.input), {"role": "reply", "content": entry.reply.content}]:
        parts += [(f"{message['role']}: {block.get('type')}", _block_text(block)) for block in message["content"]]
    return parts


def _block_text(block: Json) -> str:
    """Returns what a block of a message says: its text, the output of a tool, or the whole block as JSON."""
    said = block.get(str(block.get("type")), block.get("content"))
    shown = {name: value for name, value in block.items() if name not in ("type", "signature")}
    return said if isinstance(said, str) else json.dumps(shown, ensure_ascii=False, indent=2)


CALL_BYTES = 4 * limits.KIB  # of the arguments, the output or a part of the prompt of one call
FINDING_BYTES = 32 * limits.KIB
ANSWER_BYTES = 512 * limits.KIB
_TABLE_ROWS = 100
_DECISIONS = (*("decided", "paused", "resumed", "steered", "retry_asked"), *("skip_asked", "limits_extended"))
_IN_SUBTASKS = ("turn", "tool", "note", "subtask_started", "subtask_completed")


@dataclass(frozen=True)
class Excerpt:
    """A text, or its beginning: of all of it, `bytes` long, `ref` is the reference."""

    text: str = ""
    ref: str = ""
    bytes: int = 0

    @classmethod
    def of(cls, text: str, ref: str, most: int) -> "Excerpt":
        """Returns at most so many bytes of a text."""
        return cls(cut(text, most), ref, size(text))


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by a worker agent."""

    tool: str
    arguments: Excerpt
    output: Excerpt
    is_error: bool = False


@dataclass(frozen=True)
class Prompt:
    """What a model call added to its conversation, and the reply, each part with who says it."""

    step: str
    model: str
    at: datetime
    parts: list[tuple[str, Excerpt]]


@dataclass(frozen=True)
class Proof:
    """A claim of a finding, and the line, row or page in which code found it; `ref` is the tool output that has it."""

    claim: CheckedClaim
    ref: str


@dataclass(frozen=True)
class SubtaskPart:
    """A subtask by its path, as `t1/t2` below a team."""

    path: str
    report: SubtaskReport
    finding: Excerpt = Excerpt()
    proofs: list[Proof] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)


@dataclass(frozen=True)
class AnswerTable:
    """A table of the answer: its first rows, and how many there are."""

    name: str
    columns: list[str]
    rows: list[list[str]]
    count: int
    ref: str = ""


@dataclass(frozen=True)
class ReportData:
    """A run as its report shows it; `result` has all but whole texts.

    `ending` says why there is no answer, `waits` what an open run waits for, `changed` which objects in the store are
    not what was stored, `prompts` are the supervisor's own.
    """

    run_id: str
    state: str
    ending: str
    result: RunResult
    decisions: list[TraceEvent]
    course: list[TraceEvent]
    goal: str = ""
    team: str = ""
    notice: str = ""
    waits: list[str] = field(default_factory=list)
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    answer: Excerpt = Excerpt()
    links: list[Link] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    tables: list[AnswerTable] = field(default_factory=list)
    subtasks: list[SubtaskPart] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)


async def report_data(access: Access, given: str | None, *, prompts: bool = False) -> ReportData:
    """Returns the report of a run. Without a server a run is found by its whole id, if the store has its end."""
    try:
        client = await access.client()
    except ConnectionFailed:
        stores = await access.stores_with_end(given) if given else []
        if given is None or len(stores) != 1 or (ended := await _ended(given, stores[0])) is None:
            raise
        return await _with_content(ended, stores[0], prompts=prompts)
    run, store = RunHandle(client, await find_run(client, given)), await access.store()
    return await _with_content(await _beginning(run, store), store, prompts=prompts)


async def _beginning(run: RunHandle, store: ArtifactStore) -> ReportData:
    """Returns what is known of a run beside its findings and calls. Raises CommandFailed."""
    try:
        described = await run.require()
    except CommandFailed:
        if ended := await _ended(run.id, store):
            return ended
        raise
    state = state_word(described)
    if not is_open(described):
        cut_off = state in ("terminated", "timed out")  # what is stored may be of an earlier execution
        if not cut_off and (ended := await _ended(run.id, store)):
            return ended
        _, team, _ = await facts(described)
        events = await full_trace(run, store)
        return _as_data(run.id, await run_outcome(run, store), events, goal=await run.recorded_goal(), team=team)
    status, result = await run.status(), await run.result()
    if not result.subtasks:  # the plan waits for approval
        result.subtasks = [
            SubtaskReport(id=each.id, role=each.role, description=each.whole, depends_on=each.depends_on)
            for each in (await run.plan()).subtasks
        ]
    return _as_data(
        run.id,
        RunOutcome(DONE, state, result),
        await full_trace(run, store),
        goal=await run.recorded_goal() or status.goal,
        team=status.team,
        notice=status.model_notice or "",
        waits=[cause.cause for cause in stated(status, run.id)],
    )


async def _ended(run_id: str, store: ArtifactStore) -> ReportData | None:
    """Returns the same from what a run stored at its end; None if it stored nothing."""
    if (stored := await stored_end(run_id, store)) is None:
        return None
    (published, outcome), events = stored, await stored_trace(run_id, store) or []
    if (known := published.facts) is None:
        return _as_data(run_id, outcome, events)
    goal = await read_text(store, known.goal_ref)
    return _as_data(run_id, outcome, events, goal=goal, team=known.team, notice=known.notice or "")


def _as_data(run_id: str, outcome: RunOutcome, events: list[TraceEvent], **known: Any) -> ReportData:
    result = outcome.result or RunResult(status="partial")
    return ReportData(
        run_id,
        result.status if outcome.error is None else outcome.state,
        outcome.said,
        result,
        [event for event in events if event.type in _DECISIONS],
        [event for event in events if event.type not in (*_DECISIONS, *_IN_SUBTASKS)],
        **known,
    )


async def _with_content(data: ReportData, store: ArtifactStore, *, prompts: bool) -> ReportData:
    """Adds what is read from the store: the evidence of the answer, findings, calls."""
    result = data.result
    found = await evidence_of(store, result)
    conversations, unread = ConversationStore(store), list[str]()
    entries = await entries_of(conversations, await stored_calls(store, data.run_id))
    calls, said = await _work(conversations, entries, unread, with_prompts=prompts)
    return replace(
        data,
        answer=Excerpt.of(found.answer, result.answer_ref or "", ANSWER_BYTES),
        links=found.links,
        changed=list(dict.fromkeys([*found.changed, *unread])),
        tables=[table async for table in _tables(store, result)],
        subtasks=[part async for part in _subtasks(store, result.subtasks, found.findings, calls, said)],
        prompts=said.get("", []),
    )


async def _work(
    conversations: ConversationStore, entries: list[tuple[StoredCall, Entry]], unread: list[str], *, with_prompts: bool
) -> tuple[dict[str, list[ToolCall]], dict[str, list[Prompt]]]:
    """Returns tool calls and, if wanted, model calls by subtask; those of the supervisor itself are at ""."""
    calls: dict[str, list[ToolCall]] = defaultdict(list)
    prompts: dict[str, list[Prompt]] = defaultdict(list)
    answered: set[str] = set()
    for stored, entry in entries:
        try:
            if entry.ancestors and (asked := entry.ancestors[-1]) not in answered:
                answered.add(asked)
                calls[stored.subtask] += await _tool_calls(conversations, stored, entry, asked)
            if with_prompts:
                said = await said_in(conversations, entry)
                parts = [(title, Excerpt.of(text, stored.key, CALL_BYTES)) for title, text in said]
                prompts[stored.subtask].append(Prompt(stored.step, entry.reply.model, call_time(stored, entry), parts))
        except ArtifactError as error:
            unread.append(str(error))
    return calls, prompts


async def _tool_calls(conversations: ConversationStore, stored: StoredCall, entry: Entry, asked: str) -> list[ToolCall]:
    """Returns the tool calls of the reply `asked`, which are answered in the entry after it."""
    before = await conversations.entry(asked)
    uses = await read_tool_uses(conversations, [before, entry])
    return [
        ToolCall(
            use.name,
            Excerpt.of(use.arguments, asked, CALL_BYTES),
            Excerpt.of(use.output or "", use.output_ref or stored.key, CALL_BYTES),
            use.is_error,
        )
        for use in uses[: len(before.reply.tool_uses())]
        if use.name != FINISH_TOOL
    ]


async def _subtasks(
    store: ArtifactStore,
    reports: Sequence[SubtaskReport],
    known: Mapping[str, Grounded],
    calls: Mapping[str, list[ToolCall]],
    prompts: Mapping[str, list[Prompt]],
    above: str = "",
) -> AsyncIterator[SubtaskPart]:
    """Yields the subtasks, each before those of the run nested in it."""
    for report in reports:
        path = f"{above}{report.id}"
        found = known.get(report.id) or (await grounded(store, report.finding) if report.finding else Grounded())
        own = calls.get(path, [])
        listed = {call.output.ref for call in own}
        own = own + [  # what a finding is based on is there, wherever its call was made
            ToolCall(
                item.tool,
                Excerpt.of(item.arguments, "", CALL_BYTES),
                Excerpt.of(found.outputs[item.output_ref], item.output_ref, CALL_BYTES),
            )
            for item in found.evidence
            if item.output_ref in found.outputs and item.output_ref not in listed
        ]
        text = Excerpt.of(found.text, report.finding.text_ref, FINDING_BYTES) if report.finding else Excerpt()
        yield SubtaskPart(path, report, text, _proofs(found), own, prompts.get(path, []))
        if report.nested and report.nested.result_ref:
            with contextlib.suppress(ArtifactError):
                nested = await read_result(store, report.nested.result_ref)
                async for part in _subtasks(store, nested.subtasks, {}, calls, prompts, f"{path}/"):
                    yield part


def _proofs(found: Grounded) -> list[Proof]:
    """Returns where the claims of a finding stand; a line of its brief, or of nothing, is in no output."""
    outputs = {ref: " ".join(text.split()) for ref, text in found.outputs.items()}

    def ref_of(claim: CheckedClaim) -> str:
        words = " ".join(claim.line.strip("…").split()) if claim.source != BRIEF else ""
        return next((ref for ref, text in outputs.items() if words and words in text), "")

    return [Proof(claim, ref_of(claim)) for claim in found.checked]


async def _tables(store: ArtifactStore, result: RunResult) -> AsyncIterator[AnswerTable]:
    """Yields the tables of the answer: those that code made of items, else the list of objects in its JSON."""
    made = [(each.name, each.ref) for each in tables_of(result)]
    for name, ref in made or ([("answer.json", result.result_ref or "")] if rows_of(result.answer_json) else []):
        with contextlib.suppress(ArtifactError, csv.Error):
            text = await read_text(store, ref) if made else answer_file(result, ".csv").decode()
            columns, *rows = csv.reader(io.StringIO(text))
            yield AnswerTable(name, columns, rows[:_TABLE_ROWS], len(rows), ref)
