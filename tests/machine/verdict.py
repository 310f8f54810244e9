"""The verdict on a batch: it is played, each run is checked at its end, the histories are replayed."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client, WorkflowHistory

from tests.machine.invariants import broken
from tests.machine.playing import Batch, Ending, played
from tests.machine.replaced_workers import impatient
from tests.replay.replaying import refused
from tests.scripted_model import ScriptedModel


@dataclass
class Verdict:
    """What does not hold, by seed, and how many runs ended in which way."""

    faults: dict[int, list[str]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Returns a line for each fault."""
        return [f"seed {seed}: {fault}" for seed, faults in sorted(self.faults.items()) for fault in faults]


async def verdict_on(
    client: Client,
    model: ScriptedModel,
    group: Batch,
    artifacts: Path,
    *,
    evidence: Path | None = None,
    replay_each: int = 1,
) -> Verdict:
    """Plays a batch, replays each so-manieth of its runs, and returns what does not hold.

    The `evidence` of that is kept in a folder.
    """
    verdict, endings = Verdict(), list[Ending]()

    async def check(ending: Ending) -> None:
        verdict.kinds[_kind(ending)] += 1
        if faults := await broken(client, ending, artifacts):
            verdict.faults[ending.case.seed] = faults
        endings.append(ending)

    around = group.surroundings
    with impatient(around.cached_workflows, None if around.over_http else model):
        await played(client, model, artifacts, group, check)
        async for ending, error in _unlike(endings[::replay_each]):
            verdict.faults.setdefault(ending.case.seed, []).append(f"it does not replay: {error}")
    for ending in endings:
        if evidence and (faults := verdict.faults.get(ending.case.seed)):
            keep(ending, faults, evidence)
    return verdict


def _kind(ending: Ending) -> str:
    if ending.kind == "completed" and ending.result:
        return ending.result.status
    if ending.kind == "failed" and ending.error:
        return ending.error
    return ending.kind


async def _unlike(endings: list[Ending]) -> AsyncIterator[tuple[Ending, Exception]]:
    """Gives the runs with an execution that does not replay, and why."""
    found = {id(history): ending for ending in endings for history in ending.histories.values()}

    async def histories() -> AsyncIterator[WorkflowHistory]:
        for ending in endings:
            for history in ending.histories.values():
                yield history

    async for history, failure in refused(histories()):
        yield found[id(history)], failure


def keep(ending: Ending, wrong: list[str], folder: Path) -> None:
    """Writes the evidence of a case into a folder of its own below `folder`."""
    own = folder / ending.run_id
    own.mkdir(parents=True, exist_ok=True)
    for number, (workflow_id, history) in enumerate(ending.histories.items()):
        (own / f"{number}-{workflow_id.replace('/', '~')}.json").write_text(history.to_json())
    ledger = [
        f"{call.at:.3f} {call.answered_at or 0:.3f} {call.aborted_at or 0:.3f} {served.tokens} {call.step.call}"
        for served, call in zip(ending.served, ending.calls(), strict=False)
    ]
    (own / "calls.txt").write_text("\n".join(["at answered aborted tokens call", *ledger]))
    (own / "wrong.txt").write_text("\n".join([repr(ending.case), str(ending.case.request), ending.kind, *wrong]))
    for name, shown in {"result": ending.result, "query": ending.shown, "status": ending.status}.items():
        (own / f"{name}.json").write_text(json.dumps(shown.model_dump(mode="json") if shown else None, indent=1))
