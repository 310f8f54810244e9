"""The activity that makes one model call of a worker agent."""

import hashlib
import json

from temporalio import activity

from activities.contracts.run_contracts import SubtaskBrief
from activities.contracts.turn_contracts import ConclusionRef, ToolCall, TurnInput, TurnReply
from activities.model.conversation import Opening
from activities.model.journalled_call import Answered, ModelCalls
from activities.model.port import Json
from activities.prompts.agent_prompts import worker_request, worker_system
from activities.prompts.excerpts import read_findings, read_text
from activities.store.stored_plans import read_plan
from activities.teams.stored_teams import StoredTeams
from supervision import limits
from supervision.agent.closing_lines import Conclusion, conclude
from supervision.text import cut, one_line


class AgentTurnActivities:
    """Turns of worker agents, with the model and the teams of this process."""

    def __init__(self, calls: ModelCalls, teams: StoredTeams) -> None:
        self._calls = calls
        self._teams = teams

    @activity.defn
    async def call_model(self, input: TurnInput) -> TurnReply:
        """The model's reply to the brief, or to the tool results since `head`."""
        if input.head is None:
            assert input.brief is not None
            opening, text = await self._opening(input, input.brief)
            answered = await self._calls.begin(input.run, input.step, opening, text, input.max_tokens)
        else:
            new = self._new_input(input)
            answered = await self._calls.go_on(input.run, input.step, input.head, new, input.max_tokens)
        return await self._reply(input, answered)

    async def _opening(self, input: TurnInput, brief: SubtaskBrief) -> tuple[Opening, str]:
        store = self._calls.store
        loaded = await self._teams.load(input.team_ref)
        role = loaded.team.role(input.role)
        subtask = (await read_plan(store, brief.plan_ref)).subtask(brief.subtask_id)
        if brief.description_ref is not None:
            subtask = subtask.model_copy(update={"description": await read_text(store, brief.description_ref)})
        text = worker_request(
            await read_text(store, brief.goal_ref),
            subtask,
            await read_findings(store, brief.dependencies, limits.AGENT_CONTEXT_CHARS),
            brief.missing,
            [attachment.name for attachment in brief.attachments],
            feedback=brief.feedback,
            previous=await self._previous(brief),
        )
        opening = Opening(
            system=worker_system(role.system_prompt),
            model=input.model,
            tools=loaded.toolbox.definitions(role.tools),
            output_schema=None,
        )
        return opening, text

    async def _previous(self, brief: SubtaskBrief) -> str | None:
        if brief.previous_ref is None:
            return None
        text = await read_text(self._calls.store, brief.previous_ref)
        return text[: limits.CONTEXT_CHARS]

    def _new_input(self, input: TurnInput) -> list[Json]:
        """Tool results and the note in one user message, as the API wants it; nothing when the model only paused."""
        message = self._calls.conversations.tool_result_message(input.results)
        if input.note:
            message["content"].append({"type": "text", "text": input.note})
        return [message] if message["content"] else []

    async def _reply(self, input: TurnInput, answered: Answered) -> TurnReply:
        message = answered.message
        details = message.stop_details or {}
        calls = message.tool_uses() if message.stop_reason == "tool_use" else []
        text = message.text().strip()
        read = None if calls or not text else conclude(text)
        return TurnReply(
            head=answered.head,
            stop_reason=message.stop_reason,
            stop_detail=_detail(details),
            preview=cut(read.text if read else text, limits.REPLY_PREVIEW_BYTES),
            calls=[_tool_call(block) for block in calls],
            conclusion=await self._stored(input, read) if read else None,
            usage=answered.usage,
        )

    async def _stored(self, input: TurnInput, read: Conclusion) -> ConclusionRef:
        data = read.text.encode("utf-8", "replace")
        return ConclusionRef(
            text_ref=await self._calls.store.put_output(input.run.run_id, data),
            bytes=len(data),
            confidence=read.confidence,
            limitations=[cut(item, 300) for item in read.limitations[:10]],
        )


def _detail(details: Json) -> str | None:
    said = details.get("explanation") or details.get("category")
    return cut(str(said), limits.ERROR_BYTES) if said else None


def arguments_sha256(arguments: object) -> str:
    """The hash that approvals are bound to: of sorted-key compact UTF-8 JSON."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _tool_call(block: Json) -> ToolCall:
    arguments = block.get("input")
    shown = json.dumps(arguments, ensure_ascii=False)
    if isinstance(arguments, dict) and len(arguments) == 1:
        shown = str(next(iter(arguments.values())))
    return ToolCall(
        call_id=str(block["id"]),
        name=str(block["name"]),
        arguments_sha256=arguments_sha256(arguments),
        preview=one_line(shown, limits.ARGUMENTS_PREVIEW_BYTES),
    )
