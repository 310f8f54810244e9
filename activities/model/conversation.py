"""Conversations: append-only chains of stored objects, one for each model call.

A conversation's head is the key of its last entry. An entry has the messages that its call added,
the model's reply and the keys of its ancestors, so that a cold process reads them all at once. The
provider's JSON is stored unchanged; outputs of tools are stored apart, and inserted when they are
sent to the model.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os.path import commonprefix
from typing import Annotated

from pydantic import Field

from activities.contracts.turn_contracts import OtherQuery, ToolResultRef
from activities.model.port import ModelMessage
from activities.store.artifacts import ArtifactStore, text_of
from temporal_supervisor.supervision.agent.agent_tools import beginning, output_name
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import Labels, Read
from temporal_supervisor.supervision.contract.model_choice import Effort
from temporal_supervisor.supervision.contract.usage import Usage

# Of a tool output that has made room: enough to decide whether to read it again.
_CLEARED_OUTPUT_CHARS = 600
_THINKING = ("thinking", "redacted_thinking")
# In place of a reply of nothing else: the API refuses a message without content.
_NOTHING_LEFT: JsonObject = {"type": "text", "text": "(thinking only)"}
_ABOUT_OUTPUTS = ("sources", "artifacts", "readings", "facts")  # with a stored output, never sent


class Opening(Model):
    """The common part of all calls of a conversation.

    With another effort the API forgets the messages that it has cached.
    """

    system: str
    model: str
    effort: Effort | None = None
    tools: list[JsonObject] = []
    output_schema: JsonObject | None = None


class ConversationView(Model):
    """The shown part of a conversation: the first `cleared` outputs are previews.

    Thinking before an entry is removed, and so are the `withheld` tools.
    """

    cleared: int = 0
    thinking_removed_before: int = 0
    withheld: Annotated[list[str], Field(exclude_if=lambda names: not names)] = []


class Entry(Model):
    """One model call: the messages that it added to the conversation, and the reply.

    Only the first entry of a conversation has an opening; it may replace the conversation at the
    head `anew_from`. `ancestors` are the keys of the entries before it, oldest first. In `input` a
    tool_result block has `content_ref`, a key, in place of `content`, and also `sources` and
    `artifacts`. `labels` cover all texts that the call has read, `spent` is the usage of failed
    attempts, `at` the time when the answer was stored. `others` are other queries that were written
    before it.
    """

    opening: Opening | None = None
    ancestors: list[str] = []
    input: list[JsonObject]
    reply: ModelMessage
    view: ConversationView = ConversationView()
    labels: Read = Labels()
    spent: Usage = Usage()
    at: str | None = None
    anew_from: str = ""
    others: Annotated[list[OtherQuery], Field(exclude_if=lambda others: not others)] = []

    @property
    def reply_blocks(self) -> list[JsonObject]:
        """The texts and calls of the reply, without thinking and without the ids of calls."""
        said = [block for block in self.reply.content if block.get("type") in ("text", "tool_use")]
        return [{name: block.get(name) for name in ("text", "name", "input")} for block in said]


@dataclass(frozen=True)
class Conversation:
    """A conversation up to the call `head`: its entries, oldest first, with complete messages."""

    opening: Opening
    entries: list[Entry]
    inputs: list[list[JsonObject]]
    head: str

    @property
    def last_entry(self) -> Entry:
        """The entry at `head`."""
        return self.entries[-1]


class ConversationStore:
    """The conversations in an artifact store. Entries are shared, so do not change them."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def load(self, head: str) -> Conversation:
        """Returns the conversation with its tool outputs. Raises ArtifactMissing."""
        chain = await self.chain(head)
        opening = chain[0].opening
        assert opening is not None  # of a first entry
        # The outputs of all entries are read at once, and then given to each entry.
        resolved = iter(await self.resolve([message for entry in chain for message in entry.input]))
        inputs = [[*islice(resolved, len(entry.input))] for entry in chain]
        return Conversation(opening, chain, inputs, head)

    async def chain(self, head: str) -> list[Entry]:
        """Returns the entries of the conversation, oldest first. Raises ArtifactMissing."""
        last = await self.entry(head)
        return [*(await self.entries(last.ancestors)).values(), last]

    async def all_chains(self, head: str) -> list[list[Entry]]:
        """Returns the entries of the conversation at `head`, after those that it replaced."""
        chain = await self.chain(head)
        before = await self.all_chains(chain[0].anew_from) if chain[0].anew_from else []
        return [*before, chain]

    async def resolve(self, messages: list[JsonObject]) -> list[JsonObject]:
        """Returns a copy of `messages` with tool outputs in place of their references."""
        refs = [block["content_ref"] for block in tool_results(messages) if "content_ref" in block]
        texts = await self._store.read_all(refs, text_of)
        return [_with_blocks(message, partial(_with_output, texts=texts)) for message in messages]

    @staticmethod
    def tool_result_message(results: list[ToolResultRef]) -> JsonObject:
        """Returns the user message that answers all tool calls of a turn, in the given order."""
        blocks: list[JsonObject] = []
        for result in results:
            block: JsonObject = {"type": "tool_result", "tool_use_id": result.call_id}
            if result.text is None:
                block["content_ref"] = result.ref
            else:
                block["content"] = result.text
            more = result.model_dump(include={"is_error", *_ABOUT_OUTPUTS})
            block |= {name: value for name, value in more.items() if value}
            blocks.append(block)
        return {"role": "user", "content": blocks}

    async def entry(self, key: str) -> Entry:
        """Returns the entry at a key. Raises ArtifactMissing if there is none."""
        return await self._store.read(key, _parse)

    async def entries(
        self,
        keys: Iterable[str],
        problems: list[str] | None = None,
    ) -> dict[str, Entry]:
        """Returns the entries by key, read concurrently. For `problems` see `read_all`."""
        return await self._store.read_all(keys, _parse, problems)

    async def find(self, key: str) -> Entry | None:
        """Returns the journal's entry at a key; None if the call's answer was never stored."""
        return await self._store.find_parsed(key, _parse)

    async def save(self, key: str, entry: Entry) -> Entry:
        """Stores the entry. Returns the stored one, which may be an earlier attempt's."""
        data = _dump(entry)
        if await self._store.create(key, data):
            return self._store.cache_parsed(key, data, _parse)
        return await self.entry(key)


def _dump(entry: Entry) -> bytes:
    """Returns the stored form, in which the common prefix of the ancestors' keys occurs once."""
    document = entry.model_dump()
    shared = commonprefix(entry.ancestors)
    ends = [key.removeprefix(shared) for key in entry.ancestors]
    document["ancestors"] = {"shared": shared, "ends": ends}
    # Neither pydantic's JSON mode nor strict UTF-8: they refuse or change lone surrogates, which
    # models do send.
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _parse(data: bytes) -> Entry:
    document = json.loads(data.decode("utf-8", "surrogatepass"))
    ancestors = document["ancestors"]
    document["ancestors"] = [ancestors["shared"] + end for end in ancestors["ends"]]
    return Entry.model_validate(document)


def _with_blocks(message: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Returns a copy of a message with its blocks changed."""
    return {**message, "content": [change(block) for block in message["content"]]}


def _with_output(block: JsonObject, texts: dict[str, str]) -> JsonObject:
    if "content_ref" not in block:
        return dict(block)
    own = ("content_ref", *_ABOUT_OUTPUTS)
    sent = {name: value for name, value in block.items() if name not in own}
    return {**sent, "content": texts[block["content_ref"]]}


def visible_messages(
    inputs: Sequence[list[JsonObject]],
    replies: Sequence[list[JsonObject]],
    view: ConversationView,
    output_chars: int = limits.TOOL_OUTPUT_CHARS,
) -> list[JsonObject]:
    """Returns the messages for a model: the `inputs` of its calls and its `replies`.

    They have at most `output_chars` characters of each tool output.
    """
    preview_chars = min(_CLEARED_OUTPUT_CHARS, output_chars)
    messages: list[JsonObject] = []
    cleared = view.cleared  # of the outputs to come
    for number, added in enumerate(inputs):
        shown = [_with_blocks(message, dict) for message in added]
        for at, block in enumerate(tool_results(shown), 1):
            limit = preview_chars if cleared > 0 else output_chars
            cleared -= 1
            name = output_name(number, at)
            block["content"] = beginning(str(block.get("content", "")), name, limit)
        messages += shown
        reply = replies[number] if number < len(replies) else []
        if not reply:  # the provider refuses an empty message
            continue
        if number < view.thinking_removed_before:
            reply = [block for block in reply if block.get("type") not in _THINKING]
        content = [dict(block) for block in reply or [_NOTHING_LEFT]]
        messages.append({"role": "assistant", "content": content})
    return messages


def texts_of(messages: list[JsonObject]) -> list[str]:
    """Returns the texts of messages, without tool outputs."""
    return [str(block["text"]) for block in _blocks(messages, "text")]


def tool_results(messages: list[JsonObject]) -> list[JsonObject]:
    """Returns the tool outputs of messages."""
    return _blocks(messages, "tool_result")


def _blocks(messages: list[JsonObject], kind: str) -> list[JsonObject]:
    blocks = [block for message in messages for block in message["content"]]
    return [block for block in blocks if block.get("type") == kind]
