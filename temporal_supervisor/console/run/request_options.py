"""The options of `run` and their request, which is checked before anything is started."""

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
from temporal_supervisor.supervision.contract.request import (
    RunRequest,
    describe_errors,
    parse_request,
)
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
    """Returns the request from the options of `run`, its uploads, and its data files.

    Nothing is stored yet. Options override the fields of a request file. Raises CommandFailed, or
    SupervisionError `InvalidRequest`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    fields = _fields(given)

    data: list[Path] = given.get("data", [])
    texts: list[Path] = []
    binary: list[Path] = []
    for path in given.get("attach", []):
        if is_data(path.name) and not is_small_text(path):
            binary.append(path)
        else:
            texts.append(path)
    uploads = [read_text_file(path) for path in texts]
    found = with_description(data_files([*data, *binary]), given.get("describe"))
    if found and all(file.problem for file in found):
        first = found[0]
        raise CommandFailed(BAD_INPUT, f"no file can be read: {first.name}: {first.problem}")

    if data and "team" not in fields:
        fields["team"] = _FILES_TEAM
    if texts:
        before = fields.get("attachments")
        attachments = [*before] if isinstance(before, list) else []
        for path, content in zip(texts, uploads, strict=True):
            ref = upload_key(hashlib.sha256(content).hexdigest())
            attachments.append({"name": path.name, "ref": ref})
        fields["attachments"] = attachments

    request = parse_request(fields)
    if given.get("data_from_others"):
        request = _as_data_of_others(request, found)
    return request, uploads, found


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a request: of its file, then of the other options."""
    fields: dict[str, Any] = {}
    if "request" in given:
        fields = _object_file(given["request"], '{"goal": "..."}')
    if "goal" in given:
        given["goal"] = _goal(given["goal"])
    for name in given.keys() & RunRequest.model_fields.keys() - _OTHER:
        value = given[name]
        fields[name] = seconds(value) if name in _DURATIONS else value
    if "goal" not in fields:
        example = hint("run", EXAMPLE_GOAL)
        raise CommandFailed(BAD_INPUT, f"no goal: say what to find out, as in {example}")
    if "answer_schema" in given:
        example = '{"type": "object", "properties": {...}}'
        fields["answer_schema"] = _object_file(given["answer_schema"], example)
    if "plan" in given:
        fields["plan"] = _plan_fields(_object_file(given["plan"], _PLAN))
    for name, options in _PARTS.items():
        parts = {part: given.get(option) for part, option in options.items()}
        named = {part: value for part, value in parts.items() if value not in (None, [])}
        if named:
            before = fields.get(name)
            fields[name] = {**before, **named} if isinstance(before, dict) else named
    return fields


def _goal(word: str) -> str:
    """Returns the goal: the word itself, or standard input for `-`. Raises CommandFailed."""
    if word == "-":
        written = sys.stdin.buffer.read(limits.ARTIFACT_BYTES)
        return _decode_text(written, "standard input is not UTF-8 text").strip()
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        # bytes of a command line that are no text come as halves of surrogate pairs
        words = "the goal is not valid UTF-8: write it in that encoding"
        raise CommandFailed(BAD_INPUT, words) from None
    return word


def _as_data_of_others(request: RunRequest, found: list[DataFile]) -> RunRequest:
    """Returns the request with attachments marked as written by others.

    Raises CommandFailed without data.
    """
    if not (request.attachments or found):
        raise CommandFailed(BAD_INPUT, "--data-from-others: name the data, with --data or --attach")
    untrusted = {"trusted": False}
    marked = [attachment.model_copy(update=untrusted) for attachment in request.attachments]
    return request.model_copy(update={"attachments": marked})


def _plan_fields(plan: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a plan without the ones that `plan --json` adds."""
    return {name: value for name, value in plan.items() if name not in ("run_id", "state")}


def parsed_plan(data: bytes, name: str) -> Plan:
    """Returns the plan in a file. Raises CommandFailed with all problems but unknown roles."""
    try:
        plan = Plan.model_validate(_plan_fields(json_object(data, name, _PLAN)), extra="forbid")
    except ValidationError as error:
        raise CommandFailed(BAD_INPUT, f"{name}: {describe_errors(error, root='plan')}") from None
    problems = own_plan_problems(plan, limits.MAX_SUBTASKS)
    if problems:
        raise CommandFailed(BAD_INPUT, f"{name}: " + "; ".join(problems))
    return plan


def data_files(paths: list[Path]) -> list[DataFile]:
    """Returns each given file and the files in given folders. Raises CommandFailed."""
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise CommandFailed(BAD_INPUT, f"there is no file or folder {', '.join(missing)}")
    try:
        return found_files(paths) if paths else []
    except FilesRefused as refused:
        raise CommandFailed(BAD_INPUT, str(refused)) from None


def is_small_text(path: Path) -> bool:
    """True for a text that fits one object of the store, and for a missing file."""
    if not path.is_file():
        return True
    return path.stat().st_size <= limits.ARTIFACT_BYTES and is_text(path.read_bytes())


def read_text_file(path: Path) -> bytes:
    """Returns the content of a UTF-8 file of at most the store's size.

    Raises CommandFailed.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limits.ARTIFACT_BYTES + 1)
    except OSError as error:
        raise CommandFailed(BAD_INPUT, f"{path} can't be read: {error.strerror}") from error
    if len(data) > limits.ARTIFACT_BYTES:
        too_large = f"{path} is larger than {limits.ARTIFACT_BYTES} bytes"
        raise CommandFailed(BAD_INPUT, f"{too_large}: attach a part of it")
    problem = f"{path} is not UTF-8 text: worker agents read text only, so convert it first"
    _decode_text(data, problem)
    return data


def seconds(duration: str) -> str | int:
    """Returns a duration for the contract: `90` as the number 90, `30m` as it is."""
    return int(duration) if duration.isdecimal() else duration


def check_run_id(run_id: str) -> str:
    """Returns the id. Raises CommandFailed if it is no valid run id."""
    is_printable = bool(run_id.strip()) and run_id.isprintable()
    if not is_printable or len(run_id.encode("utf-8", "replace")) > _ID_BYTES:
        needed = f"a run id needs 1 to {_ID_BYTES} bytes of printable text"
        raise CommandFailed(BAD_INPUT, f"{needed}: choose another --id")
    return run_id


def _decode_text(data: bytes, problem: str) -> str:
    """Returns the decoded text. Raises CommandFailed with `problem` if it is binary."""
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode("utf-8-sig")
    raise CommandFailed(BAD_INPUT, problem)


def _object_file(source: Path | str | dict[str, Any], example: str) -> dict[str, Any]:
    """Returns the object in a JSON file; a notebook may pass the object itself."""
    if isinstance(source, dict):
        return source
    return json_object(read_text_file(Path(source)), str(source), example)


def json_object(data: str | bytes, name: str, example: str) -> dict[str, Any]:
    """Returns the JSON object in `data`. Raises CommandFailed if there is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CommandFailed(BAD_INPUT, f"{name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CommandFailed(BAD_INPUT, f"{name} must hold an object such as {example}")
    return value
