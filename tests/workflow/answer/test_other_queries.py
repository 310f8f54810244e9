"""Runs of a small model that queries: two other queries beside its own, and what comes of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from temporalio.client import Client

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.supervision.contract.result import RunResult
from tests.scripted_model import (
    Reply,
    ScriptedModel,
    Step,
    answer,
    script,
    scripted_model,
    text,
    tools,
)
from tests.serving import own_server, settings_for
from tests.workflow.runs import start
from worker_main import serving

GOAL = "What was the life expectancy in Chile in 1962?"
CHILE = "SELECT life_expectancy_years FROM life_expectancy WHERE country = 'Chile' AND year = 1962"
WORLD = "SELECT avg(life_expectancy_years) FROM life_expectancy WHERE year = 1962"
NO_ROW = f"{CHILE} AND year = 1963"
TEN_ROWS = "SELECT country FROM life_expectancy ORDER BY country LIMIT 10"
NO_COLUMN = "SELECT expectancy FROM life_expectancy"


def query(sql: str) -> Reply:
    return tools(("query_data", {"sql": sql}))


def finding(words: str) -> Reply:
    return tools(("finish", {"finding": words, "outcome": "done"}))


@dataclass(frozen=True)
class SmallModel:
    """A server with a Worker whose model has a small window."""

    client: Client
    model: ScriptedModel

    async def play(self, run_id: str, turns: list[Reply], others: list[Reply]) -> RunResult:
        """Runs the goal; the replies are those of its agent, and those to calls for other queries."""
        left = {"turn": list(turns), "query": list(others)}

        def reply(step: Step) -> Reply:
            return left[step.kind].pop(0)

        self.model.play(run_id, script(text("no plan is asked for"), {"t1": reply}, answer()))
        handle = await start(self.client, run_id, goal=GOAL, team="almanac")
        result: RunResult = await handle.result()
        assert left == {"turn": [], "query": []}
        return result


@pytest.fixture(scope="module")
async def small(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SmallModel]:
    """A model with a small window."""
    folder = tmp_path_factory.mktemp("queries")
    async with scripted_model() as model:
        settings = settings_for(model.url, folder, teams_dir=BUILTIN_TEAMS, model_window={"*": 16_384})
        async with own_server() as client, serving(client, settings):
            yield SmallModel(client, model)


async def test_what_two_of_three_queries_return_is_not_doubted(small: SmallModel) -> None:
    turns = [query(CHILE), finding("Life expectancy in Chile was 57.924 years in 1962.")]
    result = await small.play("agree", turns, [query(WORLD), query(f"{CHILE} LIMIT 1")])
    assert small.model.steps("agree")[:4] == ["t1/1/turn.1", "t1/1/query.1.1", "t1/1/query.1.2", "t1/1/turn.2"]
    assert result.doubts == []
    assert "57.924" in result.answer


async def test_what_no_two_of_them_return_goes_back_and_is_shown(small: SmallModel) -> None:
    turns = [query(WORLD), query(WORLD), finding("It was 53.609 years in 1962.")]
    result = await small.play("differ", [*turns, finding("It was 53.609 years in 1962.")], [query(CHILE), query(CHILE)])
    texts = [doubt.text for doubt in result.doubts]
    assert any("another query for it returned 57.924" in text for text in texts)
    assert result.confidence is not None
    assert result.confidence < 0.5


async def test_another_query_that_fails_is_corrected_once(small: SmallModel) -> None:
    turns = [query(CHILE), finding("Life expectancy in Chile was 57.924 years in 1962.")]
    others = [query(NO_COLUMN), query(CHILE), query(NO_COLUMN), query(NO_COLUMN)]
    result = await small.play("fail", turns, others)
    asked = [step for step in small.model.steps("fail") if "query" in step]
    assert asked == [f"t1/1/query.1.{number}" for number in ("1", "1.2", "2", "2.2")]
    assert result.doubts == []


async def test_another_query_without_a_row_is_corrected_and_one_with_ten_rows_is_not(small: SmallModel) -> None:
    turns = [query(CHILE), finding("Life expectancy in Chile was 57.924 years in 1962.")]
    result = await small.play("rows", turns, [query(NO_ROW), query(f"{CHILE} LIMIT 1"), query(TEN_ROWS)])
    asked = [step for step in small.model.steps("rows") if "query" in step]
    assert asked == [f"t1/1/query.1.{number}" for number in ("1", "1.2", "2")]
    assert result.doubts == []
