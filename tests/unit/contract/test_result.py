"""The subtasks of a result, as they travel."""

from supervision.base import limits
from supervision.contract.result import RunResult, SubtaskReport


def shown(subtasks: int, *, truncated: bool) -> list[dict[str, object]]:
    reports = [SubtaskReport(id=f"t{number}") for number in range(subtasks)]
    listed: list[dict[str, object]] = RunResult(subtasks=reports, truncated=truncated).model_dump(mode="json")[
        "subtasks"
    ]
    return listed


def test_fields_without_a_value_are_left_out_of_a_long_list_in_a_truncated_result_only() -> None:
    whole = SubtaskReport(id="t0").model_dump(mode="json")
    assert shown(limits.STATUS_PAGE, truncated=True)[0] == whole
    assert shown(limits.STATUS_PAGE + 1, truncated=False)[0] == whole
    assert shown(limits.STATUS_PAGE + 1, truncated=True)[0] == {"id": "t0", "state": whole["state"]}
