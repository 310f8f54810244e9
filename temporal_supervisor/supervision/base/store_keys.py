"""Names of stored objects and of model calls: the keys of the store, the value of the call header.

    store-id                                        the store's random id
    <run>/team.<sha256>                             a team as frozen for the run
    <run>/grant.<sha256>                            the grant of a supervisor and its worker agents
    <run>/begun.run                                 what a run began with, for runs that take
    findings from it <run>/latest.plan                               where its latest plan is, for
    the same <run>/ended.<workflow run id>                   where the result and trace of an ended
    run are <run>/<first run id>/<workflow id>/<step>/<sha256>   one model call: conversation entry
    and journal in one <run>/outputs/<sha256>                          goal, plans, tool outputs,
    findings, answers, result, trace <run>/started/<a call's id>.*                   the beginning
    and the result of a tool call with effects <eval>/score.<question>                         the
    score of a question of an eval <eval>/scores.table                             all that an eval
    has come to <eval>/opinion.<question>       what a model thinks of an answer, if it was asked
    uploads/<sha256>                                texts that users stored before any
    run, see `starter.py put` stats/<team>/<time and run>                     what a finished run
    took: the newest 200 of each team spend/<day>/runs/<run>                          what a run
    that ended on that day has cost spend/<day>/workers/<random id>                 what a Worker
    process has spent on that day, if there is a ceiling

All of it lies below a segment of its own for each namespace
(`activities.store.artifacts.open_store`). Every segment is an encoded id. Workflow run ids are
UUIDs, so they are never a name. A nested supervisor's names begin with its scope.
"""

import hashlib
import re
from collections.abc import Collection
from datetime import date
from typing import Literal
from urllib.parse import quote, unquote

KEY_SEGMENT_BYTES = 200  # file names hold 255 bytes, and the store adds a suffix while it writes
Named = Literal["team", "grant", "begun", "latest", "ended", "score", "scores", "given", "opinion"]
STORE_ID = "store-id"
SEALED = b"\x00sealed1"
"""What encrypted content begins with."""
_OUTPUTS = "outputs"
UPLOADS = "uploads"
STATS = "stats"
SPEND = "spend"
OF_NO_RUN = (UPLOADS, STATS, SPEND)
_STARTED = "started"
_OWN = (STORE_ID, *OF_NO_RUN, _OUTPUTS, _STARTED)
_DIGEST_CHARS = 64
# Leading, trailing or doubled: "." and ".." mean folders.
_LONELY_DOT = re.compile(r"^\.|\.(?=\.|$)")
_CUT_ESCAPE = re.compile(r"%.?$")
_SEGMENT = rf"[A-Za-z0-9._~%-]{{1,{KEY_SEGMENT_BYTES}}}"
_ADDRESSED = re.compile(rf"({UPLOADS}/|[^/]+/({_OUTPUTS}/|team\.|grant\.))(?P<digest>[^/]+)")
_KEY = re.compile(rf"{_SEGMENT}(/{_SEGMENT}){{0,4}}")


def encode(name: str) -> str:
    """Returns an id or name as one segment of a key, different for each id.

    The segment is percent-encoded and has at most 200 bytes. Longer ones keep a readable prefix and
    end in "~" and the SHA-256 of the id; "~" appears nowhere else. Raises ValueError if it is
    empty.
    """
    if not name:
        raise ValueError("an empty id names nothing")
    return _bounded(_percent(name, safe=""), name, _OWN)  # the layout's own names must stay free


def run_prefix(run_id: str) -> str:
    """Returns the prefix of a run's keys, with its slash, so that it matches no other run."""
    return f"{encode(run_id)}/"


def call_key(run_id: str, first_run_id: str, workflow_id: str, step: str, sha256: str) -> str:
    """Returns the key of a model call's conversation entry, which is also its journal entry.

    `first_run_id` is the root's, `sha256` the hash of the activity's input. An identical call has
    the same key in every execution, so that its reply is found again after a reset.
    """
    return "/".join(map(encode, (run_id, first_run_id, workflow_id, step, sha256)))


def calls_prefix(run_id: str, first_run_id: str) -> str:
    """Returns the prefix of the keys of a run's model calls, in all of its executions."""
    return f"{encode(run_id)}/{encode(first_run_id)}/"


def calls_of(run_id: str, first_run_id: str, workflow_id: str) -> tuple[str, str]:
    """Returns two key prefixes: of a workflow's own model calls, and of its children's."""
    prefix = calls_prefix(run_id, first_run_id)
    return f"{prefix}{encode(workflow_id)}/", prefix + _percent(f"{workflow_id}/", safe="")


def output_key(run_id: str, sha256: str) -> str:
    """Returns the key of content-addressed content; `sha256` is hexadecimal."""
    return f"{encode(run_id)}/{_OUTPUTS}/{encode(sha256)}"


def effect_keys(run_id: str, call: str) -> tuple[str, str]:
    """Returns the keys of a tool call's start mark and of its result, for a tool with effects."""
    prefix = f"{encode(run_id)}/{_STARTED}"
    return f"{prefix}/{encode(f'{call}.effect')}", f"{prefix}/{encode(f'{call}.result')}"


def named_key(kind: Named, run_id: str, name: str) -> str:
    """Returns the key of an object with a name, such as `<run>/team.<sha256>`."""
    return f"{encode(run_id)}/{encode(f'{kind}.{name}')}"


def is_named(kind: Named, ref: str, run_id: str | None = None) -> bool:
    """True if `ref` is the key of an object of that kind, in this run or, without one, in any."""
    segment, _, name = ref.partition("/")
    return (
        is_key(ref)
        and name.startswith(f"{kind}.")
        and (run_id is None or segment == encode(run_id))
    )


def stats_prefix(team: str) -> str:
    """Returns the prefix of the keys of usage statistics of a team's finished runs."""
    return f"{STATS}/{encode(team)}/"


def spend_prefix(day: date, kind: Literal["runs", "workers"]) -> str:
    """Returns the prefix of the spending of runs or Worker processes on a UTC day."""
    return f"{SPEND}/{day.isoformat()}/{kind}/"


def upload_key(sha256: str) -> str:
    """Returns the key of an upload, which belongs to no run; `sha256` is hexadecimal."""
    return f"{UPLOADS}/{encode(sha256)}"


def is_upload(ref: str) -> bool:
    """True if `ref` names an upload: the only objects that a request may refer to."""
    return is_key(ref) and ref.startswith(f"{UPLOADS}/") and ref.count("/") == 1


def digest_of(key: str) -> str | None:
    """Returns the hexadecimal SHA-256 in a content-addressed key; None for other keys."""
    match = _ADDRESSED.fullmatch(key)
    return match and match["digest"]


def run_of(key: str) -> str:
    """Returns the id of the run that `key` belongs to; a shortened id stays encoded.

    Raises ValueError if the key belongs to no run. To list the keys of a known run, use
    `run_prefix`.
    """
    segment, slash, _ = key.partition("/")
    if not is_key(segment) or not slash or segment in OF_NO_RUN:
        raise ValueError(f"'{key}' belongs to no run")
    return segment if "~" in segment else unquote(segment, errors="surrogatepass")


def is_key(text: str) -> bool:
    """True if `text` has the form of a key."""
    return _KEY.fullmatch(text) is not None and all(part.strip(".") for part in text.split("/"))


def call_header(workflow_id: str, step: str) -> str:
    """Returns the value of the header x-supervisor-call: `<workflow id>/<step>`.

    It is percent-encoded except for "/" and ":".
    """
    return "/".join(_bounded(_percent(part, safe="/:"), part) for part in (workflow_id, step))


def _percent(text: str, safe: str) -> str:
    encoded = quote(text, safe=safe, errors="surrogatepass").replace("~", "%7E")
    return _LONELY_DOT.sub("%2E", encoded)


def _bounded(encoded: str, text: str, reserved: Collection[str] = ()) -> str:
    if len(encoded) <= KEY_SEGMENT_BYTES and encoded not in reserved:
        return encoded
    head = _CUT_ESCAPE.sub("", encoded[: KEY_SEGMENT_BYTES - _DIGEST_CHARS - 1])
    return f"{head}~{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
