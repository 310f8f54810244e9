"""A plan as a model wrote it, put right; and the tables that a text names."""

from typing import Any

import pytest

from temporal_supervisor.supervision.contract.plan import NewRole, Plan, Subtask
from temporal_supervisor.supervision.planning.named_tables import named_tables, table_lines
from temporal_supervisor.supervision.planning.put_right import KnownNames, put_right

DATA = {"rows": ["orders", "sales_2024"], "lines": ["notes.md"], "files": ["a.pdf", "b.pdf", "notes.md"]}


def subtask(subtask_id: str = "t1", **fields: Any) -> Subtask:
    return Subtask(id=subtask_id, description="Count the orders of May", **fields)


def right(*subtasks: Subtask, **names: Any) -> tuple[list[Subtask], list[str]]:
    plan, notes = put_right(Plan(subtasks=list(subtasks)), KnownNames(data=DATA, **names))
    return plan.subtasks, notes


def test_a_plan_that_is_right_stays_as_it_is() -> None:
    first = subtask(for_each="files:*.pdf", max_items=2, attachments=["budget"], capabilities=["sums"])
    second = subtask("t2", depends_on=["t1"])
    assert right(first, second, attachments=["budget"], capabilities=["sums"]) == ([first, second], [])


def test_a_name_that_differs_by_few_letters_is_meant() -> None:
    subtasks, notes = right(subtask(for_each="rows:order", attachments=["Budgets"]), attachments=["budget"])
    assert subtasks == [subtask(for_each="rows:orders", attachments=["budget"])]
    assert notes == [
        "t1: there is no attachment 'Budgets': 'budget' is meant",
        "t1: there is no 'order': 'orders' is meant",
    ]


@pytest.mark.parametrize("for_each", ["rows:South", "files:*.docx", "every contract", "lines:", "items:t9"])
def test_items_that_do_not_exist_make_one_subtask(for_each: str) -> None:
    subtasks, notes = right(subtask(for_each=for_each, max_items=3))
    assert subtasks == [subtask()]
    assert len(notes) == 1


def test_a_template_depends_on_the_subtask_that_names_its_items() -> None:
    subtasks, _ = right(subtask(), subtask("t2", for_each="items:t1"))
    assert subtasks[1].depends_on == ["t1"]


def test_ids_that_cannot_be_ids_are_made_ones() -> None:
    subtasks, notes = right(subtask("Step 1"), subtask(""), subtask("Step 1"), subtask("x", depends_on=["Step 1"]))
    assert [each.id for each in subtasks] == ["Step-1", "t1", "t2", "x"]
    assert subtasks[3].depends_on == ["Step-1"]
    assert len(notes) == 3


def its_answer(plan: Plan) -> tuple[str, str | None]:
    right_plan, _ = put_right(plan, KnownNames(data=DATA))
    return right_plan.aggregation, right_plan.answer_subtask


def test_the_answer_is_the_finding_of_a_subtask_that_there_is() -> None:
    pair = [subtask(), subtask("t2", depends_on=["t1"])]
    assert its_answer(Plan(subtasks=pair, aggregation="finding", answer_from="t1")) == ("finding", "t1")
    # Of names that are none the last subtask is meant, where there is one last.
    assert its_answer(Plan(subtasks=pair, aggregation="finding", answer_from="t7")) == ("finding", "t2")
    assert its_answer(Plan(subtasks=pair, aggregation="finding")) == ("finding", "t2")
    assert its_answer(Plan(subtasks=[subtask()], aggregation="finding")) == ("finding", "t1")
    side_by_side = [subtask(), subtask("t2")]
    assert its_answer(Plan(subtasks=side_by_side, aggregation="finding")) == ("merge", None)
    assert its_answer(Plan(subtasks=side_by_side, answer_from="t1")) == ("merge", None)
    template = [subtask(for_each="files:*.pdf")]
    assert its_answer(Plan(subtasks=template, aggregation="finding", answer_from="t1")) == ("merge", None)


def test_only_subtasks_that_failed_or_were_skipped_are_replaced() -> None:
    states = {"t1": "completed", "t2": "failed"}
    subtasks, notes = right(subtask("t3", replaces=["t1", "t2", "t8"]), states=states)
    assert subtasks[0].replaces == ["t2"]
    assert notes == ["t3: there is no subtask 't8'", "t3: t1 is completed and stays"]


def test_a_new_role_that_no_subtask_has_is_left_out() -> None:
    cook, baker = (NewRole(name=name, description="Cooks.", system_prompt="You cook.") for name in ("cook", "baker"))
    plan, notes = put_right(Plan(subtasks=[subtask(role="cook")], new_roles=[cook, baker]), KnownNames())
    assert plan.new_roles == [cook]
    assert notes == ["no subtask has the new role 'baker'"]


CATALOGUE = """\
- table orders (month: 2020 to 2024; rows: 51): Orders, per month
- table sales_2024 (region; rows: 3)
- document [table-of-contents.md] What is in the table orders (all of it)
- and 3 more, which the tools list"""


def test_a_catalogue_lists_its_tables() -> None:
    assert list(table_lines(CATALOGUE)) == ["orders", "sales_2024"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("From table orders, give the orders of May", ["orders"]),
        ("From the orders table, give May", ["orders"]),
        ('Use "orders" and `SALES_2024`', ["orders", "sales_2024"]),
        ("Give the sum of sales_2024", ["sales_2024"]),
        ("Find in the documents why orders fell", []),
        ("Say what reorders and the sales of 2024 have in common", []),
        ("From table preorders, count", []),
    ],
)
def test_a_table_is_named_by_its_name_and_not_by_an_ordinary_word(text: str, named: list[str]) -> None:
    assert named_tables(text, table_lines(CATALOGUE)) == named
