"""The activity that holds findings against the goal."""

from temporalio import activity

from activities.contracts.judgement_contracts import ReviewInput, ReviewReply, Verdict
from activities.model.conversation import Opening
from activities.model.journalled_call import ModelCalls
from activities.prompts.excerpts import read_text, with_findings
from activities.prompts.judgement_prompts import REVIEW_SYSTEM, review_request
from activities.replies.structured_reply import read_reply
from activities.store.stored_plans import read_plan
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.result import Contradiction
from supervision.text import cut


class VerdictDraft(Model):
    """A verdict as the reviewer writes it."""

    subtask_id: str
    ok: bool
    feedback: str = ""


class ConflictDraft(Model):
    """A conflict as the reviewer writes it."""

    subtask_ids: list[str]
    description: str


class ReviewDraft(Model):
    """A review as the reviewer writes it."""

    verdicts: list[VerdictDraft]
    conflicts: list[ConflictDraft] = []


class ReviewingActivities:
    """Reviews, with the model of this process."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls

    @activity.defn
    async def review(self, input: ReviewInput) -> ReviewReply:
        """The findings that fall short, with what to mend, and those that disagree."""
        store = self._calls.store
        plan = await read_plan(store, input.plan_ref)
        known = list(dict.fromkeys(finding.subtask_id for finding in input.findings))
        goal = await read_text(store, input.goal_ref)
        asked = [subtask for subtask in plan.subtasks if subtask.id in known]
        text = await with_findings(store, input.findings, lambda found: review_request(goal, asked, found))
        opening = Opening(
            system=REVIEW_SYSTEM, model=input.model, output_schema=self._calls.model.output_schema(ReviewDraft)
        )
        answered = await self._calls.begin(input.run, f"review.{input.round}", opening, text, limits.REVIEW_MAX_TOKENS)
        reply = ReviewReply(head=answered.head, usage=answered.usage)
        try:
            draft = read_reply(ReviewDraft, answered.message, root="review")
        except ValueError as error:
            reply.problem = cut(str(error), limits.ERROR_BYTES)
            return reply
        reply.verdicts = _verdicts(draft, known)
        reply.conflicts = _conflicts(draft, known)
        return reply


def _verdicts(draft: ReviewDraft, known: list[str]) -> list[Verdict]:
    """The first word on each known finding counts; one without feedback gives its worker agent nothing to mend."""
    first: dict[str, VerdictDraft] = {}
    for item in draft.verdicts:
        first.setdefault(item.subtask_id, item)
    return [
        Verdict(subtask_id=id, feedback=cut(item.feedback.strip(), limits.FEEDBACK_BYTES))
        for id, item in first.items()
        if id in known and not item.ok and item.feedback.strip()
    ][: limits.VERDICTS]


def _conflicts(draft: ReviewDraft, known: list[str]) -> list[Contradiction]:
    found = []
    for item in draft.conflicts:
        ids = [id for id in dict.fromkeys(item.subtask_ids) if id in known]
        if len(ids) > 1 and item.description.strip():
            found.append(Contradiction(subtask_ids=ids, description=cut(item.description.strip(), 600)))
    return found[: limits.CONFLICTS]
