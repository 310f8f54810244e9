"""Subtasks of a plan by id."""

import pytest

from tests.unit.shapes import plan, subtask


def test_a_subtask_is_known_by_its_id() -> None:
    shape = plan(subtask("t1"), subtask("t2"))
    assert shape.subtask("t2") is shape.subtasks[1]
    with pytest.raises(KeyError, match="t3"):
        shape.subtask("t3")
