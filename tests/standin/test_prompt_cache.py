"""The stand-in bills a prompt cache as the API does: prefixes, breakpoints, reach, least length."""

from typing import Any

from temporal_supervisor.standin.server.api_request import parse
from temporal_supervisor.standin.server.prompt_cache import CacheBill, PromptCache
from temporal_supervisor.supervision.base.json_object import JsonObject

MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
LONG = "word " * 1000  # 1250 tokens


class Api(PromptCache):
    """A prompt cache that is asked with the parts of a request."""

    def ask(self, *messages: JsonObject, begin: bool = True, **body: Any) -> CacheBill:
        """Bills one request; its reply begins at once, or never."""
        full = {"model": "claude-opus-5-5", "max_tokens": 9, "messages": list(messages) or [said("go")], **body}
        bill = self.bill(parse(full))
        if begin:
            self.begin_reply(bill)
        return bill


def said(*texts: str, role: str = "user", **mark: Any) -> JsonObject:
    """A message of text blocks, the last one with a breakpoint if one is given."""
    blocks: list[JsonObject] = [{"type": "text", "text": text} for text in texts]
    blocks[-1] |= mark
    return {"role": role, "content": blocks}


def system(text: str = LONG, mark: JsonObject = MARK) -> list[JsonObject]:
    return [{"type": "text", "text": text, **mark}]


def test_requests_with_one_system_prefix_share_it() -> None:
    api = Api()
    first, second = api.ask(said("one"), system=system()), api.ask(said("two, longer"), system=system())
    assert (first.read, first.written) == (0, first.total - api.ask(said("one")).total)
    assert (second.read, second.written) == (first.written, 0)
    assert api.ask(system=system(LONG + "!")).read == 0
    assert api.ask(system=system(), tools=[{"name": "t", "input_schema": {}}]).read == 0


def test_another_tool_choice_keeps_the_system_and_misses_the_messages() -> None:
    api = Api()
    body: JsonObject = {"system": system(), "tools": [{"name": "t", "input_schema": {}}]}
    talk = [said(LONG, **MARK)]
    first = api.ask(*talk, **body)
    assert api.ask(*talk, **body).read == first.written
    changed = api.ask(*talk, **body, tool_choice={"type": "none"})
    assert 0 < changed.read < first.total / 1.5


def test_an_entry_is_found_up_to_twenty_blocks_before_a_breakpoint() -> None:
    for more, hit in ((20, True), (21, False)):
        api = Api()
        api.ask(said(LONG, **MARK))
        added = [str(number) for number in range(more)]
        assert bool(api.ask(said(LONG, *added, **MARK)).read) is hit


def test_an_entry_can_be_read_once_the_reply_that_wrote_it_has_begun() -> None:
    api = Api()
    first = api.ask(system=system(), begin=False)
    assert api.ask(system=system(), begin=False).read == 0
    api.begin_reply(first)
    assert api.ask(system=system()).read > 0
