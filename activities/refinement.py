"""The activity that rewrites a failed subtask's description from its error."""

from temporalio import activity

from activities.contracts.judgement_contracts import RefineInput, RefineReply
from activities.model.conversation import Opening
from activities.model.journalled_call import ModelCalls
from activities.prompts.excerpts import read_text
from activities.prompts.judgement_prompts import REFINE_SYSTEM, refine_request
from activities.replies.structured_reply import read_reply
from activities.store.stored_plans import read_plan
from supervision import limits
from supervision.contract.base import Model
from supervision.text import cut, size


class DescriptionDraft(Model):
    """The better description as the model writes it."""

    description: str


class RefinementActivities:
    """Refinement, with the model of this process."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls

    @activity.defn
    async def refine(self, input: RefineInput) -> RefineReply:
        """A description that avoids what failed; without a usable one the old description stays in force."""
        store = self._calls.store
        subtask = (await read_plan(store, input.plan_ref)).subtask(input.subtask_id)
        if input.description_ref is not None:
            subtask = subtask.model_copy(update={"description": await read_text(store, input.description_ref)})
        text = refine_request(await read_text(store, input.goal_ref), subtask, input.role, input.error)
        opening = Opening(
            system=REFINE_SYSTEM,
            model=input.model,
            output_schema=self._calls.model.output_schema(DescriptionDraft),
        )
        step = f"refine.{input.subtask_id}.{input.attempt}"
        answered = await self._calls.begin(input.run, step, opening, text, limits.REFINE_MAX_TOKENS)
        reply = RefineReply(head=answered.head, usage=answered.usage)
        try:
            description = read_reply(DescriptionDraft, answered.message).description.strip()
        except ValueError:
            return reply
        if size(description) < limits.MIN_DESCRIPTION_BYTES:
            return reply
        description = cut(description, limits.DESCRIPTION_CHARS)
        reply.description_ref = await store.put_output(input.run.run_id, description.encode())
        reply.preview = cut(description, limits.REPLY_PREVIEW_BYTES)
        return reply
