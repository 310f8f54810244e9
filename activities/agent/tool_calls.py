"""The activity that runs one tool call of a worker agent, within the rights of its role.

In comes a reference to the call, out go references to its output. `run_tool` reads the call from
the conversation (`_shown_block`), asks the policy, and either refuses it, shows an earlier output,
or has the toolbox run it: a call with effects through `_once`, which runs none a second time.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.activity_telemetry import show_text
from activities.agent.grounds import read_grounds
from activities.agent.outside_answers import OutsideAnswers
from activities.contracts.run_contracts import RunRef
from activities.contracts.turn_contracts import (
    ToolCallRef,
    ToolInput,
    ToolReply,
    ToolResultRef,
    arguments_sha256,
)
from activities.heartbeat import until_stored
from activities.model.conversation import ConversationStore, Entry, texts_of, tool_results
from activities.model.port import ModelEndpoint, Window
from activities.model.text_calls import is_written
from activities.prompts.agent_prompts import (
    ASK_MISUSE,
    FAILED_BEFORE,
    FINISH_MISUSE,
    MADE_BEFORE,
    NOT_APPROVED,
    REFUSED,
    UNKNOWN_OUTCOME,
    WRITTEN_MISUSE,
)
from activities.replies.agent_story import earlier_output
from activities.store.artifacts import ArtifactStore
from activities.store.grants import granted_traits
from activities.store.reading import read_text
from activities.teams.stored_teams import StoredTeams
from activities.teams.team_files import LoadedTeam
from activities.teams.toolbox import ToolRun
from activities.tools.tool import ToolContext
from temporal_supervisor.supervision.agent import policy
from temporal_supervisor.supervision.agent.agent_tools import page, page_chars, read_call
from temporal_supervisor.supervision.base import limits, spans
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import (
    ASK_TOOL,
    FINISH_TOOL,
    READ_OUTPUT_TOOL,
)
from temporal_supervisor.supervision.base.store_keys import effect_keys
from temporal_supervisor.supervision.base.text import clean, cut, one_line
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.replies.written_calls import same_arguments

_TOOL_PREVIEW_BYTES = 512
_UNKNOWN = Window(limits.UNKNOWN_WINDOW_TOKENS)
_MISUSES = {FINISH_TOOL: FINISH_MISUSE, ASK_TOOL: ASK_MISUSE}  # what asks a person never comes here
_NOT_SHOWN = "This call is not the one that was shown. Nothing was run."
ODD_TOOL_ATTEMPTS = 3  # errors of a call's surroundings without a kind of their own


class ToolActivities:
    """Tool calls, with the teams of this process."""

    def __init__(self, store: ArtifactStore, teams: StoredTeams, endpoint: ModelEndpoint) -> None:
        self._store = store
        self._conversations = ConversationStore(store)
        self._teams = teams
        self._endpoint = endpoint
        self._outside_answers = OutsideAnswers(store)

    @activity.defn
    async def run_tool(self, request: ToolInput) -> ToolReply:
        """Runs the call and stores its output; a failure of the tool is an output, too.

        The arguments come from the conversation, the rights from the stored team: neither from the
        workflow. An error that is raised is one of the call's surroundings, and no tool has run, or
        none that has effects.
        """
        try:
            return await self._call(request)
        except (SupervisionError, ApplicationError):
            raise
        except Exception as error:
            if activity.info().attempt < ODD_TOOL_ATTEMPTS:
                raise
            message = cut(f"{type(error).__name__}: {error}", limits.ERROR_BYTES)
            raise ApplicationError(
                message, type=ErrorKind.UNEXPECTED, non_retryable=True
            ) from error

    async def _call(self, request: ToolInput) -> ToolReply:
        loaded, entry = await asyncio.gather(
            self._teams.load(request.team_ref), self._conversations.entry(request.head)
        )
        block, name = _shown_block(entry.reply.tool_uses(), request.call), request.call.name
        if block is None:
            return await self._refuse(request, _NOT_SHOWN)
        if name in _MISUSES:
            return await self._refuse(request, _MISUSES[name])
        if name == READ_OUTPUT_TOOL:
            return await self._reply(request, await self._read_output(request, entry, block))

        arguments = block.get("input")
        show_text(spans.TOOL_ARGUMENTS, arguments)
        run = partial(self._run, request, loaded, block)
        tool, role = loaded.toolbox.get(name), loaded.team.role(request.role)
        if tool is None or tool.name not in role.tools:
            return await self._reply(request, await run())  # the toolbox refuses it in words

        if is_written(request.call.call_id) and tool.effects != "read":
            return await self._refuse(request, WRITTEN_MISUSE)
        known = await self._made_before(request, entry, block) if tool.is_fixed else None
        if known is not None:
            return await self._reply(request, known)

        labels = entry.labels | loaded.toolbox.labels_of(role, entry.reply.provided_uses())
        verdict = policy.decide(tool, labels, arguments)
        # What a person approved has the arguments in the conversation: see _shown_block.
        is_approved = verdict == "ask" and request.call.waits_for is not None
        if verdict != "allowed" and not is_approved:
            return await self._refuse(request, NOT_APPROVED if verdict == "ask" else REFUSED)
        if tool.effects == "read":
            return await self._reply(request, await run())
        return await self._once(request, f"{name}({_values(arguments)})", run)

    async def _refuse(self, request: ToolInput, words: str) -> ToolReply:
        """Returns these words as the error of a call that is not run."""
        return await self._reply(request, ToolRun(words, is_error=True))

    async def _read_output(self, request: ToolInput, entry: Entry, block: JsonObject) -> ToolRun:
        """Returns a page of an earlier output of the conversation.

        Also reads the findings that the brief names, by the ids of their subtasks.
        """
        try:
            call = read_call(block.get("input"))
            named = (each for each in request.findings if each.subtask_id == call.output)
            finding = next(named, None)
            if finding is not None:
                text = await read_text(self._store, finding.text_ref)
            else:
                text = await earlier_output(self._conversations, request.head, call)
            opening = (await self._first_entry(request, entry)).opening
            window = await self._window(request.run, opening.model) if opening else _UNKNOWN
            return ToolRun(page(text, call, page_chars(window.tokens, window.output_chars)))
        except ValueError as error:
            return ToolRun(str(error), is_error=True)

    async def _first_entry(self, request: ToolInput, entry: Entry) -> Entry:
        """Returns the entry that began the conversation of a call."""
        return await self._conversations.entry([*entry.ancestors, request.head][0])

    async def _window(self, run: RunRef, model: str) -> Window:
        traits = await granted_traits(self._store, run.run_id, run.grant_ref, model)
        return self._endpoint.window(model, traits)

    async def _made_before(
        self,
        request: ToolInput,
        entry: Entry,
        block: JsonObject,
    ) -> ToolRun | None:
        """Returns words in place of the output, if the conversation has it after an equal call.

        None if there is none, or if the model no longer sees it whole: then it is given again.
        """
        chain = [*(await self._conversations.entries(entry.ancestors)).values(), entry]
        seen = 0  # outputs so far: the first `cleared` ones are shown as previews
        for asking, answering in pairwise(chain):
            results = tool_results(answering.input)
            same = [use["id"] for use in asking.reply.tool_uses() if _is_same(use, block)]
            for number, result in enumerate(results, seen + 1):
                if result["tool_use_id"] not in same:
                    continue
                if result.get("is_error"):
                    return ToolRun(FAILED_BEFORE, is_error=True)
                if number > entry.view.cleared:
                    return ToolRun(MADE_BEFORE)
            seen += len(results)
        return None

    async def _once(
        self,
        request: ToolInput,
        done: str,
        run: Callable[[], Awaitable[ToolRun]],
    ) -> ToolReply:
        """Runs a call with effects, unless it was begun before, perhaps before a reset.

        Then it returns the stored result. `done` names the call to whoever takes over the subtask.
        """
        again = f".{len(request.call.replies)}" if request.call.replies else ""
        call = f"{request.head}/{request.call.index}{again}"
        started, result = effect_keys(request.run.run_id, call)
        if not await self._store.create(started, b""):
            stored = await self._store.find(result)
            if stored is not None:
                return ToolReply.model_validate_json(stored)
            unknown = await self._reply(request, ToolRun(UNKNOWN_OUTCOME, is_error=True))
            effect = f"{done} was begun, its outcome is unknown"
            return unknown.model_copy(update={"effect": effect})
        began_at = datetime.now(UTC)
        reply = await self._reply(request, await run())
        if not reply.asks:
            how = "failed" if reply.result.is_error else "was run"
            reply.effect = f"{done} {how} at {began_at:%H:%M} UTC"
        await until_stored(lambda: self._store.put(result, reply.model_dump_json().encode()))
        return reply

    async def _run(self, request: ToolInput, loaded: LoadedTeam, block: JsonObject) -> ToolRun:
        async def brief() -> str | None:
            """Returns the text that began the conversation.

            None if untrusted text had a part in it.
            """
            entry = await self._conversations.entry(request.head)
            first = await self._first_entry(request, entry)
            return None if first.labels.untrusted else "\n".join(texts_of(first.input))

        async def links() -> set[str]:
            """Returns the URLs that were read before this call, and that no model made up."""
            keep = partial(self._store.put_output, request.run.run_id)
            entry = await self._conversations.entry(request.head)
            grounds = await read_grounds(self._conversations, request.head, loaded.toolbox, keep)
            return grounds.links(untrusted=bool(entry.labels.untrusted))

        replies: dict[str, str] = {}
        for question, ref in request.call.replies:
            replies[question] = await read_text(self._store, ref)
        attachments: dict[str, Callable[[], Awaitable[str]]] = {}
        for attachment in request.attachments:
            attachments[attachment.name] = partial(read_text, self._store, attachment.ref)
        context = ToolContext(
            replies=replies,
            attachments=attachments,
            idempotency_key=f"{request.head}/{request.call.index}",
            run_id=request.run.run_id,
            files=self._teams.files_of(request.run),
            brief=brief,
            links=links,
            once=partial(self._outside_answers.fetch_once, request.run.run_id),
        )
        role = loaded.team.role(request.role)
        return await loaded.toolbox.run(role, request.call.name, block.get("input"), context)

    async def _reply(self, request: ToolInput, ran: ToolRun) -> ToolReply:
        """Stores the output of a call, and returns the references to it."""
        put = partial(self._store.put_output, request.run.run_id)
        ref = await until_stored(lambda: put(ran.text))
        show_text(spans.TOOL_RESULT, ran.text)
        artifacts: list[ArtifactRef] = []
        for new in ran.artifacts:
            key = await until_stored(partial(put, new.data))
            artifacts.append(
                ArtifactRef(
                    name=new.name,
                    media_type=new.media_type,
                    bytes=len(new.data),
                    ref=key,
                )
            )
        result = ToolResultRef(
            call_id=request.call.call_id,
            ref=ref,
            is_error=ran.is_error,
            sources=ran.sources,
            artifacts=artifacts,
            readings=ran.readings,
            facts=ran.facts,
        )
        preview = cut(ran.text, _TOOL_PREVIEW_BYTES)
        return ToolReply(result=result, preview=preview, asks=ran.asks, choices=ran.choices)


def _is_same(one: JsonObject, other: JsonObject) -> bool:
    """True if two calls have the same tool and arguments; the order of arguments is ignored."""
    if one.get("name") != other.get("name"):
        return False
    first, second = one.get("input"), other.get("input")
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    return same_arguments(first, second)


def _values(arguments: object) -> str:
    """Returns the values of a call's arguments in one line, enough of them to tell calls apart."""
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    shown: list[str] = []
    for value in values:
        shown.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return one_line(clean(", ".join(shown)), limits.LINE_BYTES)


def _shown_block(blocks: list[JsonObject], call: ToolCallRef) -> JsonObject | None:
    """Returns the block of a reply that was shown and hashed as this call.

    None if another block, or none, is in its place by now.
    """
    if call.index >= len(blocks):
        return None
    block = blocks[call.index]
    if (block.get("id"), block.get("name")) != (call.call_id, call.name):
        return None
    return block if arguments_sha256(block.get("input")) == call.arguments_sha256 else None
