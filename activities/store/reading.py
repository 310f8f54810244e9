"""Reading what a run stored: texts, plans, and findings cut to the room that a prompt has for them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cachetools import LRUCache

from activities.contracts.packed import DependencyRef
from activities.contracts.run_contracts import AttachmentRef
from activities.store.artifacts import ArtifactStore
from supervision.agent.finding_budget import allot
from supervision.base import limits
from supervision.base.text import size
from supervision.contract.finding import Evidence, FindingRecord
from supervision.contract.plan import Plan

_PROMPT_LIST_SHARE = 0.25  # of the room for what can be cut, where that is less
_CACHED_PLANS = 32  # parsed plans kept in a process: more than runs that plan at the same time

_CUT = "\n[… {count} characters left out here]"

# Every worker agent of a run reads the same plan. Plans are content-addressed, so a parsed one never gets stale.
_plans: LRUCache[tuple[str, str], Plan] = LRUCache(maxsize=_CACHED_PLANS)


@dataclass(frozen=True)
class FindingExcerpt:
    """A finding as prompts show it: its subtask, the role that brought it, its text, and what is known of it.

    `complete` is False for what its author calls partial or could not finish. `stale` is True if it uses a
    finding that was changed after it.
    """

    subtask_id: str
    role: str
    text: str
    record: FindingRecord = field(default_factory=FindingRecord)
    complete: bool = True
    stale: bool = False


async def read_text(store: ArtifactStore, ref: str) -> str:
    """Returns the stored text at `ref`."""
    return (await store.get(ref)).decode("utf-8", "replace")


async def read_plan(store: ArtifactStore, ref: str) -> Plan:
    """Returns the whole plan at `ref`. It is shared, so do not change it."""
    key = (store.url, ref)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = Plan.model_validate_json(await store.get(ref))
    return plan


async def read_small(store: ArtifactStore, attachments: list[AttachmentRef]) -> dict[str, str | None]:
    """Returns the texts of small attachments by name, None for those that a tool has to read."""
    return {
        attachment.name: await read_text(store, attachment.ref)
        if 0 < attachment.bytes <= limits.SMALL_ATTACHMENT_BYTES
        else None
        for attachment in attachments
    }


async def read_texts(store: ArtifactStore, refs: list[str]) -> list[str]:
    """Returns the stored texts at `refs`, read side by side."""
    reading = asyncio.Semaphore(limits.STORE_READS)

    async def read(ref: str) -> str:
        async with reading:
            return await read_text(store, ref)

    return list(await asyncio.gather(*map(read, refs)))


async def read_findings(store: ArtifactStore, refs: list[DependencyRef], tokens: int) -> list[FindingExcerpt]:
    """Returns the findings with texts of at most so many `tokens` together.

    Texts that do not fit are cut, those of the least weight first; a cut text says how much is missing.
    """
    return _fitted(await _whole(store, refs), refs, tokens * limits.CHARS_PER_TOKEN)


def list_bytes(tokens: int) -> int:
    """Returns the bytes that one list beside the findings may have in a prompt with that room for what can be cut."""
    return min(limits.PROMPT_LIST_BYTES, int(tokens * limits.CHARS_PER_TOKEN * _PROMPT_LIST_SHARE))


async def with_findings(
    store: ArtifactStore, refs: list[DependencyRef], write: Callable[[list[FindingExcerpt]], str], tokens: int
) -> str:
    """Returns the prompt that `write` makes of findings, which get what its other parts leave of `tokens`.

    They get half of that at least: a prompt about findings is of no use without any. The tool calls that they rest on
    are a list like others.
    """
    whole, room = await _whole(store, refs), tokens * limits.CHARS_PER_TOKEN
    whole = _with_evidence_of(whole, list_bytes(tokens))
    others = size(write([replace(finding, text="") for finding in whole]))
    return write(_fitted(whole, refs, max(room - others, room / 2)))


async def _whole(store: ArtifactStore, refs: list[DependencyRef]) -> list[FindingExcerpt]:
    recorded = [ref.record_ref for ref in refs if ref.record_ref]
    stored = await read_texts(store, [*(ref.text_ref for ref in refs), *recorded])
    texts, records = stored[: len(refs)], dict(zip(recorded, stored[len(refs) :], strict=True))
    return [
        FindingExcerpt(
            subtask_id=ref.subtask_id,
            role=ref.role,
            text=text,
            record=FindingRecord.model_validate_json(records[ref.record_ref]) if ref.record_ref else FindingRecord(),
            complete=ref.complete and not ref.partial,
            stale=ref.stale,
        )
        for ref, text in zip(refs, texts, strict=True)
    ]


def _with_evidence_of(whole: list[FindingExcerpt], room: int) -> list[FindingExcerpt]:
    """Returns the findings with tool calls of at most `room` bytes together, of each the last ones."""
    sizes = [sum(map(_evidence_bytes, finding.record.evidence)) for finding in whole]
    if sum(sizes) <= room:
        return whole
    shares = allot(sizes, [0.5] * len(sizes), room)
    return [
        replace(finding, record=finding.record.model_copy(update={"evidence": _last(finding.record.evidence, share)}))
        for finding, share in zip(whole, shares, strict=True)
    ]


def _last(evidence: list[Evidence], room: int) -> list[Evidence]:
    first = len(evidence)
    while first and (room := room - _evidence_bytes(evidence[first - 1])) >= 0:
        first -= 1
    return evidence[first:]


def _evidence_bytes(item: Evidence) -> int:
    return min(limits.EVIDENCE_SHOWN_BYTES, size(f"Rests on {item.tool}({item.arguments}): {item.preview}"))


def _fitted(whole: list[FindingExcerpt], refs: list[DependencyRef], room: float) -> list[FindingExcerpt]:
    """Returns the findings with texts of at most `room` bytes together."""
    sizes = [len(finding.text) for finding in whole]
    # They are cut by characters; some scripts have more bytes, and more tokens, to one.
    most = max(0.0, room) * sum(sizes) / max(1, sum(size(finding.text) for finding in whole))
    lengths = allot(sizes, [ref.weight for ref in refs], int(most))
    return [
        replace(finding, text=_beginning(finding.text, length)) for finding, length in zip(whole, lengths, strict=True)
    ]


def _beginning(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    end = length - len(_CUT.format(count=len(text)))  # room for the mark with the largest count
    return text[:end] + _CUT.format(count=len(text) - end) if end > 0 else text[:length]
