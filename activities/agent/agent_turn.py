"""The activity that makes one model call of a worker agent.

`call_model` begins a conversation by its brief (`_opening`, `_first_prompt`) or continues it by the
results of tools (`_following`). The module `answered_turn` makes the reply of the answer.
"""

from dataclasses import replace

from temporalio import activity

from activities.agent.agent_doubts import other_words, read_others
from activities.agent.answered_turn import AnsweredTurn
from activities.agent.brief_prompt import BriefPrompt, joined
from activities.agent.early_doubts import early_doubts
from activities.agent.query_first import next_step, offered_tools, shown_tables
from activities.agent.role_turn import RoleTurn, load_turn
from activities.agent.search_first import first_search, step_after_reading
from activities.contracts.run_contracts import SubtaskBrief
from activities.contracts.turn_contracts import TurnInput, TurnReply
from activities.model.conversation import Opening
from activities.model.journalled_call import CallOptions, ModelCalls
from activities.model.port import user_message
from activities.model.prompt_fit import PromptWriter
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
from temporal_supervisor.supervision.agent import agent_tools
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.plan import Subtask


class AgentTurnActivities:
    """Turns of worker agents, with the model and the teams of this process."""

    def __init__(self, calls: ModelCalls, teams: StoredTeams) -> None:
        self._calls = calls
        self._teams = teams

    @activity.defn
    async def call_model(self, asked: TurnInput) -> TurnReply:
        """Returns the model's reply to the brief, or to the tool results since `head`."""
        turn = await load_turn(asked, self._calls, self._teams)
        labels, withheld = await self._labels(turn)
        options = CallOptions(
            labels=labels,
            # The last turn forbids tools, which the cached conversation has: only the prefix fits.
            cache="prefix" if asked.last else "conversation",
            concludes=asked.last,
            withheld=withheld,
            anew_from=asked.anew_from,
            others=asked.others,
        )
        note = await self._note(turn, withheld)
        if asked.head is None:
            subtask = await self._subtask(turn.brief)
            opens = self._other_opening if asked.another_query else self._opening
            opening, text = await opens(turn, subtask)
            call = first_search(turn, subtask)
            answered = await self._calls.begin(asked, opening, text, options, note, call)
        else:
            messages = await self._following(turn, note)
            answered = await self._calls.follow_up(asked, asked.head, messages, options)
        own = turn.labels_of(answered.message.provided_uses())
        answered = replace(answered, labels=answered.labels | own)
        return await AnsweredTurn(turn, answered).to_reply()

    async def _note(self, turn: RoleTurn, withheld: list[str]) -> str:
        """Returns the note of a turn, with tools that the model may not have from now on."""
        asked = turn.asked
        known: list[str] = []
        if asked.head is not None:
            known = (await self._calls.conversations.entry(asked.head)).view.withheld
        missing = ", ".join(tool for tool in withheld if tool not in known)
        parts = [asked.note]
        if asked.last and turn.role.output_schema is not None:
            parts.append(prompts.LAST_OUTPUT)
        if missing:
            parts.append(f"{prompts.WITHHELD} {missing}.")
        return joined(parts)

    async def _following(self, turn: RoleTurn, note: str) -> list[JsonObject]:
        """Returns the messages that continue a conversation.

        Tool results and the note are one user message, as the API wants it; there is none if the
        model paused.
        """
        asked = turn.asked
        message = self._calls.conversations.tool_result_message(asked.results)
        content = message["content"]
        if asked.brief is not None and asked.brief.feedback:
            # On the finding that this conversation gave.
            content += user_message(prompts.correction_request(asked.brief.feedback))["content"]
        if turn.queries_first and not asked.last:
            others = await read_others(turn)
            doubts = await early_doubts(turn, others)
            other = other_words(others)
            note = next_step(asked.results, note, doubts, other)
        elif turn.search_tool and not asked.last:
            note = joined([step_after_reading(asked.results), note])
        if note:
            content += user_message(note)["content"]
        return [message] if content else []

    async def _opening(self, turn: RoleTurn, subtask: Subtask) -> tuple[Opening, PromptWriter]:
        """Returns the shared prefix of a role's conversations, and the writer of a first prompt."""
        asked, brief, role = turn.asked, turn.brief, turn.role
        prompt = await self._first_prompt(turn, subtask)
        has_first_step = bool(prompt.tables or turn.search_tool)
        names = offered_tools(turn) if has_first_step else role.tools
        tools = turn.toolbox.definitions(names, attachments=bool(brief.attachments))
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
            schema = await answer_schema.sendable(schema, asked.run.run_id)
        short = turn.window.is_small
        tools.append(agent_tools.finish_tool(brief.names_items, schema, short=short))
        system = prompts.worker_system(role, asked.max_turns, asked.run.date, cites, short=short)
        return turn.opening(system, tools), prompt.within

    async def _other_opening(self, turn: RoleTurn, subtask: Subtask) -> tuple[Opening, str]:
        """Returns the opening and the prompt of the conversation for another query."""
        tables = await shown_tables(self._teams, turn, subtask)
        tools = turn.toolbox.definitions(turn.toolbox.queries(turn.role))
        prompt = prompts.another_query(subtask, tables, turn.asked.another_query)
        return turn.opening(prompts.QUERY_SYSTEM, tools), prompt

    async def _subtask(self, brief: SubtaskBrief) -> Subtask:
        """Returns the subtask of a brief, with its description as it is worked on."""
        store = self._calls.store
        subtask = (await read_plan(store, brief.plan_ref)).subtask(brief.subtask_id)
        if brief.description_ref is None:
            return subtask
        description = await read_text(store, brief.description_ref)
        return subtask.model_copy(update={"description": description})

    async def _first_prompt(self, turn: RoleTurn, subtask: Subtask) -> BriefPrompt:
        """Returns the first prompt as read from the store."""
        store, brief = self._calls.store, turn.brief
        small = await read_small(store, brief.attachments)
        previous = None
        if brief.previous_ref is not None:
            previous = await read_text(store, brief.previous_ref)
        outputs: list[tuple[str, str]] = []
        have_failed = False
        if turn.asked.anew_from:
            outputs, have_failed = await self._outputs(turn.asked.anew_from)
        tables = ""
        if turn.queries_first:
            tables = await shown_tables(self._teams, turn, subtask)
        return BriefPrompt(
            store=store,
            brief=brief,
            subtask=subtask,
            attachments=small,
            previous=previous,
            outputs=outputs,
            outputs_failed=have_failed,
            tables=tables,
            with_tools=bool(turn.role.tools),
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

    async def _labels(self, turn: RoleTurn) -> tuple[Labels, list[str]]:
        """Returns the labels of all that the model has read with this call, and the tools withheld.

        The tools are the provider's, which the model may not have after that.
        """
        conversations, asked = self._calls.conversations, turn.asked
        given = Labels()  # with the brief
        labels = Labels()  # since then
        if asked.head is not None:
            before = await conversations.entry(asked.head)
            first = before.ancestors[0] if before.ancestors else asked.head
            given = (await conversations.entry(first)).labels
            answered = {result.call_id for result in asked.results if result.ref}
            uses = [block for block in before.reply.tool_uses() if block["id"] in answered]
            uses += before.reply.provided_uses()
            labels = before.labels | turn.labels_of(uses)
        if asked.anew_from:  # its outputs are a part of the new brief
            before = await conversations.entry(asked.anew_from)
            given = given | before.labels
        if asked.brief is not None:
            given = given | asked.brief.labels
            records = await read_records(self._calls.store, asked.brief.dependencies)
            for record in records.values():
                given = given | record.labels
        return labels | given, turn.toolbox.withheld(turn.role, given, labels | given)
