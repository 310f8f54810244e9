"""Models with a small window: short prompts, forms shown filled in, two fields of `finish`, tables in the brief."""

from typing import Any

import pytest

from activities.agent.agent_turn import AgentTurnActivities
from activities.agent.query_first import AFTER_DATA, next_step
from activities.agent.search_first import AFTER_READING, step_after_reading
from activities.agent.tool_calls import ToolActivities
from activities.contracts.run_contracts import PlanInput, PlanReply, SubtaskBrief, WorkNote
from activities.contracts.turn_contracts import (
    OtherQuery,
    ToolInput,
    ToolResultRef,
    TurnInput,
    TurnReply,
)
from activities.model.anthropic_model import AnthropicModel
from activities.model.port import Window
from activities.prompts.agent_prompts import QUERY_AGAIN, objection
from activities.questions.planning import PLAN
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import FindingRecord, QueryFacts
from temporal_supervisor.supervision.contract.plan import Subtask
from tests.activity.supervising import MODEL, Desk
from tests.scripted_model import Reply, as_json, text, tools

SMALL = 16_384
T1 = {"id": "t1", "role": "reader", "description": "From table harvest, give the kilograms of 1990", "depends_on": []}


@pytest.fixture
def small(desk: Desk) -> Desk:
    """A desk whose models have a small window."""
    desk.windows["*"] = SMALL
    return desk


PICKED = "From table harvest, tell how much was picked"
COUNT = tools(("query_data", {"sql": "SELECT count(*) AS n FROM harvest"}))
QUESTION = "How many kilograms were picked in 1990?"
TASK = "Tell how many kilograms were picked in 1990, and why."


async def plan(desk: Desk, *replies: Reply, of: str = "", goal: str = TASK, **fields: object) -> PlanReply:
    desk.say(*replies)
    team_ref = await desk.team(of or desk.write_orchard())
    goal_ref = await desk.put("goal", goal)
    call = PlanInput(
        run=await desk.run_ref(), goal_ref=goal_ref, team_ref=team_ref, model=MODEL, max_subtasks=12
    ).model_copy(update=fields)
    return await desk.ask(PLAN, call)


@pytest.mark.parametrize(
    ("tokens", "chosen", "is_small", "output_chars"),
    [
        (4_096, None, True, 1_433),
        (SMALL, None, True, 5_734),
        (limits.SMALL_WINDOW_TOKENS + 1, None, False, limits.TOOL_OUTPUT_CHARS),
        (SMALL, False, False, limits.TOOL_OUTPUT_CHARS),
        (200_000, True, True, limits.TOOL_OUTPUT_CHARS),
    ],
)
def test_a_window_is_small_by_its_tokens_or_as_it_was_set(
    tokens: int, chosen: bool | None, is_small: bool, output_chars: int
) -> None:
    window = Window(tokens, short_prompts=chosen)
    assert (window.is_small, window.output_chars) == (is_small, output_chars)


async def test_the_planner_is_asked_in_few_words_and_shown_the_form_last(small: Desk) -> None:
    reply = await plan(small, as_json({"subtasks": [T1]}))
    assert "How this team plans" not in small.prompt
    assert "Tools of these roles" not in small.prompt
    last = small.asked[-1].step.body["messages"][-1]["content"][-1]["text"]
    assert last.startswith("Reply with one JSON object and nothing else, filled in like this:\n")
    assert '{"subtasks": [{"id": "<t and a number>", "role": "reader or counter", "description": "<what to' in last
    assert set(small.schema["$defs"]["SubtaskDraft"]["properties"]) == {"id", "role", "description", "depends_on"}
    assert reply.plan is not None
    assert reply.plan.aggregation == "finding", "the finding of an only subtask is the answer"
    assert reply.plan.subtasks[0].description == f"{TASK}\n{T1['description']}"


async def test_a_form_that_comes_back_as_it_was_shown_is_no_plan(small: Desk) -> None:
    placeholders = {"id": "<t and a number>", "role": "reader or counter", "description": "<what to find out>"}
    reply = await plan(small, as_json({"subtasks": [placeholders]}))
    assert reply.plan is None
    assert "no concrete description" in reply.problems[0] or "vague" in reply.problems[0]


async def test_a_question_about_the_only_table_needs_no_plan(small: Desk) -> None:
    reply = await plan(small, of=small.write_counters(), goal=QUESTION)
    assert reply.plan is not None
    assert (reply.strategy, [(s.role, s.description) for s in reply.plan.subtasks]) == (
        "route",
        [("counter", QUESTION)],
    )
    assert small.asked == []


async def test_a_task_is_planned(small: Desk) -> None:
    reply = await plan(small, as_json({"subtasks": [T1]}))
    assert reply.strategy == "plan"
    assert len(small.asked) == 1


@pytest.mark.parametrize(
    ("goal", "roles"),
    [
        ("Why did the blossoms freeze?", [("reader", "required")]),
        (
            "How many kg of each sort were there, and what did frost do?",
            [("counter", "required"), ("reader", "required")],
        ),
    ],
)
async def test_a_question_that_documents_may_answer_is_read_for(
    small: Desk, goal: str, roles: list[tuple[str, str]]
) -> None:
    reply = await plan(small, goal=goal)
    assert reply.plan is not None
    assert [(subtask.role, subtask.importance) for subtask in reply.plan.subtasks] == roles
    assert small.asked == []


async def test_a_question_that_a_query_answers_whole_needs_no_plan_beside_documents(small: Desk) -> None:
    reply = await plan(small, goal="Which sort was picked most in 1990?")
    assert reply.plan is not None
    assert [subtask.role for subtask in reply.plan.subtasks] == ["counter"]
    assert small.asked == []


async def test_where_its_words_leave_that_open_a_reader_is_asked_too(small: Desk) -> None:
    reply = await plan(small, goal="How many kg are there?")
    assert reply.plan is not None
    asked = [(subtask.role, subtask.importance) for subtask in reply.plan.subtasks]
    assert asked == [("counter", "required"), ("reader", "optional")]


async def test_figures_and_their_reasons_are_asked_of_two_roles(small: Desk) -> None:
    reply = await plan(small, goal="How much of each sort was picked in the harvest of 1990, and what explains it?")
    assert reply.plan is not None
    assert [subtask.role for subtask in reply.plan.subtasks] == ["counter", "reader"]
    assert small.asked == []


async def test_a_subtask_that_is_written_again_and_again_is_one(small: Desk) -> None:
    again = [{**T1, "id": f"t{number}", "depends_on": [f"t{number - 1}"]} for number in range(2, 9)]
    reply = await plan(small, as_json({"subtasks": [T1, *again]}))
    assert reply.plan is not None
    (only,) = reply.plan.subtasks
    assert (only.id, only.depends_on, reply.plan.aggregation) == ("t1", [], "finding")
    assert "t8 asks for the same as t1" in reply.put_right


@pytest.mark.parametrize(("state", "finished"), [("failed", True), ("done", False)])
async def test_a_revision_that_only_repeats_what_failed_ends_the_planning(
    small: Desk, state: str, finished: bool
) -> None:
    counting = {**T1, "role": "counter"}
    again = {**counting, "id": "t2", "description": "From table HARVEST: give the kilograms of 1990!"}
    done = [WorkNote(subtask_id="t1", role="counter", state=state, note="no such column")]
    plan_ref = await small.plan(Subtask(**counting))
    reply = await plan(small, as_json({"subtasks": [again]}), plan_ref=plan_ref, revision=2, done=done)
    assert reply.finished == finished
    assert ("t2 is t1 again, which failed" in reply.put_right) == finished


@pytest.mark.parametrize("strategy", ["plan", "step", "route"])
async def test_each_way_of_planning_has_a_short_form(small: Desk, strategy: str) -> None:
    route = {"role": "counter", "description": T1["description"]}
    said = route if strategy == "route" else {"subtasks": [T1], "finished": False}
    reply = await plan(small, as_json(said), strategy=strategy)
    assert reply.plan is not None
    assert reply.plan.subtasks[0].role == "counter"
    assert len(small.prompt) < 3_500


async def turn(desk: Desk, description: str, reply: Reply, role: str = "counter", **fields: Any) -> TurnReply:
    """One turn of a worker agent with that subtask."""
    desk.say(reply)
    plan_ref = await desk.plan(Subtask(id="t1", description=description, role=role))
    folder = desk.teams_folder / "orchard"
    if not folder.exists():
        desk.write_orchard()
    brief = SubtaskBrief(plan_ref=plan_ref, subtask_id="t1")
    call = TurnInput(
        run=await desk.run_ref(),
        team_ref=await desk.team("orchard"),
        role=role,
        model=MODEL,
        brief=brief,
        step="turn.1",
        max_tokens=1000,
    ).model_copy(update=fields)
    activities = AgentTurnActivities(desk.calls, desk.teams)
    reply_of: TurnReply = await desk.do(activities.call_model, call, f"{desk.run_id}/t1/1")
    return reply_of


async def test_a_worker_agent_gets_short_rules_two_fields_and_the_columns_of_its_table(small: Desk) -> None:
    await turn(small, "From table harvest, give the kilograms of 1990", text("12"))
    assert "<data>\ntable harvest (year BIGINT" in small.prompt
    assert "year: 1990 to 1994" in small.prompt
    assert "Make one call at a time" in small.prompt
    tools = {tool["name"]: tool for tool in small.asked[-1].step.body["tools"]}
    assert list(tools["finish"]["input_schema"]["properties"]) == ["finding", "outcome"]
    assert not {"list_tables", "calculate", "read_output"} & set(tools)


@pytest.mark.parametrize(
    ("task", "is_told"),
    [
        ("From table harvest, give the last year listed", True),
        ("From table harvest, give the year listed after 1990", True),
        ("From table harvest, give the kilograms of 1990", False),
    ],
)
async def test_the_places_of_rows_are_told_where_they_may_answer(small: Desk, task: str, is_told: bool) -> None:
    await turn(small, task, text("12"))
    assert ("The tables also have rowid" in small.prompt) == is_told


async def test_the_columns_are_for_roles_that_can_query_them(small: Desk) -> None:
    await turn(small, "From the document on frost, say what it does to table harvest", text("harm"), "reader")
    assert "<data>" not in small.prompt


async def test_a_reader_begins_with_a_search_that_the_program_makes(small: Desk) -> None:
    small.write_library()
    task = "Why did the blossoms of 1991 freeze?"
    begun = await turn(small, f"{task}\nGive only what documents have.", text("never sent"), "reader")
    (call,) = begun.calls
    assert (call.name, call.preview) == ("search_documents", task)
    assert (small.asked, begun.usage.model_calls) == ([], 0)

    request = ToolInput(
        run=await small.run_ref(),
        team_ref=await small.team("orchard"),
        role="reader",
        head=begun.head,
        call=call,
    )
    activities = ToolActivities(small.store, small.teams, AnthropicModel())
    ran = await small.do(activities.run_tool, request, f"{small.run_id}/t1/1")
    assert ran.result.sources

    later: dict[str, Any] = {"step": "turn.2", "head": begun.head, "brief": None, "results": [ran.result]}
    told = await turn(small, task, text("A late frost froze them."), "reader", **later)
    assert "with the facts of this text" in small.prompt
    assert "calculate" not in [tool["name"] for tool in small.asked[-1].step.body["tools"]]
    assert told.finding is not None
    record = FindingRecord.model_validate_json(await small.store.get(told.finding.record_ref))
    assert [item.tool for item in record.evidence] == ["search_documents"]


@pytest.mark.parametrize("words", [AFTER_DATA, AFTER_READING])
async def test_the_words_below_an_output_are_no_finding(small: Desk, words: str) -> None:
    small.write_library()
    begun = await turn(small, "Why did the blossoms freeze?", text("-"), "reader")
    ref = await small.put("passages", "[frost.md] Why frost harms pears: It freezes the blossoms.")
    result = ToolResultRef(call_id=begun.calls[0].call_id, ref=ref, sources=["frost.md"])
    later: dict[str, Any] = {"step": "turn.2", "head": begun.head, "brief": None, "results": [result]}

    echoed = await turn(small, "Why did the blossoms freeze?", text(words), "reader", **later)

    assert echoed.empty == "says_nothing"


@pytest.mark.parametrize(
    ("result", "is_told"),
    [
        (ToolResultRef(call_id="program_1", ref="run/outputs/1", sources=["a.md"]), True),
        (ToolResultRef(call_id="toolu_1", ref="run/outputs/1", sources=["a.md"]), True),
        (ToolResultRef(call_id="toolu_1", text="This call was made before."), True),
        (ToolResultRef(call_id="toolu_1", text="There is no such tool.", is_error=True), False),
        (ToolResultRef(call_id="program_1", ref="run/outputs/1"), False),
    ],
)
def test_a_reader_is_told_to_answer_from_what_it_read(result: ToolResultRef, is_told: bool) -> None:
    assert bool(step_after_reading([result])) is is_told


@pytest.mark.parametrize("fields", [{"last": True}, {"anew_from": "run/calls/1"}])
async def test_who_concludes_or_begins_anew_makes_its_own_calls(small: Desk, fields: dict[str, Any]) -> None:
    small.write_library()
    if "anew_from" in fields:
        before = await turn(small, "Why did the blossoms freeze?", text("-"), "reader", step="turn.9")
        fields = {"anew_from": before.head}
    asked_before = len(small.asked)
    reply = await turn(small, "Why did the blossoms freeze?", text("A late frost froze them."), "reader", **fields)
    assert reply.calls == []
    assert len(small.asked) == asked_before + 1


async def test_a_model_with_a_large_window_gets_none_of_this(desk: Desk) -> None:
    await turn(desk, "From table harvest, give the kilograms of 1990", text("12"))
    assert "<data>" not in desk.prompt
    tools = {tool["name"]: tool for tool in desk.asked[-1].step.body["tools"]}
    assert len(tools["finish"]["input_schema"]["properties"]) == 5


async def test_a_query_is_doubted_once_before_anything_is_concluded_from_it(small: Desk) -> None:
    mean = "From table harvest, give the mean kilograms"
    query = tools(("query_data", {"sql": "SELECT kg FROM harvest WHERE year = 1990"}))
    asked = await turn(small, mean, query)
    output = await small.put("output", "| kg |\n| --- |\n| 12 |\n1 row")
    result = ToolResultRef(call_id=asked.calls[0].call_id, ref=output)
    again = await turn(small, mean, query, step="turn.2", head=asked.head, brief=None, results=[result])
    assert "Conclude nothing from this yet" in small.prompt
    assert "- the query computes no mean, which the question asks for" in small.prompt
    assert small.prompt.endswith("Reply with the corrected query in one sql block.")

    result = ToolResultRef(call_id=again.calls[0].call_id, ref=output)
    await turn(small, mean, text("12"), step="turn.3", head=again.head, brief=None, results=[result])
    assert small.prompt.endswith("Call finish with the answer in one sentence, as this output shows it.")


async def test_the_facts_of_a_result_reach_the_checks_and_the_record_of_a_finding(small: Desk) -> None:
    asked = await turn(small, PICKED, tools(("query_data", {"sql": "SELECT kg FROM harvest WHERE year < 1900"})))
    request = ToolInput(
        run=await small.run_ref(),
        team_ref=await small.team("orchard"),
        role="counter",
        head=asked.head,
        call=asked.calls[0],
    )
    activities = ToolActivities(small.store, small.teams, AnthropicModel())
    ran = await small.do(activities.run_tool, request, f"{small.run_id}/t1/1")
    assert ran.result.facts == QueryFacts(nothing="no_rows")

    later: dict[str, Any] = {"head": asked.head, "brief": None, "step": "turn.2"}
    told = await turn(small, PICKED, text("12 kg were picked."), results=[ran.result], **later)
    assert "No row has this." in small.prompt
    assert told.ungrounded
    assert told.finding is not None
    record = FindingRecord.model_validate_json(await small.store.get(told.finding.record_ref))
    assert [call.facts for call in record.evidence] == [ran.result.facts]

    older = ran.result.model_copy(update={"facts": None})
    later |= {"step": "turn.3"}
    assert not (await turn(small, PICKED, text("12 kg were picked."), results=[older], **later)).ungrounded


async def other_query(desk: Desk, sql: str, output: str, *, is_error: bool = False) -> OtherQuery:
    """Has the agent write another query; `output` is what it returned."""
    reply = await turn(desk, PICKED, tools(("query_data", {"sql": sql})), step="query.1.1", another_query=1)
    ref = await desk.put("other", output)
    result = ToolResultRef(call_id=reply.calls[0].call_id, ref=ref, is_error=is_error)
    return OtherQuery(head=reply.head, result=result)


async def test_another_query_is_written_from_the_question_alone(small: Desk) -> None:
    asked = await turn(small, PICKED, COUNT)
    assert asked.others_due
    again = await turn(small, PICKED, COUNT, step="query.1.1", another_query=1)
    assert not again.others_due
    body = small.asked[-1].step.body
    assert [tool["name"] for tool in body["tools"]] == ["query_data"]
    assert len(body["messages"]) == 1
    assert f"is the answer to it: {PICKED}\nReply with it in one sql block" in small.prompt
    assert "<data>\ntable harvest (year BIGINT" in small.prompt


async def test_a_model_with_a_large_window_writes_no_other_query(desk: Desk) -> None:
    assert not (await turn(desk, PICKED, COUNT)).others_due


async def test_two_queries_that_return_different_things_are_a_doubt_until_they_agree(small: Desk) -> None:
    asked = await turn(small, PICKED, COUNT)
    other = await other_query(small, "SELECT sum(kg) FROM harvest", "| n |\n| --- |\n| 31 |\n1 row")
    result = ToolResultRef(call_id=asked.calls[0].call_id, ref=await small.put("first", "| n |\n| --- |\n| 5 |\n1 row"))
    later: dict[str, Any] = {"head": asked.head, "brief": None, "others": [other]}
    doubted = await turn(small, PICKED, COUNT, step="turn.2", results=[result], **later)
    words = "- another query for it returned 31, not 5: SELECT sum(kg) FROM harvest\n"
    assert words in small.prompt
    assert small.prompt.endswith("Reply with the corrected query in one sql block.")

    kept = await turn(small, PICKED, text("It is 5."), step="turn.3", results=[result], **later)
    assert kept.finding is not None
    assert kept.finding.doubts == [words[2:-1]]

    output = await small.put("third", "| kg |\n| --- |\n| 31 |\n1 row")
    result = ToolResultRef(call_id=doubted.calls[0].call_id, ref=output)
    third = await other_query(small, "SELECT sum(kg) AS kg FROM harvest", "| kg |\n| --- |\n| 31 |\n1 row")
    later |= {"head": doubted.head, "others": [other, third]}
    agreed = await turn(small, PICKED, text("It is 31 kg."), step="turn.4", results=[result], **later)
    assert agreed.finding is not None
    assert agreed.finding.doubts == []


async def test_another_query_that_found_something_is_shown_to_one_that_did_not(small: Desk) -> None:
    asked = await turn(small, PICKED, COUNT)
    other = await other_query(small, "SELECT kg FROM harvest", "| kg |\n| --- |\n| 31 |\n1 row")
    later: dict[str, Any] = {"head": asked.head, "brief": None, "others": [other]}
    for output, is_error in (("| n |\n| --- |\n0 rows", False), ("There is no column n", True)):
        ref = await small.put("first", output)
        facts = None if is_error else QueryFacts(nothing="no_rows")
        result = ToolResultRef(call_id=asked.calls[0].call_id, ref=ref, is_error=is_error, facts=facts)
        await turn(small, PICKED, COUNT, step=f"turn.{2 + is_error}", results=[result], **later)
        assert "But another query for it returned 31: SELECT kg FROM harvest. Reply" in small.prompt


@pytest.mark.parametrize(
    ("facts", "is_error", "words"),
    [
        (QueryFacts(), False, "finish with the answer"),
        (None, False, "finish with the answer"),
        (QueryFacts(nothing="conditions_unmet"), False, "other conditions"),
        (QueryFacts(nothing="no_such_value"), False, "other conditions"),
        (QueryFacts(nothing="no_rows"), False, "other conditions"),
        (None, True, "corrected query"),
    ],
)
def test_an_agent_that_queries_is_told_its_next_step(facts: QueryFacts | None, is_error: bool, words: str) -> None:
    result = ToolResultRef(call_id="c1", ref="run/outputs/1", is_error=is_error, facts=facts)
    assert words in next_step([result], "")


def test_an_agent_whose_query_is_doubted_is_asked_for_another_one() -> None:
    """Nothing else is asked for: a small model would choose to repeat its finding."""
    note = objection([], False, doubts=["the query computes no mean"])
    step = next_step([], note)
    assert "- the query computes no mean\n\nReply with the corrected query in one sql block." in step
    assert QUERY_AGAIN in note
    assert QUERY_AGAIN not in step
