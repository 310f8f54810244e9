"""A conversation may only grow: a changed past is refused as the real API does."""

from typing import Any

import anthropic
import pytest

from tests.standin.conftest import Served, text_of

CALL = {"x-supervisor-call": "run-1/t1/1/turn.2"}


async def begin(served: Served) -> list[Any]:
    opening = {"role": "user", "content": "Tell me about gear wheels."}
    reply = await served.ask(messages=[opening], system="Be brief.", extra_headers=CALL)
    return [opening, {"role": "assistant", "content": [{"type": "text", "text": text_of(reply)}]}]


async def test_a_growing_conversation_passes(served: Served) -> None:
    past = await begin(served)
    for _ in range(3):
        past.append({"role": "user", "content": "Go on."})
        reply = await served.ask(messages=past, system="Be brief.", extra_headers=CALL)
        past.append({"role": "assistant", "content": [block.to_dict(mode="json") for block in reply.content]})
    assert len(past) == 8


@pytest.mark.parametrize("changed", ["system", "assistant", "tools"])
async def test_a_changed_past_is_refused(served: Served, changed: str) -> None:
    past = await begin(served)
    if changed == "assistant":
        past[1] = {"role": "assistant", "content": "I never said this."}
    more: Any = {"tools": [{"name": "a", "description": "A.", "input_schema": {"type": "object", "properties": {}}}]}
    with pytest.raises(anthropic.BadRequestError, match="the conversation changed"):
        await served.ask(
            messages=[*past, {"role": "user", "content": "Go on."}],
            system="Be long." if changed == "system" else "Be brief.",
            extra_headers=CALL,
            **(more if changed == "tools" else {}),
        )


async def test_the_check_can_be_switched_off(served: Served) -> None:
    await served.config(append_only=False)
    past = await begin(served)
    await served.ask(messages=[*past, {"role": "user", "content": "Go on."}], system="Other.", extra_headers=CALL)


async def test_a_conversation_that_began_elsewhere_is_taken_as_it_is(served: Served) -> None:
    past = await begin(served)
    await served.http.post("/reset")
    past.append({"role": "user", "content": "Go on."})
    await served.ask(messages=past, system="Be brief.", extra_headers=CALL)
    await served.ask(messages=past[:1], system="Be brief.", extra_headers=CALL)
    await served.ask(messages=past, system="Be brief.", extra_headers=CALL)


async def test_a_turn_that_another_server_answered_is_taken_as_it_is(served: Served) -> None:
    past = await begin(served)
    elsewhere = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "From another stand-in."}]
    more = {"role": "user", "content": "And then?"}
    await served.ask(messages=[*past, *elsewhere, more], system="Be brief.", extra_headers=CALL)
    past[1] = {"role": "assistant", "content": "I never said this."}
    with pytest.raises(anthropic.BadRequestError, match="the conversation changed"):
        await served.ask(messages=[*past, *elsewhere, more], system="Be brief.", extra_headers=CALL)


async def test_a_paused_turn_goes_on_with_its_own_content(served: Served) -> None:
    await served.config(rules=[{"match": {"times": 1}, "fault": {"stop_reason": "pause_turn"}}])
    past = await begin(served)
    reply = await served.ask(messages=past, system="Be brief.", extra_headers=CALL)
    joined = [*past[1]["content"], *(block.to_dict(mode="json") for block in reply.content)]
    whole = [past[0], {"role": "assistant", "content": joined}, {"role": "user", "content": "Go on."}]
    await served.ask(messages=whole, system="Be brief.", extra_headers=CALL)


async def test_old_tool_results_may_be_cut_and_thinking_left_out_but_not_kept(served: Served) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    uses: list[Any] = [{"type": "tool_use", "id": f"c{n}", "name": "a", "input": {}} for n in (1, 2)]
    replies = [{"content": [thought, use], "stop_reason": "tool_use"} for use in uses]
    await served.config(rules=[{"match": {"times": 3}, "fault": {"replies": [*replies, "done"]}}])
    past: list[Any] = [{"role": "user", "content": "Look twice."}]
    for use, content in zip(uses, ("x" * 5000, "y" * 5000), strict=True):
        await served.ask(messages=past, extra_headers=CALL)
        past.append({"role": "assistant", "content": [thought, use]})
        past.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": content}]}
        )
    cut: list[Any] = [{"type": "tool_result", "tool_use_id": "c1", "content": "x" * 300 + "[cut]"}]
    said = [{"role": "assistant", "content": [use]} for use in uses]
    for changed in ([past[0], said[0], {"role": "user", "content": [{**cut[0], "content": "z"}]}, said[1], past[4]],
                    [past[0], past[1], {"role": "user", "content": cut}, past[3], past[4]]):  # fmt: skip
        with pytest.raises(anthropic.BadRequestError, match="the conversation changed"):
            await served.ask(messages=changed, extra_headers=CALL)
    await served.ask(
        messages=[past[0], said[0], {"role": "user", "content": cut}, said[1], past[4]], extra_headers=CALL
    )
