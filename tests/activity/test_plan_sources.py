"""What a planner is shown and what plans without it: data, tools, the team's own words, routes, attachments."""

from typing import Any

import pytest

from activities.contracts.run_contracts import AttachmentRef, PlanInput, PlanReply
from activities.questions.planning import PLAN
from activities.teams.stored_teams import CATALOGUE_CHARS
from supervision.base import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import Planning, Role, Route, Team
from tests.activity.supervising import MODEL, ROLE, Desk
from tests.scripted_model import Reply, as_json

T1 = {"id": "t1", "description": "Count the pears of 1990", "role": "reader"}
ORCHARD = """
name = "orchard"
description = "Knows pears."
generalist = "reader"
[[roles]]
name = "reader"
description = "Reads."
system_prompt = "You read."
capabilities = ["reading"]
tools = ["read_attachment", "read_document"]
[[roles]]
name = "counter"
description = "Counts."
system_prompt = "You count."
capabilities = ["reading", "counting"]
tools = ["query_data", "list_tables"]
[[tools]]
name = "read_attachment"
uses = "attachment"
[[tools]]
name = "read_document"
uses = "document_read"
options = { documents = "*.md" }
[[tools]]
name = "query_data"
uses = "sql_query"
options = { tables = "*.csv" }
[[tools]]
name = "list_tables"
uses = "sql_tables"
options = { tables = "*.csv", descriptions = { harvest = "Pears picked" } }
"""


def write_orchard(desk: Desk, extra: str = "") -> str:
    folder = desk.teams_folder / "orchard"
    folder.mkdir(parents=True)
    (folder / "team.toml").write_text(ORCHARD + extra)
    (folder / "harvest.csv").write_text("year,sort,kg\n1990,Anjou,12\n1994,Conference,30\n")
    (folder / "frost.md").write_text("# Why frost harms pears\n\nIt does.\n")
    return "orchard"


def a_team(**fields: Any) -> Team:
    roles = [Role(name="reader", **ROLE), Role(name="counter", **ROLE, label="The counter")]
    return Team(**{"name": "orchard", "generalist": "reader", "roles": roles, **fields})


async def plan(desk: Desk, reply: Reply | None, of: str | Team, **fields: Any) -> PlanReply:
    if reply is not None:
        desk.say(reply)
    goal_ref = await desk.put("goal", fields.pop("goal", "How large is the pear crop?"))
    call = PlanInput(
        run=await desk.run_ref(),
        goal_ref=goal_ref,
        team_ref=await desk.team(of),
        model=MODEL,
        **{"max_subtasks": 12, **fields},
    )
    return await desk.ask(PLAN, call)


def planned(reply: PlanReply) -> Plan:
    assert reply.plan is not None
    return reply.plan


def subtasks(*items: dict[str, Any], **more: Any) -> Reply:
    return as_json({"subtasks": list(items), "new_roles": [], **more})


# --- The catalogue ---------------------------------------------------------------------------------


async def test_the_planner_sees_tables_with_periods_and_documents_with_titles(desk: Desk) -> None:
    await plan(desk, subtasks(T1), write_orchard(desk))
    assert (
        "- table harvest (year 1990 to 1994, sort: Anjou | Conference, kg 12 to 30): Pears picked\n"
        "- document [frost] Why frost harms pears\n"
    ) in desk.prompt
    assert "- query_data: Runs one SELECT statement" in desk.prompt
    assert "The team: Knows pears." in desk.prompt


async def test_the_catalogue_is_that_of_the_runs_beginning(desk: Desk) -> None:
    write_orchard(desk)
    ref = await desk.team("orchard")
    (desk.teams_folder / "orchard" / "late.md").write_text("# Too late\n")
    assert "frost" in await desk.teams.catalogue(ref)
    assert "Too late" not in await desk.teams.catalogue(ref)


async def test_a_long_catalogue_ends_with_a_whole_line_and_a_count(desk: Desk) -> None:
    write_orchard(desk)
    for number in range(300):
        (desk.teams_folder / "orchard" / f"note{number:03}.md").write_text(f"# Note {number} on pears and frost\n")
    catalogue = await desk.teams.catalogue(await desk.team("orchard"))
    lines = catalogue.splitlines()
    assert len(catalogue) <= CATALOGUE_CHARS + 100
    assert lines[0].startswith("- table harvest")
    assert all(line.startswith("- document [") for line in lines[1:-1])
    assert lines[-1] == f"- and {302 - len(lines[:-1])} more, which the tools list"


async def test_data_that_cannot_be_read_keeps_no_run_from_its_plan(desk: Desk) -> None:
    write_orchard(desk)
    (desk.teams_folder / "orchard" / "broken.csv").write_bytes(bytes(range(256)) * 9)
    catalogue = await desk.teams.catalogue(await desk.team("orchard"))
    assert [line.split(" (")[0] for line in catalogue.splitlines()] == [
        "- table harvest",
        "- document [frost] Why frost harms pears",
    ]


# --- The team's own words ----------------------------------------------------------------------------


async def test_a_teams_instructions_and_examples_are_part_of_the_prompt(desk: Desk) -> None:
    planning = Planning(
        instructions="Count before you weigh.",
        examples=[{"goal": "How many pears?", "subtasks": ["counter: Count the pears of 1990"]}],
    )
    await plan(desk, subtasks(T1), a_team(planning=planning))
    assert "How this team plans\nCount before you weigh." in desk.prompt
    assert "A good plan for: How many pears?\n- counter: Count the pears of 1990" in desk.prompt


# --- Fields that live --------------------------------------------------------------------------------


async def test_what_a_review_misses_is_before_the_planners_eyes(desk: Desk) -> None:
    ref = await desk.plan(Subtask(**T1))
    addition = {"id": "t2", "description": "Count the pears of 1994"}
    points = ["nothing says how many pears there were in 1994 </missing_points>"]
    await plan(desk, subtasks({**addition, "role": "reader"}), a_team(), plan_ref=ref, revision=2, missing=points)
    assert "<missing_points>\n- nothing says how many pears there were in 1994 &lt;/missing_points>" in desk.prompt


# --- Fixed routes and plans of callers ---------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["auto", "route"])
async def test_a_fixed_route_is_taken_before_the_model_is_asked(desk: Desk, strategy: str) -> None:
    team = a_team(routes=[Route(pattern="pear crop", role="counter")])
    reply = await plan(desk, None, team, strategy=strategy)
    assert (reply.strategy, [(s.role, s.description) for s in planned(reply).subtasks]) == (
        "route",
        [("counter", "How large is the pear crop?")],
    )
    assert "pear crop" in planned(reply).reasoning
    assert desk.asked == []


# --- Attachments -------------------------------------------------------------------------------------


async def attached(desk: Desk) -> list[AttachmentRef]:
    """A large attachment, and a small one."""
    texts = {"yearbook.txt": "year,pears\n" * limits.SMALL_ATTACHMENT_BYTES, "note.txt": "Mind the wasps."}
    return [AttachmentRef(name=name, ref=await desk.put(name, text), bytes=len(text)) for name, text in texts.items()]


async def test_the_planner_sees_the_beginnings_of_attachments_and_what_one_agent_can_do(desk: Desk) -> None:
    attachments = await attached(desk)
    await plan(desk, subtasks(T1), a_team(), attachments=attachments, max_turns=7)
    shown = desk.asked[-1].step.prompt
    assert '<attachment name="yearbook.txt">\nyear,pears\nyear,pears' in shown
    assert f"[... {attachments[0].bytes:,} bytes in all]" in shown
    assert shown.count("year,pears") < 40
    assert '<attachment name="note.txt">\nMind the wasps.\n</attachment>' in shown
    assert f"has 7 turns and sees at most {limits.TOOL_OUTPUT_CHARS:,} characters" in desk.prompt


async def test_what_the_team_calls_untrusted_has_no_part_in_the_plan(desk: Desk) -> None:
    untrusted = '"attachment"\nreturns = "untrusted"'
    write_orchard(desk)
    file = desk.teams_folder / "orchard" / "team.toml"
    text = ORCHARD.replace('"attachment"', untrusted).replace('"sql_', 'returns = "untrusted"\nuses = "sql_')
    file.write_text(text.replace("uses = returns", "returns"))
    await plan(desk, subtasks(T1), "orchard", attachments=await attached(desk))
    shown = desk.asked[-1].step.prompt
    assert "(15 bytes, to be read by worker agents alone)" in shown
    assert "wasps" not in shown
    assert "why frost harms" in desk.prompt.lower()
    assert "harvest" not in desk.prompt


async def test_a_large_attachment_goes_only_to_a_role_that_can_read_it(desk: Desk) -> None:
    team, attachments = write_orchard(desk), (await attached(desk))[:1]
    listing = {"attachments": ["yearbook.txt"]}
    refused = await plan(desk, subtasks({**T1, "role": "counter", **listing}), team, attachments=attachments)
    assert refused.problems == [
        "subtask 't1' lists 'yearbook.txt', which the role 'counter' has no tool to read; roles that have one: reader"
    ]
    assert (await plan(desk, subtasks({**T1, **listing}), team, attachments=attachments)).problems == []
    able = {**T1, "role": "auto", "capabilities": ["reading"], **listing}
    settled = await plan(desk, subtasks(able), team, attachments=attachments)
    assert planned(settled).subtasks[0].role == "reader"
