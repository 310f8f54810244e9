"""The team for any goal with the stand-in model: it computes what is written out, and says of all else what helps."""

from tests.console.conftest import Cli

OCTOPUS = "Why do octopuses have three hearts?"


async def test_without_a_model_it_fails_in_words_and_with_three_ways_to_one(cli: Cli) -> None:
    done = await cli("run", "--team", "general", "--id", "octopus-1", OCTOPUS)
    assert done.code == 1
    assert "failed: CannotDo: This needs a model: " in done.out
    assert "completed" not in done.out
    assert "Three ways to a model:\n1. a key: " in done.err


async def test_it_is_the_team_of_requests_that_name_none(cli: Cli) -> None:
    unset = cli.with_environ(SUPERVISOR_TEAM="general")
    made = await unset.json("run", "--id", "octopus-2", OCTOPUS)
    assert {subtask["role"] for subtask in made["subtasks"]} <= {"researcher", "analyst", "programmer", "writer"}
    assert (await unset.json("status", "octopus-2"))["team"] == "general"
