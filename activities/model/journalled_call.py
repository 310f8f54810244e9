"""One model call as an activity makes it: journal first, then the provider, then the journal again.

The stored object is journal and conversation entry in one. It is written right after the answer is read,
before anything else is awaited, so a call whose answer was stored is never sent again. Every attempt looks for it:
an operator's reset makes the count of attempts begin anew.

An attempt that fails leaves its counts in the heartbeat's details, which Temporal hands to the next one in whichever
process it runs.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import SystemRandom

from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.contracts.run_contracts import RunRef
from activities.heartbeat import show
from activities.model import call_errors
from activities.model.conversation import Conversation, ConversationStore, Entry, Opening
from activities.model.port import (
    CacheUse,
    Json,
    LanguageModel,
    ModelFailure,
    ModelMessage,
    ModelRequest,
    ModelUsage,
    StreamProgress,
    system_note,
    user_message,
)
from activities.model.pricing import price
from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.usage import Usage
from supervision.errors import ODD, WAITING, ErrorKind
from supervision.store_keys import call_header, call_key
from supervision.text import cut

CALL_HEADER = "x-supervisor-call"

_jitter = SystemRandom()


@dataclass(frozen=True)
class CallOptions:
    """How a call is made: its room for a reply, what of it is cached and for how long, whether it may call tools."""

    max_tokens: int
    cache: CacheUse = "none"
    long_cache: bool = False
    concludes: bool = False


@dataclass(frozen=True)
class Answered:
    """A call's answer: the new head of its conversation, the message, and the usage of all attempts at it."""

    head: str
    message: ModelMessage
    usage: Usage


class EarlierAttempts(Model):
    """What the attempts at one call hand on: failures by kind, and what those cost that brought no answer."""

    failures: dict[str, int] = {}
    spent: Usage = Usage()

    @classmethod
    def of_this_call(cls) -> "EarlierAttempts":
        """Returns what the attempts before this one left behind."""
        details = activity.info().heartbeat_details
        try:
            return cls.model_validate(details[0]) if details else cls()
        except ValidationError:  # the heartbeats of another version
            return cls()


class ModelCalls:
    """Model calls of the activities of one process."""

    def __init__(
        self,
        model: LanguageModel,
        store: ArtifactStore,
        conversations: ConversationStore,
        *,
        call_header: bool = True,
        free: bool = False,
    ) -> None:
        """`call_header` sends `x-supervisor-call`; `free` says that calls cost nothing, as the stand-in's."""
        self.model = model
        self.store = store
        self.conversations = conversations
        self._call_header = call_header
        self._free = free

    async def begin(
        self, run: RunRef, step: str, opening: Opening, text: str, options: CallOptions, note: str | None = None
    ) -> Answered:
        """Makes the first call of a conversation; `note` is the system's own word after the text."""
        messages = [user_message(text), *([system_note(note)] if note else [])]
        return await self._call(run, step, None, opening, messages, options)

    async def go_on(self, run: RunRef, step: str, head: str, messages: list[Json], options: CallOptions) -> Answered:
        """Makes a later call: the conversation at `head` with `messages` appended."""
        return await self._call(run, step, head, None, messages, options)

    async def _call(
        self, run: RunRef, step: str, head: str | None, opening: Opening | None, messages: list[Json], how: CallOptions
    ) -> Answered:
        info, earlier = activity.info(), EarlierAttempts.of_this_call()
        show(earlier.model_dump)  # a heartbeat replaces what the attempts before left behind
        await self.store.require(run.store_id)
        key = call_key(run.run_id, info.workflow_run_id or "", info.activity_id)
        if entry := await self.conversations.find(key):
            return self._answered(key, entry)
        past = await self.conversations.load(head) if head else None
        opening = opening or (past.opening if past else None)
        assert opening is not None
        request = ModelRequest(
            model=opening.model,
            system=opening.system,
            messages=await self._with_past(past, messages),
            max_tokens=how.max_tokens,
            effort=opening.effort,
            tools=opening.tools,
            output_schema=opening.output_schema,
            cache=how.cache,
            long_cache=how.long_cache,
            concludes=how.concludes,
            previous_message_id=past.message_id if past else None,
            headers={CALL_HEADER: call_header(info.workflow_id or "", step)} if self._call_header else {},
        )
        message = await self._complete(request, earlier)
        entry = Entry(
            opening=None if past else opening,
            ancestors=[*past.ancestors, past.head] if past else [],
            input=messages,
            reply=message,
            spent=earlier.spent,
            at=datetime.now(UTC).isoformat(),
        )
        return self._answered(key, await self._save(key, entry, earlier))

    async def _with_past(self, past: Conversation | None, messages: list[Json]) -> list[Json]:
        new = await self.conversations.resolve(messages)
        return [*past.messages, *new] if past else new

    async def _complete(self, request: ModelRequest, earlier: EarlierAttempts) -> ModelMessage:
        progress = StreamProgress()
        show(
            lambda: {
                "tokens": progress.output_tokens,
                "tail": progress.tail,
                **self._handed_on(earlier, request, progress),
            }
        )
        try:
            return _distinct(await self.model.complete(request, progress))
        except ModelFailure as failure:
            # Temporal counts attempts that were held back as well: an outage would use up all patience.
            failures = earlier.failures.get(failure.kind, 0) + 1
            earlier.failures[failure.kind] = failures
            left = self._handed_on(earlier, request, progress)
            activity.heartbeat(left)
            raise to_application_error(failure, failures, left["spent"]) from failure

    def _handed_on(self, earlier: EarlierAttempts, request: ModelRequest, progress: StreamProgress) -> Json:
        """Returns what the next attempt needs to know if this one ends now."""
        spent = earlier.spent + usage_of(request.model, progress.usage, calls=0, free=self._free)
        return EarlierAttempts(failures=earlier.failures, spent=spent).model_dump()

    async def _save(self, key: str, entry: Entry, earlier: EarlierAttempts) -> Entry:
        """Tries until the attempt ends: giving up would pay for the same answer again. The heartbeat says why."""
        while True:
            try:
                return await self.conversations.save(key, entry)
            except ArtifactUnavailable as error:
                held = {**earlier.model_dump(), "held": str(error)}
                show(held.copy)
                activity.logger.warning("an answer can't be stored yet: %s", error)
                await asyncio.sleep(limits.STORE_RETRY_MAX.total_seconds())

    def _answered(self, key: str, entry: Entry) -> Answered:
        reply = entry.reply
        usage = usage_of(reply.model, reply.usage, free=self._free)
        return Answered(key, reply, usage + entry.spent)


def usage_of(model: str, tokens: ModelUsage, *, calls: int = 1, free: bool) -> Usage:
    """Returns what answers of a model cost; nothing in dollars if calls are `free`."""
    return Usage(
        model_calls=calls,
        input_tokens=tokens.input_tokens,
        output_tokens=tokens.output_tokens,
        cache_read_tokens=tokens.cache_read_tokens,
        cache_write_tokens=tokens.cache_write_tokens,
        usd=0.0 if free or tokens == ModelUsage() else price(model, tokens),
    )


def _distinct(message: ModelMessage) -> ModelMessage:
    """Returns the message. Raises ModelFailure if its tool calls cannot be told apart: it is no answer to build on."""
    calls = message.tool_uses()
    ids = [block.get("id") for block in calls]
    names = [block.get("name") for block in calls]
    if not all(isinstance(name, str) and name for name in (*ids, *names)) or len(set(ids)) < len(ids):
        raise call_errors.failure(ErrorKind.BAD_RESPONSE, detail="its tool calls lack names, or ids of their own")
    return message


def to_application_error(failure: ModelFailure, failures: int, spent: Json | None = None) -> ApplicationError:
    """Returns the failure as Temporal sees it: its kind, whether and when to try again, what the attempts have cost.

    `failures` counts those of this kind in this call: the wait grows with them if the provider named none.
    """
    retryable = failure.retryable and not (failure.kind in ODD and failures >= limits.ODD_REPLY_ATTEMPTS)
    details: Json = {"status": failure.status, "request_id": failure.request_id, "spent": spent}
    if failure.kind == ErrorKind.CIRCUIT_OPEN:
        details = {"remaining": failure.retry_after, "spent": spent}
    return ApplicationError(
        cut(failure.message, limits.ERROR_BYTES),
        details,
        type=failure.kind,
        non_retryable=not retryable,
        next_retry_delay=_delay(failure.retry_after, failures) if retryable else None,
        category=(ApplicationErrorCategory.BENIGN if failure.kind in WAITING else ApplicationErrorCategory.UNSPECIFIED),
    )


def _delay(retry_after: float | None, failures: int) -> timedelta:
    growth = limits.MODEL_RETRY_FACTOR ** min(max(failures - 1, 0), 20)  # a power of thousands overflows
    wait = (
        timedelta(seconds=retry_after)
        if retry_after
        else min(limits.MODEL_RETRY_INITIAL * growth, limits.MODEL_RETRY_MAX)
    )
    return wait * (1 + limits.RETRY_JITTER * _jitter.random())
