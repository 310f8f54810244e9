"""The team almanac's own prompts, tools and data with the stand-in's brain: its figures are those of the files."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from activities.prompts.agent_prompts import worker_request, worker_system
from activities.teams.team_files import LoadedTeam, TeamFiles
from activities.tools.tool import ToolContext
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.lookup.tables import example_query, parse_examples, parse_tables
from temporal_supervisor.standin.server.api_request import parse
from temporal_supervisor.supervision.contract.plan import Subtask

TEAMS = Path(__file__).parents[2] / "teams"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the team, to change a value in."""
    shutil.copytree(TEAMS / "almanac", tmp_path / "almanac")
    return tmp_path


@pytest.fixture(scope="module")
def bundled() -> TeamFiles:
    """The team as it is, loaded once."""
    return TeamFiles([TEAMS])


async def analyse(files: TeamFiles, question: str) -> tuple[str, list[str]]:
    """The figures' role works on a question: its last message and its queries."""
    loaded: LoadedTeam = await files.load("almanac")
    role = next(role for role in loaded.team.roles if any("query" in tool for tool in role.tools))
    subtask = Subtask(id="t1", role=role.name, description=f"Find the figures. Question: {question}")
    messages: list[dict[str, Any]] = [{"role": "user", "content": worker_request(subtask, [], [], {})}]
    queries: list[str] = []
    while True:
        body = {"model": "m", "max_tokens": 9000, "system": worker_system(role, 10, "2026-01-31"), "messages": messages}
        reply = think(parse({**json.loads(json.dumps(body)), "tools": loaded.toolbox.definitions(role.tools)}))
        calls = [block for block in reply.content if block["type"] == "tool_use"]
        if not calls:
            return reply.content[0]["text"], queries
        queries += [call["input"]["sql"] for call in calls if "sql" in call["input"]]
        runs = await asyncio.gather(
            *(loaded.toolbox.run(role, call["name"], call["input"], ToolContext()) for call in calls)
        )
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": run.text, "is_error": run.is_error}
            for call, run in zip(calls, runs, strict=True)
        ]
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]


async def test_one_changed_value_changes_the_answer(folder: Path) -> None:
    file = folder / "almanac" / "data" / "life_expectancy.csv"
    line = next(line for line in file.read_text().splitlines() if line.startswith("Norway,Europe,2007,"))
    value = line.split(",")[3]
    file.write_text(file.read_text().replace(line, line.replace(value, "91.25")))
    answer, _ = await analyse(TeamFiles([folder]), "How did life expectancy in Norway change between 1952 and 2007?")
    assert "91.25 (2007)" in answer
    assert value not in answer


JAPAN = "How did the life expectancy of Japan develop"


@pytest.mark.parametrize(
    ("question", "query", "figures"),
    [
        ("Which country had the highest life expectancy in 2007?", "FROM life_expectancy\n", "82.603"),
        ("What happened to US manufacturing employment between 2007 and 2010?", "FROM employment\n", "11528.7"),
        (
            f"{JAPAN}?",
            "IN ('Japan') AND year BETWEEN 1952 AND 2007",
            "(1952) to 82.603 (2007), a change of 19.57 (31.05 %)",
        ),
        (f"{JAPAN} since 1992?", "BETWEEN 1992 AND 2007", "79.36 (1992) to 82.603 (2007), a change of 3.24 (4.09 %)"),
    ],
)
async def test_each_table_answers_for_the_names_and_times_of_the_question(
    bundled: TeamFiles, question: str, query: str, figures: str
) -> None:
    answer, queries = await analyse(bundled, question)
    assert query in queries[0]
    assert figures in answer


async def test_what_a_subtask_writes_down_is_computed(bundled: TeamFiles) -> None:
    assert "12 * 4 = 48" in (await analyse(bundled, "How many are 12 * 4 boxes?"))[0]


async def test_every_example_of_the_team_answers_its_own_question(bundled: TeamFiles) -> None:
    loaded = await bundled.load("almanac")
    role = next(role for role in loaded.team.roles if "list_tables" in role.tools)
    listing = await loaded.toolbox.run(role, "list_tables", {}, ToolContext())
    examples = parse_examples(listing.text)
    assert len(examples) > 5
    for example in examples:
        assert example_query(parse_tables(listing.text), examples, example.question) == example.sql
        result = await loaded.toolbox.run(role, "query_data", {"sql": example.sql}, ToolContext())
        assert "| --- |" in result.text, result.text
        assert not result.text.endswith("\n0 rows")
