"""`make sensitivity`: plays an eval, twenty changes for the worse, and the same eval as often again.

It fails if `--no-worse-than` calls fewer than 90 % of the changes worse, or more than 5 % of the repetitions.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from temporalio.client import Client

from activities.contracts.eval_contracts import EVAL_TYPE, TABLE, EvalInput, EvalResult, OwnLimits
from activities.files.manifest import MANIFEST_TYPE, found_files, put_files
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import named_key
from temporal_supervisor.supervision.scores.eval_plan import EvalSet, EvalVariant
from temporal_supervisor.supervision.scores.score_table import EvalTable, compare_tables, shortfalls
from tests.scripted_model import ScriptedModel, scripted_model
from tests.sensitivity.changes import CHANGES, Change
from tests.sensitivity.fleet import fleet, questions, written
from tests.sensitivity.seen import SEEN_FILE, Seen, lines_of, share_of
from tests.serving import ROOT, own_server, settings_for, store_of
from worker_main import serving

SAME = Change("the same eval again")
_RED = 0.90
_GREEN = 0.05


@dataclass(frozen=True)
class Scene:
    """A server with a Worker, a store, and the model that both changes and repetitions are played with."""

    client: Client
    store: ArtifactStore
    model: ScriptedModel
    folder: Path

    async def played(self, name: str, change: Change, luck: int, parallel: int) -> EvalTable:
        """Returns the table of the eval of all questions, with a change."""
        table = fleet()
        file = written(change.file(table), self.folder / name)
        ref = await put_files(self.store, found_files([file]))
        data = {"fleet.csv": {"name": "files", "ref": ref, "media_type": MANIFEST_TYPE}}
        request = {"team": dict(change.team), "strategy": "plan", "max_reviews": 0, "max_replans": 0, **change.request}
        whole = EvalSet.model_validate(
            {
                "name": "fleet",
                "questions": questions(table),
                "variants": [EvalVariant(label="clerk", request=request)],
                "data": data,
            }
        )
        self.model.play("*", change.brain(luck))
        set_ref = await self.store.put_upload(whole.model_dump_json().encode())
        own = OwnLimits(tokens=1_000_000, usd=None, seconds=600)
        given = EvalInput(set_ref=set_ref, name="fleet", total=whole.total, own=own, parallel=parallel)
        eval_id = f"eval-{name}"
        await self.client.execute_workflow(
            EVAL_TYPE, given, id=eval_id, task_queue="supervisor", result_type=EvalResult
        )
        return EvalTable.model_validate_json(await self.store.get(named_key("scores", eval_id, TABLE)))


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    """Gives a scene of its own."""
    with tempfile.TemporaryDirectory(prefix="sensitivity-") as kept:
        async with own_server() as client, scripted_model() as model:
            settings = settings_for(model.url, kept, teams_dir=ROOT / "teams")
            async with serving(client, settings):
                yield Scene(client, await store_of(client, kept), model, Path(kept) / "files")


async def seen(scene: Scene, changes: Sequence[Change], parallel: int) -> list[Seen]:
    """Plays the changes, and as many repetitions, against one eval. Returns for each whether it was called worse."""
    before = await scene.played("before", SAME, 0, parallel)
    found = list[Seen]()
    for number, change in enumerate([*changes, *[SAME] * len(changes)], 1):
        after = await scene.played(f"after-{number}", change, number, parallel)
        is_worse = bool(shortfalls(after, comparisons=compare_tables(before, after)))
        right = round(after.rows[0].right.value * after.rows[0].n)
        found.append(
            Seen(
                name=change.name,
                is_change=change is not SAME,
                questions=after.rows[0].n,
                right=right,
                unflagged=after.rows[0].counts["wrong_unflagged"],
                is_worse=is_worse,
            )
        )
        print(f"{change.name}: {right} of {after.rows[0].n} right, {'worse' if is_worse else 'no worse'}", flush=True)
    return found


async def main(parallel: int) -> list[Seen]:
    """Returns what was seen of all changes."""
    async with scene() as own:
        return await seen(own, CHANGES, parallel)


def falls_short(found: Sequence[Seen]) -> bool:
    """True if too few changes, or too many repetitions, were called worse."""
    return share_of(found, is_change=True) < _RED or share_of(found, is_change=False) > _GREEN


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.sensitivity", description=__doc__)
    parser.add_argument("--parallel", type=int, default=8)
    options = parser.parse_args()
    result = asyncio.run(main(options.parallel))
    print("\n".join(lines_of(result)))
    SEEN_FILE.write_bytes(TypeAdapter(list[Seen]).dump_json(result, indent=1))
    sys.exit(falls_short(result))
