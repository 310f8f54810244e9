"""From the options of `run` to a request: checked here first, so that nothing is started in vain."""

import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from activities.store.artifacts import ArtifactStore
from console import console_limits
from console.command_errors import BAD_INPUT, DONE, CommandFailed
from console.terminal import tell
from supervision import limits
from supervision.contract.request import RunRequest, parse_request
from supervision.store_keys import upload_key

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Asked:
    """A valid request, and the uploads that it refers to and that are not stored yet."""

    request: RunRequest
    uploads: list[bytes] = field(default_factory=list)

    async def store_uploads(self, store: ArtifactStore) -> None:
        """Stores the attached files; ArtifactUnavailable when the store is away."""
        for data in self.uploads:
            await store.put_upload(data)


def ask(
    goal: str | None,
    goal_file: Path | None,
    request_file: Path | None,
    attach: list[Path],
    fields: dict[str, Any],
    parts: dict[str, dict[str, Any]],
    answer_schema: Path | None = None,
) -> Asked:
    """The request out of a file, the goal and single fields, the latter ones first. None is "not given".

    `parts` are single fields of fields that are objects, such as `budget`.

    Raises SupervisionError `InvalidRequest` and CommandFailed; nothing is stored or started.
    """
    asked = _object_file(request_file) if request_file else {}
    text = _goal(goal, goal_file)
    if text is not None:
        asked["goal"] = text
    if "goal" not in asked:
        raise CommandFailed(
            BAD_INPUT, 'no goal: say what to find out, as in `python starter.py run "How has ... changed?"`'
        )
    asked |= {name: value for name, value in fields.items() if value is not None}
    for whole, part in parts.items():
        if chosen := {name: value for name, value in part.items() if value is not None}:
            asked[whole] = {**_object(asked.get(whole)), **chosen}
    if answer_schema is not None:
        asked["answer_schema"] = _object_file(answer_schema, '{"type": "object", "properties": {...}}')
    uploads = [read_text_file(path) for path in attach]
    if attach:
        refs = [upload_key(hashlib.sha256(data).hexdigest()) for data in uploads]
        named = [{"name": path.name, "ref": ref} for path, ref in zip(attach, refs, strict=True)]
        asked["attachments"] = [*_list(asked.get("attachments")), *named]
    request = parse_request(asked)
    if found := _CONTROL.search(request.goal):
        raise CommandFailed(BAD_INPUT, f"the goal holds a control character (U+{ord(found[0]):04X}): remove it")
    return Asked(request, uploads)


async def put_file(store: ArtifactStore, path: Path) -> int:
    """Stores a text file and prints its reference, alone on standard output."""
    tell(await store.put_upload(read_text_file(path)))
    return DONE


def read_text_file(path: Path) -> bytes:
    """The bytes of a UTF-8 text file within the store's size; CommandFailed for anything else."""
    try:
        with path.open("rb") as file:
            data = file.read(limits.ARTIFACT_BYTES + 1)
    except OSError as error:
        raise CommandFailed(BAD_INPUT, f"{path} can't be read: {error.strerror}") from error
    if len(data) > limits.ARTIFACT_BYTES:
        raise CommandFailed(BAD_INPUT, f"{path} is larger than {limits.ARTIFACT_BYTES} bytes: attach a part of it")
    if _text(data) is None:
        raise CommandFailed(BAD_INPUT, f"{path} is not UTF-8 text: worker agents read text only, so convert it first")
    return data


def check_run_id(run_id: str) -> str:
    """The id, if it may name a run; CommandFailed otherwise."""
    if (
        not run_id.strip()
        or not run_id.isprintable()
        or len(run_id.encode("utf-8", "replace")) > console_limits.RUN_ID_BYTES
    ):
        raise CommandFailed(
            BAD_INPUT, f"a run id needs 1 to {console_limits.RUN_ID_BYTES} bytes of printable text: choose another --id"
        )
    return run_id


def _goal(goal: str | None, file: Path | None) -> str | None:
    if goal is not None and file is not None:
        raise CommandFailed(BAD_INPUT, "the goal is given twice: use either GOAL or --goal-file")
    if file is not None:
        return _decoded(read_text_file(file), str(file))
    if goal == "-":
        return _decoded(sys.stdin.buffer.read(limits.ARTIFACT_BYTES), "standard input")
    return goal


def _decoded(data: bytes, where: str) -> str:
    text = _text(data)
    if text is None:
        raise CommandFailed(BAD_INPUT, f"{where} is not UTF-8 text")
    return text.strip()


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _object_file(path: Path, example: str = '{"goal": "..."}') -> dict[str, Any]:
    try:
        value = json.loads(read_text_file(path))
    except ValueError as error:
        raise CommandFailed(BAD_INPUT, f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CommandFailed(BAD_INPUT, f"{path} must hold an object such as {example}")
    return value


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
