"""Long lists in payloads: the largest that a run can have fit, and come back as they were."""

import zlib
from base64 import b64encode
from hashlib import sha256

import pytest

from activities.contracts.packed import DependencyRef
from activities.contracts.planning_contracts import PlanReply
from activities.contracts.run_contracts import RunRef, SubtaskBrief
from activities.questions.judgement import ReviewInput
from supervision.base import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.usage import Usage

RUN = "r" * 200
REF = f"{RUN}/outputs/" + "f" * 64
LONGEST = [f"t{number}".ljust(64, "x") for number in range(limits.MAX_SUBTASKS)]
CALL = {"run": RunRef(run_id=RUN, store_id="s"), "goal_ref": REF, "plan_ref": REF, "model": "m" * 100}


def findings(ids: list[str]) -> list[DependencyRef]:
    return [
        DependencyRef(
            subtask_id=subtask_id,
            role=f"role-{number % 50}".ljust(64, "y"),
            text_ref=f"{RUN}/outputs/" + sha256(b"%d" % number).hexdigest(),
            bytes=number,
            complete=bool(number % 2),
            record_ref=f"{RUN}/outputs/" + sha256(subtask_id.encode()).hexdigest(),
        )
        for number, subtask_id in enumerate(ids)
    ]


def test_a_thousand_findings_fit_into_a_review() -> None:
    sent = ReviewInput(**CALL, round=1, findings=findings(LONGEST))
    written = sent.model_dump_json()
    assert len(written) < limits.PAYLOAD_HARD_BYTES
    assert ReviewInput.model_validate_json(written) == sent


def test_a_brief_that_builds_on_many_findings_is_small() -> None:
    brief = SubtaskBrief(goal_ref=REF, plan_ref=REF, subtask_id="t", dependencies=findings(LONGEST[:110]))
    written = brief.model_dump_json()
    assert len(written) < 110 * 200
    assert SubtaskBrief.model_validate_json(written) == brief


def test_a_plan_of_a_thousand_subtasks_fits_into_a_reply() -> None:
    subtasks = [
        Subtask(id=subtask_id, description="Find out about it", role="r" * 40, depends_on=LONGEST[number - 2 : number])
        for number, subtask_id in enumerate(LONGEST)
    ]
    reply = PlanReply(head=REF, plan=Plan(goal="g", subtasks=subtasks), usage=Usage())
    written = reply.model_dump_json()
    assert len(written) < limits.PLAN_REPLY_BYTES
    assert PlanReply.model_validate_json(written) == reply


def brief_with(packed: object) -> SubtaskBrief:
    return SubtaskBrief.model_validate({"goal_ref": REF, "plan_ref": REF, "subtask_id": "t", "dependencies": packed})


@pytest.mark.parametrize(
    "forged",
    [
        b64encode(zlib.compress(b" " * 50_000_000)).decode(),
        b64encode(b"no stream").decode(),
        b64encode(zlib.compress(b"[" * 100_000)).decode(),
        "é",
        None,
    ],
    ids=["a bomb", "not compressed", "deep", "not base64", "nothing"],
)
def test_a_forged_list_is_refused_in_little_time_and_memory(forged: str | None) -> None:
    with pytest.raises(ValueError, match="dependencies"):
        brief_with({"zlib": forged})
