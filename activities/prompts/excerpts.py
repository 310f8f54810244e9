"""Reading stored content into a prompt, within a size."""

from collections.abc import Callable

from activities.contracts.run_contracts import DependencyRef
from activities.prompts.agent_prompts import Found
from activities.store.artifacts import ArtifactStore
from supervision import limits
from supervision.agent.finding_budget import allot

_CUT = "\n[… {count} characters left out here]"


async def read_text(store: ArtifactStore, ref: str) -> str:
    """The stored text at `ref`."""
    return (await store.get(ref)).decode("utf-8", "replace")


async def read_findings(
    store: ArtifactStore, refs: list[DependencyRef], budget: int = limits.CONTEXT_CHARS
) -> list[Found]:
    """(subtask id, role, text) of each finding, texts of at most `budget` characters together.

    What does not fit is cut, optional findings first, and says how much is missing.
    """
    texts = [await read_text(store, ref.text_ref) for ref in refs]
    lengths = allot([len(text) for text in texts], [ref.importance == "optional" for ref in refs], budget)
    return [
        (ref.subtask_id, ref.role, _beginning(text, length))
        for ref, text, length in zip(refs, texts, lengths, strict=True)
    ]


async def with_findings(store: ArtifactStore, refs: list[DependencyRef], write: Callable[[list[Found]], str]) -> str:
    """The prompt that `write` makes of findings: they get the room that its other parts leave of CONTEXT_CHARS."""
    others = len(write([(ref.subtask_id, ref.role, "") for ref in refs]))
    return write(await read_findings(store, refs, max(0, limits.CONTEXT_CHARS - others)))


def _beginning(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    kept = length - len(_CUT.format(count=len(text)))  # room for the mark with the largest count
    return text[:kept] + _CUT.format(count=len(text) - kept) if kept > 0 else text[:length]
