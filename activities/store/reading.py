"""Readers of stored texts, plans and findings, cut to the room in a prompt."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate

from activities.contracts.run_contracts import DependencyRef
from activities.store.artifacts import ArtifactStore, text_of
from temporal_supervisor.supervision.agent.finding_budget import kept_whole, level
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.contract.finding import ArtifactRef, FindingRecord
from temporal_supervisor.supervision.contract.plan import Plan

_PROMPT_LIST_SHARE = 0.25  # of the room for what can be cut, where that is less
_SOURCES_SHOWN = 10  # of one finding
_CUT = "\n[… the rest of this finding is left out here]"
_LINE_OVERHEAD = 12  # bytes of a line of a checked claim beside its parts


@dataclass(frozen=True)
class FindingExcerpt:
    """A finding for a prompt: its subtask, the role of its author, its text and its record.

    `complete` is False if its author calls it partial or could not finish it. `stale` is True if a
    finding that it uses has changed since. If it is `summarised`, the text is its author's summary.
    """

    subtask_id: str
    role: str
    text: str
    record: FindingRecord = field(default_factory=FindingRecord)
    complete: bool = True
    stale: bool = False
    summarised: bool = False


async def read_text(store: ArtifactStore, ref: str) -> str:
    """Returns the stored text at `ref`."""
    return text_of(await store.get(ref))


async def read_plan(store: ArtifactStore, ref: str) -> Plan:
    """Returns the complete plan at `ref`. It is shared, so do not change it."""
    return await store.read(ref, Plan.model_validate_json)


async def read_small(store: ArtifactStore, attachments: list[ArtifactRef]) -> dict[str, str | None]:
    """Returns the texts of small attachments by name; None for large ones, which a tool reads."""
    texts: dict[str, str | None] = {}
    for attachment in attachments:
        is_small = 0 < attachment.bytes <= limits.SMALL_ATTACHMENT_BYTES
        texts[attachment.name] = await read_text(store, attachment.ref) if is_small else None
    return texts


async def read_texts(store: ArtifactStore, refs: list[str]) -> list[str]:
    """Returns the stored texts at `refs`, read concurrently. Raises ArtifactError."""
    reading = asyncio.Semaphore(limits.STORE_READS)

    async def read_one(ref: str) -> str:
        async with reading:
            return await read_text(store, ref)

    return list(await asyncio.gather(*map(read_one, refs)))


async def read_findings(
    store: ArtifactStore,
    refs: list[DependencyRef],
    tokens: int,
) -> list[FindingExcerpt]:
    """Returns the findings, with texts of at most `tokens` in total.

    The findings of least weight are cut to their summaries.
    """
    whole = _with_short_lists(await _excerpts(store, refs), list_bytes(tokens))
    return _fit_texts(whole, refs, tokens * limits.CHARS_PER_TOKEN)


def list_bytes(tokens: int) -> int:
    """Returns the bytes for one list in a prompt that has room for `tokens`, findings included."""
    room = tokens * limits.CHARS_PER_TOKEN
    return min(limits.PROMPT_LIST_BYTES, int(room * _PROMPT_LIST_SHARE))


async def with_findings(
    store: ArtifactStore,
    refs: list[DependencyRef],
    write: Callable[[list[FindingExcerpt]], str],
    tokens: int,
) -> str:
    """Returns the prompt that `write` makes from findings.

    Their texts get the part of `tokens` that the rest of the prompt leaves, and at least half.
    """
    whole = _with_short_lists(await _excerpts(store, refs), list_bytes(tokens))
    room = tokens * limits.CHARS_PER_TOKEN
    without_texts = write([replace(finding, text="", summarised=True) for finding in whole])
    left = room - size(without_texts)
    return write(_fit_texts(whole, refs, max(left, room / 2)))


async def _excerpts(store: ArtifactStore, refs: list[DependencyRef]) -> list[FindingExcerpt]:
    records = await read_records(store, refs)
    texts = await read_texts(store, [ref.text_ref for ref in refs])
    return [
        FindingExcerpt(
            subtask_id=ref.subtask_id,
            role=ref.role,
            text=text,
            record=records.get(ref.record_ref) or FindingRecord(),
            complete=ref.complete and not ref.partial,
            stale=ref.stale,
        )
        for ref, text in zip(refs, texts, strict=True)
    ]


async def read_records(store: ArtifactStore, refs: list[DependencyRef]) -> dict[str, FindingRecord]:
    """Returns the records of findings by reference. They are shared, so do not change them."""
    record_refs = [ref.record_ref for ref in refs if ref.record_ref]
    return await store.read_all(record_refs, FindingRecord.model_validate_json)


def _with_short_lists(whole: list[FindingExcerpt], room: int) -> list[FindingExcerpt]:
    """Returns the findings with only their first sources and claims, `room` bytes in total."""
    share = room // max(1, len(whole))
    overhead = " " * _LINE_OVERHEAD
    shortened: list[FindingExcerpt] = []
    for finding in whole:
        record = finding.record
        sources = first_of(record.sources[:_SOURCES_SHOWN], share // 2)
        left = share - sum(map(size, sources))
        lines = [f"{claim.text}{claim.source}{claim.line}{overhead}" for claim in record.checked]
        checked = record.checked[: len(first_of(lines, left))]
        lists = {"sources": sources, "checked": checked}
        shortened.append(replace(finding, record=record.model_copy(update=lists)))
    return shortened


def first_of(parts: list[str], room: int) -> list[str]:
    """Returns the first parts that fit into `room` bytes together."""
    ends = accumulate(map(size, parts))
    return [part for part, end in zip(parts, ends, strict=True) if end <= room]


def _fit_texts(
    whole: list[FindingExcerpt],
    refs: list[DependencyRef],
    room: float,
) -> list[FindingExcerpt]:
    """Returns the findings with texts of at most `room` bytes in total."""
    sizes = [size(finding.text) for finding in whole]
    summary_sizes = [size(finding.record.summary) for finding in whole]
    short = [summary or own for summary, own in zip(summary_sizes, sizes, strict=True)]
    kept = kept_whole(sizes, short, [ref.weight for ref in refs], int(room))
    shown = []
    for finding, stays in zip(whole, kept, strict=True):
        if not stays:
            finding = replace(finding, text=finding.record.summary, summarised=True)
        shown.append(finding)
    # What is still too long is cut, all texts to one length.
    most = level([size(finding.text) for finding in shown], int(room))
    return [replace(finding, text=cut(finding.text, most, _CUT)) for finding in shown]
