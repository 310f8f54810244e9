"""The ready teams of examples/teams: role, label, facts, fallback and escalation, with a model that plays them."""

import asyncio
import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from benchmarks.showcase import ROOT, Entry, team_entries
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.contract.result import RunResult
from tests.scripted_model import Reply, Script, ScriptedModel, Step, answer, as_json, text, tools
from tests.serving import own_server, store_of
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Lab
from tests.workflow.scripts import IMPOSSIBLE, item, plans, subtasks
from tests.workflow.subtasks.test_people import reply
from worker_main import serving

TEAMS = ROOT / "examples" / "teams"
SECOND_HALF = """SELECT round(sum("Net Amount (EUR)"), 2) AS revenue FROM orders_2025
WHERE "Order Date" >= '2025-07-01' AND "Region" = 'South'"""


def known(team: str) -> dict[str, Any]:
    """Returns what the goals file of a team says."""
    return tomllib.loads((TEAMS / team / "goals.toml").read_text())


def label(team: str, role: str) -> str:
    roles = tomllib.loads((TEAMS / team / "team.toml").read_text())["roles"]
    return next(f"**{one['label']}**\n\n" if "label" in one else "" for one in roles if one["name"] == role)


def route(role: str, goal: str) -> Reply:
    return as_json({"role": role, "secondary_role": None, "description": goal, "reasoning": "Its field."})


def facts(entry: Entry) -> str:
    return ". ".join(fact.partition("|")[0] for fact in entry.says)


@pytest.fixture(scope="module")
async def ready(model: ScriptedModel, settings: Settings) -> AsyncIterator[Lab]:
    """A server with a Worker that has these teams."""
    async with own_server() as client, serving(client, settings.model_copy(update={"teams_dir": TEAMS})):
        yield Lab(client, model, "ready", {"max_reviews": 3})


def searching(step: Step, entry: Entry) -> Reply:
    """Searches the articles by the words of the goal, and reads the first one that is found: it is the finding."""
    if step.number == 1:
        return tools(("search_articles", {"query": entry.goal}))
    if step.number == 2:
        return tools(("read_article", {"document_id": re.findall(r"\[(\w+\.md)\]", step.prompt)[0]}))
    return text(f"{step.prompt}\n\nConfidence: 0.8\nLimitations: none")


def played(entry: Entry) -> Script:
    """Plays a goal as a model that knows the role and the facts; support must find them in its articles."""
    if "plan" in entry.options:
        work = subtasks(item("t1", "troubleshooter"), item("t2", entry.role, depends_on=["t1"]))
    else:
        work = route(entry.role, entry.goal)

    def turn(step: Step) -> Reply:
        return searching(step, entry) if entry.role == "troubleshooter" else text(facts(entry))

    return plans(work, turns={"t1": turn, "t2": turn})


@pytest.mark.parametrize("team", ["experts", "support", "studio"])
async def test_each_goal_has_its_role_its_label_and_its_facts(ready: Lab, team: str) -> None:
    goals, entries = known(team)["goals"], team_entries(TEAMS / team / "goals.toml")

    async def result(entry: Entry) -> RunResult:
        lab = ready.named(f"ready-{entry.name}")
        lab.play(played(entry))
        handle = await lab.start(team=team, goal=entry.goal, strategy=entry.options[3])
        if entry.reply:
            wait = await asked(handle, "t1/1")
            assert (wait.kind, "second-line@acme.example" in wait.prompt_preview) == ("finding", True)
            await reply(handle, "t1/1", entry.reply)
        return await handle.result()

    results = await asyncio.gather(*map(result, entries))
    for goal, entry, done in zip(goals, entries, results, strict=True):
        asked_planner = "plan.1.1" in ready.named(f"ready-{entry.name}").steps
        assert (entry.goal, done.status, asked_planner) == (goal["goal"], "completed", not goal.get("route", False))
        if "route" in entry.options:
            assert entry.falls_short(done.model_dump()) == []
            assert done.answer.startswith(label(team, entry.role))
            assert [subtask.role for subtask in done.subtasks] == [entry.role]
        else:
            assert [subtask.role for subtask in done.subtasks] == ["troubleshooter", entry.role]


def giving_up(step: Step) -> Reply:
    """Gives up for as long as the role may try."""
    return IMPOSSIBLE if step.attempt < 3 else text("See a doctor soon.")


@pytest.mark.parametrize(
    ("team", "role", "fallback", "goal"),
    [
        ("experts", "medical", "general", "Which symptoms does it have?"),
        ("support", "troubleshooter", "escalator", "Why does my hub hum?"),
    ],
)
async def test_who_cannot_answer_has_a_fallback_with_its_own_label_which_may_be_a_person(
    ready: Lab, team: str, role: str, fallback: str, goal: str
) -> None:
    lab, said = ready.named(f"ready-fallback-{team}"), "See a doctor soon."
    lab.play(plans(route(role, goal), turns={"t1": giving_up}))
    handle = await lab.start(team=team, goal=goal, strategy="route")
    if fallback == "escalator":
        said = "Send it in, we replace it."
        assert "second-line@acme.example" in (await asked(handle, "t1/3")).prompt_preview
        await reply(handle, "t1/3", said)
    result = await handle.result()
    assert (result.subtasks[0].role, result.subtasks[0].attempts) == (fallback, 3)
    assert result.answer == f"{label(team, fallback)}{said}"


async def test_a_team_of_teams_works_as_its_page_draws_it(ready: Lab, settings: Settings) -> None:
    lab, data = ready.named("ready-study"), ROOT / known("study")["data"]
    files = [DataFile(str(path.relative_to(data)), path) for path in sorted(data.rglob("*.*"))]
    store = await store_of(lab.client, settings.artifacts_url)
    attached = {"name": "files", "ref": await put_files(store, files), "media_type": MANIFEST_TYPE}
    whole = subtasks(item("t1", "research"), item("t2", "analysis"), item("t3", "report", depends_on=["t1", "t2"]))
    inner = subtasks(item("t1", "searcher"))

    first = {"t1": ("search_documents", {"query": "carrier South"}), "t2": ("query_data", {"sql": SECOND_HALF})}

    def play(step: Step) -> Reply:
        place = step.call.split("/")[1]
        if step.kind == "turn":
            return tools(first[place]) if step.number == 1 and place in first else text(step.prompt[:4000])
        nested = plans(inner, answer_reply=answer("It filed for insolvency on 14 July 2025.", ["t1"]))
        return (nested if place == "t1" else plans(whole))(step)

    lab.play(play)
    goal = team_entries(TEAMS / "study" / "goals.toml")[0].goal
    result = await lab.run(team="study", goal=goal, strategy="plan", attachments=[attached], max_reviews=0)
    assert (result.status, [s.role for s in result.subtasks]) == ("completed", ["research", "analysis", "report"])
    assert await lab.started_children() == [f"{lab.run_id}/t{number}/1" for number in (1, 2, 3)]
    asked_for_plans = [step for step in lab.steps if "plan" in step]
    assert asked_for_plans == ["plan.1.1", "t1/1/plan.1.1"]
    assert "insolvency on 14 July" in lab.prompt("t1/1/t1/1/turn.2")
    brief = lab.prompt("t3/1/t1/1/turn.1")
    assert "insolvency on 14 July" in brief
    assert "20516.9" in brief


@pytest.mark.parametrize("team", ["experts", "support", "studio", "study"])
def test_each_ready_team_has_five_goals_with_facts(team: str) -> None:
    entries = team_entries(TEAMS / team / "goals.toml")
    assert len(entries) == 5
    assert all(entry.says for entry in entries)
    assert Path(ROOT, known(team).get("data", ".")).is_dir()
