"""Answers from outside, which a run gets once each.

Who sees the requests could otherwise read a message in their number and order.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from activities.store.artifacts import ArtifactStore
from activities.tools.tool import ToolMisuse, ToolOutput
from temporal_supervisor.supervision.base.store_keys import effect_keys
from temporal_supervisor.supervision.contract.base import Model

_REQUESTS = 3  # for one thing, as long as none was answered: a network may fail for a moment


class _Answer(Model):
    """A text from outside with its sources, or the reason why there is none."""

    text: str = ""
    sources: list[str] = []
    problem: str = ""


class AskedOnce:
    """The answers that runs have got from outside, by what was asked for."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._at_work: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, run_id: str, wanted: str, ask: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Returns the answer that the run has; asks if it has none. Raises ToolMisuse if there is none to be had."""
        name = hashlib.sha256(wanted.encode("utf-8", "replace")).hexdigest()
        lock = self._at_work.setdefault(f"{run_id} {name}", asyncio.Lock())
        async with lock:
            problem = "it was asked for too often without an answer"
            for number in range(_REQUESTS):
                begun, ended = effect_keys(run_id, f"asked.{name}.{number}")
                if await self._store.create(begun, b""):
                    return await self._asked(ended, ask)
                stored = await self._store.find(ended)
                if stored is None:  # the process died that had asked
                    continue
                answer = _Answer.model_validate_json(stored)
                if not answer.problem:
                    return ToolOutput(answer.text, answer.sources)
                problem = answer.problem
            raise ToolMisuse(problem)

    async def _asked(self, key: str, ask: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        try:
            output = await ask()
        except ToolMisuse as misuse:
            await self._store.put(key, _Answer(problem=str(misuse)).model_dump_json().encode())
            raise
        answer = _Answer(text=output.text, sources=output.sources)
        await self._store.put(key, answer.model_dump_json().encode())
        return output
