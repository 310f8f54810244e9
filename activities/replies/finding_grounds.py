"""What a worker agent's finding rests on: its brief and the outputs of its tools, read from its conversation."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from activities.model.conversation import ConversationStore
from activities.model.port import Json
from activities.replies.tool_uses import ToolUse, read_tool_uses
from activities.teams.toolbox import Toolbox
from supervision import limits
from supervision.contract.finding import Evidence
from supervision.grounding.support import Source, unsupported_texts
from supervision.text import one_line

# The reviewer's words and the finding that they are about prove nothing.
_NO_GROUND = re.compile(r"<(feedback|previous_finding)>\n.*?\n</\1>", re.DOTALL)


class FindingGrounds:
    """The sources of a finding, for the rule of grounding, and the tool calls, for those who check it."""

    def __init__(self, sources: list[Source], evidence: list[Evidence]) -> None:
        self._sources = sources
        self.evidence = evidence[-limits.EVIDENCE_CALLS :]

    async def unsupported(self, text: str) -> list[str]:
        """Returns the claims of a finding's text that nothing here supports."""
        return await asyncio.to_thread(unsupported_texts, text, self._sources)


async def read_grounds(conversations: ConversationStore, head: str, toolbox: Toolbox) -> FindingGrounds:
    """Returns what the conversation at `head` rests on. Errors of tools prove nothing."""
    chain = await conversations.chain(head)
    sources = [Source(_NO_GROUND.sub("", text)) for text in _texts(chain[0].input)]
    evidence = []
    for use in await read_tool_uses(conversations, chain):
        tool = toolbox.get(use.name)
        if tool is None or use.output is None or use.is_error:
            continue
        evidence.append(_evidence(use, use.output))
        if tool.evidence != "nothing":
            sources.append(Source(use.output, tool.evidence, use.arguments))
    return FindingGrounds(sources, evidence)


def _evidence(use: ToolUse, output: str) -> Evidence:
    return Evidence(
        tool=use.name,
        arguments=one_line(use.arguments, limits.EVIDENCE_BYTES),
        output_ref=use.output_ref,
        preview=one_line(output, limits.EVIDENCE_BYTES),
    )


def _texts(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        content: Any = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (str(block["text"]) for block in content if block.get("type") == "text")
