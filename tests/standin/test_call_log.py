"""The ledger says what was paid for, and who left early."""

import asyncio
from typing import Any

import pytest

from tests.standin.conftest import Served, until


def events(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["event"] for entry in entries]


async def test_an_answered_call_has_two_lines_with_the_same_number(served: Served) -> None:
    reply = await served.ask(extra_headers={"x-supervisor-call": "run-1/plan.1.1"})
    received, answered = await served.ended_calls()
    assert (received["event"], answered["event"]) == ("received", "answered")
    assert received["n"] == answered["n"]
    assert answered["call"] == "run-1/plan.1.1"
    assert answered["model"] == "claude-haiku-5-5"
    assert answered["message_id"] == reply.id
    assert answered["usage"]["output_tokens"] == reply.usage.output_tokens
    assert answered["status"] == 200
    assert received["prompt_sha256"] == answered["prompt_sha256"]
    assert received["at"] <= answered["at"]


@pytest.mark.parametrize("fault", [{"delay_ms": 60_000}, {"stall_after": 3}, {"chunk_delay_ms": 5000}])
async def test_a_client_that_leaves_is_noticed_at_once(served: Served, fault: dict[str, Any]) -> None:
    await served.fault(fault)
    call = asyncio.create_task(served.ask())
    await until(served.ledger, lambda entries: len(entries) == 1)
    call.cancel()
    left = asyncio.get_running_loop().time()
    entries = await until(served.ledger, lambda entries: len(entries) == 2)
    assert asyncio.get_running_loop().time() - left < 0.5
    assert events(entries) == ["received", "aborted"]
