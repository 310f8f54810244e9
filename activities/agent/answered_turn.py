"""The model's answer in one turn of a role, as the reply to the workflow.

Tool calls go by reference (`_tool_calls`), and a conclusion is stored as a finding
(`_add_finding`).
"""

import json
from dataclasses import dataclass, replace

from activities.agent.role_turn import RoleTurn
from activities.agent.stored_conclusions import store_conclusion
from activities.contracts.turn_contracts import ToolCallRef, TurnReply, arguments_sha256
from activities.model.conversation import ConversationStore, texts_of
from activities.model.journalled_call import Answered
from activities.model.text_calls import is_written
from activities.prompts import agent_prompts as prompts
from activities.teams.toolbox import preview
from temporal_supervisor.supervision.agent import agent_tools, policy
from temporal_supervisor.supervision.agent.agent_tools import AskCall, Conclusion
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import (
    ASK_TOOL,
    FINISH_TOOL,
    READ_OUTPUT_TOOL,
)
from temporal_supervisor.supervision.base.text import clean, cut, one_line, size
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.replies.loose_json import ALL_JSON, first_json
from temporal_supervisor.supervision.results.shown_links import without_links

_CHOICES = 20  # of a question to a person: more do not fit on a screen


@dataclass(frozen=True)
class AnsweredTurn:
    """A turn of a role with the model's answer."""

    turn: RoleTurn
    answered: Answered

    async def to_reply(self) -> TurnReply:
        """Returns the reply, with the finding that it gives, stored."""
        turn, answered, message = self.turn, self.answered, self.answered.message
        is_last = turn.asked.last
        text = message.text().strip()
        calls = message.tool_uses() if message.stop_reason == "tool_use" else []
        # A call of `finish` beside others is refused like a wrong call.
        finish = calls[0] if len(calls) == 1 and calls[0].get("name") == FINISH_TOOL else None
        concluded = await self._finished(finish, text) if finish else None
        reply = TurnReply(
            head=answered.head,
            stop_reason=FINISH_TOOL if concluded else message.stop_reason,
            stop_detail=message.refusal or None,
            model=message.model,
            preview=cut(text, limits.REPLY_PREVIEW_BYTES),
            calls=[] if concluded else await self._tool_calls(calls),
            repeats=await self._repeats(),
            fullest=message.fullest,
            withheld=answered.view.withheld,
            labels=answered.labels,
            usage=answered.usage,
        )
        if turn.queries_first and not turn.asked.another_query:
            queries = turn.toolbox.queries(turn.role)
            reply.others_due = any(call.name in queries for call in reply.calls)
        if finish and concluded:
            reply.finish_call_id = str(finish["id"])
        elif text and (is_last or not calls):
            concluded = _in_text(text, is_last, turn.role)
        if concluded:
            await self._add_finding(reply, concluded)
        elif is_last:
            reply.earlier = await self._earlier_finding()
        kept = reply.finding or reply.earlier
        if kept:
            reply.preview = kept.summary
        return reply

    @property
    def _conversations(self) -> ConversationStore:
        return self.turn.calls.conversations

    async def _finished(self, finish: JsonObject, text: str) -> Conclusion | None:
        """Returns the conclusion in a call of `finish`; None if it cannot be read.

        `text` is beside the call. Where the call points back to a text, and there is none beside
        it, the last one before it is taken.
        """
        given = finish.get("input")
        if not text and agent_tools.points_back(given):
            text = await self._last_text()
        return agent_tools.read_finish(given, text)

    async def _add_finding(self, reply: TurnReply, concluded: Conclusion) -> None:
        """Stores a conclusion, and adds it to the reply as its finding."""
        stored = await store_conclusion(self.turn, self.answered, concluded)
        reply.finding = stored.finding
        reply.misfit = stored.misfit
        reply.ungrounded = stored.is_ungrounded
        reply.empty = stored.empty
        reply.impossible = concluded.outcome == "impossible"
        reply.unclear = concluded.unclear
        if stored.empty in ("failed_call", "no_rows"):
            # A small model talks of the failure again, and makes no other call.
            reply.repeats |= self.turn.window.is_small

    async def _earlier_finding(self) -> Finding | None:
        """Returns the finding in the text before an empty last turn; None if it has none."""
        text = await self._last_text()
        if not text:
            return None
        stored = await store_conclusion(self.turn, self.answered, agent_tools.conclude(text))
        return None if stored.empty else stored.finding

    async def _repeats(self) -> bool:
        """True if the answer equals the one before it in its conversation."""
        entry = await self._conversations.entry(self.answered.head)
        if not entry.ancestors or not entry.reply_blocks:
            return False
        before = await self._conversations.entry(entry.ancestors[-1])
        return entry.reply_blocks == before.reply_blocks

    async def _tool_calls(self, blocks: list[JsonObject]) -> list[ToolCallRef]:
        """Returns references to the calls of a reply, with the texts for a person to decide on."""
        role = self.turn.role
        room = limits.PAYLOAD_AIM_BYTES
        calls: list[ToolCallRef] = []
        for index, block in enumerate(blocks):
            name, arguments = str(block["name"]), block.get("input")
            call = ToolCallRef(
                index=index,
                call_id=str(block["id"]),
                name=name,
                arguments_sha256=arguments_sha256(arguments),
                preview=one_line(preview(arguments), limits.LINE_BYTES),
            )
            calls.append(call)
            is_question = name == ASK_TOOL and role.ask
            question = agent_tools.read_question(arguments) if is_question else None
            asked = None
            if question:
                asked = await self._question(call, question)
            elif name in role.tools:
                asked = self._approval(call, arguments)
            if asked is None:
                continue
            call.asked_ref = await self.turn.keep_output(asked)
            if size(asked) <= room:
                call.asked = asked
                room -= size(asked)
        return calls

    async def _question(self, call: ToolCallRef, question: AskCall) -> str:
        """Has a call wait for a person's reply. Returns the question as it is shown."""
        grounds = await self.turn.grounds(self.answered.head)
        known = grounds.links(untrusted=bool(self.answered.labels.untrusted))
        call.waits_for = "question"
        asked = without_links(clean(question.question), known)
        for choice in question.choices[:_CHOICES]:
            shown = without_links(clean(choice), known)
            call.choices.append(one_line(shown, limits.LINE_BYTES))
        call.preview = one_line(asked, limits.PARAGRAPH_BYTES)
        return asked

    def _approval(self, call: ToolCallRef, arguments: object) -> str | None:
        """Has a call wait for a person, if the policy asks for one.

        Returns the arguments as they are shown; None for a call that is run, or refused, at once.
        """
        toolbox, labels = self.turn.toolbox, self.answered.labels
        tool = toolbox.get(call.name)
        if tool is None or (is_written(call.call_id) and tool.effects != "read"):
            return None  # it is refused when it is run
        if policy.decide(tool, labels, arguments) != "ask":
            return None
        call.waits_for = "tool"
        call.after = labels.path
        definition = {"shown": toolbox.definitions([call.name]), "effects": tool.effects}
        call.definition_sha256 = arguments_sha256(definition)
        return json.dumps(arguments, ensure_ascii=False, indent=1)

    async def _last_text(self) -> str:
        """Returns the last text that the model wrote beside its tool calls; empty without one."""
        for entry in reversed(await self._conversations.chain(self.answered.head)):
            text = entry.reply.text().strip()
            if text:
                return text
            if any(map(prompts.is_correction_request, texts_of(entry.input))):
                break  # before it is the finding to be corrected
        return ""


def _in_text(text: str, forced: bool, role: Role) -> Conclusion | None:
    """Returns a conclusion in plain text, with the items and the output of JSON in it.

    None for a tool call that was written as text.
    """
    conclusion = agent_tools.conclude(text, forced)
    try:
        fields = first_json(text)
    except ValueError:
        return conclusion
    is_all = ALL_JSON.match(text) is not None
    if is_all and fields.get("name") in (*role.tools, READ_OUTPUT_TOOL):
        return None
    if is_all and '"finding"' in text:
        whole = agent_tools.read_finish(fields)
        if whole:
            return whole
    items = fields.get("items")
    if not isinstance(items, list):
        items = None
    return replace(conclusion, items=items, output=fields.get("output", fields))
