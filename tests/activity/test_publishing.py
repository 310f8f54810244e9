"""Publishing: the stored result holds whole texts, whatever was shortened on the way."""

from hashlib import sha256

from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import Published, PublishInput
from activities.model.conversation import ConversationStore
from activities.run.publishing import PublishingActivities
from supervision.contract.finding import ArtifactRef, Finding
from supervision.contract.plan import Subtask
from supervision.contract.result import Gap, RunResult, SubtaskReport
from supervision.contract.status import TraceEvent
from supervision.results.answer import with_gaps
from tests.activity.supervising import Desk

EVENT = TraceEvent(seq=1, at="2026-01-01T00:00:00Z", type="phase")


async def publish(desk: Desk, publication: PublishInput) -> tuple[Published, RunResult]:
    refs: Published = await ActivityEnvironment().run(
        PublishingActivities(desk.store, ConversationStore(desk.store)).publish_result, publication, [EVENT]
    )
    return refs, RunResult.model_validate_json(await desk.read(refs.result_ref))


async def test_a_shortened_answer_is_stored_whole_with_its_gaps(desk: Desk) -> None:
    whole = "Pears grew. " * 10_000
    gaps = [Gap(subtask_id="t2", reason="failed")]
    refs, result = await publish(
        desk,
        PublishInput(
            run=await desk.run_ref(),
            result=RunResult(status="partial", answer=with_gaps("Pears grew…", gaps), gaps=gaps),
            answer_ref=await desk.put("answer", whole),
        ),
    )
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
