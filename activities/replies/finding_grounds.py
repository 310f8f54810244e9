"""What a worker agent's finding rests on: its brief and the outputs of its tools, read from its conversation."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

from activities.model.conversation import ConversationStore, Entry
from activities.model.port import Json
from activities.teams.toolbox import Toolbox
from supervision import limits
from supervision.contract.finding import Evidence
from supervision.grounding.support import Source, unsupported
from supervision.text import cut, one_line

# The reviewer's words and the finding that they are about prove nothing.
_NO_GROUND = re.compile(r"<(feedback|previous_finding)>\n.*?\n</\1>", re.DOTALL)


class FindingGrounds:
    """The sources of a finding, for the rule of grounding, and the tool calls, for those who check it."""

    def __init__(self, sources: list[Source], evidence: list[Evidence]) -> None:
        self._sources = sources
        self.evidence = evidence[-limits.EVIDENCE_CALLS :]

    async def unsupported(self, text: str) -> list[str]:
        """Returns the claims of a finding's text that nothing here supports."""
        claims = await asyncio.to_thread(unsupported, text, self._sources)
        texts = [cut(claim.text, limits.UNSUPPORTED_BYTES) for claim in claims]
        return list(dict.fromkeys(texts))[: limits.UNSUPPORTED_SHOWN]


async def read_grounds(conversations: ConversationStore, head: str, toolbox: Toolbox) -> FindingGrounds:
    """Returns what the conversation at `head` rests on. Errors of tools prove nothing."""
    last = await conversations.entry(head)
    chain = [*[await conversations.entry(key) for key in last.ancestors], last]
    sources = [Source(_NO_GROUND.sub("", text)) for text in _texts(chain[0].input)]
    evidence = []
    for before, entry in zip(chain, chain[1:], strict=False):
        resolved = await conversations.resolve(entry.input)
        for block, ref in zip(_results(resolved), _refs(entry), strict=True):
            call = _call(before, block.get("tool_use_id"))
            output = block.get("content")
            tool = toolbox.get(str(call.get("name"))) if call else None
            if tool is None or block.get("is_error") or not isinstance(output, str):
                continue
            arguments = json.dumps(call.get("input") if call else None, ensure_ascii=False)
            evidence.append(_evidence(tool.name, arguments, output, ref))
            if tool.evidence != "nothing":
                sources.append(Source(output, tool.evidence, arguments))
    return FindingGrounds(sources, evidence)


def _evidence(tool: str, arguments: str, output: str, ref: str) -> Evidence:
    return Evidence(
        tool=tool,
        arguments=one_line(arguments, limits.EVIDENCE_BYTES),
        output_ref=ref,
        preview=one_line(output, limits.EVIDENCE_BYTES),
    )


def _texts(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        content: Any = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (str(block["text"]) for block in content if block.get("type") == "text")


def _results(messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        if isinstance(message["content"], list):
            yield from (block for block in message["content"] if block.get("type") == "tool_result")


def _refs(entry: Entry) -> Iterator[str]:
    return (str(block.get("content_ref", "")) for block in _results(entry.input))


def _call(entry: Entry, call_id: object) -> Json | None:
    return next((use for use in entry.reply.tool_uses() if use.get("id") == call_id), None)
