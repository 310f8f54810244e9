"""Long lists in payloads, results as they are stored, and what a finding cannot carry."""

import zlib
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import DependencyRef, PlanReply, Published, PublishInput, RunRef, SubtaskBrief
from activities.questions.judgement import ReviewInput
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.result import Gap, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.answer import with_gaps
from tests.activity.supervising import Desk

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


def test_a_plan_of_a_thousand_subtasks_fits_into_a_reply() -> None:
    subtasks = [
        Subtask(id=subtask_id, description="Find out about it", role="r" * 40, depends_on=LONGEST[number - 2 : number])
        for number, subtask_id in enumerate(LONGEST)
    ]
    reply = PlanReply(head=REF, plan=Plan(goal="g", subtasks=subtasks), usage=Usage())
    written = reply.model_dump_json()
    assert len(written) < limits.PLAN_REPLY_BYTES
    assert PlanReply.model_validate_json(written) == reply


def packed(sign: bytes, count: int) -> str:
    return b64encode(zlib.compress(sign * count)).decode()


@pytest.mark.parametrize(
    "forge",
    [lambda: packed(b" ", 50_000_000), lambda: packed(b"[", 100_000), lambda: "é"],
    ids=["a bomb", "deep", "not base64"],
)
def test_a_forged_list_is_refused_in_little_time_and_memory(forge: Callable[[], str]) -> None:
    forged = forge()
    with pytest.raises(ValueError, match="dependencies"):
        SubtaskBrief.model_validate(
            {"goal_ref": REF, "plan_ref": REF, "subtask_id": "t", "dependencies": {"zlib": forged}}
        )


EVENT = TraceEvent(seq=1, at="2026-01-01T00:00:00Z", type="phase")


async def publish(desk: Desk, publication: PublishInput) -> tuple[Published, RunResult]:
    refs: Published = await ActivityEnvironment().run(desk.run_activities().publish_result, publication, [EVENT])
    return refs, RunResult.model_validate_json(await desk.read(refs.result_ref))


async def test_a_shortened_answer_is_stored_whole_with_its_gaps(desk: Desk) -> None:
    whole = "Pears grew. " * 10_000
    gaps, ref = [Gap(subtask_id="t2", reason="failed")], await desk.put("answer", whole)
    shortened = RunResult(status="partial", answer=with_gaps("Pears grew…", gaps), gaps=gaps, answer_ref=ref)
    refs, result = await publish(desk, PublishInput(run=await desk.run_ref(), result=shortened))
    assert result.answer == with_gaps(whole, gaps)
    assert result.gaps == gaps
    assert refs.result_ref == f"{desk.run_id}/outputs/{sha256(await desk.store.get(refs.result_ref)).hexdigest()}"
    assert '"phase"' in await desk.read(refs.trace_ref)


async def test_descriptions_are_stored_as_planned_and_artifacts_as_the_findings_have_them(desk: Desk) -> None:
    artifact = ArtifactRef(name="pears.csv", ref="r")
    finding = Finding(summary="44.", text_ref=await desk.put("finding", "It is 44 pears."), artifacts=[artifact])
    report = SubtaskReport(id="t1", description="Count…", finding=finding)
    _, result = await publish(
        desk,
        PublishInput(
            run=await desk.run_ref(),
            result=RunResult(subtasks=[report]),
            plan_ref=await desk.plan(Subtask(id="t1", description="Count the pears of 1990")),
        ),
    )
    assert result.subtasks == [report.model_copy(update={"description": "Count the pears of 1990"})]
    assert result.artifacts == [artifact]


async def test_a_result_in_pages_is_stored_whole_and_in_order(desk: Desk) -> None:
    run = await desk.run_ref()
    reports = [SubtaskReport(id=f"t{number}", state="completed") for number in range(5)]
    pages = []
    for page in (reports[:2], reports[2:4]):
        refs, _ = await publish(desk, PublishInput(run=run, result=RunResult(subtasks=page), is_page=True))
        assert refs.trace_ref == ""
        pages.append(refs.result_ref)
    refs, result = await publish(desk, PublishInput(run=run, result=RunResult(subtasks=reports[4:]), pages=pages))
    assert result.subtasks == reports
    assert refs.trace_ref
