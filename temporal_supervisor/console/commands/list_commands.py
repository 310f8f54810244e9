"""The commands `list` and `spend`: the runs of a namespace, and their cost."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import typer
from temporalio.client import Client, WorkflowExecution

from activities.store.spending import run_spends
from temporal_supervisor.client import OWNER, inbox
from temporal_supervisor.console.base.command import Access, hint
from temporal_supervisor.console.base.terminal import Either, Remark, Report, ScreenRow, TextTable
from temporal_supervisor.console.run.found_runs import (
    STATUS,
    goal_in,
    list_roots,
    listed_facts,
    no_runs,
    recorded_request,
    short_id,
)
from temporal_supervisor.console.run.standstill import Standstill, causes_of
from temporal_supervisor.console.view.answer_text import why_partial
from temporal_supervisor.outcomes import is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base.store_keys import named_key, run_prefix
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.usage import Usage

_DESCRIBED_AT_ONCE = 16  # questions to the server at a time, while runs are listed
SpendBy = Literal["owner", "day", "team"]
RunState = Literal["running", "completed", "failed", "cancelled", "terminated", "timed out"]


async def list_report(
    access: Access,
    limit: Annotated[int, typer.Option(min=1, help="newest first")] = 50,
    state: Annotated[RunState | None, typer.Option(help="only such ones")] = None,
    team: Annotated[str | None, typer.Option(help="only those of this team")] = None,
    owner: Annotated[
        str | None,
        typer.Option(help="only those of this owner, of the request's metadata"),
    ] = None,
    of_eval: Annotated[str | None, typer.Option("--eval", help="only of this one")] = None,
    waiting: Annotated[
        bool,
        typer.Option("--waiting", help="only those that wait for a person"),
    ] = False,
) -> Report:
    """List the runs that the server knows."""
    client = await access.client()
    selects = bool(team or owner or waiting)
    status = _server_status(state) if state else None
    begins = f"{of_eval}/" if of_eval else ""
    executions = await list_roots(client, None if selects else limit, status, begins)

    if team:
        executions = [each for each in executions if await _team_of(each) == team]
    if owner:
        executions = [each for each in executions if _owner_of(each) == owner]
    if waiting:
        found = await inbox(client)
        waiting_ids = {*found.unanswered, *(item.run_id for item in found.items)}
        executions = [each for each in executions if each.id in waiting_ids]
    executions = executions[:limit]

    looks = asyncio.Semaphore(_DESCRIBED_AT_ONCE)
    described = await asyncio.gather(*(_run_row(client, each, looks) for each in executions))
    rows = [row for row in described if state in (None, row["state"])]
    if of_eval:
        verdicts = await _verdicts(access, of_eval, [row["run_id"] for row in rows])
        for row in rows:
            row["verdict"] = verdicts.get(row["run_id"])
    if rows:
        return Report(rows, list(run_table(rows)))

    none = no_runs(client.namespace)
    if state or selects or of_eval:
        none = f"there is no such run in namespace '{client.namespace}': {hint('list')} shows all"
    return Report([], notes=[none])


def _server_status(state: RunState) -> str:
    """Returns the server's own word for the state of a run, such as `TimedOut`."""
    return "Canceled" if state == "cancelled" else state.title().replace(" ", "")


async def _team_of(execution: WorkflowExecution) -> str:
    _, team, _ = await listed_facts(execution)
    return team


def _owner_of(execution: WorkflowExecution) -> str | None:
    return execution.typed_search_attributes.get(OWNER)


async def _verdicts(access: Access, eval_id: str, run_ids: Sequence[str]) -> dict[str, str]:
    """Returns the known verdicts on runs of an eval, in words, by run id."""
    # these load the rules of scores, for this option only
    from temporal_supervisor.supervision.scores.score import Score
    from temporal_supervisor.supervision.scores.score_table import WORDS

    store = await access.store()
    keys = [named_key("score", eval_id, run_id.removeprefix(f"{eval_id}/")) for run_id in run_ids]
    run_of = dict(zip(keys, run_ids, strict=True))
    judged = [key for key in await store.list_keys(run_prefix(eval_id)) if key in run_of]
    scores = await store.read_all(judged, Score.model_validate_json)
    return {run_of[key]: WORDS[score.verdict] for key, score in scores.items()}


async def _run_row(
    client: Client,
    execution: WorkflowExecution,
    looks: asyncio.Semaphore,
) -> dict[str, Any]:
    """Returns the row of a run, with as much as can be read."""
    goal = ""
    partial = ""
    builds_on: list[str] = []
    causes: list[Standstill] = []

    # Any client may have written the request and the summary, and the run be deleted meanwhile.
    async with looks:
        with contextlib.suppress(Exception):
            run = Run(client, execution.id)
            # the latest one: a reset leaves others, which have ended
            execution = described = await run.describe()

            # The request comes first: the Web UI's form for a start copies another run's summary,
            # which is no text without the keys of a run that encrypts.
            request = await recorded_request(run)
            summary = await described.static_summary()
            goal = goal_in(request) or (summary if isinstance(summary, str) else "")
            named = request.get("reuse_from")
            if isinstance(named, list):
                builds_on = [str(each) for each in named]

            status = described.typed_search_attributes.get(STATUS)
            if is_open(described):
                causes = await causes_of(run, described)
            elif status == "partial" and state_word(described) == "completed":
                partial = why_partial(await run.handle.result())

    phase, team, usd = await listed_facts(execution)
    return {
        "run_id": execution.id,
        "goal": goal,
        "state": state_word(execution),
        "status": execution.typed_search_attributes.get(STATUS),
        "partial": partial or None,
        "reuse_from": builds_on,
        "phase": phase,
        "team": team,
        "started_at": execution.start_time.isoformat(),
        "usd": usd,
        "standstills": causes,
    }


def run_table(rows: Sequence[dict[str, Any]]) -> Iterator[ScreenRow]:
    """Yields the table of runs, then the waits of open ones."""
    cells = []
    for row in rows:
        started = datetime.fromisoformat(row["started_at"]).astimezone()
        cost = "" if row["usd"] is None else money(row["usd"])
        name = Either(short_id(row["run_id"]), row["run_id"])
        state = _state_cell(row)
        cells.append([state, f"{started:%m-%d %H:%M}", cost, row["team"], name, row["goal"]])
    yield TextTable(["state", "started", "cost", "team", "run", "goal"], cells, wide="goal")

    for row in rows:
        for cause in row["standstills"]:
            yield Remark(f"⏸ {short_id(row['run_id'])}: {cause.line}", "yellow")
    for row in rows:
        if row["reuse_from"]:
            origins = ", ".join(map(short_id, row["reuse_from"]))
            words = f"↳ {short_id(row['run_id'])} builds on {origins}"
            yield Remark(words, "dim", is_one_row=True)
    for row in rows:
        if row["partial"]:
            why = f"◐ {short_id(row['run_id'])}: {row['partial']}"
            yield Remark(why, "dim", is_one_row=True)


def _state_cell(row: dict[str, Any]) -> str:
    """Returns the state of a run with its phase, and with its verdict in an eval."""
    state = str(row["state"])
    if row["status"] == "partial":
        state = "partial"
    elif state == "running" and row["phase"]:
        state = f"{state}, {row['phase']}"
    verdict = row.get("verdict")
    return f"{state}: {verdict}" if verdict else state


async def spend_report(
    access: Access, days: Annotated[int, typer.Option(min=1, max=3650)] = 30, by: SpendBy = "day"
) -> Report:
    """Show what ended runs have cost: dollars, tokens, runs."""
    today = datetime.now(UTC).date()
    spent = await run_spends(await access.store(), days, today)
    if not spent:
        return Report([], notes=[f"no run of this namespace ended in the last {days} days"])

    usages: dict[str, list[Usage]] = {}
    for run in spent:
        names = {"owner": run.owner, "day": f"{run.ended_at:%Y-%m-%d}", "team": run.team}
        usages.setdefault(names[by], []).append(run.usage)
    rows = [(name, len(each), sum(each, Usage())) for name, each in sorted(usages.items())]
    if by != "day":
        rows.sort(key=lambda row: row[2].usd or 0.0, reverse=True)  # equal ones stay by name

    data = []
    shown = []
    total = sum((run.usage for run in spent), Usage())
    for name, runs, usage in rows:
        data.append({by: name, "runs": runs, "tokens": usage.tokens, "usd": usage.usd})
        shown.append((name or "-", f"{runs}", f"{usage.tokens:,}", money(usage.usd)))
    shown.append(("all", f"{len(spent)}", f"{total.tokens:,}", money(total.usd)))
    return Report(data, [TextTable([by], shown, numbers=["runs", "tokens", "cost"])])
