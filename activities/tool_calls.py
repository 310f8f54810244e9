"""The activity that runs one tool call of a worker agent, within the rights of its role."""

import contextlib
from functools import partial
from typing import Any

from temporalio import activity

from activities.contracts.turn_contracts import ToolCallRef, ToolInput, ToolReply, ToolResultRef, arguments_sha256
from activities.model.conversation import ConversationStore
from activities.model.heartbeat import beating
from activities.model.port import Json
from activities.prompts.agent_prompts import DEADLY_CALL, FINISH_MISUSE
from activities.store.artifacts import ArtifactStore
from activities.store.reading import read_text
from activities.teams.stored_teams import StoredTeams
from activities.teams.toolbox import ToolRun
from activities.tools.tool import Tool, ToolContext
from supervision import limits
from supervision.contract.finding import ArtifactRef
from supervision.prompt_marks import FINISH_TOOL
from supervision.store_keys import started_key
from supervision.text import cut, one_line


class ToolActivities:
    """Tool calls, with the teams of this process."""

    def __init__(self, store: ArtifactStore, conversations: ConversationStore, teams: StoredTeams) -> None:
        self._store = store
        self._conversations = conversations
        self._teams = teams

    @activity.defn
    async def run_tool(self, request: ToolInput) -> ToolReply:
        """Runs the call and stores its output; a failure of the tool is an output, too.

        The arguments come from the conversation, the rights from the stored team: neither from the workflow.
        """
        await self._store.require(request.run.store_id)
        loaded = await self._teams.load(request.team_ref)
        entry = await self._conversations.entry(request.head)
        block = _shown_block(entry.reply.tool_uses(), request.call)
        context = ToolContext(
            attachments={a.name: partial(read_text, self._store, a.ref) for a in request.attachments},
            idempotency_key=f"{request.head}/{request.call.index}",
            run_id=request.run.run_id,
        )
        role = loaded.team.role(request.role)
        async with contextlib.nullcontext() if activity.info().is_local else beating(dict):
            if block is None:
                ran = ToolRun("this call is not the one that was shown: nothing was run", is_error=True)
            elif request.call.name == FINISH_TOOL:
                ran = ToolRun(FINISH_MISUSE, is_error=True)
            elif await self._may_begin(loaded.toolbox.get(request.call.name), request.run.run_id):
                ran = await loaded.toolbox.run(role, request.call.name, block.get("input"), context)
            else:
                ran = ToolRun(DEADLY_CALL, is_error=True)
        ref = await self._store.put_output(request.run.run_id, ran.text.encode("utf-8", "replace"))
        artifacts = []
        for new in ran.artifacts:
            key = await self._store.put_output(request.run.run_id, new.data)
            artifacts.append(ArtifactRef(name=new.name, media_type=new.media_type, bytes=len(new.data), ref=key))
        return ToolReply(
            result=ToolResultRef(call_id=request.call.call_id, ref=ref, is_error=ran.is_error),
            preview=cut(ran.text, limits.TOOL_PREVIEW_BYTES),
            sources=[one_line(source, limits.SOURCE_BYTES) for source in ran.sources[: limits.FINDING_SOURCES]],
            artifacts=artifacts,
        )

    async def _may_begin(self, tool: Tool[Any] | None, run_id: str) -> bool:
        """False if this local call of an author's tool began often enough and never came to an end.

        A local activity that ends its process begins again with every workflow task, and Temporal counts no attempt.
        So each beginning leaves a mark in the store. One create is the usual price.
        """
        info = activity.info()
        if tool is None or not tool.own or not info.is_local:
            return True
        for start in range(limits.TOOL_ATTEMPTS):
            key = started_key(run_id, info.workflow_run_id or "", info.activity_id, info.attempt, start)
            if await self._store.create(key, b""):
                return True
        return False


def _shown_block(blocks: list[Json], call: ToolCallRef) -> Json | None:
    """Returns the block of a reply that was shown and hashed as this call; None if it is another one by now."""
    block = blocks[call.index] if call.index < len(blocks) else {}
    same = (block.get("id"), block.get("name")) == (call.call_id, call.name)
    return block if same and arguments_sha256(block.get("input")) == call.arguments_sha256 else None
