"""The default team on its real data with the stand-in model: the figures in an answer come from the tables."""

import asyncio
import csv
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from console.demo import GOAL
from runtime.settings import BUILTIN_TEAMS
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from tests.serving import own_server, settings_for
from tests.standin.conftest import start as start_standin
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

PARAPHRASES = [
    "Between 1952 and 2007, by how much did life expectancy change in Rwanda and Botswana, and why the setbacks?",
    "Report on life expectancy in Botswana and Rwanda from 1952 to 2007: the change, and the causes of the setbacks.",
    "What happened to the life expectancy of Rwanda and Botswana since 1952 until 2007? Explain the setbacks.",
]


@pytest.fixture(scope="module")
async def data_client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Client, Path]]:
    """A client of a server whose Worker has a copy of the default team, and the folder of that copy's data."""
    folder = tmp_path_factory.mktemp("teams")
    shutil.copytree(BUILTIN_TEAMS / "default", folder / "default")
    process, url = await start_standin()
    settings = settings_for(url, tmp_path_factory.mktemp("artifacts"), teams_dir=folder, model="standin")
    async with own_server() as client, serving(client, settings):
        yield client, folder / "default" / "data"
    process.terminate()
    await process.wait()


async def ask(client: Client, run_id: str, goal: str) -> RunResult:
    request = RunRequest(goal=goal, max_reviews=0)
    result: RunResult = await client.execute_workflow(
        SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor"
    )
    assert result.status == "completed"
    return result


def figure(data: Path, country: str, year: str) -> str:
    with (data / "life_expectancy.csv").open(encoding="utf-8") as file:
        return next(
            row["life_expectancy_years"]
            for row in csv.DictReader(file)
            if (row["country"], row["year"]) == (country, year)
        )


async def test_a_goal_in_other_words_gets_the_same_figures(data_client: tuple[Client, Path], run_id: str) -> None:
    client, data = data_client
    asked = (ask(client, f"{run_id}-{number}", goal) for number, goal in enumerate(PARAPHRASES))
    for result in await asyncio.gather(*asked):
        for country in ("Botswana", "Rwanda"):
            for year in ("1952", "2007"):
                assert figure(data, country, year) in result.answer


async def test_changing_one_figure_in_the_data_changes_the_answer(
    data_client: tuple[Client, Path], run_id: str
) -> None:
    client, data = data_client
    before = await ask(client, f"{run_id}-before", GOAL)
    known = figure(data, "Rwanda", "2007")
    table = data / "life_expectancy.csv"
    original = table.read_text(encoding="utf-8")
    try:
        table.write_text(original.replace(f"Rwanda,Africa,2007,{known}", "Rwanda,Africa,2007,58.125"), encoding="utf-8")
        after = await ask(client, f"{run_id}-after", GOAL)
    finally:
        table.write_text(original, encoding="utf-8")
    assert "58.125" not in before.answer
    assert "58.125" in after.answer
    assert "a change of 18.1" in after.answer
