"""The tool calls of a conversation, each with what came back: for the claims that they support, and for their story."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from activities.model.conversation import ConversationStore, Entry
from activities.model.port import Json
from supervision.agent.agent_tools import ReadOutputCall
from supervision.base import limits
from supervision.base.text import clean, one_line
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
    provided, uses = _Provided(chain), list[ToolUse]()
    for entry, answered in zip(chain, [*answers[1:], {}], strict=True):
        uses += map(provided.use, entry.reply.provided_uses())
        uses += [_tool_use(call, answered.get(call.get("id"))) for call in entry.reply.tool_uses()]
    return uses


class _Provided:
    """The results of tools that the provider ran, in a conversation.

    The text of a search's pages is encrypted and for the provider alone: of it only cited passages can be read.
    """

    def __init__(self, chain: list[Entry]) -> None:
        self._results: dict[str, tuple[Any, str]] = {}  # with the day on which they came
        self._cited = defaultdict[str, dict[str, None]](dict)  # passages by URL, or by title where they have no URL
        for entry in chain:
            for block in entry.reply.content:
                if block.get("type") in ("web_search_tool_result", "web_fetch_tool_result"):
                    self._results[str(block.get("tool_use_id"))] = block.get("content"), (entry.at or "")[:10]
                for cited in _dicts(block.get("citations")):
                    page = str(cited.get("url") or cited.get("document_title"))
                    self._cited[page][str(cited.get("cited_text"))] = None

    def use(self, call: Json) -> ToolUse:
        """Returns a call with its pages, and their passages or text."""
        content, day = self._results.get(str(call.get("id")), (None, ""))
        if content is None:
            return ToolUse(*_named(call), None)
        pages = list(_dicts(content if isinstance(content, list) else [content]))
        if failed := [str(page["error_code"]) for page in pages if "error_code" in page]:
            return ToolUse(*_named(call), f"The provider's tool failed: {', '.join(failed)}.", is_error=True)
        shown, cited, others = list[str](), list[str](), list[str]()
        for page in pages:
            document = next(_dicts([page.get("content")]), page)
            names = (page.get("url"), document.get("title"))
            url, title = (one_line(clean(str(name or "")), limits.SOURCE_BYTES) for name in names)
            passages = [f'"{passage}"' for name in names for passage in self._cited.get(str(name), {})]
            fetched = f"fetched on {str(page.get('retrieved_at') or day)[:10]}"
            age = one_line(clean(str(page.get("page_age") or "")), limits.LINE_BYTES)
            dated = f"of {age}, {fetched}" if age else fetched
            source = next(_dicts([document.get("source")]), {})
            text = [str(source.get("data"))] if source.get("type") == "text" else []
            shown.append("\n".join([f"{title}: {url} ({dated})", *text, *passages]))
            (cited if passages else others).append(f"{url} ({dated})")
        return ToolUse(*_named(call), "\n\n".join(shown) or "Nothing was found.", sources=cited or others)


def _dicts(values: object) -> Iterator[Json]:
    """Yields the objects of a list: an endpoint may send anything."""
    yield from (value for value in (values if isinstance(values, list) else []) if isinstance(value, dict))


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
