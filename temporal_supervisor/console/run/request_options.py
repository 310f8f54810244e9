"""The options of `run`, and the request that they make: checked here, before anything is started."""

import contextlib
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from activities.files.manifest import DataFile, FilesRefused, found_files, is_text
from activities.files.values import is_data
from temporal_supervisor.console.base.command import BAD_INPUT, EXAMPLE_GOAL, CommandFailed, hint
from temporal_supervisor.console.run.described_files import with_description
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.store_keys import upload_key
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.request import RunRequest, describe_errors, parse_request
from temporal_supervisor.supervision.planning.plan_graph import own_plan_problems

_ID_BYTES = 400  # the server allows 1,000; child ids add to it
_OTHER = {"plan", "answer_schema"}
"""The options that have the name of a field and name a file."""
_DURATIONS = ("deadline", "subtask_timeout", "approval_timeout")
_PLAN = '{"subtasks": [...]}'
_FILES_TEAM = "files"
"""The team for a run with files, unless another one is named."""
_PARTS = {
    "models": {"supervisor": "supervisor_model", "workers": "worker_model"},
    "budget": {"tokens": "budget_tokens", "usd": "budget_usd"},
}
"""The options that are parts of one field."""


def prepared_request(options: Mapping[str, Any]) -> tuple[RunRequest, list[bytes], list[DataFile]]:
    """Returns the request that the options of `run` make, the uploads that it refers to, and the files that are data.

    Nothing is stored yet. Options override the fields of a request file. Raises CommandFailed, or SupervisionError
    `InvalidRequest`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    fields = _object_file(given["request"], '{"goal": "..."}') if "request" in given else {}
    if "goal" in given:
        given["goal"] = _goal(given["goal"])
    same = given.keys() & RunRequest.model_fields.keys() - _OTHER
    fields |= {name: seconds(given[name]) if name in _DURATIONS else given[name] for name in same}
    if "goal" not in fields:
        raise CommandFailed(BAD_INPUT, f"no goal: say what to find out, as in {hint('run', EXAMPLE_GOAL)}")
    if "answer_schema" in given:
        fields["answer_schema"] = _object_file(given["answer_schema"], '{"type": "object", "properties": {...}}')
    if "plan" in given:
        fields["plan"] = _plan_fields(_object_file(given["plan"], _PLAN))
    for name, parts in _PARTS.items():
        if named := {part: given[option] for part, option in parts.items() if given.get(option) not in (None, [])}:
            before = fields.get(name)
            fields[name] = {**(before if isinstance(before, dict) else {}), **named}
    data: list[Path] = given.get("data", [])
    binary = [path for path in given.get("attach", []) if is_data(path.name) and not is_small_text(path)]
    files = [path for path in given.get("attach", []) if path not in binary]
    uploads = [read_text_file(path) for path in files]
    found = with_description(data_files([*data, *binary]), given.get("describe"))
    if found and all(file.problem for file in found):
        raise CommandFailed(BAD_INPUT, f"no file can be read: {found[0].name}: {found[0].problem}")
    if data and "team" not in fields:
        fields["team"] = _FILES_TEAM
    if files:
        before = fields.get("attachments")
        refs = [upload_key(hashlib.sha256(content).hexdigest()) for content in uploads]
        attached = [{"name": path.name, "ref": ref} for path, ref in zip(files, refs, strict=True)]
        fields["attachments"] = [*(before if isinstance(before, list) else []), *attached]
    request = parse_request(fields)
    return _of_others(request, found) if given.get("data_from_others") else request, uploads, found


def _goal(word: str) -> str:
    """Returns the goal that a word gives, or standard input for `-`. Raises CommandFailed unless it is text."""
    if word == "-":
        return _text(sys.stdin.buffer.read(limits.ARTIFACT_BYTES), "standard input is not UTF-8 text").strip()
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:  # bytes of a command line that are no text come as halves of surrogate pairs
        raise CommandFailed(BAD_INPUT, "the goal is not valid UTF-8: write it in that encoding") from None
    return word


def _of_others(request: RunRequest, found: list[DataFile]) -> RunRequest:
    """Returns the request with attachments that others wrote. Raises CommandFailed if there are no data."""
    if not (request.attachments or found):
        raise CommandFailed(BAD_INPUT, "--data-from-others: name the data, with --data or --attach")
    marked = [attachment.model_copy(update={"trusted": False}) for attachment in request.attachments]
    return request.model_copy(update={"attachments": marked})


def _plan_fields(plan: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a plan without what `plan --json` says of the run that it was made for."""
    return {name: value for name, value in plan.items() if name not in ("run_id", "state")}


def parsed_plan(data: bytes, name: str) -> Plan:
    """Returns the plan in a file. Raises CommandFailed with all that keeps it from running; roles are the run's."""
    try:
        plan = Plan.model_validate(_plan_fields(json_object(data, name, _PLAN)), extra="forbid")
    except ValidationError as error:
        raise CommandFailed(BAD_INPUT, f"{name}: {describe_errors(error, root='plan')}") from None
    if problems := own_plan_problems(plan, limits.MAX_SUBTASKS):
        raise CommandFailed(BAD_INPUT, f"{name}: " + "; ".join(problems))
    return plan


def data_files(paths: list[Path]) -> list[DataFile]:
    """Returns each file that is given or lies in a given folder. Raises CommandFailed."""
    if missing := [str(path) for path in paths if not path.exists()]:
        raise CommandFailed(BAD_INPUT, f"there is no file or folder {', '.join(missing)}")
    try:
        return found_files(paths) if paths else []
    except FilesRefused as refused:
        raise CommandFailed(BAD_INPUT, str(refused)) from None


def is_small_text(path: Path) -> bool:
    """True for a text that fits one object of the store, and for what is no file."""
    return not path.is_file() or (path.stat().st_size <= limits.ARTIFACT_BYTES and is_text(path.read_bytes()))


def read_text_file(path: Path) -> bytes:
    """Returns the content of a UTF-8 text file within the store's size. Raises CommandFailed for anything else."""
    try:
        with path.open("rb") as file:
            data = file.read(limits.ARTIFACT_BYTES + 1)
    except OSError as error:
        raise CommandFailed(BAD_INPUT, f"{path} can't be read: {error.strerror}") from error
    if len(data) > limits.ARTIFACT_BYTES:
        raise CommandFailed(BAD_INPUT, f"{path} is larger than {limits.ARTIFACT_BYTES} bytes: attach a part of it")
    _text(data, f"{path} is not UTF-8 text: worker agents read text only, so convert it first")
    return data


def seconds(duration: str) -> str | int:
    """Returns a duration as the contract has it, in which a number of seconds is no text."""
    return int(duration) if duration.isdecimal() else duration


def check_run_id(run_id: str) -> str:
    """Returns the id. Raises CommandFailed if it can't name a run."""
    if not run_id.strip() or not run_id.isprintable() or len(run_id.encode("utf-8", "replace")) > _ID_BYTES:
        raise CommandFailed(BAD_INPUT, f"a run id needs 1 to {_ID_BYTES} bytes of printable text: choose another --id")
    return run_id


def _text(data: bytes, problem: str) -> str:
    """Returns the text. Raises CommandFailed with the problem if it is none."""
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode("utf-8-sig")
    raise CommandFailed(BAD_INPUT, problem)


def _object_file(source: Path | str | dict[str, Any], example: str) -> dict[str, Any]:
    """Returns the object of a JSON file; a notebook may give the object itself."""
    return source if isinstance(source, dict) else json_object(read_text_file(Path(source)), str(source), example)


def json_object(data: str | bytes, name: str, example: str) -> dict[str, Any]:
    """Returns the object that is written there. Raises CommandFailed if there is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CommandFailed(BAD_INPUT, f"{name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CommandFailed(BAD_INPUT, f"{name} must hold an object such as {example}")
    return value
