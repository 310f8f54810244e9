"""Subtasks of a plan by id."""

import pytest

from supervision.contract.plan import unknown_fields
from tests.unit.shapes import plan, subtask


def test_a_subtask_is_known_by_its_id() -> None:
    shape = plan(subtask("t1"), subtask("t2"))
    assert shape.subtask("t2") is shape.subtasks[1]
    with pytest.raises(KeyError, match="t3"):
        shape.subtask("t3")


def test_fields_that_a_plan_does_not_have_are_named_by_their_place() -> None:
    written: dict[str, object] = {
        "goal": "g",
        "aim": 1,
        "subtasks": [{"id": "t1"}, {"id": "t2", "needs": [], "description": ""}, "t3"],
        "new_roles": [{"name": "a", "tool": "b"}],
    }
    assert unknown_fields(written) == ["aim", "subtasks.1.needs", "new_roles.0.tool"]


@pytest.mark.parametrize("subtasks", [None, "t1", 3, {"needs": 1}, []])
def test_lists_that_are_none_have_no_fields(subtasks: object) -> None:
    assert unknown_fields({"subtasks": subtasks}) == []
