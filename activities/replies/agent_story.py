"""Conversations as trace events: a whole run with its agents' turns, or one failed attempt.

The event that ends an attempt names the head of its conversation; the events in between are read
from the journal.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from activities.model.conversation import ConversationStore, Entry, texts_of, tool_results
from activities.model.text_calls import is_made_by_program, is_written
from activities.store.artifacts import ArtifactError, ArtifactStore
from activities.store.reading import read_text
from temporal_supervisor.supervision.agent.agent_tools import ReadOutputCall
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import FINISH_TOOL
from temporal_supervisor.supervision.base.text import clean, cut, one_line
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Labels, QueryFacts
from temporal_supervisor.supervision.contract.status import TraceEvent

_PROVIDED = ("web_search_tool_result", "web_fetch_tool_result")

_Answer = tuple[JsonObject, JsonObject]
"""The answer to a call, as it was shown and as it is stored."""


@dataclass(frozen=True)
class ToolUse:
    """A call with its arguments as JSON, its output, and what is known about the output.

    The output is None if the call was not run (yet).
    """

    name: str
    arguments: str
    output: str | None
    output_ref: str = ""
    is_error: bool = False
    sources: Sequence[str] = ()
    artifacts: Sequence[ArtifactRef] = ()
    readings: Sequence[str] = ()
    facts: QueryFacts | None = None


async def read_tool_uses(conversations: ConversationStore, chain: list[Entry]) -> list[ToolUse]:
    """Returns the calls in a conversation's entries, in order.

    In each entry the calls that the provider ran come last. A call is answered by the next entry:
    ids are distinct only within a reply. A call that the provider ran is answered in the same
    reply, or in a later one if the model paused.
    """
    messages: list[JsonObject] = []
    for entry in chain:
        messages += entry.input
    resolved = iter(await conversations.resolve(messages))
    # By the ids of calls, each with what is stored of it.
    answers: list[dict[str, _Answer]] = []
    for entry in chain:
        stored = tool_results(entry.input)
        shown = tool_results([*islice(resolved, len(entry.input))])
        pairs = zip(shown, stored, strict=True)
        answers.append({str(block.get("tool_use_id")): (block, raw) for block, raw in pairs})

    provided = _provided_answers(chain)
    uses: list[ToolUse] = []
    for entry, answered in zip(chain, [*answers[1:], {}], strict=True):
        uses += [_tool_use(call, answered) for call in entry.reply.tool_uses()]
        uses += [_tool_use(call, provided) for call in entry.reply.provided_uses()]
    return uses


def arguments_of(call: JsonObject) -> str:
    """Returns the arguments of a call as JSON: `{"sql": "SELECT 1"}`."""
    return json.dumps(call.get("input"), ensure_ascii=False)


def _tool_use(call: JsonObject, answers: Mapping[str, _Answer]) -> ToolUse:
    """Returns a call with its answer, if there is one."""
    name = str(call.get("name"))
    arguments = arguments_of(call)
    answer = answers.get(str(call.get("id")))
    if answer is None:
        return ToolUse(name, arguments, None)

    shown, stored = answer
    artifacts = stored.get("artifacts", ())
    facts = stored.get("facts")
    return ToolUse(
        name,
        arguments,
        output=str(shown.get("content")),
        output_ref=str(stored.get("content_ref", "")),
        is_error=bool(shown.get("is_error")),
        sources=stored.get("sources", ()),
        artifacts=[ArtifactRef.model_validate(artifact) for artifact in artifacts],
        readings=stored.get("readings", ()),
        facts=QueryFacts.model_validate(facts) if facts else None,
    )


def _provided_answers(chain: list[Entry]) -> dict[str, _Answer]:
    """Returns the answers to calls that the provider ran, by their ids.

    The text of search results is encrypted for the provider: only cited passages can be read.
    """
    # Passages by URL, or by title where they have no URL.
    cited: dict[str, dict[str, None]] = {}
    for entry in chain:
        for block in entry.reply.content:
            for part in _dicts(block.get("citations")):
                place = str(part.get("url") or part.get("document_title"))
                cited.setdefault(place, {})[str(part.get("cited_text"))] = None

    answers: dict[str, _Answer] = {}
    for entry in chain:
        day = (entry.at or "")[:10]
        for block in entry.reply.content:
            content = block.get("content")
            if block.get("type") in _PROVIDED and content is not None:
                answers[str(block.get("tool_use_id"))] = _provided_answer(content, day, cited)
    return answers


def _provided_answer(content: Any, day: str, cited: Mapping[str, Iterable[str]]) -> _Answer:
    """Returns an answer with its pages, their passages or text, and its sources."""
    pages = list(_dicts(content if isinstance(content, list) else [content]))
    failed = [str(page["error_code"]) for page in pages if "error_code" in page]
    if failed:
        words = f"The provider's tool failed: {', '.join(failed)}."
        return {"content": words, "is_error": True}, {}

    shown: list[str] = []
    quoted: list[str] = []
    others: list[str] = []
    for page in pages:
        document = next(_dicts([page.get("content")]), page)
        names = (page.get("url"), document.get("title"))
        passages: list[str] = []
        for name in names:
            passages += cited.get(str(name), ())
        url, title = (one_line(clean(str(name or "")), limits.SOURCE_BYTES) for name in names)
        dated = _dates_of_page(page, day)
        lines = [f"{title}: {url} ({dated})"]
        source = next(_dicts([document.get("source")]), {})
        if source.get("type") == "text":
            lines.append(str(source.get("data")))
        lines += [f'"{passage}"' for passage in passages]
        shown.append("\n".join(lines))
        (quoted if passages else others).append(f"{url} ({dated})")
    text = "\n\n".join(shown) or "Nothing was found."
    return {"content": text}, {"sources": quoted or others}


def _dates_of_page(page: JsonObject, day: str) -> str:
    """Returns the age of a page, if known, and the day on which it was fetched."""
    fetched = f"fetched on {str(page.get('retrieved_at') or day)[:10]}"
    age = one_line(clean(str(page.get("page_age") or "")), limits.LINE_BYTES)
    return f"of {age}, {fetched}" if age else fetched


def _dicts(values: object) -> Iterator[JsonObject]:
    """Yields the objects in a list; an endpoint may send anything else."""
    for value in values if isinstance(values, list) else []:
        if isinstance(value, dict):
            yield value


async def earlier_output(conversations: ConversationStore, head: str, call: ReadOutputCall) -> str:
    """Returns the output that a call of `read_output` asks for, in the conversation at `head`.

    Raises ValueError with a message for the model.
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
        f"There is no output '{name}'. Take the name from the last line of a shortened output, or "
        "the subtask_id of a finding."
    )


# The last tool calls of a failed attempt, to the one who rewrites its description.
_ATTEMPT_CALLS_SHOWN = 30
_LAST_WORDS_BYTES = 2 * 1024  # of a failed attempt, to the same
_WRITTEN = "the call was written as text"
_BY_PROGRAM = "the program made this call for the model"
_STORIES_AT_ONCE = 8  # a local store answers at once and lets nothing else run meanwhile


class AgentStories:
    """Reads conversations as events, each entry once."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._conversations = ConversationStore(store)
        self._seen: set[str] = set()

    async def with_conversations(self, events: list[TraceEvent]) -> list[TraceEvent]:
        """Returns the events in order of time, with the events of conversations and nested runs.

        These come before the event that ended them. If one can't be read, that event still names
        it.
        """
        named = [event for event in events if event.data.keys() & {"head", "trace_ref"}]
        told: dict[int, list[TraceEvent]] = {}
        for first in range(0, len(named), _STORIES_AT_ONCE):
            some = named[first : first + _STORIES_AT_ONCE]
            stories = await asyncio.gather(*map(self._expanded, some))
            told.update(zip(map(id, some), stories, strict=True))
        story: list[TraceEvent] = []
        for event in events:
            story += told.get(id(event), [event])
        story.sort(key=lambda item: datetime.fromisoformat(item.at))
        return [event.model_copy(update={"seq": number}) for number, event in enumerate(story, 1)]

    async def of_conversation(
        self,
        head: str,
        subtask_id: str | None,
        until: str,
    ) -> list[TraceEvent]:
        """Returns the events of the conversation at `head`, dated `until` at the latest.

        Raises ArtifactError.
        """
        chain = await self._conversations.chain(head)
        uses = iter(await read_tool_uses(self._conversations, chain))
        before = chain[0].anew_from
        events: list[TraceEvent] = []
        if before:
            events += await self.of_conversation(before, subtask_id, until)
        keys = [*chain[-1].ancestors, head]
        for number, (key, entry) in enumerate(zip(keys, chain, strict=True), 1):
            count = len(entry.reply.provided_uses()) + len(entry.reply.tool_uses())
            own_uses = [*islice(uses, count)]
            if key in self._seen:
                continue  # an attempt goes on where the one before it ended

            self._seen.add(key)
            at = min(entry.at or until, until, key=datetime.fromisoformat)
            for kind, data in [*await self._other_queries(entry), *_parts(number, entry, own_uses)]:
                event = TraceEvent(seq=0, at=at, type=kind, subtask_id=subtask_id, data=data)
                events.append(event)
        return events

    async def _other_queries(self, entry: Entry) -> list[tuple[str, JsonObject]]:
        """Returns the events of other queries that were written before an entry, each once."""
        events: list[tuple[str, JsonObject]] = []
        for other in entry.others:
            if other.head in self._seen:
                continue
            self._seen.add(other.head)
            asked = await self._conversations.entry(other.head)
            calls = [use for use in asked.reply.tool_uses() if use["id"] == other.result.call_id]
            arguments = "".join(map(arguments_of, calls))
            output = other.result.text or ""
            if other.result.ref:
                output = await read_text(self._store, other.result.ref)
            use = ToolUse("", arguments, output, is_error=other.result.is_error)
            events.append(("other_query", _call_data(use)))
        return events

    async def _expanded(self, event: TraceEvent) -> list[TraceEvent]:
        """Returns an event after the events of the conversation or nested run that it ended."""
        try:
            head = event.data.get("head")
            if head:
                before = await self.of_conversation(str(head), event.subtask_id, event.at)
            else:
                nested = stored_events(await self._store.get(str(event.data["trace_ref"])))
                whole = await self.with_conversations(nested)
                before = [in_run_above(event.subtask_id, item) for item in whole]
        except ArtifactError:
            return [event]
        data = {**event.data}
        data.pop("head", None)
        data.pop("trace_ref", None)
        return [*before, event.model_copy(update={"data": data})]


def stored_events(data: bytes) -> list[TraceEvent]:
    """Returns the events of a stored trace."""
    return [TraceEvent.model_validate(item) for item in json.loads(data)]


def in_run_above(path: str | None, event: TraceEvent) -> TraceEvent:
    """Returns an event of a nested run as one of the run above: `t1` in `t3` becomes `t3/t1`."""
    whole = "/".join(filter(None, [path, event.subtask_id]))
    return event.model_copy(update={"subtask_id": whole})


def _parts(number: int, entry: Entry, uses: list[ToolUse]) -> Iterator[tuple[str, JsonObject]]:
    """Yields the events of an entry: notes to the model, its turn, and its calls."""
    if number > 1:
        # Beside the outputs of tools: feedback, objections, turns left.
        for text in texts_of(entry.input):
            yield "note", {"text": one_line(text, limits.SENTENCE_BYTES)}
    yield "turn", _turn(number, entry)
    if any(is_written(str(block["id"])) for block in entry.reply.tool_uses()):
        yield "note", {"text": _WRITTEN}
    if any(is_made_by_program(str(block["id"])) for block in entry.reply.tool_uses()):
        yield "note", {"text": _BY_PROGRAM}
    yield from _tools(uses, entry.labels)


def _turn(number: int, entry: Entry) -> JsonObject:
    reply, used = entry.reply, entry.reply.usage
    contents = map(concluded, reply.tool_uses())
    concluding = [text for text in contents if isinstance(text, str)]
    words = reply.text().strip() or " ".join(concluding)
    return {
        "turn": number,
        "stop_reason": reply.stop_reason,
        "preview": one_line(words, limits.SENTENCE_BYTES),
        "tokens": used.prompt_tokens + used.output_tokens,
        "model": reply.model,
        **entry.view.model_dump(include={"withheld"}),
    }


def _tools(uses: list[ToolUse], labels: Labels) -> Iterator[tuple[str, JsonObject]]:
    after = {"after": labels.path} if labels.untrusted else {}
    for use in uses:
        if use.name == FINISH_TOOL:
            continue
        yield "tool", {"name": use.name, **_call_data(use), **after}


def _call_data(use: ToolUse) -> JsonObject:
    output = "not answered yet" if use.output is None else use.output
    return {
        "is_error": use.is_error,
        "arguments": one_line(use.arguments, limits.SENTENCE_BYTES),
        "preview": one_line(output, limits.SENTENCE_BYTES),
    }


async def attempt_story(conversations: ConversationStore, head: str) -> str:
    """Returns a line for each tool call of the conversation at `head`, and its last words."""
    chains = await conversations.all_chains(head)
    uses: list[ToolUse] = []
    for chain in chains:
        uses += await read_tool_uses(conversations, chain)

    lines: list[str] = []
    for _, call in _tools(uses, Labels()):
        outcome = f"error: {call['preview']}" if call["is_error"] else call["preview"]
        lines.append(f"{call['name']}({call['arguments']}): {outcome}")
    lines = lines[-_ATTEMPT_CALLS_SHOWN:]
    words = _last_words(chains[-1])
    if words:
        lines.append(f"Its last words: {cut(words, _LAST_WORDS_BYTES)}")
    return "\n".join(lines)


def _last_words(chain: list[Entry]) -> str:
    """Returns the last text or conclusion of a conversation's author; empty without one."""
    for entry in reversed(chain):
        for block in reversed(entry.reply.content):
            text = block.get("text") if block.get("type") == "text" else concluded(block)
            if isinstance(text, str) and text.strip():
                return text.strip()
    return ""


def concluded(block: JsonObject) -> object:
    """Returns the content of a call of `finish`; None for other blocks."""
    if block.get("type") != "tool_use" or block.get("name") != FINISH_TOOL:
        return None
    arguments = block.get("input")
    if not isinstance(arguments, dict):
        return None
    return arguments.get("summary") or arguments.get("finding")
