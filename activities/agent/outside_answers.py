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

Ask = Callable[[], Awaitable[ToolOutput]]

_REQUESTS = 3  # for one thing, as long as none was answered: a network may fail for a moment


class _Answer(Model):
    """A text from outside with its sources, or the reason why there is none."""

    text: str = ""
    sources: list[str] = []
    problem: str = ""


class OutsideAnswers:
    """The answers that runs have got from outside, by what was asked for."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._at_work: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def fetch_once(self, run_id: str, wanted: str, ask: Ask) -> ToolOutput:
        """Returns the run's answer to a request, which is sent if it has none yet.

        Raises ToolMisuse if the request failed, or was sent too often without an answer.
        """
        name = hashlib.sha256(wanted.encode("utf-8", "replace")).hexdigest()
        lock = self._at_work.setdefault(f"{run_id} {name}", asyncio.Lock())
        async with lock:  # else calls of one process at the same time would count as failed ones
            problem = "it was asked for too often without an answer"
            for number in range(_REQUESTS):
                begun, ended = effect_keys(run_id, f"asked.{name}.{number}")
                if await self._store.create(begun, b""):
                    return await self._send(ended, ask)
                stored = await self._store.find(ended)
                if stored is None:  # the process that had sent the request died
                    continue
                answer = _Answer.model_validate_json(stored)
                if not answer.problem:
                    return ToolOutput(answer.text, answer.sources)
                problem = answer.problem
            raise ToolMisuse(problem)

    async def _send(self, key: str, ask: Ask) -> ToolOutput:
        """Sends a request and stores its answer, or the reason why there is none."""
        try:
            output = await ask()
        except ToolMisuse as misuse:
            await self._store.put(key, _Answer(problem=str(misuse)).model_dump_json().encode())
            raise
        answer = _Answer(text=output.text, sources=output.sources)
        await self._store.put(key, answer.model_dump_json().encode())
        return output
