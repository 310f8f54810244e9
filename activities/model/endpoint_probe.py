"""The probe of a model endpoint: its facts, found out in the background of a Worker.

`EndpointProbe.start` asks the questions of `endpoint_questions`, in three steps: the list of models
and their windows; their traits, by requests of a few tokens; a window that no list names, by a long
prompt. Lists and windows are asked for at each start, because a restarted server may have another
window. Traits are asked for once for an address and a model, and remembered in a file of the cache
folder (`EndpointMemory`).
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from activities.model.endpoint_questions import list_models, probe_traits, probe_window
from activities.model.port import ModelEndpoint
from activities.model.request_body import is_known
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits

ENDPOINTS_FILE = "endpoints.json"  # of the cache folder
_PAUSE = timedelta(seconds=5)  # between tries at an endpoint that starts
_REMEMBERED = 100  # models of which the file has something

_log = logging.getLogger(__name__)
_ENTRIES = TypeAdapter(dict[str, ModelTraits])


class EndpointMemory:
    """The file with the remembered traits of models; an unreadable one counts as empty."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def recall(self, address: str, model: str) -> ModelTraits:
        """Returns the remembered traits of a model at an address; default ones if it is unknown."""
        return self._entries().get(_key(address, model), ModelTraits())

    def remember(self, address: str, model: str, traits: ModelTraits) -> None:
        """Remembers traits, except the window; the oldest entries make room."""
        if self._file is None:
            return
        entries = self._entries()
        entries.pop(_key(address, model), None)
        entries[_key(address, model)] = traits.model_copy(update={"window": None})
        kept = dict([*entries.items()][-_REMEMBERED:])
        new = self._file.with_suffix(".new")
        with suppress(OSError):
            new.write_bytes(_ENTRIES.dump_json(kept, exclude_none=True))
            new.replace(self._file)

    def _entries(self) -> dict[str, ModelTraits]:
        if self._file is None:
            return {}
        try:
            return _ENTRIES.validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return {}


def _key(address: str, model: str) -> str:
    return json.dumps([address, model])


class EndpointProbe:
    """The facts that this process knows about its endpoint, found out from `start` on.

    Before that, and without an endpoint, it knows nothing. `models` are chosen by the operator;
    without any, the only model that the endpoint lists is asked about.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint | None = None,
        models: Sequence[str] = (),
        memory: EndpointMemory | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._models = list(dict.fromkeys(models))
        self._memory = memory or EndpointMemory()
        self._facts = EndpointFacts(address=endpoint.endpoint if endpoint else "")
        self._known = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def _chosen(self) -> list[str]:
        only = self._facts.only_name
        return self._models or ([only] if only else [])

    def start(self, report: Callable[[EndpointFacts], None]) -> None:
        """Begins to ask; `report` gets the facts once."""
        if self._endpoint is not None and self._task is None:
            self._task = asyncio.create_task(self._learn_facts(self._endpoint, report))

    async def stop(self) -> None:
        """Stops asking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def facts(self, patience: timedelta = limits.ENDPOINT_PATIENCE) -> EndpointFacts:
        """Returns the facts, after a wait of at most `patience` while they are asked for."""
        if self._task is None:
            return EndpointFacts()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                await self._known.wait()
        return self._facts

    async def _learn_facts(
        self,
        endpoint: ModelEndpoint,
        report: Callable[[EndpointFacts], None],
    ) -> None:
        """Asks all questions. Reports the facts before the last ones, which may take minutes."""
        try:
            self._facts = await list_models(endpoint)
            while not self._facts.asked:
                await asyncio.sleep(_PAUSE.total_seconds())
                self._facts = await list_models(endpoint)
            await self._try_models(endpoint)
            self._known.set()
            report(self._facts)
            await self._look_for_cuts(endpoint)
        except Exception:  # a run can do without: it assumes what it does not know
            _log.exception("asking the model endpoint failed")
        finally:
            self._known.set()

    async def _try_models(self, endpoint: ModelEndpoint) -> None:
        """Completes the traits of the chosen models; remembered traits are not asked for again."""
        for model in self._chosen[: limits.ENDPOINT_MODELS]:
            remembered = self._memory.recall(endpoint.endpoint, model)
            known = remembered.model_copy(update={"window": self._facts.traits(model).window})
            async for found in probe_traits(endpoint, model, known):
                if found != known:
                    self._memory.remember(endpoint.endpoint, model, found)
                self._add_traits(model, found)

    async def _look_for_cuts(self, endpoint: ModelEndpoint) -> None:
        """Finds out windows that no list names, by a long prompt.

        This comes last, because reading it may take minutes.
        """
        for model in self._chosen[: limits.ENDPOINT_MODELS]:
            traits = self._facts.traits(model)
            if traits.window is not None or is_known(model):
                continue
            window = await probe_window(endpoint, model)
            if window is None:
                continue
            cut = f"{window:,}"
            _log.warning("%s at %s cuts long prompts to %s tokens", model, endpoint.endpoint, cut)
            self._add_traits(model, traits.model_copy(update={"window": window}))

    def _add_traits(self, model: str, traits: ModelTraits) -> None:
        models = {**self._facts.models, model: traits}
        self._facts = self._facts.model_copy(update={"models": models})
