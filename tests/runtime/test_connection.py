"""A server that is slow to answer is asked again."""

from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.runtime.connection import namespace_id

BUSY = RPCError("Timeout expired", RPCStatusCode.CANCELLED, b"")


async def test_a_busy_server_is_asked_for_its_namespace_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = await namespace_id(client), list[Any]()
    describe = client.workflow_service.describe_namespace

    async def busy_twice(request: Any, **options: Any) -> Any:
        asked.append(request)
        if len(asked) < 3:
            raise BUSY
        return await describe(request, **options)

    monkeypatch.setattr(client.workflow_service, "describe_namespace", busy_twice)
    assert await namespace_id(client) == known
    assert len(asked) == 3


async def test_a_server_that_never_answers_is_named_in_the_end(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: Any, **__: Any) -> Any:
        raise BUSY

    monkeypatch.setattr(client.workflow_service, "describe_namespace", busy)
    with pytest.raises(RPCError, match="Timeout expired"):
        await namespace_id(client)
