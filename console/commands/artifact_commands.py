"""The commands `artifacts` and `artifact`: fetching what a run made for its user out of the store."""

import sys
from pathlib import Path

from activities.store.artifacts import ArtifactStore
from console.access import Access
from console.command import BAD_INPUT, DONE, FAILED, CommandFailed
from console.hints import hint
from console.run.run_handle import NoAnswer, RunHandle, is_open
from console.run.run_outcome import run_outcome, stored_result
from console.terminal import print_err, print_json, print_out, safe, safe_line
from supervision.contract.finding import ArtifactRef
from supervision.contract.result import RunResult

_NAME_CHARS = 100


async def print_artifacts(run: RunHandle, access: Access, save: Path | None, as_json: bool) -> int:
    """Lists the artifacts of a run, or writes them into the folder `save`. Returns 0 also if there are none."""
    result = await _result(run, access.store)
    listed = result.artifacts if result else []
    files = _file_names(listed)
    if as_json:
        print_json([artifact.model_dump(mode="json") for artifact in listed])
    elif not listed:
        print_err(f"run '{run.id}' made no artifacts")
    elif save is None:
        for artifact in listed:
            print_out(f"{safe_line(artifact.name, _NAME_CHARS)}  {artifact.media_type}, {artifact.bytes:,} bytes")
            print_out(f"    {artifact.ref}")
        print_err(f"save them: {hint('artifacts', run.id, '--save', 'DIR')}")
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        for artifact, name in zip(listed, files, strict=True):
            _write(save / name, await access.store.get(artifact.ref))
    return DONE


async def print_artifact(store: ArtifactStore, ref: str, output: Path | None) -> int:
    """Writes stored content into a file, or shows its text. Raises ArtifactMissing for an unknown reference."""
    data = await store.get(ref)
    if output is not None:
        _write(output, data)
        return DONE
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(BAD_INPUT, f"{len(data):,} bytes that are no text: name a file with -o FILE") from None
    if sys.stdout.isatty():
        text = safe(text)
    sys.stdout.write(text)
    sys.stdout.flush()
    return DONE


def _write(path: Path, data: bytes) -> None:
    """Creates the file; one that exists stays. Raises CommandFailed then."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise CommandFailed(FAILED, f"{path} exists already: remove it, or choose another name") from None
    print_err(f"wrote {path}, {len(data):,} bytes")


async def _result(run: RunHandle, store: ArtifactStore) -> RunResult | None:
    """Returns the result of a run, or the one so far."""
    try:
        described = await run.require()
    except CommandFailed:
        stored = await stored_result(run.id, store)
        if stored is None:
            raise
        return stored
    if not is_open(described):
        return (await run_outcome(run, store)).result
    try:
        return await run.result()
    except NoAnswer:
        return None


def _file_names(listed: list[ArtifactRef]) -> list[str]:
    """Returns a file's name for each artifact, without folders; a second one of a name gets a number."""
    names: list[str] = []
    for artifact in listed:
        path = Path(safe_line(artifact.name, _NAME_CHARS).replace("\\", "/"))
        stem, suffix = path.stem.lstrip(".") or "artifact", path.suffix
        number, name = 1, f"{stem}{suffix}"
        while name in names:
            number += 1
            name = f"{stem}-{number}{suffix}"
        names.append(name)
    return names
