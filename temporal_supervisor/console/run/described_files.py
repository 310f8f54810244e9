"""Files of this machine as runs read them, and their `data.toml`, checked before a start."""

from collections.abc import Sequence
from pathlib import Path

from activities.files.descriptions import (
    DESCRIPTION_BYTES,
    DescriptionRefused,
    Written,
    read_description,
)
from activities.files.file_cache import FileCache, copy_file, local_file
from activities.files.file_reports import FileReport
from activities.files.manifest import DataFile
from activities.files.values import DATA_TOML
from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed, hint
from temporal_supervisor.console.base.terminal import print_err
from temporal_supervisor.runtime.process import cache_dir

_OWNER = "inspect"
_NAMED = 3  # files with their problems, in one error
_EXAMPLE = "own-files#what-the-data-mean"


async def reports_on(files: list[DataFile]) -> list[FileReport]:
    """Returns a report on each file.

    Raises CommandFailed if a file can't be opened, or is described wrongly.
    """
    toml = _description_of(files)
    if toml is not None:
        _check_description(toml)
    reports = await _reports(files)
    _refuse_mistakes(toml, reports)
    return reports


def with_description(files: list[DataFile], described: Path | None) -> list[DataFile]:
    """Returns the files with a description in place of their own `data.toml`.

    Raises CommandFailed without files.
    """
    if described is None:
        return files
    if not described.is_file():
        helps = f"--describe takes a {DATA_TOML} by any name"
        raise CommandFailed(BAD_INPUT, f"there is no file {described}: {helps}")
    if not files:
        raise CommandFailed(BAD_INPUT, "--describe says how files are read: name them with --data")
    own = _description_of(files)
    if own is not None and own.path.resolve() != described.resolve():
        print_err(f"{described} describes the files, in place of {own.path}")
    return [*(file for file in files if file.name != DATA_TOML), DataFile(DATA_TOML, described)]


async def check_description(files: list[DataFile]) -> None:
    """Raises CommandFailed if a `data.toml` is invalid, or describes missing things."""
    toml = _description_of(files)
    if toml is None:
        return
    keys = list(_check_description(toml).says.tables)
    if not keys:
        return

    named = [file for file in files if any(_names(key, file) for key in keys)]
    is_each_found = all(any(_names(key, file) for file in named) for key in keys)
    # A table that is named alone may stand in any of the files.
    looked_at = [*named, toml] if is_each_found else files
    _refuse_mistakes(toml, await _reports(looked_at))


def _names(key: str, file: DataFile) -> bool:
    """True if a key of a description names the file, or a table in it."""
    return f"{key}/".startswith(f"{file.name}/")


async def check_readable(files: list[DataFile]) -> None:
    """Raises CommandFailed if none of the files can be read.

    The smallest ones are tried first.
    """
    tried = sorted((file for file in files if file.name != DATA_TOML), key=_size)
    problems: list[str] = []
    for file in tried:
        problem = file.problem
        if not problem:
            first, *_ = await _reports([file])
            problem = first.problem
        if not problem:
            return
        problems.append(f"{file.name}: {problem}")
    if not problems:
        return

    refusal = "the file can't be read"
    if len(problems) > 1:
        refusal = f"none of the {len(problems)} files can be read"
    more = "; ..." if len(problems) > _NAMED else ""
    raise CommandFailed(BAD_INPUT, f"{refusal}: {'; '.join(problems[:_NAMED])}{more}")


def _size(file: DataFile) -> int:
    """Returns the size of a file in bytes; 0 if it can't be read."""
    return 0 if file.problem else file.path.stat().st_size


def _description_of(files: Sequence[DataFile]) -> DataFile | None:
    named_so = (file for file in files if file.name == DATA_TOML)
    return next((file for file in named_so if not file.problem), None)


def _check_description(toml: DataFile) -> Written:
    """Returns the content of a description.

    Raises CommandFailed with the file, the line and the remedy.
    """
    try:
        with toml.path.open("rb") as file:
            data = file.read(DESCRIPTION_BYTES + 1)
        return read_description(data.decode("utf-8-sig"))
    except OSError as error:
        raise CommandFailed(BAD_INPUT, f"{toml.path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        words = f"{toml.path}: it is no text in UTF-8: save it as such"
        raise CommandFailed(BAD_INPUT, words) from None
    except DescriptionRefused as refused:
        words = f"{toml.path}: {refused}; an example: {hint('docs', _EXAMPLE)}"
        raise CommandFailed(BAD_INPUT, words) from None


def _refuse_mistakes(toml: DataFile | None, reports: Sequence[FileReport]) -> None:
    """Raises CommandFailed if the description does not fit the files."""
    wrong = [mistake for report in reports for mistake in report.mistakes]
    if toml is not None and wrong:
        raise CommandFailed(BAD_INPUT, f"{toml.path}: {'; '.join(wrong)}")


async def _reports(files: list[DataFile]) -> list[FileReport]:
    local = [local_file(*file) for file in files]
    try:
        return await FileCache(cache_dir()).reports(local, _OWNER, copy_file)
    except OSError as error:
        raise CommandFailed(
            BAD_INPUT, f"{error.filename} can't be read: {error.strerror}"
        ) from None
