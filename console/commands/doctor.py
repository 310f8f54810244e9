"""The command `doctor`: one row for each thing that a run needs, with the fix if something is wrong."""

import asyncio
import http.client
import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

import typer
from rich.text import Text
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.run.notices import UNREDIRECTED
from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from activities.store.spending import spent_on
from console.base.command import DONE, FAILED, Access, endpoint, hint, server_address, worker_hint
from console.base.terminal import Report, console, counted, put, safe_line, wrapped
from console.commands.team_commands import offers, team_files, teams_report
from console.run.command_line import AsJson
from console.run.pollers import ACTIVITIES, SET_CURRENT, WORKFLOWS, builds, gone, limited, pollers, shown
from console.run.run_handle import RPC_TIMEOUT, RunHandle, roots
from console.run.standstill import PROVIDER_HELPS, causes_of, unanswered, worker_of
from runtime import search_attributes
from runtime.connection import ConnectionFailed
from runtime.settings import Settings
from supervision.base import limits
from supervision.base.queues import MODEL_QUEUE, OUTWARD_QUEUE, TOOLS_QUEUE, WORKFLOW_QUEUE, pool_queue
from supervision.base.text import clean, money, one_line
from supervision.base.trust import is_exposed
from supervision.contract.model_choice import chain_of

Level = Literal["ok", "warning", "problem"]
_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAME_COLUMN, _TEXT_COLUMN = 9, 34  # where the names begin, and the texts
_QUEUE_CHARS = 60  # of a queue's name, which any client may choose
_RUNS = 100  # open ones that are looked at, newest first
_WORK = {WORKFLOW_QUEUE: "runs", MODEL_QUEUE: "model calls", TOOLS_QUEUE: "tools", OUTWARD_QUEUE: "outward tools"}
_NEARLY_FULL = 0.8  # of the workflows that Workers hold: time to start another one
_PROVIDER = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
_TIMEOUT = timedelta(seconds=3)  # a provider's list of models comes in well under a second
_REPLY_BYTES = 64 * 1024  # what it says of one model is 2 KB
_UNANSWERED = (OSError, http.client.HTTPException, ValueError)
_STANDIN = "the stand-in model, which extracts and does not reason"


@dataclass(frozen=True)
class CheckRow:
    """The state of one thing that a run needs."""

    level: Level
    name: str
    text: str
    fix: str = ""


async def examine(
    access: Access,
    quiet: Annotated[bool, typer.Option("--quiet", help="only warnings and problems")] = False,
    as_json: AsJson = False,
) -> Report:
    """Check everything that a run needs; exit code 1 if there is a problem."""
    rows = []  # each is shown as soon as it is known
    screen = console()
    async for row in _rows(access):
        if row.level != "ok" or not quiet:
            rows.append(row)
            put(screen, () if as_json else row_texts(row, screen.width))
    return Report(rows, lambda _: (), code=FAILED if any(row.level == "problem" for row in rows) else DONE)


def row_texts(row: CheckRow, width: int) -> Iterator[Text]:
    """Yields a row as lines in columns, which are left for a command that is too long for the last one."""
    room = width - _TEXT_COLUMN
    begins = Text.assemble((f"{row.level:<{_NAME_COLUMN}}", _STYLES[row.level]), row.name)
    begins.pad_right(max(1, _TEXT_COLUMN - begins.cell_len))
    for text in [*wrapped(row.text, room, ""), *wrapped(row.fix, room, "dim")]:
        further_left = max(0, width - text.cell_len)  # a long command
        begins.truncate(min(_TEXT_COLUMN, further_left) if not begins.plain.strip() else _TEXT_COLUMN)
        yield Text.assemble(begins, text)
        begins = Text(" " * _TEXT_COLUMN)


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    async for row in model_rows(access.settings):
        yield row
    yield _notices(access.settings.notice_words)
    async for row in _teams(access.settings):
        yield row
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    store_id = None
    try:
        store = await access.store()
        store_id = await store.identity()
        keys = access.settings.keys
        sealed = f", encrypted with key {keys.names[0]}" if keys else ""
        yield CheckRow("ok", "artifact store", f"{store.url}, id {store_id}{sealed}")
        if ceiling := access.settings.daily_usd:
            yield await _today(store, ceiling)
    except (ArtifactUnavailable, ValueError) as error:
        url = access.settings.artifacts_url
        fix = "create that bucket, check its credentials," if "://" in url else f"make {url} a folder of yours,"
        text = f"{fix} or let SUPERVISOR_ARTIFACTS_URL name another one"
        yield CheckRow("problem", "artifact store", str(error), text)
    try:
        async for row in server_rows(client, store_id, access.settings.teams_folders):
            yield row
    except RPCError as error:
        yield CheckRow("problem", "server", f"it stopped answering: {error.message}")


async def _today(store: ArtifactStore, ceiling: float) -> CheckRow:
    """Returns what Workers have spent today, by this environment's ceiling."""
    spent = await spent_on(store, datetime.now(UTC).date())
    text = f"{money(spent)} of {money(ceiling)} spent since 00:00 UTC by Workers that have a ceiling"
    if spent < ceiling:
        return CheckRow("ok", "spend of the day", text)
    fix = "runs wait until 00:00 UTC: start Workers with a higher SUPERVISOR_DAILY_USD to continue before"
    return CheckRow("problem", "spend of the day", text, fix)


def _notices(words: list[str]) -> CheckRow:
    """Returns a row on the setting that Workers with this environment have; a URL may hold a secret."""
    if not words:
        return CheckRow("ok", "notices", "none: SUPERVISOR_NOTIFY names no command and no URL")
    if "://" in words[0]:
        return CheckRow("ok", "notices", f"sent to {urlsplit(words[0]).hostname}")
    if shutil.which(words[0]) is None:
        fix = "let SUPERVISOR_NOTIFY name one, or install it where Workers run"
        return CheckRow("warning", "notices", f"there is no program '{words[0]}' here", fix)
    return CheckRow("ok", "notices", f"sent by the command {words[0]}")


async def _teams(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields a row for each team that can't be used or has such files, and for each MCP server, which is started.

    Other code of teams is not run.
    """
    checked: Any = (await teams_report(settings)).data
    wrong = {team["name"]: [team["error"]] if team["error"] else team["unread"] for team in checked}
    for name, (problem, *more) in ((name, problems) for name, problems in wrong.items() if problems):
        text = f"{problem.rstrip('.')}; and {counted(len(more), 'more file')}" if more else problem
        yield CheckRow("warning", f"team {name}", text, f"correct it; {hint('teams', name)} says more")
    for name in [team["name"] for team in checked if team.get("mcp_servers")]:
        for offer in await offers(team_files(settings), name):
            good = not offer.problems and not offer.changes
            fix = "" if good else f"{hint('teams', name, '--check')} says more"
            yield CheckRow("ok" if good else "warning", f"MCP {name}/{offer.server}", offer.summary, fix)
    if not any(wrong.values()):
        yield CheckRow("ok", "teams", f"{', '.join(wrong)}: their files can be read")


async def server_rows(client: Client, store_id: str | None, teams: list[Path]) -> AsyncIterator[CheckRow]:
    """Yields the rows; `store_id` is that of this environment's store. Raises RPCError if the server goes away."""
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    async for row in queue_rows(client, teams):
        yield row
    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        yield CheckRow("warning", "search attributes", warning, "runs work without: their phase is in the memo")
    if not missing:
        yield CheckRow("ok", "search attributes", "all usable")
    for found in (await _other_store(client, store_id), await _cached(client)):
        if found:
            yield found
    async for row in _open_runs(client):
        yield row


async def queue_rows(client: Client, teams: list[Path]) -> AsyncIterator[CheckRow]:
    """Yields whether each queue, build and pool of those team files has a Worker."""
    for queue, work in _WORK.items():
        kind = WORKFLOWS if queue == WORKFLOW_QUEUE else ACTIVITIES
        workers = await pollers(client, queue, kind)
        if not all(map(gone, workers)):
            yield CheckRow("ok", f"queue {queue}", f"{work} are served by {shown(workers)}")
        else:
            last = f", the last one was {shown(workers)}" if workers else ""
            fix = f"start one with {worker_hint(*worker_of(queue)[1])}"
            level: Level = "warning" if queue == OUTWARD_QUEUE else "problem"  # few teams have such tools
            yield CheckRow(level, f"queue {queue}", f"no Worker serves {work}{last}", fix)
    async for row in _builds(client):
        yield row
    if why := await limited(client, MODEL_QUEUE):
        yield CheckRow("ok", "rate of model calls", why)
    from activities.teams.team_files import roles_of_teams  # loads the tools' libraries: 0.3 s for some commands only

    roles = roles_of_teams(teams)
    for pool in dict.fromkeys(role.pool for role in roles.values() if role.pool):
        users = [place for place, role in roles.items() if role.pool == pool]
        workers = await pollers(client, pool_queue(pool), ACTIVITIES)
        if workers:
            rate = await limited(client, pool_queue(pool))
            yield CheckRow("ok", f"pool {pool}", f"served by {shown(workers)}" + (f"; {rate}" if rate else ""))
        else:
            tools_alone = () if any(roles[user].pool_model for user in users) else ("--roles", "tools")
            fix = f"start one with {worker_hint('--pool', pool, *tools_alone)}"
            yield CheckRow("warning", f"pool {pool}", f"no Worker, and {', '.join(users)} needs one", fix)


async def _builds(client: Client) -> AsyncIterator[CheckRow]:
    known, why = await builds(client)
    for build in known:
        if not build.served and (build.current or build.open):
            what = "new runs wait for it" if build.current else "runs that began with it are open"
            fix = f"start one with {worker_hint(build=build.build_id)}"
            yield CheckRow("problem", f"build {build.build_id}", f"no Worker serves it: {what}", fix)
    served = [build for build in known if build.served]
    if why:
        yield CheckRow("problem", "builds", why, SET_CURRENT)
    elif served:
        words = (b.build_id + " (current)" * b.current + " (runs of it are open)" * b.open for b in served)
        yield CheckRow("ok", "builds", ", ".join(words))


async def _cached(client: Client) -> CheckRow | None:
    """Returns how many open workflows there are for each Worker: beyond its cache each task replays a history."""
    workers = sum(not gone(worker) for worker in await pollers(client, WORKFLOW_QUEUE, WORKFLOWS))
    if not workers:
        return None
    query = f"TaskQueue = '{WORKFLOW_QUEUE}' AND ExecutionStatus = 'Running'"
    opened = (await client.count_workflows(query, rpc_timeout=RPC_TIMEOUT)).count
    each = "which holds" if workers == 1 else "each of which holds"
    text = f"{opened:,} on {counted(workers, 'Worker')}, {each} {limits.CACHED_WORKFLOWS:,} of them in its cache"
    if opened < _NEARLY_FULL * limits.CACHED_WORKFLOWS * workers:
        return CheckRow("ok", "open workflows", text)
    fix = f"start another Worker with {worker_hint()}: beyond the cache each task replays a whole history"
    return CheckRow("warning", "open workflows", text, fix)


async def _other_store(client: Client, store_id: str | None) -> CheckRow | None:
    """Returns a problem if the newest run uses another artifact store than this environment."""
    for execution in await roots(client, 1):
        used = await RunHandle(client, execution.id).recorded_store()
        if used and store_id and used != store_id:
            text = f"run '{execution.id}' uses the store {used}, this environment another one"
            fix = "set SUPERVISOR_ARTIFACTS_URL to the same store in every process"
            return CheckRow("problem", "artifact store", text, fix)
    return None


async def _open_runs(client: Client) -> AsyncIterator[CheckRow]:
    """Yields a row for each open run that stands still, and one that counts the others."""
    looked_at, still = 0, 0
    for execution in await roots(client, _RUNS, "Running"):
        run = RunHandle(client, execution.id)
        if execution.task_queue != WORKFLOW_QUEUE:
            text = f"'{run.id}' is on queue '{safe_line(execution.task_queue, _QUEUE_CHARS)}', which is not ours"
            yield CheckRow("ok", "open run", text)
            continue
        looked_at += 1
        causes = await causes_of(run, await run.describe())
        still += bool(causes)
        for cause in causes:
            helps = PROVIDER_HELPS if cause.helps == unanswered() else cause.helps  # the first row says if it does
            fix = f"{helps}; {hint('status', run.id)} says more"
            level: Level = "warning" if cause.waits_for == "person" else "problem"
            yield CheckRow(level, "open run", f"'{run.id}': {cause.cause}", fix)
    if not still:
        yield CheckRow("ok", "open runs", f"{looked_at}, none of them stands still")


async def model_rows(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields whether the model endpoint of this environment answers, then what it says of the configured models."""
    address = endpoint(settings)
    if address is None:
        text = "this environment names no model, so Workers started in it can't make model calls"
        fix = "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where Workers run"
        yield CheckRow("warning", "model", text, fix)
        return
    row = await _endpoint_row(settings, address)
    yield row
    if row.level != "ok":
        return
    users = _configured(settings)
    replies = await asyncio.gather(*(_asked(settings, model) for model in users))
    rows = [_listed_row(model, users[model], *reply) for model, reply in zip(users, replies, strict=True)]
    nothing = CheckRow("ok", "models", f"the endpoint does not say what {', '.join(users)} can do")
    for listed in [row for row in rows if row] or [nothing]:
        yield listed


async def _endpoint_row(settings: Settings, address: str) -> CheckRow:
    name = f"{_STANDIN}, at {address}" if settings.model == "standin" else address
    begun = time.monotonic()
    try:
        status, _ = await asyncio.to_thread(_get, settings, "/v1/models?limit=1")
    except _UNANSWERED as error:
        where = "start it, or correct ANTHROPIC_BASE_URL" if settings.anthropic_base_url else "check the network"
        return CheckRow("problem", "model", f"{name}: {_reason(error)}", where)
    took = f"{(time.monotonic() - begun) * 1000:.0f} ms"
    if status in (401, 403):
        fix = "check ANTHROPIC_API_KEY and what the key may do, here and where Workers run"
        return CheckRow("problem", "model", f"{name}: it refuses the credential ({status})", fix)
    if status >= 500:
        return CheckRow("warning", "model", f"{name}: it answers with {status}", "runs wait until it answers")
    if settings.model == "standin":
        return CheckRow("warning", "model", f"{name}; it answers in {took}")
    return CheckRow("ok", "model", f"{name} answers in {took}, as seen from here")


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "the connection is refused"
    if isinstance(cause, TimeoutError):
        return f"no answer within {_TIMEOUT.total_seconds():g} s"
    return f"it can't be reached ({one_line(clean(str(cause)), limits.SENTENCE_BYTES)})"


def _configured(settings: Settings) -> dict[str, list[tuple[str, str]]]:
    """Returns the models that are configured, with who uses each and where that is written."""
    from activities.teams.team_files import roles_of_teams  # loads the tools' libraries: 0.3 s for some commands only

    users: dict[str, list[tuple[str, str]]] = {}
    for setting, variable, who in (
        (settings.supervisor_model, "SUPERVISOR_SUPERVISOR_MODEL", "supervisors"),
        (settings.worker_model, "SUPERVISOR_WORKER_MODEL", "worker agents"),
    ):
        for model in chain_of(setting):
            users.setdefault(model, []).append((who, variable))
    for place, role in roles_of_teams(settings.teams_folders).items():
        for model in role.model or []:
            users.setdefault(model, []).append((place, f"`model` of the role {place}"))
    return users


def _listed_row(model: str, users: list[tuple[str, str]], status: int, listed: dict[str, Any]) -> CheckRow | None:
    """Returns what the endpoint says of a model; None if it says nothing."""
    name = f"{model}, for {', '.join(who for who, _ in users)}"
    fix = f"name another one: {', '.join(where for _, where in users)}"
    error = listed.get("error")
    if status == 404 and isinstance(error, dict) and error.get("type") == "not_found_error":
        return CheckRow("problem", "models", f"{name}: the provider has no model of that name", fix)
    taken = listed.get("max_input_tokens")
    if status != 200 or type(taken) is not int:
        return None
    return CheckRow("ok", "models", f"{name}: takes {taken:,} tokens")


async def _asked(settings: Settings, model: str) -> tuple[int, dict[str, Any]]:
    """Returns what the list of models says of one; status 0 if there is no answer."""
    try:
        return await asyncio.to_thread(_get, settings, f"/v1/models/{quote(model, safe='')}")
    except _UNANSWERED:
        return 0, {}


def _get(settings: Settings, path: str) -> tuple[int, dict[str, Any]]:
    """Returns the status of a reply and its JSON object, empty if it was none. Raises _UNANSWERED."""
    base = (settings.anthropic_base_url or _PROVIDER).rstrip("/")
    request = urllib.request.Request(f"{base}{path}", headers={"anthropic-version": _API_VERSION})
    if settings.model != "standin" and (settings.model_plain_http or not is_exposed(base)):
        if key := settings.secret("anthropic_api_key"):
            request.add_header("x-api-key", key)
        elif token := settings.secret("anthropic_auth_token"):
            request.add_header("authorization", f"Bearer {token}")
    try:
        reply = UNREDIRECTED.open(request, timeout=_TIMEOUT.total_seconds())
    except urllib.error.HTTPError as answer:
        reply = answer
    with reply:
        data = reply.read(_REPLY_BYTES)
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        read = {}
    return int(reply.status), read if isinstance(read, dict) else {}
