"""The activities that judge: rewriting a failed subtask, reviewing findings, choosing between them."""

from collections.abc import Callable
from functools import partial

from temporalio import activity

from activities.contracts.judgement_contracts import (
    JudgeInput,
    JudgeReply,
    RefineInput,
    RefineReply,
    ReviewInput,
    ReviewReply,
    Verdict,
)
from activities.contracts.run_contracts import SupervisorCall
from activities.model.journalled_call import ModelCalls
from activities.prompts.judgement_prompts import (
    CONFLICT_SYSTEM,
    REFINE_SYSTEM,
    REVIEW_SYSTEM,
    SELECT_SYSTEM,
    conflict_request,
    refine_request,
    review_request,
    select_request,
)
from activities.replies.structured_reply import M, StructuredQuestion, StructuredReply, ask
from activities.replies.tool_uses import attempt_story
from activities.store.artifacts import ArtifactError
from activities.store.reading import FindingExcerpt, list_bytes, read_plan, read_text, with_findings
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.result import Contradiction
from supervision.planning.plan_graph import description_problems
from supervision.text import cut, one_line

RequestWriter = Callable[[str, str, list[FindingExcerpt]], str]
"""(goal, description, findings) -> the judge's prompt."""


class DescriptionDraft(Model):
    """The better description as the model writes it."""

    description: str


class VerdictDraft(Model):
    """A verdict as the reviewer writes it."""

    subtask_id: str
    ok: bool
    feedback: str = ""
    wrong_approach: bool = False


class ConflictDraft(Model):
    """A conflict as the reviewer writes it."""

    subtask_ids: list[str]
    description: str


class ReviewDraft(Model):
    """A review as the reviewer writes it."""

    verdicts: list[VerdictDraft]
    conflicts: list[ConflictDraft] = []
    missing: list[str] = []


class ChoiceDraft(Model):
    """The best candidate as the judge names it, counted from 1."""

    choice: int
    reason: str = ""


class ResolutionDraft(Model):
    """The settled conflict as the judge writes it."""

    prefer: str | None = None
    resolution: str


class JudgingActivities:
    """Refining, reviewing and judging, with the model of this process. No unreadable reply fails a run."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls
        self._store = calls.store

    @activity.defn
    async def refine(self, call: RefineInput) -> RefineReply:
        """Returns a description that avoids the failure; without one as concrete as a plan's the old one stays."""
        subtask = (await read_plan(self._store, call.plan_ref)).subtask(call.subtask_id)
        if call.description_ref is not None:
            description = await read_text(self._store, call.description_ref)
            subtask = subtask.model_copy(update={"description": description})
        goal, story = await self._goal(call), await self._story(call)

        async def within(tokens: int) -> str:
            return refine_request(goal, subtask, call.role, call.error, cut(story, list_bytes(tokens)))

        question = StructuredQuestion(
            step=f"refine.{call.subtask_id}.{call.attempt}",
            system=REFINE_SYSTEM,
            text=within,
            form=DescriptionDraft,
            max_tokens=limits.REFINE_MAX_TOKENS,
        )
        answered = await ask(self._calls, call, question)
        reply = RefineReply(head=answered.head, usage=answered.usage)
        description = cut(answered.answer.description.strip(), limits.DESCRIPTION_CHARS) if answered.answer else ""
        if not description_problems(subtask.model_copy(update={"description": description})):
            reply.description_ref = await self._store.put_output(call.run.run_id, description.encode())
            reply.preview = cut(description, limits.REPLY_PREVIEW_BYTES)
        return reply

    async def _story(self, call: RefineInput) -> str:
        """Returns what the failed attempt did; empty if it did nothing, or if that cannot be read."""
        if call.tried is None:
            return ""
        try:
            return await attempt_story(self._calls.conversations, call.tried.head)
        except ArtifactError:
            return ""  # a description is rewritten from the error alone rather than not at all

    @activity.defn
    async def review(self, call: ReviewInput) -> ReviewReply:
        """Returns the findings that fall short, each with feedback, and the conflicts between findings."""
        plan = await read_plan(self._store, call.plan_ref)
        goal = await self._goal(call)
        reviewed = list(dict.fromkeys(finding.subtask_id for finding in call.findings))
        subtasks = [subtask for subtask in plan.subtasks if subtask.id in reviewed]

        async def within(tokens: int) -> str:
            write = partial(review_request, goal, subtasks, former=call.former, room=list_bytes(tokens))
            return await with_findings(self._store, call.findings, write, tokens)

        question = StructuredQuestion(
            step=f"review.{call.round}",
            system=REVIEW_SYSTEM,
            text=within,
            form=ReviewDraft,
            max_tokens=limits.REVIEW_MAX_TOKENS,
        )
        answered = await ask(self._calls, call, question)
        reply = ReviewReply(head=answered.head, usage=answered.usage)
        if answered.answer is None:
            reply.problem = cut(answered.problem, limits.ERROR_BYTES)
        else:
            reply.verdicts = _verdicts(answered.answer, reviewed)
            reply.conflicts = _conflicts(answered.answer, reviewed)
            lacks = [one_line(item, limits.PARAGRAPH_BYTES) for item in answered.answer.missing]
            reply.missing = [item for item in lacks if item][: limits.PLAN_LACKS]
        return reply

    @activity.defn
    async def judge(self, call: JudgeInput) -> JudgeReply:
        """Returns the judge's choice; None if there is none, or none that can be read."""
        if call.question == "select":
            return await self._select(call)
        return await self._settle(call)

    async def _select(self, call: JudgeInput) -> JudgeReply:
        answered = await self._ask_judge(call, SELECT_SYSTEM, select_request, ChoiceDraft)
        reply = JudgeReply(head=answered.head, usage=answered.usage, problem=cut(answered.problem, limits.ERROR_BYTES))
        if draft := answered.answer:
            reply.choice = draft.choice - 1 if 1 <= draft.choice <= len(call.findings) else None
            reply.resolution = cut(draft.reason.strip(), limits.PARAGRAPH_BYTES)
        return reply

    async def _settle(self, call: JudgeInput) -> JudgeReply:
        answered = await self._ask_judge(call, CONFLICT_SYSTEM, conflict_request, ResolutionDraft)
        reply = JudgeReply(head=answered.head, usage=answered.usage, problem=cut(answered.problem, limits.ERROR_BYTES))
        if draft := answered.answer:
            ids = [finding.subtask_id for finding in call.findings]
            reply.choice = ids.index(draft.prefer) if draft.prefer in ids else None
            reply.resolution = cut(draft.resolution.strip(), limits.PARAGRAPH_BYTES)
        return reply

    async def _ask_judge(
        self, call: JudgeInput, system: str, write: RequestWriter, form: type[M]
    ) -> StructuredReply[M]:
        goal = await self._goal(call)
        text = partial(
            with_findings, self._store, call.findings, lambda findings: write(goal, call.description, findings)
        )
        return await ask(
            self._calls, call, StructuredQuestion(f"judge.{call.number}", system, text, form, limits.JUDGE_MAX_TOKENS)
        )

    async def _goal(self, call: SupervisorCall) -> str:
        return await read_text(self._store, call.goal_ref)


def _verdicts(draft: ReviewDraft, reviewed: list[str]) -> list[Verdict]:
    """Returns the first verdict on each finding; one without feedback gives its worker agent nothing to fix."""
    first: dict[str, VerdictDraft] = {}
    for verdict in draft.verdicts:
        first.setdefault(verdict.subtask_id, verdict)
    return [
        Verdict(
            subtask_id=subtask_id,
            feedback=cut(verdict.feedback.strip(), limits.FEEDBACK_BYTES),
            anew=verdict.wrong_approach,
        )
        for subtask_id, verdict in first.items()
        if subtask_id in reviewed and not verdict.ok and verdict.feedback.strip()
    ][: limits.VERDICTS]


def _conflicts(draft: ReviewDraft, reviewed: list[str]) -> list[Contradiction]:
    conflicts = []
    for conflict in draft.conflicts:
        ids = [subtask_id for subtask_id in dict.fromkeys(conflict.subtask_ids) if subtask_id in reviewed]
        description = conflict.description.strip()
        if len(ids) > 1 and description:
            conflicts.append(Contradiction(subtask_ids=ids, description=cut(description, limits.PARAGRAPH_BYTES)))
    return conflicts[: limits.CONFLICTS]
