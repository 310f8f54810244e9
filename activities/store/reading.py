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
    """A finding as prompts show it: its subtask, the role that brought it, its text, and what is known of it.

    `complete` is False for what its author calls partial or could not finish. `stale` is True if it
    uses a finding that was changed after it. A `summarised` one is shown as its author's summary.
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
    """Returns the whole plan at `ref`. It is shared, so do not change it."""
    return await store.read(ref, Plan.model_validate_json)


async def read_small(store: ArtifactStore, attachments: list[ArtifactRef]) -> dict[str, str | None]:
    """Returns the texts of small attachments by name, None for those that a tool has to read."""
    return {
        attachment.name: await read_text(store, attachment.ref)
        if 0 < attachment.bytes <= limits.SMALL_ATTACHMENT_BYTES
        else None
        for attachment in attachments
    }


async def read_texts(store: ArtifactStore, refs: list[str]) -> list[str]:
    """Returns the stored texts at `refs`, read side by side from the store, which may have lost or changed them."""
    reading = asyncio.Semaphore(limits.STORE_READS)

    async def read(ref: str) -> str:
        async with reading:
            return await read_text(store, ref)

    return list(await asyncio.gather(*map(read, refs)))


async def read_findings(store: ArtifactStore, refs: list[DependencyRef], tokens: int) -> list[FindingExcerpt]:
    """Returns the findings with texts of so many `tokens` together: those of the least weight as their summaries."""
    whole = _with_lists_of(await _whole(store, refs), list_bytes(tokens))
    return _fitted(whole, refs, tokens * limits.CHARS_PER_TOKEN)


def list_bytes(tokens: int) -> int:
    """Returns the bytes that one list beside the findings may have in a prompt with that room for what can be cut."""
    return min(limits.PROMPT_LIST_BYTES, int(tokens * limits.CHARS_PER_TOKEN * _PROMPT_LIST_SHARE))


async def with_findings(
    store: ArtifactStore, refs: list[DependencyRef], write: Callable[[list[FindingExcerpt]], str], tokens: int
) -> str:
    """Returns the prompt that `write` makes of findings: they have what others leave of `tokens`, half at least."""
    whole, room = await _whole(store, refs), tokens * limits.CHARS_PER_TOKEN
    whole = _with_lists_of(whole, list_bytes(tokens))
    others = size(write([replace(finding, text="", summarised=True) for finding in whole]))
    return write(_fitted(whole, refs, max(room - others, room / 2)))


async def _whole(store: ArtifactStore, refs: list[DependencyRef]) -> list[FindingExcerpt]:
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
    """Returns the records of findings by their references.

    They are shared, so do not change them.
    """
    return await store.read_all([ref.record_ref for ref in refs if ref.record_ref], FindingRecord.model_validate_json)


def _with_lists_of(whole: list[FindingExcerpt], room: int) -> list[FindingExcerpt]:
    """Returns the findings with sources and checked claims of at most `room` bytes together, of each the first ones."""
    share, shortened = room // max(1, len(whole)), list[FindingExcerpt]()
    for finding in whole:
        sources = first_of(finding.record.sources[:_SOURCES_SHOWN], share // 2)
        lines = [f"{claim.text}{claim.source}{claim.line}{' ' * _LINE_OVERHEAD}" for claim in finding.record.checked]
        shown = len(first_of(lines, share - sum(map(size, sources))))
        lists = {"sources": sources, "checked": finding.record.checked[:shown]}
        shortened.append(replace(finding, record=finding.record.model_copy(update=lists)))
    return shortened


def first_of(parts: list[str], room: int) -> list[str]:
    """Returns as many of the parts, from the first on, as fit into `room` bytes."""
    return [part for part, end in zip(parts, accumulate(map(size, parts)), strict=True) if end <= room]


def _fitted(whole: list[FindingExcerpt], refs: list[DependencyRef], room: float) -> list[FindingExcerpt]:
    """Returns the findings with texts of at most `room` bytes together."""
    sizes = [size(finding.text) for finding in whole]
    short = [size(finding.record.summary) or own for finding, own in zip(whole, sizes, strict=True)]
    kept = kept_whole(sizes, short, [ref.weight for ref in refs], int(room))
    shown = [
        finding if stays else replace(finding, text=finding.record.summary, summarised=True)
        for finding, stays in zip(whole, kept, strict=True)
    ]
    most = level([size(finding.text) for finding in shown], int(room))
    return [replace(finding, text=cut(finding.text, most, _CUT)) for finding in shown]
