"""The activity that chooses between findings: the best of several candidates, or the side of a conflict."""

from temporalio import activity

from activities.contracts.judgement_contracts import JudgeInput, JudgeReply
from activities.model.conversation import Opening
from activities.model.journalled_call import ModelCalls
from activities.model.port import ModelMessage
from activities.prompts.excerpts import read_text, with_findings
from activities.prompts.judgement_prompts import CONFLICT_SYSTEM, SELECT_SYSTEM, conflict_request, select_request
from activities.replies.structured_reply import read_reply
from supervision import limits
from supervision.contract.base import Model
from supervision.text import cut

_RESOLUTION_BYTES = 600


class ChoiceDraft(Model):
    """The best candidate as the judge names it, counted from 1."""

    choice: int
    reason: str = ""


class ResolutionDraft(Model):
    """The settled conflict as the judge writes it."""

    prefer: str | None = None
    resolution: str


class JudgingActivities:
    """Judging, with the model of this process."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls

    @activity.defn
    async def judge(self, input: JudgeInput) -> JudgeReply:
        """The judge's choice; None when there is none, or none that can be read."""
        store = self._calls.store
        goal = await read_text(store, input.goal_ref)
        select = input.question == "select"
        draft: type[Model] = ChoiceDraft if select else ResolutionDraft
        opening = Opening(
            system=SELECT_SYSTEM if select else CONFLICT_SYSTEM,
            model=input.model,
            output_schema=self._calls.model.output_schema(draft),
        )
        request = select_request if select else conflict_request
        text = await with_findings(store, input.findings, lambda found: request(goal, input.description, found))
        answered = await self._calls.begin(input.run, f"judge.{input.number}", opening, text, limits.JUDGE_MAX_TOKENS)
        reply = JudgeReply(head=answered.head, usage=answered.usage)
        try:
            reply.choice, resolution = (_selected if select else _settled)(input, answered.message)
        except ValueError as error:
            resolution = f"not settled: {error}"
        reply.resolution = cut(resolution.strip(), _RESOLUTION_BYTES)
        return reply


def _selected(input: JudgeInput, message: ModelMessage) -> tuple[int | None, str]:
    draft = read_reply(ChoiceDraft, message)
    return (draft.choice - 1 if 1 <= draft.choice <= len(input.findings) else None), draft.reason


def _settled(input: JudgeInput, message: ModelMessage) -> tuple[int | None, str]:
    draft = read_reply(ResolutionDraft, message)
    ids = [finding.subtask_id for finding in input.findings]
    return (ids.index(draft.prefer) if draft.prefer in ids else None), draft.resolution
