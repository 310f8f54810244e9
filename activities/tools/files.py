"""The files of a team: found by a pattern of the team file, never outside the team's folder."""

from pathlib import Path

from supervision.base import limits

_TEAM_DATA_FILES = 1000  # a wider glob is a mistake

Fingerprint = tuple[tuple[str, int, int], ...]


def files_inside(folder: Path, pattern: str) -> list[Path]:
    """Returns the files that `pattern` matches in `folder`, by name.

    A link may lead elsewhere only within the folder. Raises ValueError for a pattern or a file that leaves it,
    for files that are too large or too many, and if nothing matches.
    """
    if not pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts or "\0" in pattern:
        raise ValueError(f"'{pattern}' must be a pattern inside the team's folder, such as data/*.csv")
    root = folder.resolve()
    files = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
    if not files:
        raise ValueError(f"'{pattern}' matches no file in {folder}")
    if len(files) > _TEAM_DATA_FILES:
        raise ValueError(f"'{pattern}' matches {len(files)} files, at most {_TEAM_DATA_FILES} are read")
    for path in files:
        if not path.resolve().is_relative_to(root):
            raise ValueError(f"{path} leads out of the team's folder")
        if path.stat().st_size > limits.TEAM_DATA_BYTES:
            raise ValueError(f"{path} is larger than {limits.TEAM_DATA_BYTES} bytes")
    return files


def fingerprint(files: list[Path]) -> Fingerprint:
    """Returns a value that changes if a file appears, disappears or is written."""
    return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
