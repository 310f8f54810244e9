"""Reading stored content into a prompt, within a size."""

from activities.artifact_store import ArtifactStore
from activities.contracts import DependencyRef
from supervision import limits

_CUT = "\n[… {count} characters left out here]"


async def read_text(store: ArtifactStore, ref: str) -> str:
    """The stored text at `ref`."""
    return (await store.get(ref)).decode("utf-8", "replace")


async def read_findings(store: ArtifactStore, refs: list[DependencyRef]) -> list[tuple[str, str, str]]:
    """(subtask id, role, text) of each finding; long ones are cut evenly so that all fit into one prompt."""
    share = limits.CONTEXT_CHARS // max(1, len(refs))
    found = []
    for ref in refs:
        text = await read_text(store, ref.text_ref)
        if len(text) > share:
            text = text[:share] + _CUT.format(count=len(text) - share)
        found.append((ref.subtask_id, ref.role, text))
    return found
