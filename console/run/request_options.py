"""The options of `run`, and the request that they make: checked here, so that nothing is started in vain."""

import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from activities.store.artifacts import ArtifactStore
from console import console_limits
from console.command import BAD_INPUT, CommandFailed
from console.hints import EXAMPLE_GOAL, hint
from supervision import limits
from supervision.contract.request import RunRequest, parse_request
from supervision.store_keys import upload_key

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PLAN_EXAMPLE = '{"subtasks": [...]}'
_SCHEMA_EXAMPLE = '{"type": "object", "properties": {...}}'


@dataclass(frozen=True)
class PreparedRequest:
    """A valid request, and the uploads that it refers to and that are not stored yet."""

    request: RunRequest
    uploads: list[bytes] = field(default_factory=list)

    async def store_uploads(self, store: ArtifactStore) -> None:
        """Stores the attached files. Raises ArtifactUnavailable if the store is away."""
        for data in self.uploads:
            await store.put_upload(data)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run`; None is "not given". The fields are the parameters of the command."""

    goal: str | None = None
    goal_file: Path | None = None
    request: Path | None = None
    team: str | None = None
    strategy: str | None = None
    success: str | None = None
    max_subtasks: int | None = None
    max_parallel: int | None = None
    max_turns: int | None = None
    max_reviews: int | None = None
    max_replans: int | None = None
    max_depth: int | None = None
    incremental_synthesis: int | None = None
    effort: str | None = None
    subtask_timeout: str | None = None
    deadline: str | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    answer_schema: Path | None = None
    plan: Path | None = None
    supervisor_model: list[str] | None = None
    worker_model: list[str] | None = None
    attach: list[Path] | None = None
    run_id: str | None = None
    detach: bool = False
    as_json: bool = False
    queue_anyway: bool = False

    def as_request(self) -> PreparedRequest:
        """Returns the request: the fields of the request file, overridden one by one by the options given.

        Raises CommandFailed, or SupervisionError `InvalidRequest`; nothing is stored or started.
        """
        fields = _object_file(self.request) if self.request else {}
        goal = _goal(self.goal, self.goal_file)
        if goal is None and "goal" not in fields:
            raise CommandFailed(BAD_INPUT, f"no goal: say what to find out, as in {hint('run', EXAMPLE_GOAL)}")
        same = (
            *("team", "strategy", "success", "effort", "subtask_timeout", "deadline", "incremental_synthesis"),
            *("max_subtasks", "max_parallel", "max_turns", "max_reviews", "max_replans", "max_depth"),
        )
        fields |= _given(
            goal=goal,
            answer_schema=_object_file(self.answer_schema, _SCHEMA_EXAMPLE) if self.answer_schema else None,
            plan=_plan_file(self.plan) if self.plan else None,
            **{name: getattr(self, name) for name in same},
        )
        if models := _given(supervisor=self.supervisor_model or None, workers=self.worker_model or None):
            fields["models"] = {**_object(fields.get("models")), **models}
        if budget := _given(tokens=self.budget_tokens, usd=self.budget_usd):
            fields["budget"] = {**_object(fields.get("budget")), **budget}
        uploads = [read_text_file(path) for path in self.attach or []]
        if self.attach:
            refs = [upload_key(hashlib.sha256(data).hexdigest()) for data in uploads]
            named = [{"name": path.name, "ref": ref} for path, ref in zip(self.attach, refs, strict=True)]
            fields["attachments"] = [*_list(fields.get("attachments")), *named]
        request = parse_request(fields)
        if control := _CONTROL.search(request.goal):
            code = f"U+{ord(control[0]):04X}"
            raise CommandFailed(BAD_INPUT, f"the goal holds a control character ({code}): remove it")
        return PreparedRequest(request, uploads)


def read_text_file(path: Path) -> bytes:
    """Returns the content of a UTF-8 text file within the store's size. Raises CommandFailed for anything else."""
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
    """Returns the id. Raises CommandFailed if it can't name a run."""
    most = console_limits.RUN_ID_BYTES
    if not run_id.strip() or not run_id.isprintable() or len(run_id.encode("utf-8", "replace")) > most:
        raise CommandFailed(BAD_INPUT, f"a run id needs 1 to {most} bytes of printable text: choose another --id")
    return run_id


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _goal(goal: str | None, file: Path | None) -> str | None:
    if goal is not None and file is not None:
        raise CommandFailed(BAD_INPUT, "the goal is given twice: use either GOAL or --goal-file")
    if file is not None:
        return _decoded(read_text_file(file), str(file))
    if goal == "-":
        return _decoded(sys.stdin.buffer.read(limits.ARTIFACT_BYTES), "standard input")
    return goal


def _decoded(data: bytes, source: str) -> str:
    text = _text(data)
    if text is None:
        raise CommandFailed(BAD_INPUT, f"{source} is not UTF-8 text")
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


def _plan_file(path: Path) -> dict[str, Any]:
    """Returns a plan; what `plan --json` says of the run that it was made for is left out."""
    return {name: value for name, value in _object_file(path, _PLAN_EXAMPLE).items() if name not in ("run_id", "state")}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
