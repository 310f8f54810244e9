"""The tool calls of a conversation, each with what came back: for the claims that they support, and for their story."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from activities.model.conversation import ConversationStore, Entry
from activities.model.port import Json
from activities.replies.provided_results import ProvidedResults
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
    """Returns the calls of a conversation's entries in their order, of each entry those that the provider ran first.

    A call is answered by the entry that follows its own: ids are distinct within a reply only. What the provider ran
    is answered in the same reply, or in a later one if the model paused.
    """
    resolved = iter(await conversations.resolve([message for entry in chain for message in entry.input]))
    answers = [_answers(entry.input, [next(resolved) for _ in entry.input]) for entry in chain]
    provided = ProvidedResults(chain)
    uses = list[ToolUse]()
    for entry, answered in zip(chain, [*answers[1:], {}], strict=True):
        for call in entry.reply.provided_uses():
            if found := provided.of(call):
                uses.append(ToolUse(*_named(call), found.text, is_error=found.is_error, sources=found.sources))
            else:
                uses.append(ToolUse(*_named(call), None))
        uses += [_tool_use(call, answered.get(call.get("id"))) for call in entry.reply.tool_uses()]
    return uses


async def earlier_output(conversations: ConversationStore, head: str, call: ReadOutputCall) -> str:
    """Returns the whole output that a call of `read_output` in the reply at `head` names.

    Raises ValueError, with words for the model, if that conversation has none of that name.
    """
    entry = await conversations.entry(head)
    keys = [*entry.ancestors, head]
    reply, number = call.place or (len(keys), 0)
    if reply < len(keys):  # its outputs are in the entry after it
        added = await conversations.resolve((await conversations.entry(keys[reply])).input)
        outputs = list(_tool_results(added))
        if number <= len(outputs):
            return str(outputs[number - 1].get("content"))
    name = one_line(call.output, limits.LINE_BYTES)
    raise ValueError(
        f"There is no output '{name}'. Take the name from the last line of a shortened output, or the subtask_id of a "
        "finding."
    )


def _answers(stored: list[Json], resolved: list[Json]) -> dict[object, tuple[Json, Json]]:
    """Returns the answers to calls by the calls' ids, each with what is stored of it."""
    blocks = zip(_tool_results(stored), _tool_results(resolved), strict=True)
    return {block.get("tool_use_id"): (block, raw) for raw, block in blocks}


def _tool_results(messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        if isinstance(message["content"], list):
            yield from (block for block in message["content"] if block.get("type") == "tool_result")


def _named(call: Json) -> tuple[str, str]:
    return str(call.get("name")), json.dumps(call.get("input"), ensure_ascii=False)


def _tool_use(call: Json, answer: tuple[Json, Json] | None) -> ToolUse:
    if answer is None:
        return ToolUse(*_named(call), None)
    block, stored = answer
    return ToolUse(
        *_named(call),
        str(block.get("content")),
        str(stored.get("content_ref", "")),
        bool(block.get("is_error")),
        stored.get("sources", ()),
        [ArtifactRef.model_validate(artifact) for artifact in stored.get("artifacts", ())],
    )
