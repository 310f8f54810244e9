"""The ready teams: role, label, facts, fallback and escalation, with a model that plays them."""

import asyncio
import json
import re
import shutil
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from activities.teams.team_files import TeamFiles
from activities.tools.tool import ToolContext
from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.commands.teams.goal_commands import goals_report
from temporal_supervisor.console.run.team_goals import TeamGoal, TeamGoals, read_goals
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.contract.result import RunResult
from tests.scripted_model import Reply, Script, ScriptedModel, Step, answer, as_json, text, tools
from tests.serving import ROOT, own_server, store_of
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Lab
from tests.workflow.scripts import IMPOSSIBLE, item, plans, subtasks
from tests.workflow.subtasks.test_people import reply
from worker_main import serving

TEAMS = BUILTIN_TEAMS
SHIPPED = sorted(file.parent.name for file in TEAMS.glob("*/goals.toml"))
SECOND_HALF = """SELECT round(sum("Net Amount (EUR)"), 2) AS revenue FROM orders_2025
WHERE "Order Date" >= '2025-07-01' AND "Region" = 'South'"""


def known(team: str) -> TeamGoals:
    """Returns what the goals file of a team says."""
    goals = read_goals(TEAMS / team)
    assert goals is not None
    return goals


def label(team: str, role: str) -> str:
    roles = tomllib.loads((TEAMS / team / "team.toml").read_text())["roles"]
    return next(f"**{one['label']}**\n\n" if "label" in one else "" for one in roles if one["name"] == role)


def route(role: str, goal: str) -> Reply:
    return as_json({"role": role, "secondary_role": None, "description": goal, "reasoning": "Its field."})


def facts(goal: TeamGoal) -> str:
    return ". ".join(fact.partition("|")[0] for fact in goal.says)


@pytest.fixture(scope="module")
async def ready(model: ScriptedModel, settings: Settings) -> AsyncIterator[Lab]:
    """A server with a Worker that has these teams."""
    async with own_server() as client, serving(client, settings.model_copy(update={"teams_dir": None})):
        yield Lab(client, model, "ready", {"max_reviews": 3})


def searching(step: Step, goal: TeamGoal) -> Reply:
    """Searches the articles by the words of the goal, and reads the first one that is found: it is the finding."""
    if step.number == 1:
        return tools(("search_articles", {"query": goal.goal}))
    if step.number == 2:
        return tools(("read_article", {"document_id": re.findall(r"\[(\w+\.md)\]", step.prompt)[0]}))
    return text(f"{step.prompt}\n\nConfidence: 0.8\nLimitations: none")


def played(goal: TeamGoal, strategy: str) -> Script:
    """Plays a goal as a model that knows the role and the facts; support must find them in its articles."""
    planned = subtasks(item("t1", goal.role))
    work = planned if strategy == "plan" else route(goal.role, goal.goal)

    def turn(step: Step) -> Reply:
        return searching(step, goal) if goal.role == "troubleshooter" else text(facts(goal))

    return plans(work, turns={"t1": turn}, answer_reply=answer(facts(goal), ["t1"]))


@pytest.mark.parametrize("team", ["experts", "support", "studio"])
async def test_each_goal_has_its_role_its_label_and_its_facts(ready: Lab, team: str) -> None:
    goals = known(team)

    async def result(number: int, goal: TeamGoal) -> RunResult:
        lab = ready.named(f"ready-{team}-{number}")
        strategy = goal.strategy or goals.strategy
        lab.play(played(goal, strategy))
        handle = await lab.start(team=team, goal=goal.goal, strategy=strategy)
        if goal.reply:
            wait = await asked(handle, "t1/1")
            assert (wait.kind, "second-line@acme.example" in wait.prompt_preview) == ("finding", True)
            await reply(handle, "t1/1", goal.reply)
        return await handle.result()

    results = await asyncio.gather(*(result(number, goal) for number, goal in enumerate(goals.goals)))
    for number, (goal, done) in enumerate(zip(goals.goals, results, strict=True)):
        asked_planner = "plan.1.1" in ready.named(f"ready-{team}-{number}").steps
        assert (done.status, asked_planner) == ("completed", not goal.route)
        assert goal.falls_short(done.model_dump()) == []
        assert [subtask.role for subtask in done.subtasks] == [goal.role]
        if (goal.strategy or goals.strategy) == "route":
            assert done.answer.startswith(label(team, goal.role))


async def test_a_team_in_itself_plans_each_part_with_the_same_roles_until_the_last_level(ready: Lab) -> None:
    lab = ready.named("ready-project")
    leads = [item(f"t{at}", f"{part}-lead", depends_on=["t1"]) for at, part in ((2, "frontend"), (3, "backend"))]
    root = subtasks(item("t1", "architect"), *leads)
    part = subtasks(item("t1", "programmer"), aggregation="finding", answer_from="t1")

    def play(step: Step) -> Reply:
        nested = step.call.count("/") > 2
        if step.kind == "plan":
            return part if nested else root
        if step.kind == "turn" and nested and step.number == 1:
            lead = step.call.split("/")[1]
            return tools(("write_file", {"title": "A part", "body": f"part = '{lead}'", "file_name": f"{lead}.py"}))
        return plans(root, answer_reply=answer("Start the server, then open the page.", ["t2", "t3"]))(step)

    lab.play(play)
    result = await lab.run(team="project", goal="A page that shows a list, and a server that keeps it.")
    assert result.status == "completed"
    assert sorted(artifact.name for artifact in result.artifacts) == ["t2.py", "t3.py"]
    schemas = [lab.call(step).step.body["output_config"]["format"]["schema"] for step in ("plan.1.1", "t2/1/plan.1.1")]
    offered = [{*re.findall(r"[a-z]+-lead", str(schema))} for schema in schemas]
    assert offered == [{"frontend-lead", "backend-lead"}, set()]


async def test_all_goals_of_a_team_are_asked_by_one_command_whose_exit_code_says_whether_one_falls_short(
    ready: Lab, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    goals = known("competitors").goals
    monkeypatch.setattr("temporal_supervisor.starting.new_run_id", lambda client, goal: goal[:40])
    access = Access()
    access._client, access.settings = ready.client, settings.model_copy(update={"teams_dir": None})
    for goal in goals:
        ready.named(goal.goal[:40]).play(played(goal, "plan"))
    report = await goals_report(access, "competitors")
    assert (report.code, "2 goals of 1 team, 0 of them fall short" in report.text()) == (0, True)

    monkeypatch.setattr("temporal_supervisor.starting.new_run_id", lambda client, goal: goal[:39])
    other = goals[1].model_copy(update={"says": ["Nobody knows."], "role": "strategist"})
    ready.named(goals[0].goal[:39]).play(played(goals[0], "plan"))
    ready.named(goals[1].goal[:39]).play(played(other, "plan"))
    report = await goals_report(access, "competitors")
    assert report.code == 1
    assert "lacks: role scout" in report.text()
    assert "lacks: says 640" in report.text()


async def test_a_goal_that_asks_a_person_without_a_reply_falls_short_and_keeps_nobody_waiting(
    ready: Lab,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (goal,) = (each for each in known("support").goals if each.reply)
    shutil.copytree(TEAMS / "support", tmp_path / "support")
    fields = {"goal": goal.goal, "role": goal.role, "says": goal.says}
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    (tmp_path / "support" / "goals.toml").write_text("\n".join(['strategy = "route"', "[[goals]]", *lines]))
    monkeypatch.setattr("temporal_supervisor.starting.new_run_id", lambda client, goal: "no-reply")
    access = Access()
    access._client = ready.client
    access.settings = settings.model_copy(update={"teams_dir": tmp_path})
    ready.named("no-reply").play(played(goal, "route"))
    report = await goals_report(access, "support")
    assert report.code == 1
    assert "t1 asks a person, and the goal has no reply in goals.toml" in report.text()
    described = await ready.client.get_workflow_handle("no-reply").describe()
    assert described.status is WorkflowExecutionStatus.CANCELED


def giving_up(step: Step) -> Reply:
    """Gives up for as long as the role may try."""
    return IMPOSSIBLE if step.attempt < 3 else text("See a doctor soon.")


@pytest.mark.parametrize(
    ("team", "role", "fallback", "goal"),
    [
        ("experts", "medical", "general", "Which symptoms does it have?"),
        ("support", "troubleshooter", "escalator", "Why does my log hum?"),
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
    lab, data = ready.named("ready-study"), TEAMS / "study" / known("study").data
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
    goal = known("study").goals[0].goal
    result = await lab.run(team="study", goal=goal, strategy="plan", attachments=[attached], max_reviews=0)
    assert (result.status, [s.role for s in result.subtasks]) == ("completed", ["research", "analysis", "report"])
    assert await lab.started_children() == [f"{lab.run_id}/t{number}/1" for number in (1, 2, 3)]
    asked_for_plans = [step for step in lab.steps if "plan" in step]
    assert asked_for_plans == ["plan.1.1", "t1/1/plan.1.1"]
    assert "insolvency on 14 July" in lab.prompt("t1/1/t1/1/turn.2")
    brief = lab.prompt("t3/1/t1/1/turn.1")
    assert "insolvency on 14 July" in brief
    assert "20516.9" in brief


@pytest.mark.parametrize("team", SHIPPED)
def test_each_shipped_team_has_two_goals_and_more_for_its_own_roles(team: str) -> None:
    goals = known(team)
    roles = {role["name"] for role in tomllib.loads((TEAMS / team / "team.toml").read_text())["roles"]}
    assert len(goals.goals) >= 2
    assert {goal.role for goal in goals.goals} <= roles
    assert (TEAMS / team / goals.data).is_dir()


def test_every_team_that_can_be_asked_has_goals_and_an_example_that_fits_a_line() -> None:
    teams = {file.parent.name: tomllib.loads(file.read_text()) for file in TEAMS.glob("*/team.toml")}
    # A team in itself is none that only others use.
    nested = {role["team"] for name, team in teams.items() for role in team["roles"] if role.get("team", name) != name}
    assert sorted(teams.keys() - nested) == SHIPPED
    width = max(map(len, SHIPPED)) + 2
    assert all(0 < len(teams[name]["example"]) <= 79 - width for name in SHIPPED)
    assert len(SHIPPED) + 6 <= 24  # with what follows the list: a screen


def test_the_data_of_the_study_are_those_of_the_shop() -> None:
    shop = ROOT / "examples" / "shop" / "data"
    files = [path.relative_to(shop) for path in shop.rglob("*") if path.is_file()]
    assert files
    assert all((TEAMS / "study" / "data" / file).read_bytes() == (shop / file).read_bytes() for file in files)


# --- facts of the teams with data: what their goals say is computed from what they ship -------------------

FACTS = [
    (
        "competitors",
        "SELECT round(100 * (max(revenue_meur) - min(revenue_meur)) / min(revenue_meur), 1) FROM revenue "
        "WHERE vendor = 'Kettle'",
        "140.3",
    ),
    ("competitors", "SELECT 50 * eur_per_seat_month FROM prices WHERE plan = 'Team' AND vendor = 'Kettle'", "495"),
    ("patient-case", "SELECT max(value) FROM laboratory WHERE test = 'creatinine'", "161"),
    (
        "portfolio",
        "SELECT round(100 * max(quantity * price_eur) FILTER (WHERE position = 'Alder Shipping') "
        "/ sum(quantity * price_eur), 1) FROM positions",
        "17.6",
    ),
    (
        "portfolio",
        "SELECT round(100 * max(quantity * price_eur) FILTER (WHERE class = 'cash') / sum(quantity * price_eur), 1) "
        "FROM positions",
        "3.4",
    ),
    ("curriculum", "SELECT sum(hours) FROM modules WHERE module <> 'Spreadsheets'", "60"),
    ("launch", "SELECT sum(spent_eur - planned_eur) FROM budget", "1850"),
    (
        "launch",
        "SELECT sum(days) FROM tasks WHERE task IN "
        "('Final packaging', 'Safety certificate', 'Dealer training', 'First delivery')",
        "54",
    ),
    ("contract-review", "SELECT 12 * min(amount_eur) FROM invoices", "50400"),
]


@pytest.mark.parametrize(("team", "sql", "fact"), FACTS)
async def test_the_facts_of_goals_are_those_of_the_data(team: str, sql: str, fact: str) -> None:
    loaded = await TeamFiles([TEAMS]).load(team)
    role = next(role for role in loaded.team.roles if "query_data" in role.tools)
    ran = await loaded.toolbox.run(role, "query_data", {"sql": sql}, ToolContext())
    assert fact in ran.text, ran.text
    assert any(fact in one.replace(",", "") for goal in known(team).goals for one in goal.says)
