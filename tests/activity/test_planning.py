"""Planning: what the model is shown and asked, what its reply becomes, what sends it back, what plans without it."""

from typing import Any

import pytest

from activities.contracts.run_contracts import PlanInput, PlanReply, WorkNote
from activities.questions.planner import fits
from activities.questions.planning import PLAN
from activities.teams.stored_teams import CATALOGUE_CHARS
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.team import Person, Planning, Role, Route, Team
from tests.activity.supervising import MODEL, ORCHARD, ROLE, Desk
from tests.scripted_model import Reply, as_json, text

T1 = {"id": "t1", "description": "Count the pears of 1990", "role": "reader"}
T2 = {"id": "t2", "description": "Weigh the pears of 1990", "role": "counter", "depends_on": ["t1"]}
KNOWS = {"grounding": "knowledge"}
COOK = {"name": "cook", "description": "Cooks pears.", "system_prompt": "You cook.", "tools": ["calculate"]}


def team(*more: Role, **fields: Any) -> Team:
    roles = [
        Role(name="reader", capabilities=["reading", "maps"], **ROLE),
        Role(name="counter", capabilities=["counting", "maps"], **ROLE),
        *more,
    ]
    return Team(**{"name": "orchard", "generalist": "reader", "roles": roles, **fields})


async def plan(desk: Desk, *replies: Reply, of: str | Team | None = None, **fields: Any) -> PlanReply:
    """The reply to one call; a team reference given in `fields` is used as it is."""
    desk.say(*replies)
    goal_ref = await desk.put("goal", fields.pop("goal", "How large is the pear crop?"))
    team_ref = fields.pop("team_ref", None) or await desk.team(of or team())
    request = PlanInput(
        run=await desk.run_ref(), goal_ref=goal_ref, team_ref=team_ref, model=MODEL, **{"max_subtasks": 12, **fields}
    )
    return await desk.ask(PLAN, request)


def planned(reply: PlanReply) -> Plan:
    assert reply.plan is not None
    return reply.plan


def subtasks(*items: dict[str, Any], **more: Any) -> Reply:
    return as_json({"subtasks": list(items), "new_roles": [], "final_instruction": "Sum up.", **more})


def item_of(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema["properties"]["subtasks"]["items"]["$ref"].rsplit("/", 1)[1]
    fields: dict[str, Any] = schema["$defs"][reference]["properties"]
    return fields


async def test_the_schema_offers_the_roles_and_then_auto(desk: Desk) -> None:
    await plan(desk, subtasks(T1))
    assert list(desk.schema["properties"]) == [
        "reasoning", "direct_answer", "strategy", "subtasks", "aggregation", "answer_from",
        "final_instruction",
    ]  # fmt: skip
    assert desk.schema["properties"]["aggregation"]["enum"] == ["merge", "select", "reduce", "finding"]
    assert desk.schema["properties"]["strategy"]["enum"] == ["plan", "step"]
    fields = item_of(desk.schema)
    assert fields["role"]["enum"] == ["reader", "counter", "auto"]
    assert fields["capabilities"]["items"]["enum"] == ["counting", "maps", "reading"]
    assert "timeout_seconds" not in fields
    (form,) = desk.schema["$defs"].values()
    assert form["required"] == ["id", "description", "reasoning", "role", "depends_on"]
    assert "replaces" not in fields
    assert "capabilities: reading, maps" in desk.prompt


async def test_a_plan_with_every_field_filled_in_is_a_plan(desk: Desk) -> None:
    filled = {
        **T1, "role": "Reader", "depends_on": "none", "capabilities": "", "importance": "high", "weight": "high",
        "candidates": None, "candidate_roles": None, "estimated_tokens": "6000 tokens", "attachments": "",
        "for_each": "null", "max_items": 0, "new_role": "none",
    }  # fmt: skip
    more = {"direct_answer": "null", "strategy": "parallel", "aggregation": None, "new_roles": ""}
    first, second = planned(await plan(desk, subtasks(filled, {**T2, "depends_on": "t1"}, **more))).subtasks
    assert first == Subtask(**T1, estimated_tokens=6000)
    assert second.depends_on == ["t1"]


def _every_field(form: dict[str, Any], words: str) -> dict[str, Any]:
    """A reply with the words in every field of a form, whatever it is for, but the ids and descriptions."""
    filled = dict.fromkeys(item_of(form), words)
    first = {**filled, "id": "t1", "description": T1["description"]}
    second = {**filled, "id": "t2", "description": T2["description"]}
    return {**dict.fromkeys(form["properties"], words), "subtasks": [first, second]}


@pytest.mark.parametrize("words", ["Part 1", "none", "<ids of subtasks>", "t9", "rows:South", "files:*.pdf"])
@pytest.mark.parametrize("strategy", ["auto", "plan", "step"])
@pytest.mark.parametrize("toolbox", [[], ["workshop/calculate"]])
async def test_a_model_that_fills_every_field_with_text_gets_a_plan(
    desk: Desk, words: str, strategy: str, toolbox: list[str]
) -> None:
    await _write_workshop(desk)
    ref = await desk.team(team(toolbox=toolbox))
    with_files: dict[str, Any] = {"attachments": await attached(desk), "strategy": strategy, "team_ref": ref}
    await plan(desk, subtasks(T1), **with_files)
    reply = await plan(desk, as_json(_every_field(desk.schema, words)), **with_files)
    assert reply.problems == []
    assert [subtask.description for subtask in planned(reply).subtasks][0] == T1["description"]
    assert {subtask.for_each for subtask in planned(reply).subtasks} == {None}


async def test_names_that_are_none_leave_the_plan_with_a_note(desk: Desk) -> None:
    role = planned(await plan(desk, subtasks(T1, T2))).subtasks[1].role
    written = {**T2, "role": role, "depends_on": ["t1", "t7"], "attachments": ["crop table"], "for_each": "rows:South"}
    reply = await plan(desk, subtasks(T1, {**written, "capabilities": ["flying"], "candidates": 9}))
    second = planned(reply).subtasks[1]
    assert second == Subtask(**{**T2, "role": role}, candidates=limits.CANDIDATES)
    assert reply.put_right == [
        "t2: there is no subtask 't7'",
        "t2: there is no attachment 'crop table'",
        "t2: there is no capability 'flying'",
        "t2: 9 candidates became 5",
        "t2: there are no items 'rows:South': it is done once",
    ]


async def test_a_form_offers_no_field_that_cannot_apply(desk: Desk) -> None:
    await plan(desk, subtasks(T1))
    fields = item_of(desk.schema)
    assert {"attachments", "new_role", "replaces"} & fields.keys() == set()
    assert "rows:NAME" not in fields["for_each"]["description"]
    assert "attachments lists" not in desk.prompt

    await plan(desk, subtasks(T1), attachments=await attached(desk))
    fields = item_of(desk.schema)
    assert "attachments" in fields
    assert "lines:NAME" in fields["for_each"]["description"]
    assert "attachments lists" in desk.prompt

    await plan(desk, subtasks(T1), max_subtasks=1)
    fields = item_of(desk.schema)
    assert {"for_each", "weight", "importance"} & fields.keys() == set()
    assert "aggregation" not in desk.schema["properties"]


async def test_a_named_table_decides_the_role(desk: Desk) -> None:
    orchard = desk.write_orchard()
    asked = {"id": "t1", "description": "From table harvest, give the kilograms of 1990", "role": "reader"}
    reply = await plan(desk, subtasks(asked), of=orchard)
    assert planned(reply).subtasks[0].role == "counter"
    assert reply.put_right == ["t1: counter can query the table harvest, reader cannot"]

    why = {**asked, "description": "From the documents, say why the harvest of 1990 was small"}
    assert planned(await plan(desk, subtasks(why), of=orchard)).subtasks[0].role == "reader"
    later = {**asked, "id": "t2", "depends_on": ["t1"]}
    assert planned(await plan(desk, subtasks(why, later), of=orchard)).subtasks[1].role == "reader"


# --- roles that plans define -----------------------------------------------------------------------


async def _write_workshop(desk: Desk, words: str = "") -> None:
    desk.write_team(
        "workshop",
        'name = "workshop"\ngeneralist = "helper"\n[[roles]]\nname = "helper"\ndescription = "Helps."\n'
        'system_prompt = "You help."\n[[tools]]\nname = "calculate"\nuses = "calculator"\n' + words,
    )


async def test_a_new_role_joins_no_tools_that_no_role_may_have(desk: Desk) -> None:
    await _write_workshop(desk, 'returns = "untrusted"\nreads = "private"\neffects = "write"\n')
    ref = await desk.team(team(toolbox=["workshop/calculate"]))
    reply = await plan(desk, subtasks({**T1, "new_role": "cook"}, new_roles=[COOK]), team_ref=ref)
    assert "cook.tools: calculate reads private data, calculate returns untrusted text" in reply.problems[0]


async def test_a_role_that_a_plan_cannot_have_sends_it_back(desk: Desk) -> None:
    got = await plan(desk, subtasks({**T1, "new_role": "cook"}, new_roles=[COOK]))
    problem = "new role 'cook' asks for the tool 'calculate', which is not in the toolbox: "
    assert [said.startswith(problem) for said in got.problems] == [True]
    assert (got.team_ref, got.team, got.plan, got.plan_ref) == (None, None, None, None)


async def test_a_candidate_is_never_a_role_that_is_none(desk: Desk) -> None:
    got = await plan(desk, subtasks({**T1, "candidates": 2, "candidate_roles": ["ghost", "counter"]}))
    assert planned(got).subtasks[0].candidate_roles == ["counter"]


async def test_a_callers_plan_with_an_unknown_candidate_is_refused_as_with_an_unknown_role(desk: Desk) -> None:
    item = Subtask(id="t1", description="Count the pears.", role="reader", candidates=2, candidate_roles=["conter"])
    got = await plan(desk, own_plan=Plan(goal="g", subtasks=[item]))
    assert got.problems == ["subtask 't1': 'conter' is not a role of the team, did you mean 'counter'?"]


# --- teams as roles ----------------------------------------------------------------------------------


async def test_roles_that_are_teams_need_a_level_to_spare(desk: Desk) -> None:
    await _write_workshop(desk)
    nested = team(Role(name="crew", description="A crew.", team="workshop", capabilities=["building"]))
    refused = await plan(desk, subtasks({**T1, "role": "crew"}), of=nested)
    assert refused.problems == ["role 'crew' is a team and nesting is not possible here"]
    assert item_of(desk.schema)["role"]["enum"] == ["reader", "counter", "auto"]
    building = {**T1, "role": "auto", "capabilities": ["building"]}
    assert (await plan(desk, subtasks(building), of=nested)).incapable
    allowed = await plan(desk, subtasks(building), of=nested, nesting_left=1)
    assert planned(allowed).subtasks[0].role == "crew"
    assert item_of(desk.schema)["role"]["enum"] == ["reader", "counter", "crew", "auto"]


# --- route -------------------------------------------------------------------------------------------


async def route(desk: Desk, reply: Reply, **fields: Any) -> PlanReply:
    return await plan(desk, reply, strategy="route", **fields)


def choice(role: str, secondary: str | None = None) -> Reply:
    return as_json({"role": role, "secondary_role": secondary, "description": "Count all the pears"})


@pytest.mark.parametrize(
    ("reply", "role", "description"),
    [
        (choice("pilot"), "reader", "How large is the pear crop?"),
        (choice("auto", "counter"), "reader", "How large is the pear crop?"),
        (choice("Counter "), "counter", "How large is the pear crop?"),
    ],
)
async def test_a_role_gets_the_goal_in_its_own_words_and_an_invalid_choice_is_the_generalists(
    desk: Desk, reply: Reply, role: str, description: str
) -> None:
    assert [(s.role, s.description) for s in planned(await route(desk, reply)).subtasks] == [(role, description)]


async def test_a_goal_that_is_too_long_for_a_role_is_described_by_the_planner(desk: Desk) -> None:
    await route(desk, choice("counter"))
    assert "description" not in desk.schema["properties"]
    assert "word for word" in desk.prompt
    long_goal = "How large is the pear crop? " + "Of each tree, please. " * 300
    reply = await route(desk, choice("counter"), goal=long_goal)
    assert "description" in desk.schema["properties"]
    assert planned(reply).subtasks[0].description == "Count all the pears"


async def test_a_choice_nobody_can_read_is_asked_for_again_and_at_last_made_here(desk: Desk) -> None:
    first = await route(desk, text("counter, I think"))
    assert (first.plan, len(first.problems)) == (None, 1)
    last = await route(desk, text("as I said"), head=first.head, problems=first.problems, attempt=limits.PLAN_TRIES)
    assert last.problems == []
    assert planned(last).subtasks[0].role == "reader"


# --- plans without work ------------------------------------------------------------------------------


async def test_whether_a_plan_has_no_subtasks_is_a_field_of_the_reply(desk: Desk) -> None:
    assert (await plan(desk, subtasks())).without_subtasks
    assert not (await plan(desk, subtasks({**T1, "id": "no subtasks"}))).without_subtasks
    ref = await desk.put("plan", Plan(goal="g", subtasks=[Subtask(**T1)]).model_dump_json())
    answered = await plan(desk, own_plan=Plan(direct_answer="There is no more."), plan_ref=ref, revision=2)
    assert answered.without_subtasks


def test_a_reply_that_was_recorded_before_this_field_keeps_its_meaning() -> None:
    older = {"head": "h", "usage": {}, "problems": ["the revision adds no subtasks"]}
    assert PlanReply.model_validate(older).without_subtasks
    assert not PlanReply.model_validate({**older, "problems": ["vague"]}).without_subtasks


# --- step by step and revisions ------------------------------------------------------------------------


async def test_a_revision_of_what_stands_is_sent_back(desk: Desk) -> None:
    ref = await desk.plan(Subtask(**T1), Subtask(**{**T2, "depends_on": []}))
    notes = [WorkNote(subtask_id="t1", role="reader", state="completed", note="it found 44 pears")]
    new = {"id": "t1", "description": "Weigh the pears by hand", "role": "counter"}
    reply = await plan(desk, subtasks(new), plan_ref=ref, done=notes, revision=2)
    assert reply.problems[0].startswith("subtask id 't1' is in the plan already")


async def test_a_plan_that_no_history_takes_goes_back_with_its_size(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PLAN_REPLY_BYTES", 2000)
    first = [{**T1, "id": f"t{number}"} for number in range(20)]
    wide = [{**T2, "id": f"w{number}", "depends_on": [item["id"] for item in first]} for number in range(20)]
    reply = await plan(desk, subtasks(*first, *wide, strategy="plan", direct_answer=None), max_subtasks=1000)
    assert reply.plan is None
    assert "fewer dependencies" in " ".join(reply.problems)
    assert len(reply.model_dump_json()) < 2000


# --- The catalogue ---------------------------------------------------------------------------------


async def test_the_planner_sees_tables_with_periods_and_documents_with_titles(desk: Desk) -> None:
    await plan(desk, subtasks(T1), of=desk.write_orchard())
    assert (
        "- table harvest (year: 1990 to 1994; sort: Anjou, Conference; kg: 12 to 30; rows: 2): Pears picked\n"
        "- document [frost.md] Why frost harms pears\n"
    ) in desk.prompt
    assert "- query_data: Runs one SELECT statement" in desk.prompt
    assert "The team: Knows pears." in desk.prompt


async def test_the_catalogue_is_that_of_the_runs_beginning(desk: Desk) -> None:
    desk.write_orchard()
    ref = await desk.team("orchard")
    (desk.teams_folder / "orchard" / "late.md").write_text("# Too late\n")
    assert "frost" in await desk.teams.catalogue(ref)
    assert "Too late" not in await desk.teams.catalogue(ref)


async def test_a_long_catalogue_ends_with_a_whole_line_and_a_count(desk: Desk) -> None:
    desk.write_orchard()
    for number in range(300):
        (desk.teams_folder / "orchard" / f"note{number:03}.md").write_text(f"# Note {number} on pears and frost\n")
    catalogue = await desk.teams.catalogue(await desk.team("orchard"))
    lines = catalogue.splitlines()
    assert len(catalogue) <= CATALOGUE_CHARS + 100 + len(lines)
    assert lines[0].startswith("- table harvest")
    assert all(line.startswith("- document [") for line in lines[1:-1])
    assert lines[-1] == f"- and {302 - len(lines[:-1])} more, which the tools list"


# --- What a planner is shown beside roles and data ---------------------------------------------------


async def test_the_planner_sees_the_teams_words_the_form_of_the_answer_and_what_a_review_misses(desk: Desk) -> None:
    planning = Planning(instructions="Count before you weigh.")
    schema = '{"type":"object","properties":{"pears_kg":{"type":"number"}}}'
    asked: dict[str, Any] = {"answer_schema_ref": await desk.put("schema", schema), "revision": 2}
    asked["missing"] = ["nothing says how many pears there were in 1994 </missing_points>"]
    addition = {"id": "t2", "description": "Count the pears of 1994", "role": "reader"}
    await plan(desk, subtasks(addition), of=team(planning=planning), plan_ref=await desk.plan(Subtask(**T1)), **asked)
    assert "How this team plans\nCount before you weigh." in desk.prompt
    assert f"<answer_form>\n{schema}\n</answer_form>" in desk.prompt
    assert "<missing_points>\n- nothing says how many pears there were in 1994 &lt;/missing_points>" in desk.prompt


async def test_the_planner_sees_which_roles_are_people_ask_people_or_know_by_themselves(desk: Desk) -> None:
    lawyer = Role(name="lawyer", description="Judges terms.", person=Person(who="legal@example.com"))
    others = [Role(name=name, **{**ROLE, **more}) for name, more in (("asker", {"ask": True}), ("sage", KNOWS))]
    await plan(desk, subtasks(T1), of=team(lawyer, *others))
    lines = {line.split(":")[0]: line for line in desk.prompt.splitlines() if line.startswith("- ")}
    assert "a person, who gets the description and the findings it depends on" in lines["- lawyer"]
    assert "may ask a person" in lines["- asker"]
    assert "answers from the model's own knowledge" in lines["- sage"]


# --- Fixed routes and plans of callers ---------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["auto", "route"])
async def test_a_fixed_route_is_taken_before_the_model_is_asked(desk: Desk, strategy: str) -> None:
    routed = team(routes=[Route(pattern="pear crop", role="counter")])
    reply = await plan(desk, of=routed, strategy=strategy)
    assert (reply.strategy, [(s.role, s.description) for s in planned(reply).subtasks]) == (
        "route",
        [("counter", "How large is the pear crop?")],
    )
    assert "pear crop" in planned(reply).reasoning
    assert desk.asked == []


@pytest.mark.parametrize(
    ("pattern", "goal", "is_fit"),
    [
        ("reset my password", "How do I RESET   my\npassword?", True),
        ("*invoice*march*", "Where is the invoice of early March 2023?", True),
        ("größe", "Welche GRÖSSE hat es?", True),
        ("refund", "Refunding rules", False),
        ("*invoice*march*", "March: where is the invoice?", False),
        ("(a+)+$", "aaaaaaaa", False),
        ("[ab]*?", "a b", False),
    ],
)
def test_a_goal_fits_a_pattern_by_its_words_or_around_the_star(pattern: str, goal: str, is_fit: bool) -> None:
    assert fits(pattern, goal) == is_fit


# --- Attachments -------------------------------------------------------------------------------------


async def attached(desk: Desk) -> list[ArtifactRef]:
    """A large attachment, and a small one."""
    texts = {"yearbook.txt": "year,pears\n" * limits.SMALL_ATTACHMENT_BYTES, "note.txt": "Mind the wasps."}
    return [ArtifactRef(name=name, ref=await desk.put(name, text), bytes=len(text)) for name, text in texts.items()]


async def test_the_planner_sees_the_beginnings_of_attachments_and_what_one_agent_can_do(desk: Desk) -> None:
    attachments = await attached(desk)
    await plan(desk, subtasks(T1), of=team(), attachments=attachments, max_turns=7)
    shown = desk.asked[-1].step.prompt
    assert '<attachment name="yearbook.txt">\nyear,pears\nyear,pears' in shown
    assert f"[... {attachments[0].bytes:,} bytes in all]" in shown
    assert shown.count("year,pears") < 40
    assert '<attachment name="note.txt">\nMind the wasps.\n</attachment>' in shown
    assert f"has 7 turns and sees at most {limits.TOOL_OUTPUT_CHARS:,} characters" in desk.prompt


async def test_what_the_team_calls_untrusted_has_no_part_in_the_plan(desk: Desk) -> None:
    untrusted = '"attachment"\nreturns = "untrusted"'
    desk.write_orchard()
    file = desk.teams_folder / "orchard" / "team.toml"
    text = ORCHARD.replace('"attachment"', untrusted).replace('"sql_', 'returns = "untrusted"\nuses = "sql_')
    file.write_text(text.replace("uses = returns", "returns"))
    await plan(desk, subtasks(T1), of="orchard", attachments=await attached(desk))
    shown = desk.asked[-1].step.prompt
    assert "(15 bytes, to be read by worker agents alone)" in shown
    assert "wasps" not in shown
    assert "why frost harms" in desk.prompt.lower()
    assert "harvest" not in desk.prompt


async def test_a_large_attachment_goes_only_to_a_role_that_can_read_it(desk: Desk) -> None:
    team, attachments = desk.write_orchard(), (await attached(desk))[:1]
    listing = {"attachments": ["yearbook.txt"]}
    moved = await plan(desk, subtasks({**T1, "role": "counter", **listing}), of=team, attachments=attachments)
    assert [subtask.role for subtask in planned(moved).subtasks] == ["reader"]
    assert moved.put_right == ["t1: reader can read 'yearbook.txt', counter cannot"]
    assert (await plan(desk, subtasks({**T1, **listing}), of=team, attachments=attachments)).problems == []
    able = {**T1, "role": "auto", "capabilities": ["reading"], **listing}
    settled = await plan(desk, subtasks(able), of=team, attachments=attachments)
    assert planned(settled).subtasks[0].role == "reader"
