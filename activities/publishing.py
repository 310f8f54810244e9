"""The last activity of a run: its whole result and trace go into the store, so reports outlive retention."""

from temporalio import activity

from activities.contracts.run_contracts import Published, PublishInput
from activities.prompts.excerpts import read_text
from activities.store.artifacts import ArtifactStore
from activities.store.stored_plans import read_plan
from supervision import limits
from supervision.contract.result import RunResult
from supervision.contract.status import TraceEvent
from supervision.text import cut


class PublishingActivities:
    """Publishing, with the store of this process."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    @activity.defn
    async def publish_result(self, input: PublishInput, trace: list[TraceEvent]) -> Published:
        """Stores the result with its whole texts, and the trace."""
        await self._store.require(input.run.store_id)
        result_ref, trace_ref = input.run.key("result"), input.run.key("trace")
        result = input.result.model_copy(update={"result_ref": result_ref})
        if input.answer_ref:
            whole = await read_text(self._store, input.answer_ref)
            result = result.model_copy(update={"answer": result.answer.replace(input.answer_preview, whole, 1)})
        if result.truncated:
            result = await self._whole(result, input.plan_ref)
        await self._store.put(result_ref, result.model_dump_json(indent=1).encode("utf-8", "replace"))
        lines = "[" + ",\n".join(event.model_dump_json() for event in trace) + "]\n"
        await self._store.put(trace_ref, lines.encode("utf-8", "replace"))
        return Published(result_ref=result_ref, trace_ref=trace_ref)

    async def _whole(self, result: RunResult, plan_ref: str | None) -> RunResult:
        """Descriptions and summaries as they were before the result was made to fit."""
        described = {}
        if plan_ref:
            plan = await read_plan(self._store, plan_ref)
            described = {subtask.id: subtask.description for subtask in plan.subtasks}
        reports = []
        for report in result.subtasks:
            finding = report.finding
            if finding is not None:
                text = await read_text(self._store, finding.text_ref)
                finding = finding.model_copy(update={"summary": cut(text, limits.SUMMARY_BYTES)})
            description = described.get(report.id, report.description)
            reports.append(report.model_copy(update={"finding": finding, "description": description}))
        return result.model_copy(update={"subtasks": reports, "truncated": False})
