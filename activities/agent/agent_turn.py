"""The activity that makes one model call of a worker agent.

`call_model` begins a conversation by its brief (`_opening`, `_first_prompt`) or continues it by the
results of tools (`_following`), and returns the model's reply (`_reply`): tool calls by reference
(`_tool_calls`), or a conclusion, which is stored as a finding (`_add_finding`).
"""

import json
from dataclasses import replace
from functools import partial

from temporalio import activity

from activities.agent.agent_doubts import other_words, read_others
from activities.agent.brief_prompt import BriefPrompt, joined
from activities.agent.early_doubts import early_doubts
from activities.agent.grounds import read_grounds
from activities.agent.query_first import next_step, offered_tools, shown_tables
from activities.agent.stored_conclusions import store_conclusion
from activities.contracts.run_contracts import SubtaskBrief
from activities.contracts.turn_contracts import ToolCallRef, TurnInput, TurnReply, arguments_sha256
from activities.model.conversation import Opening, texts_of
from activities.model.journalled_call import Answered, CallOptions, ModelCalls
from activities.model.port import Json, user_message
from activities.model.prompt_fit import PromptWriter
from activities.model.text_calls import is_written
from activities.prompts import agent_prompts as prompts
from activities.replies import answer_schema
from activities.replies.agent_story import ToolUse, read_tool_uses
from activities.store.reading import (
    read_plan,
    read_records,
    read_small,
    read_text,
)
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import LoadedTeam
from activities.teams.toolbox import preview
from temporal_supervisor.supervision.agent import agent_tools, policy
from temporal_supervisor.supervision.agent.agent_tools import AskCall
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import ASK_TOOL, FINISH_TOOL, READ_OUTPUT_TOOL
from temporal_supervisor.supervision.base.text import clean, cut, one_line, size
from temporal_supervisor.supervision.contract.finding import Finding, Labels
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.replies.loose_json import ALL_JSON, first_json
from temporal_supervisor.supervision.results.shown_links import without_links
from temporal_supervisor.supervision.run.attempt_rules import subtask_path

_CHOICES = 20  # of a question to a person: more do not fit on a screen


class AgentTurnActivities:
    """Turns of worker agents, with the model and the teams of this process."""

    def __init__(self, calls: ModelCalls, teams: StoredTeams) -> None:
        self._calls = calls
        self._teams = teams

    @activity.defn
    async def call_model(self, turn: TurnInput) -> TurnReply:
        """Returns the model's reply to the brief, or to the tool results since `head`."""
        loaded = await self._teams.load(turn.team_ref)
        role = loaded.team.role(turn.role)
        place = subtask_path(activity.info().workflow_id or "", turn.run.run_id)
        labels, withheld = await self._labels(turn, loaded, role, place)
        options = CallOptions(
            labels=labels,
            # The last turn forbids tools, which the cached conversation has: only the prefix fits.
            cache="prefix" if turn.last else "conversation",
            concludes=turn.last,
            withheld=withheld,
            anew_from=turn.anew_from,
            others=turn.others,
        )
        note = await self._note(turn, role, withheld)
        if turn.head is None:
            assert turn.brief is not None
            opens = self._other_opening if turn.another_query else self._opening
            opening, text = await opens(turn, turn.brief, loaded, role)
            answered = await self._calls.begin(turn, opening, text, options, note)
        else:
            messages = await self._following(turn, loaded, role, note)
            answered = await self._calls.follow_up(turn, turn.head, messages, options)
        own = loaded.toolbox.labels_of(role, answered.message.provided_uses(), place)
        answered = replace(answered, labels=answered.labels | own)
        return await self._reply(turn, loaded, role, answered)

    async def _note(self, turn: TurnInput, role: Role, withheld: list[str]) -> str:
        """Returns the note of a turn, with tools that the model may not have from now on."""
        known: list[str] = []
        if turn.head is not None:
            known = (await self._calls.conversations.entry(turn.head)).view.withheld
        missing = ", ".join(tool for tool in withheld if tool not in known)
        parts = [turn.note]
        if turn.last and role.output_schema is not None:
            parts.append(prompts.LAST_OUTPUT)
        if missing:
            parts.append(f"{prompts.WITHHELD} {missing}.")
        return joined(parts)

    async def _following(
        self,
        turn: TurnInput,
        loaded: LoadedTeam,
        role: Role,
        note: str,
    ) -> list[Json]:
        """Returns the messages that continue a conversation.

        Tool results and the note are one user message, as the API wants it; there is none if the
        model paused.
        """
        message = self._calls.conversations.tool_result_message(turn.results)
        content = message["content"]
        if turn.brief is not None and turn.brief.feedback:
            # On the finding that this conversation gave.
            content += user_message(prompts.correction_request(turn.brief.feedback))["content"]
        if not turn.last and await self._queries_first(turn, loaded, role):
            others = await read_others(self._calls, turn)
            doubts = await early_doubts(self._calls, turn, loaded.toolbox, others)
            other = other_words(others)
            note = await next_step(self._calls.store, turn.results, note, doubts, other)
        if note:
            content += user_message(note)["content"]
        return [message] if content else []

    async def _queries_first(self, turn: TurnInput, loaded: LoadedTeam, role: Role) -> bool:
        """True if a small model is to query tables, which it does before it looks at them."""
        if not loaded.toolbox.queries_tables(role):
            return False
        return (await self._calls.window(turn.run, turn.model)).is_small

    async def _opening(
        self,
        turn: TurnInput,
        brief: SubtaskBrief,
        loaded: LoadedTeam,
        role: Role,
    ) -> tuple[Opening, PromptWriter]:
        """Returns the shared prefix of a role's conversations, and the writer of a first prompt."""
        window = await self._calls.window(turn.run, turn.model)
        prompt = await self._first_prompt(turn, brief, loaded, role, window.output_chars)
        names = offered_tools(role, loaded.toolbox) if prompt.tables else role.tools
        tools = loaded.toolbox.definitions(names, attachments=bool(brief.attachments))
        # A tool without a schema is the provider's: its results come with citations.
        cites = any("input_schema" not in tool for tool in tools)
        # From the beginning: added with the first clearing, it would change the prefix that the
        # role's agents share. Who sees the tables asks for less instead, but findings may be shown
        # as summaries.
        if role.tools and (not prompt.tables or brief.dependencies):
            tools.append(agent_tools.read_output_tool())
        if role.ask:
            tools.append(agent_tools.ask_tool())
        schema = role.output_schema
        if schema:
            schema = await answer_schema.sendable(schema, turn.run.run_id)
        short = window.is_small
        tools.append(agent_tools.finish_tool(brief.names_items, schema, short=short))
        system = prompts.worker_system(role, turn.max_turns, turn.run.date, cites, short=short)
        opening = Opening(system=system, model=turn.model, effort=turn.effort, tools=tools)
        return opening, prompt.within

    async def _other_opening(
        self,
        turn: TurnInput,
        brief: SubtaskBrief,
        loaded: LoadedTeam,
        role: Role,
    ) -> tuple[Opening, str]:
        """Returns the opening and the prompt of the conversation for another query."""
        window = await self._calls.window(turn.run, turn.model)
        subtask = await self._subtask(brief)
        room = window.output_chars
        tables = await shown_tables(self._teams, turn, loaded.toolbox, role, subtask, room)
        opening = Opening(
            system=prompts.QUERY_SYSTEM,
            model=turn.model,
            effort=turn.effort,
            tools=loaded.toolbox.definitions(loaded.toolbox.queries(role)),
        )
        return opening, prompts.another_query(subtask, tables, turn.another_query)

    async def _subtask(self, brief: SubtaskBrief) -> Subtask:
        """Returns the subtask of a brief, with its description as it is worked on."""
        store = self._calls.store
        subtask = (await read_plan(store, brief.plan_ref)).subtask(brief.subtask_id)
        if brief.description_ref is None:
            return subtask
        description = await read_text(store, brief.description_ref)
        return subtask.model_copy(update={"description": description})

    async def _first_prompt(
        self,
        turn: TurnInput,
        brief: SubtaskBrief,
        loaded: LoadedTeam,
        role: Role,
        room: int,
    ) -> BriefPrompt:
        """Returns the first prompt as read from the store; its tables have `room` characters."""
        store = self._calls.store
        subtask = await self._subtask(brief)
        small = await read_small(store, brief.attachments)
        previous = None
        if brief.previous_ref is not None:
            previous = await read_text(store, brief.previous_ref)
        outputs: list[tuple[str, str]] = []
        have_failed = False
        if turn.anew_from:
            outputs, have_failed = await self._outputs(turn.anew_from)
        tables = ""
        if await self._queries_first(turn, loaded, role):
            tables = await shown_tables(self._teams, turn, loaded.toolbox, role, subtask, room)
        return BriefPrompt(
            store=store,
            brief=brief,
            subtask=subtask,
            attachments=small,
            previous=previous,
            outputs=outputs,
            outputs_failed=have_failed,
            tables=tables,
            with_tools=bool(role.tools),
        )

    async def _outputs(self, head: str) -> tuple[list[tuple[str, str]], bool]:
        """Returns the tool calls of a conversation that is begun anew, each with its output.

        Calls that failed are among them only where none succeeded: else the model would take them
        for examples.
        """
        conversations = self._calls.conversations
        answered: list[ToolUse] = []
        for chain in await conversations.all_chains(head):
            uses = await read_tool_uses(conversations, chain)
            answered += [use for use in uses if use.output]
        good = [use for use in answered if not use.is_error]
        shown = [(f"{use.name} {use.arguments}", use.output or "") for use in good or answered]
        return shown, not good

    async def _labels(
        self,
        turn: TurnInput,
        loaded: LoadedTeam,
        role: Role,
        place: str,
    ) -> tuple[Labels, list[str]]:
        """Returns the labels of all that the model has read with this call, and the tools withheld.

        The tools are the provider's, which the model may not have after that.
        """
        conversations, brief = self._calls.conversations, turn.brief
        given = Labels()  # with the brief
        labels = Labels()  # since then
        if turn.head is not None:
            before = await conversations.entry(turn.head)
            first = before.ancestors[0] if before.ancestors else turn.head
            given = (await conversations.entry(first)).labels
            answered = {result.call_id for result in turn.results if result.ref}
            uses = [block for block in before.reply.tool_uses() if block["id"] in answered]
            uses += before.reply.provided_uses()
            labels = before.labels | loaded.toolbox.labels_of(role, uses, place)
        if turn.anew_from:  # its outputs are a part of the new brief
            before = await conversations.entry(turn.anew_from)
            given = given | before.labels
        if brief is not None:
            given = given | brief.labels
            records = await read_records(self._calls.store, brief.dependencies)
            for record in records.values():
                given = given | record.labels
        return labels | given, loaded.toolbox.withheld(role, given, labels | given)

    async def _reply(
        self,
        turn: TurnInput,
        loaded: LoadedTeam,
        role: Role,
        answered: Answered,
    ) -> TurnReply:
        """Returns the reply, with the finding that it gives, stored."""
        message = answered.message
        text = message.text().strip()
        calls = message.tool_uses() if message.stop_reason == "tool_use" else []
        # A call of `finish` beside others is refused like a wrong call.
        finish = calls[0] if len(calls) == 1 and calls[0].get("name") == FINISH_TOOL else None
        concluded = await self._finished(finish, text, answered.head) if finish else None
        reply = TurnReply(
            head=answered.head,
            stop_reason=FINISH_TOOL if concluded else message.stop_reason,
            stop_detail=message.refusal or None,
            model=message.model,
            preview=cut(text, limits.REPLY_PREVIEW_BYTES),
            calls=[] if concluded else await self._tool_calls(turn, loaded, role, calls, answered),
            repeats=await self._repeats(answered.head),
            fullest=message.fullest,
            withheld=answered.view.withheld,
            labels=answered.labels,
            usage=answered.usage,
        )
        if not turn.another_query and await self._queries_first(turn, loaded, role):
            queries = loaded.toolbox.queries(role)
            reply.others_due = any(call.name in queries for call in reply.calls)
        if finish and concluded:
            reply.finish_call_id = str(finish["id"])
        elif text and (turn.last or not calls):
            concluded = _in_text(text, turn.last, role)
        if concluded:
            await self._add_finding(reply, turn, loaded, role, answered, concluded)
        elif turn.last:
            reply.earlier = await self._earlier_finding(turn, loaded, role, answered)
        kept = reply.finding or reply.earlier
        if kept:
            reply.preview = kept.summary
        return reply

    async def _finished(
        self,
        finish: Json,
        text: str,
        head: str,
    ) -> agent_tools.Conclusion | None:
        """Returns the conclusion in a call of `finish`; None if nobody can read it.

        `text` is beside the call. Where the call points back to a text, and there is none beside
        it, the last one before it is taken.
        """
        given = finish.get("input")
        if not text and agent_tools.points_back(given):
            text = await self._last_text(head)
        return agent_tools.read_finish(given, text)

    async def _add_finding(
        self,
        reply: TurnReply,
        turn: TurnInput,
        loaded: LoadedTeam,
        role: Role,
        answered: Answered,
        concluded: agent_tools.Conclusion,
    ) -> None:
        """Stores a conclusion, and adds it to the reply as its finding."""
        stored = await store_conclusion(self._calls, turn, loaded, role, answered, concluded)
        reply.finding = stored.finding
        reply.misfit = stored.misfit
        reply.ungrounded = stored.is_ungrounded
        reply.empty = stored.empty
        reply.impossible = concluded.outcome == "impossible"
        reply.unclear = concluded.unclear
        if stored.empty in ("failed_call", "no_rows"):
            # A small model talks of the failure again, and makes no other call.
            reply.repeats |= (await self._calls.window(turn.run, turn.model)).is_small

    async def _earlier_finding(
        self,
        turn: TurnInput,
        loaded: LoadedTeam,
        role: Role,
        answered: Answered,
    ) -> Finding | None:
        """Returns the finding in the text before an empty last turn; None if it has none."""
        text = await self._last_text(answered.head)
        if not text:
            return None
        conclusion = agent_tools.conclude(text)
        stored = await store_conclusion(self._calls, turn, loaded, role, answered, conclusion)
        return None if stored.empty else stored.finding

    async def _repeats(self, head: str) -> bool:
        """True if the reply at `head` says the same as the one before it in its conversation."""
        entry = await self._calls.conversations.entry(head)
        if not entry.ancestors or not entry.reply_blocks:
            return False
        before = await self._calls.conversations.entry(entry.ancestors[-1])
        return entry.reply_blocks == before.reply_blocks

    async def _tool_calls(
        self,
        turn: TurnInput,
        loaded: LoadedTeam,
        role: Role,
        blocks: list[Json],
        answered: Answered,
    ) -> list[ToolCallRef]:
        """Returns the calls of a reply; those that wait for a person with the text he is shown."""
        room = limits.PAYLOAD_AIM_BYTES
        calls: list[ToolCallRef] = []
        keep = partial(self._calls.store.put_output, turn.run.run_id)
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
                asked = await self._question(call, question, turn, loaded, answered)
            elif name in role.tools:
                asked = _approval(call, arguments, loaded, answered.labels)
            if asked is None:
                continue
            call.asked_ref = await keep(asked)
            if size(asked) <= room:
                call.asked = asked
                room -= size(asked)
        return calls

    async def _question(
        self,
        call: ToolCallRef,
        question: AskCall,
        turn: TurnInput,
        loaded: LoadedTeam,
        answered: Answered,
    ) -> str:
        """Has a call wait for a person's reply. Returns the question as it is shown."""
        conversations = self._calls.conversations
        keep = partial(self._calls.store.put_output, turn.run.run_id)
        grounds = await read_grounds(conversations, answered.head, loaded.toolbox, keep)
        known = grounds.links(untrusted=bool(answered.labels.untrusted))
        call.waits_for = "question"
        asked = without_links(clean(question.question), known)
        for choice in question.choices[:_CHOICES]:
            shown = without_links(clean(choice), known)
            call.choices.append(one_line(shown, limits.LINE_BYTES))
        call.preview = one_line(asked, limits.PARAGRAPH_BYTES)
        return asked

    async def _last_text(self, head: str) -> str:
        """Returns the last text that the model wrote beside its tool calls; empty without one."""
        for entry in reversed(await self._calls.conversations.chain(head)):
            text = entry.reply.text().strip()
            if text:
                return text
            if any(map(prompts.is_correction_request, texts_of(entry.input))):
                break  # before it is the finding to be corrected
        return ""


def _approval(
    call: ToolCallRef,
    arguments: object,
    loaded: LoadedTeam,
    labels: Labels,
) -> str | None:
    """Has a call wait for a person, if the policy asks for one.

    Returns the arguments as they are shown; None for a call that is run, or refused, at once.
    """
    tool = loaded.toolbox.get(call.name)
    if tool is None or (is_written(call.call_id) and tool.effects != "read"):
        return None  # it is refused when it is run
    if policy.decide(tool, labels, arguments) != "ask":
        return None
    call.waits_for = "tool"
    call.after = labels.path
    definition = {"shown": loaded.toolbox.definitions([call.name]), "effects": tool.effects}
    call.definition_sha256 = arguments_sha256(definition)
    return json.dumps(arguments, ensure_ascii=False, indent=1)


def _in_text(text: str, forced: bool, role: Role) -> agent_tools.Conclusion | None:
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
