"""Reading runs afterwards: from workers, from the server alone, from the store alone."""

from pathlib import Path

from temporal_supervisor.console.run.run_outcome import events_of
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.status import Status, TraceEvent
from tests.console.conftest import GOAL, RUN, Cli, Model, worker_of


async def test_status_and_plan_are_the_contracts_json(read: Cli) -> None:
    shown = await read.json("status", RUN)
    status = Status.model_validate(shown)
    assert shown["started_at"] < shown["closed_at"]
    assert "web" in shown
    plan = Plan.model_validate_json((await read("plan", RUN, "--json")).out)
    assert status.phase == "done"
    assert [s.id for s in plan.subtasks] == [s.id for s in status.subtasks]


async def test_the_trace_tells_the_story_in_order_with_turns_and_tools(read: Cli) -> None:
    events = [TraceEvent.model_validate(item) for item in await read.json("trace", RUN)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    of_t1 = [event.type for event in events if event.subtask_id == "t1"]
    assert (of_t1[0], of_t1[-1]) == ("subtask_started", "subtask_completed")
    assert {"turn", "tool"} == set(of_t1[1:-1])


async def test_the_list_shows_runs_and_no_worker_agents(read: Cli) -> None:
    done = await read("list")
    row = next(line for line in done.out.splitlines() if f" {RUN} " in line)
    for word in ("completed", "almanac", GOAL):
        assert word in row
    assert f"{RUN}/" not in done.out


async def test_without_a_worker_the_trace_comes_from_the_history_and_the_plan_from_the_store(
    base: dict[str, str], standin: Model, tmp_path: Path
) -> None:
    async with EmbeddedServer(shared=False, headless=True) as info:
        cli = Cli({**base, "TEMPORAL_ADDRESS": info.address}, tmp_path)
        async with worker_of(cli.environ, standin, tmp_path):
            assert (await cli("run", GOAL, "--id", RUN)).code == 0
            plan = await cli("plan", RUN, "--json")
            assert len(Plan.model_validate_json(plan.out).subtasks) == 3
            assert "after t" in (await cli("plan", RUN)).out
        assert (await cli("plan", RUN, "--json")).out == plan.out
        elsewhere = await cli.with_environ(SUPERVISOR_ARTIFACTS_URL=str(tmp_path / "other"))("plan", RUN)
        assert (elsewhere.code, elsewhere.out) == (3, "")
        shown = [TraceEvent.model_validate(item) for item in await cli.json("trace", RUN)]
        replayed = await events_of(Run(await connect(address=info.address), RUN), RUN)
        own = [event for event in shown if event.type not in ("turn", "tool")]
        told = [(event.at, event.type, {**event.data, "head": None}) for event in own]
        assert [(event.at, event.type, {**event.data, "head": None}) for event in replayed] == told


async def test_without_the_store_the_result_still_comes_from_the_server(read: Cli, tmp_path: Path) -> None:
    elsewhere = read.with_environ(SUPERVISOR_ARTIFACTS_URL=str(tmp_path / "other"))
    assert (await elsewhere("result", RUN)).code == 0
    missing = await elsewhere.refused("result", RUN, "--full")
    assert "has no object" in missing
    assert "the run uses another store" in missing


async def test_the_doctor_finds_all_well_where_all_is_well_and_another_store(
    read: Cli, standin: Model, tmp_path: Path
) -> None:
    done = await read.out("doctor")
    for words in ("artifact store", "version", "queue supervisor-outward ", "search attributes", "open runs"):
        assert words in done
    rows = await read.with_environ(ANTHROPIC_BASE_URL=standin.url).json("doctor")
    assert {row["level"] for row in rows} == {"ok"}
    other = await read.with_environ(SUPERVISOR_ARTIFACTS_URL=str(tmp_path / "other"))("doctor")
    assert (other.code, "uses the store" in other.out, "SUPERVISOR_ARTIFACTS_URL" in other.out) == (1, True, True)
    assert "without an id: it is not mounted, or was emptied" in " ".join(other.out.split())
    assert not list((tmp_path / "other").rglob("store-id")), "only a run that begins gives a store its id"


async def test_the_doctor_names_what_is_missing(alone: Cli) -> None:
    done = await alone("doctor")
    assert done.code == 1
    assert "no Worker serves runs" in done.out
    assert "no Worker serves model calls" in done.out
    assert "ANTHROPIC_API_KEY" in done.out
    unreachable = await alone("--address", "127.0.0.1:1", "doctor")
    assert unreachable.code == 1
    assert "no Temporal server" in unreachable.out
