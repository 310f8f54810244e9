"""The texts in which reviewers' and judges' words are looked up: goal, findings, tool outputs."""

from activities.contracts.run_contracts import DependencyRef
from activities.store.artifacts import ArtifactError, ArtifactStore
from activities.store.reading import read_records, read_text, read_texts
from temporal_supervisor.supervision.contract.finding import FindingRecord
from temporal_supervisor.supervision.results.hearsay import KnownFinding

# Of tools, the first of each finding first: looking up reads no more text than that holds.
_OUTPUTS_READ = 200


async def known_findings(store: ArtifactStore, refs: list[DependencyRef]) -> list[KnownFinding]:
    """Returns the findings at some references. Raises ArtifactError if one is lost."""
    records = await read_records(store, refs)
    texts = await read_texts(store, [ref.text_ref for ref in refs])
    return [
        KnownFinding(ref.subtask_id, text, records.get(ref.record_ref) or FindingRecord())
        for ref, text in zip(refs, texts, strict=True)
    ]


async def outputs_behind(store: ArtifactStore, findings: list[KnownFinding]) -> list[str]:
    """Returns the tool outputs behind some findings, up to _OUTPUTS_READ of them."""
    behind = [item for finding in findings for item in finding.record.evidence if item.output_ref]
    refs = list(dict.fromkeys(item.output_ref for item in behind))[:_OUTPUTS_READ]
    texts = [await _output(store, ref) for ref in refs]
    return [text for text in texts if text]


async def _output(store: ArtifactStore, ref: str) -> str:
    """Returns an output; empty if it is lost, so that nothing is found in it."""
    try:
        return await read_text(store, ref)
    except ArtifactError:
        return ""
