"""The end of a run: a finding that is the answer as it stands, and its whole result and trace, put into the store."""

import json
from datetime import UTC, datetime

from temporalio import activity

from activities import steps
from activities.contracts.run_contracts import AdoptInput, AdoptReply, Published, PublishInput, WordsInput
from activities.model.conversation import ConversationStore
from activities.replies.agent_story import AgentStories
from activities.store.artifacts import ArtifactError, ArtifactStore
from activities.store.reading import read_plan, read_text
from activities.store.spending import RunSpend, keep_run_spend, keep_sample
from supervision.base import limits
from supervision.base.store_keys import ended_key
from supervision.base.text import cut, size
from supervision.contract.finding import Finding, FindingRecord
from supervision.contract.plan import Plan
from supervision.contract.result import RunResult
from supervision.contract.status import TraceEvent
from supervision.grounding.citations import marks_from_below
from supervision.planning.estimate import sample_of
from supervision.results.answer import with_gaps

_STORIES = 100  # conversations told in a stored trace: reading them must not hold up the end of a run


class PublishingActivities:
    """Publishing, with the store of this process."""

    def __init__(self, store: ArtifactStore, conversations: ConversationStore) -> None:
        self._store = store
        self._conversations = conversations

    @activity.defn
    async def publish_result(self, publication: PublishInput, trace: list[TraceEvent]) -> Published:
        """Stores the result with its whole texts, and the trace, or a page of it. Returns where they are."""
        run = publication.run
        result = publication.result
        if publication.is_page:
            return Published(result_ref=await self._store.put_output(run.run_id, result.model_dump_json()))
        answer_ref = publication.answer_ref
        if answer_ref:
            answer = await read_text(self._store, answer_ref)
            result = result.model_copy(update={"answer": with_gaps(answer, result.gaps)})
        elif result.answer:  # findings as they came: no model call has stored them
            answer_ref = await self._store.put_output(run.run_id, result.answer)
            result = result.model_copy(update={"answer_ref": answer_ref})
        if publication.answer_json_ref:
            value = json.loads(await self._store.get(publication.answer_json_ref))
            result = result.model_copy(update={"answer_json": value})
        plan = await read_plan(self._store, publication.plan_ref) if publication.plan_ref else Plan()
        result = await self._whole(result, publication.pages, plan)
        trace = await AgentStories(self._store, self._conversations).whole(trace, _STORIES)
        lines = "[" + ",\n".join(event.model_dump_json() for event in trace) + "]\n"
        refs = Published(
            result_ref=await self._store.put_output(run.run_id, result.model_dump_json(indent=1)),
            trace_ref=await self._store.put_output(run.run_id, lines),
            answer_ref=answer_ref,
        )
        info = activity.info()
        # What the supervisor above reads as a finding.
        if str(info.workflow_id).startswith(f"{run.run_id}/") and answer_ref:
            *_, subtask_id, _attempt = str(info.workflow_id).split("/")
            whole = await read_text(self._store, answer_ref)
            below = marks_from_below(whole, {subtask.id for subtask in plan.subtasks}, subtask_id)
            refs.answer_ref = await self._store.put_output(run.run_id, below)
        if info.workflow_id == run.run_id:  # found by the run's id alone, long after Temporal has forgotten the run
            ended = refs.model_copy(update={"facts": publication.facts})
            await self._store.create(
                ended_key(run.run_id, info.workflow_run_id or ""), ended.model_dump_json().encode("utf-8", "replace")
            )
        await self._keep_sample(publication, result, plan)
        ended_at, facts = datetime.now(UTC), publication.facts
        if facts and info.workflow_id == run.run_id:
            spent = RunSpend(
                run_id=run.run_id,
                owner=facts.owner,
                team=facts.team,
                ended_at=ended_at,
                usage=result.usage,
                spend=result.spend,
            )
            await keep_run_spend(self._store, spent)
        steps.run_ended(run, facts, result, info.workflow_id or "", ended_at)
        return refs

    @activity.defn
    async def adopt_finding(self, adoption: AdoptInput) -> AdoptReply:
        """Returns a finding as the run's answer, word for word."""
        run = adoption.run
        text, ref = await read_text(self._store, adoption.text_ref), adoption.text_ref
        if adoption.label:
            text = f"**{adoption.label}**\n\n{text}"
            ref = await self._store.put_output(run.run_id, text)
        return AdoptReply(answer=cut(text, limits.ANSWER_INLINE_BYTES), answer_ref=ref)

    @activity.defn
    async def keep_words(self, words: WordsInput) -> Finding:
        """Stores what a person wrote, and returns it as a finding."""
        run = words.run
        record = FindingRecord(summary=cut(words.text, limits.SUMMARY_BYTES), sources=[words.source])
        return Finding(
            **record.model_dump(exclude={"checked", "evidence"}),
            text_ref=await self._store.put_output(run.run_id, words.text),
            text_bytes=size(words.text),
            record_ref=await self._store.put_output(run.run_id, record.model_dump_json()),
        )

    async def _keep_sample(self, publication: PublishInput, result: RunResult, plan: Plan) -> None:
        """Keeps what the run took for estimates of later plans; a run is complete without it."""
        if publication.team is None:
            return
        sample = sample_of(result, plan, publication.planned, publication.estimate)
        try:
            run_id, ended_at = publication.run.run_id, activity.info().scheduled_time
            await keep_sample(self._store, publication.team, run_id, ended_at, sample)
        except ArtifactError as error:
            activity.logger.warning("what the run took is not kept for estimates: %s", error)

    async def _whole(self, result: RunResult, pages: list[str], plan: Plan) -> RunResult:
        """Returns the result with all subtasks, their descriptions as planned, and the artifacts of their findings."""
        stored = [RunResult.model_validate_json(await self._store.get(page)) for page in pages]
        reports = [report for part in (*stored, result) for report in part.subtasks]
        planned = {subtask.id: subtask.whole for subtask in plan.subtasks}
        reports = [r.model_copy(update={"description": planned.get(r.id, r.description)}) for r in reports]
        artifacts = [artifact for report in reports if report.finding for artifact in report.finding.artifacts]
        return result.model_copy(update={"subtasks": reports, "artifacts": [*result.artifacts, *artifacts]})
