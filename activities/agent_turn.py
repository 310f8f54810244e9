"""The activity that makes one model call of a worker agent."""

import json

from temporalio import activity

from activities.contracts.run_contracts import SubtaskBrief
from activities.contracts.turn_contracts import ConclusionRef, ToolCallRef, TurnInput, TurnReply, arguments_sha256
from activities.model.conversation import Opening
from activities.model.journalled_call import Answered, ModelCalls
from activities.model.port import Json
from activities.prompts.agent_prompts import worker_request, worker_system
from activities.store.reading import read_findings, read_plan, read_small, read_text
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
    async def call_model(self, turn: TurnInput) -> TurnReply:
        """Returns the model's reply to the brief, or to the tool results since `head`."""
        if turn.head is None:
            assert turn.brief is not None
            opening, text = await self._opening(turn, turn.brief)
            answered = await self._calls.begin(turn.run, turn.step, opening, text, turn.max_tokens)
        else:
            messages = self._new_messages(turn)
            answered = await self._calls.go_on(turn.run, turn.step, turn.head, messages, turn.max_tokens)
        return await self._reply(turn, answered)

    async def _opening(self, turn: TurnInput, brief: SubtaskBrief) -> tuple[Opening, str]:
        store = self._calls.store
        loaded = await self._teams.load(turn.team_ref)
        role = loaded.team.role(turn.role)
        subtask = (await read_plan(store, brief.plan_ref)).subtask(brief.subtask_id)
        if brief.description_ref is not None:
            subtask = subtask.model_copy(update={"description": await read_text(store, brief.description_ref)})
        text = worker_request(
            await read_text(store, brief.goal_ref),
            subtask,
            await read_findings(store, brief.dependencies, limits.AGENT_CONTEXT_CHARS),
            brief.missing,
            await read_small(store, brief.attachments),
            feedback=brief.feedback,
            previous=await self._previous(brief),
        )
        opening = Opening(
            system=worker_system(role.system_prompt),
            model=turn.model,
            tools=loaded.toolbox.definitions(role.tools),
            output_schema=None,
        )
        return opening, text

    async def _previous(self, brief: SubtaskBrief) -> str | None:
        if brief.previous_ref is None:
            return None
        text = await read_text(self._calls.store, brief.previous_ref)
        return text[: limits.CONTEXT_CHARS]

    def _new_messages(self, turn: TurnInput) -> list[Json]:
        """Returns tool results and the note in one user message, as the API wants it; none if the model only paused."""
        message = self._calls.conversations.tool_result_message(turn.results)
        if turn.note:
            message["content"].append({"type": "text", "text": turn.note})
        return [message] if message["content"] else []

    async def _reply(self, turn: TurnInput, answered: Answered) -> TurnReply:
        message = answered.message
        details = message.stop_details or {}
        calls = message.tool_uses() if message.stop_reason == "tool_use" else []
        text = message.text().strip()
        conclusion = None if calls or not text else conclude(text)
        return TurnReply(
            head=answered.head,
            stop_reason=message.stop_reason,
            stop_detail=_detail(details),
            preview=cut(conclusion.text if conclusion else text, limits.REPLY_PREVIEW_BYTES),
            calls=[_tool_call(index, block) for index, block in enumerate(calls)],
            conclusion=await self._stored(turn, conclusion) if conclusion else None,
            usage=answered.usage,
        )

    async def _stored(self, turn: TurnInput, conclusion: Conclusion) -> ConclusionRef:
        data = conclusion.text.encode("utf-8", "replace")
        return ConclusionRef(
            text_ref=await self._calls.store.put_output(turn.run.run_id, data),
            bytes=len(data),
            confidence=conclusion.confidence,
            limitations=[
                cut(limitation, limits.LIMITATION_BYTES) for limitation in conclusion.limitations[: limits.LIMITATIONS]
            ],
        )


def _detail(details: Json) -> str | None:
    reason = details.get("explanation") or details.get("category")
    return cut(str(reason), limits.ERROR_BYTES) if reason else None


def _tool_call(index: int, block: Json) -> ToolCallRef:
    arguments = block.get("input")
    preview = json.dumps(arguments, ensure_ascii=False)
    if isinstance(arguments, dict) and len(arguments) == 1:
        preview = str(next(iter(arguments.values())))
    return ToolCallRef(
        index=index,
        call_id=str(block["id"]),
        name=str(block["name"]),
        arguments_sha256=arguments_sha256(arguments),
        preview=one_line(preview, limits.ARGUMENTS_PREVIEW_BYTES),
    )
