"""Failures of one call are counted over its attempts, in whichever processes these are made."""

import dataclasses
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.heartbeat import beating
from activities.model.conversation import ConversationStore, Opening
from activities.model.journalled_call import CallOptions, ModelCalls
from activities.model.port import ModelFailure, ModelMessage, ModelRequest, StreamProgress
from supervision import limits
from supervision.errors import ErrorKind
from tests.activity.supervising import Desk


class Odd:
    """A model of which nobody understands the answers."""

    def __init__(self, *kinds: ErrorKind) -> None:
        self.kinds = list(kinds)

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        raise ModelFailure(self.kinds.pop(0), "odd", retryable=True)


async def _attempt(desk: Desk, model: Any, number: int, details: list[Any]) -> tuple[ApplicationError, list[Any]]:
    """One attempt in a new process: its error, and the details that the next attempt gets."""
    calls = ModelCalls(model, desk.store, ConversationStore(desk.store))
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=number, heartbeat_details=details)
    beaten: list[Any] = []
    environment.on_heartbeat = lambda *shown: beaten.append(list(shown))
    run = await desk.run_ref()

    async def begin() -> None:
        async with beating():
            await calls.begin(run, "plan.1.1", Opening(system="s", model="m"), "goal", CallOptions(10))

    with pytest.raises(ApplicationError) as caught:
        await environment.run(begin)
    return caught.value, beaten[-1]


async def test_an_odd_reply_is_asked_for_again_twice_whichever_processes_ask(desk: Desk) -> None:
    model = Odd(*[ErrorKind.BAD_RESPONSE] * limits.ODD_REPLY_ATTEMPTS)
    details: list[Any] = []
    final = []
    for number in range(1, limits.ODD_REPLY_ATTEMPTS + 1):
        error, details = await _attempt(desk, model, number, details)
        final.append(error.non_retryable)
    assert final == [False, False, True]


async def test_failures_of_other_kinds_use_up_no_patience(desk: Desk) -> None:
    model = Odd(*[ErrorKind.RATE_LIMITED] * limits.ODD_REPLY_ATTEMPTS, ErrorKind.BAD_RESPONSE)
    details: list[Any] = [{"tokens": 3, "tail": "of a process that died"}]
    for number in range(1, limits.ODD_REPLY_ATTEMPTS + 2):
        error, details = await _attempt(desk, model, number, details)
    assert (error.type, error.non_retryable) == (ErrorKind.BAD_RESPONSE, False)
