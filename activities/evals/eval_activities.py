"""The activities of an eval: its questions, the score of each, the table of all scores."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pydantic import JsonValue
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.eval_contracts import (
    GIVEN,
    GIVEN_FINDINGS,
    TABLE,
    BeginEval,
    CasePart,
    CasesInput,
    CasesReply,
    EvalBegun,
    EvalCall,
    JudgedCase,
    KeptOpinion,
    ScoresInput,
    ToJudge,
)
from activities.contracts.run_contracts import ProcessFacts, Published
from activities.store.artifacts import ArtifactStore
from activities.store.grants import RunGrant, write_grant
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.store_keys import is_named, named_key, run_prefix
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.result import Problem, RunResult
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts
from temporal_supervisor.supervision.scores.eval_plan import EvalCase, EvalSet
from temporal_supervisor.supervision.scores.score import (
    EndedRun,
    Opinion,
    Score,
    is_in_words,
    score_of,
)
from temporal_supervisor.supervision.scores.score_table import table_of

_CASES_AT_ONCE = 20  # whose requests one reply has, if they are short
_NO_JUDGE = "the stand-in model extracts and has no opinions: a judge needs a model"
_LOOK_AGAIN = timedelta(seconds=5)  # at a run that an earlier execution of the eval has started


@dataclass(frozen=True)
class EvalActivities:
    """Activities of evals, with the store and the facts of this process."""

    store: ArtifactStore
    facts: ProcessFacts
    endpoint: Callable[[], Awaitable[EndpointFacts]]

    @activity.defn
    async def begin_eval(self, call: BeginEval) -> EvalBegun:
        """Copies the set into the eval, so that the upload may be pruned.

        Returns the copy's reference.
        """
        store_id = await self.store.begin()
        return EvalBegun(
            store_id=store_id,
            set_ref=await self.store.copy_upload(call.eval_id, call.set_ref),
            model_queue=self.facts.model_queue,
            grant_ref=await self._grant_judge(call),
            search_attributes=self.facts.search_attributes,
            no_opinion=_NO_JUDGE if call.judge and self.facts.extracts else "",
        )

    @activity.defn
    async def eval_cases(self, wanted: CasesInput) -> CasesReply:
        """Returns the requests of the next runs."""
        of = await self._read_set(wanted)
        cases, room = list[CasePart](), limits.PAYLOAD_AIM_BYTES
        for index in range(wanted.first, min(of.total, wanted.first + _CASES_AT_ONCE)):
            case = of.case(index)
            part = CasePart(
                name=case.name,
                request=case.request(),
                bare=case.is_bare,
                part=case.part,
            )
            room -= size(part.model_dump_json())
            if cases and room < 0:
                break
            if case.part == "answer":
                await self._store_given_findings(wanted, case)
            cases.append(part)
        return CasesReply(cases=cases)

    @activity.defn
    async def judge_case(self, given: ToJudge) -> JudgedCase:
        """Scores the answer of a run that has ended, and stores the score.

        A stored score is not computed again.
        """
        case = (await self._read_set(given)).case(given.index)
        key = named_key("score", given.eval_id, case.name)
        kept = await self.store.find(key)
        if kept is None:
            run = await self._ended_run(given, case)
            score = score_of(case.question, case.name, case.variant, run)
            if given.unscored:
                return JudgedCase(verdict=score.verdict, usage=score.usage)
            await self.store.create(key, score.model_dump_json().encode("utf-8", "replace"))
        else:
            score = Score.model_validate_json(kept)
        return JudgedCase(
            verdict=score.verdict,
            flagged=bool(score.flags),
            is_text=is_in_words(case.question.answer, score),
            usage=score.usage,
            error=score.error,
        )

    @activity.defn
    async def tabulate_eval(self, given: ScoresInput) -> str:
        """Stores the table of all scores. Returns its reference."""
        of = await self._read_set(given)
        listed = await self.store.list_keys(run_prefix(given.eval_id))
        keys = [key for key in listed if is_named("score", key)]
        kept = (await self.store.read_all(keys, Score.model_validate_json)).values()
        opinions = await self._opinions(listed)
        places = {of.case(index).name: index for index in range(of.total)}
        judged = [score.model_copy(update={"opinion": opinions.get(score.case)}) for score in kept]
        scores = sorted(judged, key=lambda score: places.get(score.case, of.total))
        labels = [variant.label for variant in of.variants]
        table = table_of(
            given.eval_id,
            of.name,
            labels,
            scores,
            status=given.status,
            why=given.why,
            planned=of.total,
            no_opinion=given.no_opinion,
        )
        ref = named_key("scores", given.eval_id, TABLE)
        await self.store.put(ref, table.model_dump_json(indent=1).encode("utf-8", "replace"))
        return ref

    async def _grant_judge(self, call: BeginEval) -> str:
        """Grants an eval calls of its judge. Returns the grant's reference; empty without one."""
        if not call.judge or call.expires_at is None or self.facts.extracts:
            return ""
        grant = RunGrant(
            run_id=call.eval_id,
            workflow_id=call.eval_id,
            depth=1,
            models=[call.judge],
            nested_teams=[],
            expires_at=call.expires_at,
            endpoint=await self.endpoint(),
        )
        return await write_grant(self.store, grant)

    async def _opinions(self, listed: Sequence[str]) -> dict[str, Opinion]:
        """Returns the stored opinions by case: question, variant and repetition."""
        keys = [key for key in listed if is_named("opinion", key)]
        kept = (await self.store.read_all(keys, KeptOpinion.model_validate_json)).values()
        return {opinion.case: opinion.opinion for opinion in kept}

    async def _store_given_findings(self, call: EvalCall, case: EvalCase) -> None:
        """Stores the given findings of a question for its run, which reads nothing else."""
        key = named_key("given", f"{call.eval_id}/{case.name}", GIVEN)
        await self.store.put(key, GIVEN_FINDINGS.dump_json(case.question.findings))

    async def _read_set(self, call: EvalCall) -> EvalSet:
        return await self.store.read(call.set_ref, EvalSet.model_validate_json)

    async def _ended_run(self, given: ToJudge, case: EvalCase) -> EndedRun:
        """Returns the end of a run, as it was stored, else as the eval saw it.

        Raises ApplicationError while a run that another execution of the eval has started is open.
        """
        run_id = f"{given.eval_id}/{case.name}"
        if not given.ended and await _is_open(run_id):
            raise ApplicationError(
                f"run '{run_id}' is open",
                type="RunOpen",
                next_retry_delay=_LOOK_AGAIN,
            )
        ended = await self.store.latest_ended(run_id)
        if ended is None:
            lost = Problem(type=ErrorKind.UNEXPECTED, message="the run left no result")
            return EndedRun(run_id=run_id, problem=given.problem or lost)
        published = Published.model_validate_json(ended)
        result = RunResult.model_validate_json(await self.store.get(published.result_ref))
        output = await self._output(result) if case.is_alone else None
        problem = _problem_in(published)
        return EndedRun(
            run_id=run_id,
            result=result,
            problem=problem,
            output=output,
            alone=case.is_alone,
            bare=case.is_bare,
            plan_alone=case.part == "plan",
        )

    async def _output(self, result: RunResult) -> JsonValue:
        """Returns the JSON object that the worker agent of a bare run gave; None without one."""
        refs = [report.finding.output_ref for report in result.subtasks if report.finding]
        if not any(refs):
            return None
        value: JsonValue = json.loads(await self.store.get(refs[0]))
        return value


def _problem_in(published: Published) -> Problem | None:
    """Returns the stored problem of a run that ended without an answer."""
    facts = published.facts
    if facts is None or facts.phase == "done":
        return None
    if facts.phase == "cancelled":
        return Problem(type=ErrorKind.CANCELLED, message="the run was cancelled")
    return facts.error or Problem(type=ErrorKind.UNEXPECTED, message="it gave no answer")


async def _is_open(run_id: str) -> bool:
    """True if the server has the run as running."""
    try:
        described = await activity.client().get_workflow_handle(run_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return described.status is WorkflowExecutionStatus.RUNNING
