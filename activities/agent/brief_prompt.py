"""The first prompt of a worker agent, cut to the room that its model has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from activities.contracts.run_contracts import SubtaskBrief
from activities.model.prompt_fit import brief_tokens
from activities.prompts import agent_prompts as prompts
from activities.store.artifacts import ArtifactStore
from activities.store.reading import list_bytes, read_findings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.plan import Subtask


@dataclass(frozen=True)
class BriefPrompt:
    """The first prompt of a worker agent, by its parts.

    `outputs` are those of an earlier conversation that is begun anew, `previous` is the finding to
    be corrected, `tables` the list for an agent that begins with a query.
    """

    store: ArtifactStore
    brief: SubtaskBrief
    subtask: Subtask
    attachments: Mapping[str, str | None]
    previous: str | None
    outputs: Sequence[tuple[str, str]]
    outputs_failed: bool
    tables: str
    with_tools: bool

    async def within(self, tokens: int) -> str:
        """Returns the prompt; its findings, lists and outputs have at most so many tokens."""
        brief = self.brief
        findings = await read_findings(self.store, brief.dependencies, brief_tokens(tokens))
        previous = self.previous
        if previous is not None:
            previous = cut(previous, int(tokens * limits.CHARS_PER_TOKEN / 2))
        room = list_bytes(tokens)
        request = prompts.worker_request(
            self.subtask,
            findings,
            brief.missing,
            self.attachments,
            feedback=brief.feedback,
            previous=previous,
            with_tools=self.with_tools,
            room=room,
            names_items=brief.names_items,
            tables=self.tables,
        )
        outputs = prompts.earlier_outputs(self.outputs, room, failed=self.outputs_failed)
        return joined([request, prompts.already_done(brief.effects), outputs])


def joined(parts: Iterable[str | None]) -> str:
    """Returns the parts of a prompt as paragraphs, without empty ones."""
    return "\n\n".join(filter(None, parts))
