"""The first page: the waits for people, and the runs with state, cost and age."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from temporal_supervisor.client import Item, inbox
from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed
from temporal_supervisor.console.commands.list_commands import RunState, list_report
from temporal_supervisor.console.page.page_site import place_of, short_id_of, site_of
from temporal_supervisor.console.page.wait_cards import cards_text
from temporal_supervisor.console.run.pollers import read_pollers
from temporal_supervisor.console.run.standstill import Standstill
from temporal_supervisor.supervision.base.queues import WORKFLOW_QUEUE

_SHOWN = 30
_MOST_SHOWN = 500
STATES = get_args(RunState)


async def runs_page(request: Request) -> Response:
    """Shows the runs that match the reader's filter, those that wait for people first."""
    site = site_of(request)
    asked = request.query_params
    state = asked.get("state", "")
    count = min(_number(asked.get("count", "")), _MOST_SHOWN)
    report = await list_report(
        site.access,
        limit=count,
        state=cast(RunState, state) if state in STATES else None,
        team=asked.get("team") or None,
        owner=asked.get("owner") or None,
        waiting=asked.get("waiting") == "1",
    )
    client = await site.access.client()
    found = await inbox(client)
    rows = [_row(row) for row in cast(list[dict[str, Any]], report.data)]
    words = asked.get("words", "").casefold()
    shown = [row for row in rows if words in f"{row['goal']} {row['run_id']}".casefold()]
    return site.html(
        "runs.html.j2",
        title="Runs",
        cards=await cards_text(site, found.items, "/"),
        waits=len(found.items),
        key=_key_of(found.items),
        unanswered=found.unanswered,
        rows=shown,
        notes=[note.replace("`", "") for note in report.notes],
        asked=asked,
        states=STATES,
        more=count * 2 if len(rows) == count < _MOST_SHOWN else 0,
        has_worker=bool((await read_pollers(client, WORKFLOW_QUEUE)).workers),
    )


async def inbox_part(request: Request) -> Response:
    """Returns the cards for our script; empty if it has them already."""
    site = site_of(request)
    found = await inbox(await site.access.client())
    key = _key_of(found.items)
    if request.query_params.get("known") == key:
        return Response(status_code=204)
    cards = await cards_text(site, found.items, "/")
    part = site.html("inbox.html.j2", cards=cards, waits=len(found.items))
    part.headers["X-Inbox"] = key
    return part


def _key_of(items: Sequence[Item]) -> str:
    """Returns a key for a list of waits, which changes with each of them."""
    parts = [f"{item.run_id} {item.wait.id} {item.wait.sha256}" for item in items]
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    is_partial = row["status"] == "partial" and row["state"] == "completed"
    state = "partial" if is_partial else row["state"]
    # what a person can do is on the card above, with its commands
    causes = [_shown_cause(cause) for cause in row["standstills"]]
    return {
        **row,
        "shown_state": state,
        "causes": causes,
        "place": place_of(row["run_id"]),
        "short": short_id_of(row["run_id"]),
    }


def _shown_cause(cause: Standstill) -> tuple[str, str]:
    """Returns the words of a cause, and its time, which the page shows in local time."""
    timeless = replace(cause, since=None)
    words = timeless.line.replace("`", "")
    if cause.waits_for == "person":
        words = timeless.cause
    return words, cause.since or ""


def _number(given: str) -> int:
    if given and not given.isdecimal():
        raise CommandFailed(BAD_INPUT, f"'{given}' is no number of runs")
    return max(1, int(given or _SHOWN))
