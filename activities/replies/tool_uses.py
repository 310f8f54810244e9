"""The tool calls of a conversation, each with what came back: for the claims that they support, and for their story."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from activities.model.conversation import ConversationStore, Entry, tool_results
from activities.model.port import Json
from supervision.agent.agent_tools import ReadOutputCall
from supervision.base import limits
from supervision.base.text import one_line
from supervision.contract.finding import ArtifactRef


@dataclass(frozen=True)
class ToolUse:
    """A call with its arguments as JSON, its output, None if it was not run (yet), and what this names."""

    name: str
    arguments: str
    output: str | None
    output_ref: str = ""
    is_error: bool = False
    sources: Sequence[str] = ()
    artifacts: Sequence[ArtifactRef] = ()


async def read_tool_uses(conversations: ConversationStore, chain: list[Entry]) -> list[ToolUse]:
    """Returns the calls of a conversation's entries in their order.

    A call is answered by the entry that follows its own: ids are distinct within a reply only.
    """
    resolved = iter(await conversations.resolve([message for entry in chain for message in entry.input]))
    answers = [_answers(entry.input, [next(resolved) for _ in entry.input]) for entry in chain]
    return [
        _tool_use(call, answered.get(call.get("id")))
        for entry, answered in zip(chain, [*answers[1:], {}], strict=True)
        for call in entry.reply.tool_uses()
    ]


async def earlier_output(conversations: ConversationStore, head: str, call: ReadOutputCall) -> str:
    """Returns the whole output that a call of `read_output` in the reply at `head` names.

    Raises ValueError, with words for the model, if that conversation has none of that name.
    """
    entry = await conversations.entry(head)
    keys = [*entry.ancestors, head]
    reply, number = call.place or (len(keys), 0)
    if reply < len(keys):  # its outputs are in the entry after it
        added = await conversations.resolve((await conversations.entry(keys[reply])).input)
        outputs = [block for message in added for block in tool_results(message)]
        if number <= len(outputs):
            return str(outputs[number - 1].get("content"))
    name = one_line(call.output, limits.LINE_BYTES)
    raise ValueError(
        f"There is no output '{name}'. Take the name from the last line of a shortened output, or the subtask_id of a "
        "finding."
    )


def _answers(stored: list[Json], resolved: list[Json]) -> dict[object, tuple[Json, Json]]:
    """Returns the answers to calls by the calls' ids, each with what is stored of it."""
    messages = zip(stored, resolved, strict=True)
    blocks = (pair for raw, message in messages for pair in zip(tool_results(raw), tool_results(message), strict=True))
    return {block.get("tool_use_id"): (block, raw) for raw, block in blocks}


def _tool_use(call: Json, answer: tuple[Json, Json] | None) -> ToolUse:
    name, arguments = str(call.get("name")), json.dumps(call.get("input"), ensure_ascii=False)
    if answer is None:
        return ToolUse(name, arguments, None)
    block, stored = answer
    return ToolUse(
        name,
        arguments,
        str(block.get("content")),
        str(stored.get("content_ref", "")),
        bool(block.get("is_error")),
        stored.get("sources", ()),
        [ArtifactRef.model_validate(artifact) for artifact in stored.get("artifacts", ())],
    )
