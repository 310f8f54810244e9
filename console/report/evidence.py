"""The evidence of an answer, recomputed from the store: its claims, the findings behind them, the stored calls."""

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

from activities.model.conversation import ConversationStore, Entry
from activities.model.port import Json
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactStore
from supervision.base import limits
from supervision.base.store_keys import run_prefix
from supervision.contract.finding import Finding, FindingRecord
from supervision.contract.result import RunResult
from supervision.grounding.chain import Grounded, Link, answer_chain, field_links
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
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            parts.append((f"{message['role']}: {block.get('type')}", _block_text(block)))
    return parts


def _block_text(block: Json) -> str:
    """Returns what a block of a message says: its text, the output of a tool, or the whole block as JSON."""
    said = block.get(str(block.get("type")), block.get("content"))
    shown = {name: value for name, value in block.items() if name not in ("type", "signature")}
    return said if isinstance(said, str) else json.dumps(shown, ensure_ascii=False, indent=2)
