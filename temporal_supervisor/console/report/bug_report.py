"""`doctor --bundle`: one file for a bug report, without secrets and contents.

It has nothing that a user wrote, as others read it: no goal, prompt, answer, file name, run id,
host or path.
"""

import contextlib
import hashlib
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError

from temporal_supervisor.console.base.check_rows import CheckRow
from temporal_supervisor.console.run.found_runs import list_roots, listed_facts
from temporal_supervisor.messages import NoRun
from temporal_supervisor.outcomes import state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.process import PROGRAM
from temporal_supervisor.runtime.settings import Settings

_RUNS = 20  # the newest ones
_PACKAGES = ("temporalio", "anthropic", "pydantic", "duckdb", "obstore", "mcp", "opentelemetry-sdk")
_OF_USERS = ("open run", "team ")  # rows whose texts quote what users wrote
_HOST = re.compile(r"@[^\s,()]+")  # in the identity of a Worker
_PLAIN = (bool, int, float)
_NAMES = (
    "model",
    "model_structured",
    "model_ask",
    "model_prompts",
    "inline_teams",
    "call_header",
    "log_format",
)
_MODELS = ("supervisor_model", "worker_model", "model_without", "allowed_models")


async def bundle(
    settings: Settings,
    rows: Iterable[CheckRow],
    client: Client | None,
) -> dict[str, Any]:
    """Returns the content of the file; without a client it has nothing on runs."""
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "settings": shareable_settings(settings),
        "doctor": shareable_rows(rows),
        "runs": await _shareable_runs(client) if client else [],
    }


def _versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in (PROGRAM, *_PACKAGES)}
    return {"python": sys.version.split()[0], "system": platform.platform(), **packages}


def shareable_settings(settings: Settings) -> dict[str, Any]:
    """Returns the settings that differ from their defaults.

    Numbers, choices and model names are given. Of URLs only scheme and host are given, and other
    values only count as set.
    """
    names = sorted(settings.model_fields_set)
    return {name: _shareable(name, getattr(settings, name)) for name in names}


def _shareable(name: str, value: object) -> object:
    """Returns the value of a setting as others may read it."""
    if isinstance(value, _PLAIN) or value is None or name in (*_NAMES, *_MODELS):
        return value
    if not isinstance(value, str):  # a secret, a path
        return "set"
    parts = urlsplit(value)
    if not parts.scheme or not parts.hostname:
        return "set"
    is_local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    place = f"{parts.hostname}{parts.path}" if is_local else "a host"
    return f"{parts.scheme}://{place}"


def shareable_rows(rows: Iterable[CheckRow]) -> list[dict[str, str]]:
    """Returns the rows of `doctor`; for runs and teams only their number by level."""
    shared: list[dict[str, str]] = []
    of_users: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.name.startswith(_OF_USERS):
            of_users[_kind(row), row.level] += 1
        else:
            shared.append({"level": row.level, "name": row.name, "text": _without_names(row)})
    for (kind, level), count in of_users.items():
        shared.append({"level": level, "name": kind, "text": f"{count} such"})
    return shared


def _kind(row: CheckRow) -> str:
    return "open runs" if row.name.startswith("open run") else "teams"


def _without_names(row: CheckRow) -> str:
    """Returns the text of a row; empty if it may contain a path or a user's name."""
    is_plain = row.name.startswith(("queue", "search attributes", "builds", "speed", "window"))
    return _HOST.sub("@host", row.text) if is_plain else ""


async def _shareable_runs(client: Client) -> list[dict[str, Any]]:
    shared = []
    for execution in await list_roots(client, _RUNS):
        with contextlib.suppress(RPCError, NoRun):  # it was deleted just now
            described = await Run(client, execution.id).describe()
            shared.append(await _shareable_run(described))
    return shared


async def _shareable_run(described: WorkflowExecutionDescription) -> dict[str, Any]:
    """Returns the state of a run with hashed id, and the failures of its calls in flight."""
    phase, _, usd = await listed_facts(described)
    ended = described.close_time or datetime.now(UTC)
    task = described.raw_description.pending_workflow_task
    calls = described.raw_description.pending_activities
    failed = [call.last_failure for call in calls if call.attempt > 1]
    failures = [failure.application_failure_info.type for failure in failed]
    return {
        "id": hashlib.sha256(described.id.encode()).hexdigest()[:8],
        "state": state_word(described),
        "phase": phase,
        "usd": usd,
        "seconds": (ended - described.start_time).total_seconds(),
        "history": described.history_length,
        "failed_workflow_tasks": max(0, task.attempt - 1),
        "calls_in_flight": dict(Counter(call.activity_type.name for call in calls)),
        "failures_in_flight": dict(Counter(failures)),
    }
