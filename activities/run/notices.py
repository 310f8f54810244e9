"""Notices: one line of JSON about a run for the operator's command or URL, without its contents."""

import asyncio
import contextlib
import html
import json
import os
import shlex
import shutil
import signal
import urllib.error
import urllib.request
from typing import Any

from temporalio import activity

from activities.contracts.run_contracts import Notice
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.run.waits import AWAITED

_PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_OWN_PREFIX = "NOTIFY_"  # of variables that are meant for the command


class NotSent(Exception):
    """A notice that did not arrive."""


class NoticeActivities:
    """The activity that sends notices, as this process is configured."""

    def __init__(self, words: list[str]) -> None:
        """`words` is a command or a URL. Raises ValueError if the program does not exist."""
        self._words = words
        self._is_url = bool(words) and "://" in words[0]
        if words and not self._is_url and shutil.which(words[0]) is None:
            raise ValueError(f"SUPERVISOR_NOTIFY: there is no program '{words[0]}' here")

    @activity.defn
    async def notify(self, notice: Notice) -> None:
        """Sends a notice. Raises NotSent."""
        info = activity.info()
        line = line_of(notice, f"{info.workflow_run_id}/{info.activity_id}")
        try:
            async with asyncio.timeout(limits.NOTICE_TIME.total_seconds()):
                if not self._words:
                    raise NotSent("this Worker has no SUPERVISOR_NOTIFY")  # another one may have it
                if self._is_url:
                    await asyncio.to_thread(_post, self._words[0], line)
                else:
                    await _run_command(self._words, line)
        except TimeoutError:
            seconds = limits.NOTICE_TIME.total_seconds()
            raise NotSent(f"SUPERVISOR_NOTIFY takes longer than {seconds:g} s") from None


def line_of(notice: Notice, key: str) -> bytes:
    """Returns the body of a notice; `key` is the same in all attempts."""
    run_id = notice.run.run_id
    command = "show" if notice.id else "status"
    if notice.kind == "ended":
        command = "result"
        what = f"has ended: {notice.error or notice.status}"
    elif notice.kind == "paused":
        what = "is paused"
    else:
        what = f"waits for {AWAITED[notice.kind]}"
    ids = [run_id, notice.id] if notice.id else [run_id]
    show = shlex.join(["temporal-supervisor", command, *ids])
    words = f"{one_line(run_id, limits.LINE_BYTES)} {what} ({one_line(show, limits.LINE_BYTES)})"
    # Chat webhooks show it: there <!channel> would call people, and <URL|words> is a link.
    text = html.escape(words, quote=False)
    body = {
        "run_id": run_id,
        **notice.model_dump(exclude={"run"}),
        "show": show,
        "text": text,
        "key": key,
    }
    return json.dumps(body).encode() + b"\n"


async def _run_command(command: list[str], line: bytes) -> None:
    """Runs the command with the line as its input, without the Worker's secrets."""
    environ = {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith(_OWN_PREFIX)}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=environ,
        start_new_session=True,
    )
    try:
        await process.communicate(line)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise NotSent(f"the command of SUPERVISOR_NOTIFY ended with exit code {process.returncode}")


class _Unredirected(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follows no redirect, so that secrets reach only the configured URL."""


UNREDIRECTED = urllib.request.build_opener(_Unredirected)


def _post(url: str, line: bytes) -> None:
    request = urllib.request.Request(url, line, {"Content-Type": "application/json"})
    try:
        with UNREDIRECTED.open(request, timeout=limits.NOTICE_TIME.total_seconds()):
            pass
    except urllib.error.HTTPError as error:
        raise NotSent(f"the URL of SUPERVISOR_NOTIFY answered with status {error.code}") from None
    except OSError as error:  # its text may quote the URL
        kind = type(error).__name__
        raise NotSent(f"the URL of SUPERVISOR_NOTIFY can't be reached ({kind})") from None
