"""Validation finds every fault of a plan, vague descriptions too; revisions add to it, and what was done stays."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.plan import NewRole, Plan, Subtask
from temporal_supervisor.supervision.contract.result import SubtaskState
from temporal_supervisor.supervision.planning.plan_graph import (
    description_problems,
    find_cycle,
    is_concrete,
    plan_problems,
)
from temporal_supervisor.supervision.planning.revisions import merge, replacements, revision_problems
from tests.unit.shapes import acyclic_plans, any_plans, any_text, plan, subtask

VAGUE = """
Do the research
Find information about it
Analyze the data and provide insights
Gather all relevant information
Write a report
Answer the question
Prepare the final answer
Identify key trends and patterns in the data
Search for useful material
Perform an in-depth analysis
Support the project with additional information
""".strip().splitlines()

CONCRETE = """
Count the pears of 1990
Give life expectancy at birth in Japan and Sierra Leone in 2007, in years, and the difference
Write the findings of t1 and t2 as a document with a table of both countries
Review the indemnification clauses of the supplier contract for unlimited liability
Identify competitors of the e-bike rental Wheely in Lyon with their hourly prices
Count the swans
Answer this goal: How large is the pear crop?
Finds background, causes and definitions. Question: Why did wind power grow in Iowa?
Vergleiche die Strompreise für Haushalte in Dänemark und Polen seit der Einführung der Einspeisevergütung
Calculer la part de l'éolien dans la production électrique de l'Iowa en 2011
Compara el precio de las acciones de IBM y Amazon entre 2001 y 2005
Calcule a participação da energia eólica na matriz elétrica do Ceará
比较日本和塞拉利昂2007年的预期寿命
アイオワ州の風力発電が伸びた理由を資料から説明する
Сравни продолжительность жизни в Японии и Сьерра-Леоне
احسب حصة طاقة الرياح من كهرباء ولاية آيوا
""".strip().splitlines()


def executable(candidate: Plan) -> bool:
    """True if taking away all that have no open dependency empties the graph: another way to say acyclic."""
    open_ids = {s.id: set(s.depends_on) for s in candidate.subtasks}
    while ready := [subtask_id for subtask_id, waits in open_ids.items() if not waits & open_ids.keys()]:
        for subtask_id in ready:
            del open_ids[subtask_id]
    return not open_ids


@given(any_plans())
def test_a_plan_is_accepted_exactly_when_it_can_run_and_every_fault_is_named(candidate: Plan) -> None:
    ids = [s.id for s in candidate.subtasks]
    sound = len(set(ids)) == len(ids) and all(d in ids for s in candidate.subtasks for d in s.depends_on)
    found = plan_problems(candidate, 10)
    assert (found == []) == (sound and executable(candidate))
    for subtask_id in ids:
        assert (f"subtask id '{subtask_id}' is used twice" in found) == (ids.count(subtask_id) > 1)
    for item in candidate.subtasks:
        for dependency in item.depends_on:
            if dependency not in ids:
                assert f"subtask '{item.id}' depends on '{dependency}', which is not in the plan" in found
    circle, by_id = find_cycle(candidate.subtasks), {s.id: s for s in candidate.subtasks}
    assert circle[:1] == circle[-1:]
    assert all(after in by_id[before].depends_on for before, after in zip(circle, circle[1:], strict=False))


def test_a_long_chain_is_no_circle_and_no_recursion() -> None:
    chain = [subtask("t0"), *[subtask(f"t{n}", f"t{n - 1}") for n in range(1, limits.MAX_SUBTASKS)]]
    assert plan_problems(plan(*reversed(chain)), limits.MAX_SUBTASKS) == []


LONGEST = limits.MAX_DEADLINE.total_seconds()


@pytest.mark.parametrize(
    ("field", "good", "bad", "complaint"),
    [
        ("id", ["a", "x" * 64], ["", "x" * 65, "a b", "tâche"], "must be 1 to 64 letters"),
        ("candidates", [1, limits.CANDIDATES], [0, limits.CANDIDATES + 1], "candidates, 1 to 5 are allowed"),
        ("timeout_seconds", [0.1, LONGEST], [0.0, LONGEST + 1, float("nan")], "a timeout_seconds that is not above 0"),
        (
            "description",
            ["count pears.", "数数梨的数量", "Sum the sales", "Найди выручку", "find\tthe\nsales of 1990"],
            ["count pears", "count-the-pears", "数梨", "  count pear  ", "researchresearch", " " * 40],
            "no concrete description",
        ),
        ("description", [], VAGUE[:5], "subtask 't1' is vague"),
        (
            "description",
            ["sales of 1990 " + "x" * (limits.DESCRIPTION_CHARS - 14)],
            ["sales of 1990 " + "x" * (limits.DESCRIPTION_CHARS - 13)],
            "more than 4000 characters",
        ),
        ("attachments", [["there.txt"]], [["gone.txt"]], "the attachment 'gone.txt', which does not exist"),
    ],
)
def test_fields_are_taken_up_to_their_bounds(field: str, good: list[object], bad: list[object], complaint: str) -> None:
    for value in good:
        assert plan_problems(plan(subtask("t1").model_copy(update={field: value})), 1, ["there.txt"]) == [], value
    for value in bad:
        [problem] = plan_problems(plan(subtask("t1").model_copy(update={field: value})), 1, ["there.txt"])
        assert complaint in problem, value


@given(any_text, any_text)
def test_whatever_a_model_writes_gets_problems_that_can_be_sent_back(subtask_id: str, description: str) -> None:
    candidate = plan(subtask(subtask_id, description=description), subtask("t2", subtask_id))
    for found in plan_problems(candidate, 5):
        assert "\n" not in found
        found.encode("utf-8")
    if not plan_problems(candidate, 5):
        assert Plan.model_validate_json(candidate.model_dump_json()) == candidate


def test_a_plan_answers_directly_or_delegates_to_as_many_as_are_allowed() -> None:
    direct = Plan(direct_answer="Four.")
    assert plan_problems(direct, 5) == []
    assert "not both" in plan_problems(direct.model_copy(update={"subtasks": [subtask("t1")]}), 5)[0]
    assert "no subtasks" in plan_problems(Plan(direct_answer=" \n"), 5)[0]
    assert "no subtasks" in plan_problems(Plan(), 5)[0]
    two = plan(subtask("t1"), subtask("t2"))
    assert plan_problems(two, 2) == []
    assert plan_problems(two, 1) == ["the plan has 2 subtasks, at most 1 are allowed"]
    for field in ("goal", "final_instruction", "direct_answer"):
        assert "surrogate" in plan_problems(two.model_copy(update={field: "\ud83e"}), 5)[0]


# --- vague and concrete descriptions -------------------------------------------------------------------

ROOT = Path(__file__).parents[3]


def test_nine_of_ten_vague_descriptions_are_refused_and_no_concrete_one() -> None:
    questions = re.findall(r'^question = "(.+)"$', (ROOT / "teams/almanac/team.toml").read_text(), re.MULTILINE)
    assert len(questions) > 10
    assert sum(map(is_concrete, VAGUE)) <= 0.1 * len(VAGUE)
    assert [text for text in (*CONCRETE, *questions) if not is_concrete(text)] == []
    for each in ({"item": "a.pdf"}, {"for_each": "files:*"}):  # an item is a name
        assert not description_problems(subtask("t1", **{"description": "Read the contract", **each}))


@pytest.mark.parametrize(
    ("text", "reads", "concrete"),
    [
        ("x z q", False, False),
        ("xy", False, False),
        ("xy zq", False, True),
        ("x2", False, True),
        ("梨", False, False),
        ("梨苹", False, False),
        ("梨苹果李", False, True),
        ("Translate the document", False, False),
        ("Translate the document", True, True),
    ],
)
def test_two_names_or_one_with_a_number_are_concrete_and_an_attachment_is_a_name(
    text: str, reads: bool, concrete: bool
) -> None:
    assert is_concrete(text, reads=reads) == concrete


# --- revisions ---------------------------------------------------------------------------------------


STATES: list[SubtaskState] = ["completed", "failed", "skipped", "cancelled", "running", "waiting"]


def replacing(subtask_id: str, *replaces: str, after: tuple[str, ...] = ()) -> Subtask:
    return subtask(subtask_id, *after, replaces=list(replaces))


@st.composite
def additions(draw: st.DrawFn, previous: Plan, prefix: str, replaceable: list[str]) -> Plan:
    """New subtasks that build on anything older; some take the place of failed ones."""
    known = [s.id for s in previous.subtasks]
    new: list[Subtask] = []
    for n in range(draw(st.integers(1, 4))):
        replaces = draw(st.lists(st.sampled_from(replaceable), unique=True, max_size=2)) if replaceable else []
        depends_on = draw(st.lists(st.sampled_from([*known, *[s.id for s in new]]), unique=True, max_size=3))
        new.append(replacing(f"{prefix}{n}", *replaces, after=tuple(depends_on)))
    return plan(*new)


def replaceable(candidate: Plan, states: dict[str, SubtaskState]) -> list[str]:
    gone = replacements(candidate.subtasks)
    return [s.id for s in candidate.subtasks if states[s.id] in ("failed", "skipped") and s.id not in gone]


@given(acyclic_plans(8), st.data())
def test_revisions_change_no_started_work_and_leave_a_graph_that_can_run(current: Plan, data: st.DataObject) -> None:
    states: dict[str, SubtaskState] = {}
    for revision in range(2, 5):
        for s in current.subtasks:
            if states.get(s.id, "waiting") == "waiting":
                states[s.id] = data.draw(st.sampled_from(STATES))
        addition = data.draw(additions(current, f"r{revision}-", replaceable(current, states)))
        if revision_problems(current, addition, 99, states):
            continue
        merged = merge(current, addition, states)
        assert merged.revision == current.revision + 1
        assert [s.id for s in merged.subtasks] == [s.id for s in [*current.subtasks, *addition.subtasks]]
        assert find_cycle(merged.subtasks) == []
        gone = replacements(merged.subtasks)
        for before, after in zip(current.subtasks, merged.subtasks, strict=False):
            assert after.model_copy(update={"depends_on": before.depends_on}) == before
            if states[before.id] not in ("waiting", "skipped") or before.id in gone:
                assert after == before
        for s in merged.subtasks:
            assert set(s.depends_on) <= {other.id for other in merged.subtasks} - {s.id}
            if states.get(s.id, "waiting") in ("waiting", "skipped") and s.id not in gone:
                assert not gone.keys() & {*s.depends_on}
        current = merged


def test_dependents_that_have_not_started_wait_for_the_replacement() -> None:
    previous = plan(subtask("t1"), subtask("t2"), subtask("t3", "t1"), subtask("t4", "t2"), subtask("t5", "t3", "t4"))
    states: dict[str, SubtaskState] = {"t1": "failed", "t2": "completed", "t3": "skipped", "t4": "running"}
    merged = merge(previous, plan(replacing("t6", "t1")), states)
    assert [s.depends_on for s in merged.subtasks] == [[], [], ["t6"], ["t2"], ["t3", "t4"], []]
    merged = merge(previous, plan(replacing("t6", "t1", "t3")), states)
    assert [s.depends_on for s in merged.subtasks] == [[], [], ["t1"], ["t2"], ["t6", "t4"], []]
    assert previous.subtask("t5").depends_on == ["t3", "t4"]


def test_the_last_instruction_and_reason_stand_and_roles_are_added() -> None:
    role = NewRole(name="poet", description="d", system_prompt="p")
    first = {"final_instruction": "short", "reasoning": "as asked", "new_roles": [role]}
    previous = plan(subtask("t1")).model_copy(update=first)
    addition = plan(subtask("t2"))
    merged = merge(previous, addition, {})
    assert (merged.final_instruction, merged.reasoning, merged.new_roles) == ("short", "as asked", [role])
    later = {"final_instruction": "long", "reasoning": "it failed", "new_roles": [role]}
    merged = merge(previous, addition.model_copy(update=later), {})
    assert (merged.final_instruction, merged.reasoning, merged.new_roles) == ("long", "it failed", [role, role])
    assert merged.goal == "g"


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        (subtask("t1"), "subtask id 't1' is in the plan already: give new subtasks new ids"),
        (replacing("t9", "t7"), "subtask 't9' replaces 't7', which is not in the plan so far"),
        (replacing("t9", "t2"), "subtask 't9' replaces 't2', which is completed: only failed or skipped ones can be"),
        (replacing("t9", "t1"), "subtask 't9' replaces 't1', which t3 replaced before: replace that"),
        (replacing("t9", "t3", after=("t3",)), "subtask 't9' depends on 't3', which it replaces"),
        (subtask("t9", "t9"), "these subtasks depend on each other in a circle: t9 -> t9"),
        (replacing("t9", "t3", after=("t4",)), "these subtasks depend on each other in a circle: "),
    ],
)
def test_an_addition_that_does_not_fit_is_refused_with_the_reason(added: Subtask, complaint: str) -> None:
    previous = plan(subtask("t1"), subtask("t2"), replacing("t3", "t1"), subtask("t4", "t3"))
    states: dict[str, SubtaskState] = {"t1": "failed", "t2": "completed", "t3": "failed"}
    [found] = revision_problems(previous, plan(added), 9, states)
    assert found.startswith(complaint)
    assert revision_problems(previous, plan(), 9, states) == ["the revision adds no subtasks"]


def test_a_plan_names_the_finding_that_is_its_answer() -> None:
    def problems(*subtasks: Subtask, **fields: str) -> list[str]:
        return plan_problems(Plan.model_validate({"subtasks": list(subtasks), **fields}), 3)

    swans, pears = (Subtask(id=each, description="Count the swans of 1990") for each in ("t1", "t2"))
    each_file = Subtask(id="t3", description="Count the swans of each list", for_each="items:t1", depends_on=["t1"])
    assert problems(swans, pears, aggregation="finding", answer_from="t2") == []
    assert problems(swans, aggregation="finding") == []
    unnamed = 'aggregation is "finding": answer_from has to name the subtask of the answer'
    assert problems(swans, pears, aggregation="finding") == [unnamed]
    unknown = "answer_from names 't9', which is not in the plan"
    assert problems(swans, pears, aggregation="finding", answer_from="t9") == [unknown]
    many = "answer_from names 't3', which has a finding for each item: write the answer from them"
    assert problems(swans, each_file, aggregation="finding", answer_from="t3") == [many]
    assert problems(swans, answer_from="t1") == ['answer_from is only for the aggregation "finding"']
