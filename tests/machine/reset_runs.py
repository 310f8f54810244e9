"""What holds for money: a call whose answer was stored is never sent again, through kills, waits and resets."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import unquote

from activities.store.artifacts import ArtifactStore
from supervision.base.store_keys import run_prefix
from tests.machine.playing import Ending
from tests.machine.records import Record


def abandoned_calls(last: Record, before: dict[str, Record]) -> int:
    """Returns how many model calls of the executions `before` a reset may have left in no book: at most all of them."""
    return sum(len(record.model_calls) for record in before.values() if record.workflow_id != last.workflow_id) + sum(
        not _is_copied(number, record, last)
        for record in before.values()
        for number in record.model_calls
        if record.workflow_id == last.workflow_id
    )


def _is_copied(number: int, record: Record, last: Record) -> bool:
    call, copy = record.model_calls[number], last.model_calls.get(number)
    return copy is not None and call.done_at is not None and copy.done_at == call.done_at


async def paid_again(ending: Ending, store: ArtifactStore) -> list[str]:
    """Returns the calls that were answered once more after the answer to the same question had been stored."""
    stored = await _stored_at(ending.run_id, store)
    return list(_paid_again(ending, stored))


async def _stored_at(run_id: str, store: ArtifactStore) -> dict[str, list[float]]:
    """Returns when the answers to each step of each workflow of a run were stored, in order."""
    stored = defaultdict[str, list[float]](list)
    for key in await store.list_keys(run_prefix(run_id)):
        if key.count("/") == 4:
            _, _, workflow_id, step, _ = key.split("/")
            at = json.loads((await store.get(key)).decode("utf-8", "surrogatepass"))["at"]
            stored[f"{unquote(workflow_id)}/{unquote(step)}"].append(datetime.fromisoformat(at).timestamp())
    return stored


def _paid_again(ending: Ending, stored: dict[str, list[float]]) -> Iterator[str]:
    """Two calls of a step with the same prompt ask the same; a call with an answer of its own has another question."""
    asked = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for served, call in zip(ending.served, ending.calls(), strict=False):
        if served.tokens and call.answered_at:
            asked[call.step.call, call.step.prompt].append((call.at, call.answered_at))
    for (name, _), calls in asked.items():
        if len(calls) > len(stored[name]) > 0:
            for at, _ in calls[1:]:
                if any(when < at for when in stored[name]):
                    yield f"{name} was paid again {at - min(stored[name]):.2f} s after its answer was stored"
