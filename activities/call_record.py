"""The record of one tool call in the artifact store: how often it began, its result if it has effects, its quarantine.

Temporal's attempts do not tell: a local activity that ends its process begins at attempt 1 with every workflow task,
and an attempt that found another store never came to the tool.
"""

import hashlib

from activities.contracts.turn_contracts import ToolInput, ToolReply
from activities.store.artifacts import ArtifactStore
from supervision import limits
from supervision.store_keys import deadly_key, effect_key, result_key, started_key


class CallRecord:
    """The record of a call that `request` asks for. All methods raise as the store does."""

    def __init__(self, store: ArtifactStore, request: ToolInput, workflow_run_id: str, team: str) -> None:
        self._store = store
        self._run_id = request.run.run_id
        self._call = f"{request.head}/{request.call.index}"
        self._workflow_run_id = workflow_run_id
        arguments = f"{team}/{request.call.name}/{request.call.arguments_sha256}"
        self._deadly = deadly_key(self._run_id, hashlib.sha256(arguments.encode()).hexdigest())
        self._mark: str | None = None

    async def is_deadly(self) -> bool:
        """True if a call of this tool with these arguments ended its process too often, anywhere in the run."""
        return await self._store.find(self._deadly) is not None

    async def begin(self) -> bool:
        """Marks that the call begins. Returns False if it began often enough and never came to an end.

        One create is the usual price. A workflow that was reset begins anew.
        """
        for start in range(limits.TOOL_DEATHS):
            mark = started_key(self._run_id, self._workflow_run_id, self._call, start)
            if await self._store.create(mark, b""):
                self._mark = mark
                return True
        await self._store.create(self._deadly, b"")
        return False

    async def withdraw(self) -> None:
        """Takes the last mark back: the call was stopped, but its process lives."""
        if self._mark:
            await self._store.delete(self._mark)

    async def begin_once(self) -> bool:
        """Marks that a call with effects begins. Returns False if it began before, be it before a reset."""
        return await self._store.create(effect_key(self._run_id, self._call), b"")

    async def save_result(self, reply: ToolReply) -> None:
        """Keeps the result of a call with effects, which has no second one."""
        await self._store.put(result_key(self._run_id, self._call), reply.model_dump_json().encode())

    async def result(self) -> ToolReply | None:
        """Returns the result of a call with effects; None if it was lost."""
        stored = await self._store.find(result_key(self._run_id, self._call))
        return ToolReply.model_validate_json(stored) if stored is not None else None
