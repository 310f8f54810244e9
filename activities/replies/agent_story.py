"""Stories from conversations: a run in full, its worker agents' turns among its events, and an attempt that failed.

The event that ends an attempt names the head of its conversation; what happened in there is read
from the journal.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from activities.model.conversation import ConversationStore, Entry, texts_of, tool_results
from activities.model.port import Json
from activities.model.text_calls import is_written
from activities.store.artifacts import ArtifactError, ArtifactStore
from temporal_supervisor.supervision.agent.agent_tools import ReadOutputCall
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import FINISH_TOOL
from temporal_supervisor.supervision.base.text import clean, cut, one_line
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Labels
from temporal_supervisor.supervision.contract.status import TraceEvent


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
    readings: Sequence[str] = ()


async def read_tool_uses(conversations: ConversationStore, chain: list[Entry]) -> list[ToolUse]:
    """Returns the calls of a conversation's entries in their order, of each entry those that the provider ran last.

    A call is answered by the entry that follows its own: ids are distinct within a reply only. What
    the provider ran is answered in the same reply, or in a later one if the model paused.
    """
    resolved = iter(await conversations.resolve([message for entry in chain for message in entry.input]))
    # By the ids of calls, each with what is stored of it.
    answers = list[dict[object, tuple[Json, Json]]]()
    for entry in chain:
        stored, shown = tool_results(entry.input), tool_results([next(resolved) for _ in entry.input])
        answers.append({block.get("tool_use_id"): (block, raw) for block, raw in zip(shown, stored, strict=True)})
    provided, uses = _provided(chain), list[ToolUse]()
    for entry, answered in zip(chain, [*answers[1:], {}], strict=True):
        uses += [_tool_use(call, *answered.get(call.get("id"), (None, {}))) for call in entry.reply.tool_uses()]
        uses += [
            _tool_use(call, *provided.get(str(call.get("id")), (None, {}))) for call in entry.reply.provided_uses()
        ]
    return uses


def _tool_use(call: Json, answer: Json | None, stored: Json) -> ToolUse:
    """Returns a call with its answer, as it was shown and as it is `stored`."""
    return ToolUse(
        str(call.get("name")),
        json.dumps(call.get("input"), ensure_ascii=False),
        None if answer is None else str(answer.get("content")),
        str(stored.get("content_ref", "")),
        bool(answer and answer.get("is_error")),
        stored.get("sources", ()),
        [ArtifactRef.model_validate(artifact) for artifact in stored.get("artifacts", ())],
        stored.get("readings", ()),
    )


def _provided(chain: list[Entry]) -> dict[str, tuple[Json, Json]]:
    """Returns the answers to calls of tools that the provider ran, by their ids.

    The text of a search's pages is encrypted and for the provider alone: of it only cited passages
    can be read.
    """
    blocks = [(block, (entry.at or "")[:10]) for entry in chain for block in entry.reply.content]
    # Passages by URL, or by title where they have no URL.
    cited = defaultdict[str, dict[str, None]](dict)
    for part in (part for block, _ in blocks for part in _dicts(block.get("citations"))):
        cited[str(part.get("url") or part.get("document_title"))][str(part.get("cited_text"))] = None
    kinds = ("web_search_tool_result", "web_fetch_tool_result")
    found = [(block, day) for block, day in blocks if block.get("type") in kinds and block.get("content") is not None]
    return {str(block.get("tool_use_id")): _provided_answer(block["content"], day, cited) for block, day in found}


def _provided_answer(content: Any, day: str, cited: Mapping[str, Iterable[str]]) -> tuple[Json, Json]:
    """Returns an answer with its pages, and their passages or text, and its sources."""
    pages = list(_dicts(content if isinstance(content, list) else [content]))
    if failed := [str(page["error_code"]) for page in pages if "error_code" in page]:
        return {"content": f"The provider's tool failed: {', '.join(failed)}.", "is_error": True}, {}
    shown, quoted, others = list[str](), list[str](), list[str]()
    for page in pages:
        document = next(_dicts([page.get("content")]), page)
        names = (page.get("url"), document.get("title"))
        url, title = (one_line(clean(str(name or "")), limits.SOURCE_BYTES) for name in names)
        passages = [f'"{passage}"' for name in names for passage in cited.get(str(name), ())]
        fetched = f"fetched on {str(page.get('retrieved_at') or day)[:10]}"
        age = one_line(clean(str(page.get("page_age") or "")), limits.LINE_BYTES)
        dated = f"of {age}, {fetched}" if age else fetched
        source = next(_dicts([document.get("source")]), {})
        text = [str(source.get("data"))] if source.get("type") == "text" else []
        shown.append("\n".join([f"{title}: {url} ({dated})", *text, *passages]))
        (quoted if passages else others).append(f"{url} ({dated})")
    return {"content": "\n\n".join(shown) or "Nothing was found."}, {"sources": quoted or others}


def _dicts(values: object) -> Iterator[Json]:
    """Yields the objects of a list: an endpoint may send anything."""
    yield from (value for value in (values if isinstance(values, list) else []) if isinstance(value, dict))


async def earlier_output(conversations: ConversationStore, head: str, call: ReadOutputCall) -> str:
    """Returns the output that a call of `read_output` in the reply at `head` names.

    Raises ValueError for the model.
    """
    entry = await conversations.entry(head)
    keys = [*entry.ancestors, head]
    reply, number = call.place or (len(keys), 0)
    if reply < len(keys):  # its outputs are in the entry after it
        added = await conversations.resolve((await conversations.entry(keys[reply])).input)
        outputs = tool_results(added)
        if number <= len(outputs):
            return str(outputs[number - 1].get("content"))
    name = one_line(call.output, limits.LINE_BYTES)
    raise ValueError(
        f"There is no output '{name}'. Take the name from the last line of a shortened output, or the subtask_id of a "
        "finding."
    )


# The last tool calls of a failed attempt, to the one who rewrites its description.
_ATTEMPT_CALLS_SHOWN = 30
_LAST_WORDS_BYTES = 2 * 1024  # of a failed attempt, to the same
_WRITTEN = "the call was written as text"
_STORIES_AT_ONCE = 8  # a local store answers at once and lets nothing else run meanwhile


class AgentStories:
    """Reads conversations as events, each of their entries once."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._conversations = ConversationStore(store)
        self._seen: set[str] = set()

    async def whole(self, events: list[TraceEvent]) -> list[TraceEvent]:
        """Returns the events in order of time, with what happened in conversations and nested runs before their ends.

        One that can't be read stays named in its event.
        """
        named = [event for event in events if event.data.keys() & {"head", "trace_ref"}]
        told: dict[int, list[TraceEvent]] = {}
        for first in range(0, len(named), _STORIES_AT_ONCE):
            some = named[first : first + _STORIES_AT_ONCE]
            told.update(zip(map(id, some), await asyncio.gather(*map(self._told, some)), strict=True))
        story = [part for event in events for part in told.get(id(event), [event])]
        story.sort(key=lambda item: datetime.fromisoformat(item.at))
        return [event.model_copy(update={"seq": number}) for number, event in enumerate(story, 1)]

    async def of_conversation(self, head: str, subtask_id: str | None, until: str) -> list[TraceEvent]:
        """Returns the events of the conversation at `head`, none after `until`.

        Raises ArtifactError.
        """
        chain = await self._conversations.chain(head)
        uses = iter(await read_tool_uses(self._conversations, chain))
        before = chain[0].anew_from
        events = await self.of_conversation(before, subtask_id, until) if before else []
        for number, (key, entry) in enumerate(zip([*chain[-1].ancestors, head], chain, strict=True), 1):
            own_uses = list(islice(uses, len(entry.reply.provided_uses()) + len(entry.reply.tool_uses())))
            if key in self._seen:  # an attempt goes on where the one before it ended
                continue
            self._seen.add(key)
            at = min(entry.at or until, until, key=datetime.fromisoformat)
            # What its author was shown beside the outputs of tools: feedback, objections, turns
            # left.
            said = texts_of(entry.input) if number > 1 else ()
            parts = [("note", {"text": one_line(text, limits.SENTENCE_BYTES)}) for text in said]
            parts += [("turn", _turn(number, entry))]
            if any(is_written(str(block["id"])) for block in entry.reply.tool_uses()):
                parts += [("note", {"text": _WRITTEN})]
            parts += _tools(own_uses, entry.labels)
            events += [TraceEvent(seq=0, at=at, type=kind, subtask_id=subtask_id, data=data) for kind, data in parts]
        return events

    async def _told(self, event: TraceEvent) -> list[TraceEvent]:
        """Returns the events of the conversation or nested run that ended with an event, and it."""
        try:
            if head := event.data.get("head"):
                before = await self.of_conversation(str(head), event.subtask_id, event.at)
            else:
                nested = stored_events(await self._store.get(str(event.data["trace_ref"])))
                before = [below(event.subtask_id, item) for item in await self.whole(nested)]
        except ArtifactError:
            return [event]
        data = {name: value for name, value in event.data.items() if name not in ("head", "trace_ref")}
        return [*before, event.model_copy(update={"data": data})]


def stored_events(data: bytes) -> list[TraceEvent]:
    """Returns the events of a stored trace."""
    return [TraceEvent.model_validate(item) for item in json.loads(data)]


def below(path: str | None, event: TraceEvent) -> TraceEvent:
    """Returns an event of a nested run as one of the run above, its subtask named by its path."""
    return event.model_copy(update={"subtask_id": "/".join(filter(None, [path, event.subtask_id]))})


def _turn(number: int, entry: Entry) -> Json:
    reply, used = entry.reply, entry.reply.usage
    contents = map(concluded, reply.tool_uses())
    concluding = [text for text in contents if isinstance(text, str)]
    return {
        "turn": number,
        "stop_reason": reply.stop_reason,
        "preview": one_line(reply.text().strip() or " ".join(concluding), limits.SENTENCE_BYTES),
        "tokens": used.prompt_tokens + used.output_tokens,
        "model": reply.model,
        **entry.view.model_dump(include={"withheld"}),
    }


def _tools(uses: list[ToolUse], labels: Labels) -> Iterator[tuple[str, Json]]:
    after = {"after": labels.path} if labels.untrusted else {}
    for use in uses:
        if use.name != FINISH_TOOL:
            texts = {"arguments": use.arguments, "preview": "not answered yet" if use.output is None else use.output}
            shown = {name: one_line(text, limits.SENTENCE_BYTES) for name, text in texts.items()}
            yield "tool", {"name": use.name, "is_error": use.is_error, **shown, **after}


async def attempt_story(conversations: ConversationStore, head: str) -> str:
    """Returns one line for each tool call of the conversation at `head`, with its outcome, and the last words."""
    chains = await conversations.all_chains(head)
    chain = chains[-1]
    uses = [use for each in chains for use in await read_tool_uses(conversations, each)]
    calls = [call for _, call in _tools(uses, Labels())]
    outcomes = [f"{'error: ' if call['is_error'] else ''}{call['preview']}" for call in calls]
    lines = [f"{call['name']}({call['arguments']}): {said}" for call, said in zip(calls, outcomes, strict=True)]
    blocks = (block for entry in reversed(chain) for block in reversed(entry.reply.content))
    texts = (block.get("text") if block.get("type") == "text" else concluded(block) for block in blocks)
    words = next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
    last = [f"Its last words: {cut(words, _LAST_WORDS_BYTES)}"] if words else []
    return "\n".join([*lines[-_ATTEMPT_CALLS_SHOWN:], *last])


def concluded(block: Json) -> object:
    """Returns the content of a call of `finish`; None for other blocks."""
    arguments: Any = block.get("input")
    finished = block.get("type") == "tool_use" and block.get("name") == FINISH_TOOL and isinstance(arguments, dict)
    return (arguments.get("summary") or arguments.get("finding")) if finished else None
