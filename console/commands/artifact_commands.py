"""The commands `artifacts` and `artifact`: fetching what a run made for its user out of the store."""

import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from console.command import BAD_INPUT, DONE, FAILED, Access, CommandFailed
from console.hints import hint
from console.run.run_handle import NoAnswer, RunHandle
from console.run.run_outcome import outcome_so_far
from console.terminal import Report, print_err, safe, safe_line
from supervision.contract.finding import ArtifactRef

_NAME_CHARS = 100


async def artifacts_report(run: RunHandle, access: Access, save: Path | None) -> Report:
    """Returns the artifacts of a run; they are written into the folder `save`. The exit code is 0 also without any."""
    store = await access.store()
    try:
        result = (await outcome_so_far(run, store)).result
    except NoAnswer:
        result = None
    listed = result.artifacts if result else []
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        for artifact, name in zip(listed, _file_names(listed), strict=True):
            _write(save / name, await store.get(artifact.ref))
    if not listed:
        return Report([], lambda _: (), notes=[f"run '{run.id}' made no artifacts"])
    if save is not None:
        return Report(listed, lambda _: ())
    return Report(listed, lambda _: _rows(listed), notes=[f"save them: {hint('artifacts', run.id, '--save', 'DIR')}"])


def _rows(listed: list[ArtifactRef]) -> Iterator[RenderableType]:
    for artifact in listed:
        yield f"{safe_line(artifact.name, _NAME_CHARS)}  {artifact.media_type}, {artifact.bytes:,} bytes"
        yield Text(f"    {artifact.ref}")  # one piece, to be copied


async def print_artifact(access: Access, ref: str, output: Path | None) -> int:
    """Writes stored content into a file, or shows its text. Raises ArtifactMissing for an unknown reference."""
    data = await (await access.store()).get(ref)
    if output is not None:
        _write(output, data)
        return DONE
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(BAD_INPUT, f"{len(data):,} bytes that are no text: name a file with -o FILE") from None
    sys.stdout.write(safe(text) if sys.stdout.isatty() else text)
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
