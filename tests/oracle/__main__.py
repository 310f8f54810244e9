"""`make oracle SETS=FOLDER`: plays the questions of the sets in a folder by their true answers, then with faults.

Each play is a run of an eval, over the whole path, with a scripted model. With JSON the figures are also written to
that file, beside those of sets that were played before. It fails if fewer right answers or faults are noticed than
should be.
"""

import argparse
import asyncio
import sys
import tempfile
import zlib
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from pydantic import TypeAdapter
from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from tests.oracle.playing import played, script_of
from tests.oracle.plays import ANSWER, FINDING, Play, Source
from tests.oracle.report import SetFigures, figures_of, lines_of
from tests.oracle.sources import sources_of
from tests.scripted_model import ScriptedModel, scripted_model
from tests.serving import ROOT, own_server, settings_for, store_of
from worker_main import serving

FAULTS = ("figure", "row", "column", "period", "unit", "scale", "sign")
_RIGHT = 0.95
_NOTICED = 0.90
_DOUBTED = 0.05
_FIGURES = TypeAdapter(list[SetFigures])


def planted(sources: Sequence[Source], most: int) -> list[Play]:
    """Returns plays with a fault, of each kind and place as many, always the same ones."""
    by_kind = list[list[Play]]()
    for fault in FAULTS:
        for place in (FINDING, ANSWER):
            plays = [source.planted(fault, place) for source in sources]
            known = [play for play in plays if play is not None]
            by_kind.append(sorted(known, key=lambda play: zlib.crc32(play.name.encode())))
    in_turn = [play for play in chain.from_iterable(zip_longest(*by_kind)) if play is not None]
    return in_turn[:most]


async def figures(
    client: Client,
    store: ArtifactStore,
    model: ScriptedModel,
    folder: Path,
    faults: int,
    parallel: int,
) -> SetFigures:
    """Plays the questions of a set and returns its figures."""
    every = list(sources_of(folder))
    sources = [source for source in every if source is not None]
    honest, wrong = [source.honest() for source in sources], planted(sources, faults)
    model.play("*", script_of([*honest, *wrong]))
    right = await played(client, store, f"eval-{folder.name}-honest", folder, honest, parallel)
    faulty = await played(client, store, f"eval-{folder.name}-faulty", folder, wrong, parallel)
    by_name = {play.name: play for play in wrong}
    pairs = [(by_name[score.question], score) for score in faulty.scores]
    return figures_of(folder.name, len(every), right.scores, pairs)


async def main(folder: Path, names: Sequence[str], faults: int, parallel: int) -> list[SetFigures]:
    """Returns the figures of all sets in a folder that can be derived."""
    sets = [path.parent for path in sorted(folder.glob("*/questions.jsonl"))]
    found = list[SetFigures]()
    with tempfile.TemporaryDirectory(prefix="oracle-") as kept:
        async with own_server() as client, scripted_model() as model:
            settings = settings_for(model.url, kept, teams_dir=ROOT / "teams")
            async with serving(client, settings):
                store = await store_of(client, kept)
                for each in sets:
                    if names and each.name not in names:
                        continue
                    if not any(sources_of(each)):
                        continue
                    found.append(await figures(client, store, model, each, faults, parallel))
                    print("\n".join(lines_of(found[-1:])), flush=True)
    return found


def falls_short(found: Sequence[SetFigures]) -> bool:
    """True if too few answers are right, or too few faults and too many right answers flagged."""
    played_ones = sum(each.played for each in found)
    right = sum(each.right for each in found)
    counts = [count for each in found for count in each.faults]
    noticed = sum(count.flagged for count in counts)
    doubted = sum(each.flagged_though_right for each in found)
    return (
        right < _RIGHT * played_ones
        or noticed < _NOTICED * sum(count.planted for count in counts)
        or doubted > _DOUBTED * right
    )


def with_kept(found: Sequence[SetFigures], kept: bytes) -> list[SetFigures]:
    """Returns the figures of all sets: those just found, and of the others those that a file has kept."""
    names = {each.name for each in found}
    others = [each for each in _FIGURES.validate_json(kept) if each.name not in names] if kept else []
    return sorted([*found, *others], key=lambda each: each.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the sets")
    parser.add_argument("names", nargs="*", help="the sets to play; all without one")
    parser.add_argument("--faults", type=int, default=120, help="planted in each set")
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = asyncio.run(main(options.folder, options.names, options.faults, options.parallel))
    print("\n".join(lines_of(result)))
    if options.json:
        kept = options.json.read_bytes() if options.json.is_file() else b""
        options.json.write_bytes(_FIGURES.dump_json(with_kept(result, kept), indent=1))
    sys.exit(falls_short(result))
