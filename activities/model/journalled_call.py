"""One model call as an activity makes it: journal first, then the provider, then the journal again.

The stored object is journal and conversation entry in one. It is written right after the answer is read,
before anything else is awaited, so a call whose answer was stored is never sent again.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from secrets import SystemRandom

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.contracts.run_contracts import RunRef
from activities.heartbeat import show
from activities.model import call_errors
from activities.model.conversation import Conversation, ConversationStore, Entry, Opening
from activities.model.port import (
    Json,
    LanguageModel,
    ModelFailure,
    ModelMessage,
    ModelRequest,
    StreamProgress,
    user_message,
)
from activities.model.pricing import price
from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from supervision import limits
from supervision.contract.usage import Usage
from supervision.errors import ODD, WAITING, ErrorKind
from supervision.store_keys import call_header, call_key
from supervision.text import cut

CALL_HEADER = "x-supervisor-call"
_FAILURES = "failures"

_jitter = SystemRandom()


@dataclass(frozen=True)
class Answered:
    """A call's answer: the new head of its conversation, the message, and its usage."""

    head: str
    message: ModelMessage
    usage: Usage


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

    async def begin(self, run: RunRef, step: str, opening: Opening, text: str, max_tokens: int) -> Answered:
        """Makes the first call of a conversation."""
        return await self._call(run, step, None, opening, [user_message(text)], max_tokens)

    async def go_on(self, run: RunRef, step: str, head: str, messages: list[Json], max_tokens: int) -> Answered:
        """Makes a later call: the conversation at `head` with `messages` appended."""
        return await self._call(run, step, head, None, messages, max_tokens)

    async def _call(
        self, run: RunRef, step: str, head: str | None, opening: Opening | None, messages: list[Json], max_tokens: int
    ) -> Answered:
        info = activity.info()
        await self.store.require(run.store_id)
        key = call_key(run.run_id, info.workflow_run_id or "", info.activity_id)
        if info.attempt > 1 and (entry := await self.conversations.find(key)):
            return self._answered(key, entry.reply)
        past = await self.conversations.load(head) if head else None
        opening = opening or (past.opening if past else None)
        assert opening is not None
        request = ModelRequest(
            model=opening.model,
            system=opening.system,
            messages=await self._with_past(past, messages),
            max_tokens=max_tokens,
            tools=opening.tools,
            output_schema=opening.output_schema,
            headers={CALL_HEADER: call_header(info.workflow_id or "", step)} if self._call_header else {},
        )
        progress = StreamProgress()
        message = await self._complete(request, progress)
        entry = Entry(
            opening=None if past else opening,
            ancestors=[*past.ancestors, past.head] if past else [],
            input=messages,
            reply=message,
        )
        return self._answered(key, (await self._save(key, entry, progress)).reply)

    async def _with_past(self, past: Conversation | None, messages: list[Json]) -> list[Json]:
        new = await self.conversations.resolve(messages)
        return [*past.messages, *new] if past else new

    async def _complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        # Temporal counts attempts that were held back as well: an outage would use up all patience. So failures are
        # counted by kind, and the heartbeats take the counts to the next attempt, in whichever process.
        failures = _earlier_failures()
        show(
            lambda: {
                "tokens": progress.output_tokens,
                "tail": progress.tail,
                "held": progress.held,
                _FAILURES: failures,
            }
        )
        try:
            return _distinct(await self.model.complete(request, progress))
        except ModelFailure as failure:
            failures[failure.kind] += 1
            activity.heartbeat({_FAILURES: failures})
            raise to_application_error(failure, failures[failure.kind]) from failure

    async def _save(self, key: str, entry: Entry, progress: StreamProgress) -> Entry:
        """Tries until the attempt ends: giving up would pay for the same answer again. The heartbeat says why."""
        while True:
            try:
                return await self.conversations.save(key, entry)
            except ArtifactUnavailable as error:
                progress.held = str(error)
                activity.logger.warning("an answer can't be stored yet: %s", error)
                await asyncio.sleep(limits.STORE_RETRY_MAX.total_seconds())

    def _answered(self, key: str, message: ModelMessage) -> Answered:
        tokens = message.usage
        usage = Usage(
            model_calls=1,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cache_read_tokens=tokens.cache_read_tokens,
            cache_write_tokens=tokens.cache_write_tokens,
            usd=0.0 if self._free else price(message.model, tokens),
        )
        return Answered(key, message, usage)


def _earlier_failures() -> Counter[str]:
    """Returns how often earlier attempts at this call failed, by kind."""
    details = activity.info().heartbeat_details
    counts = details[0].get(_FAILURES) if details and isinstance(details[0], dict) else None
    return Counter(counts if isinstance(counts, dict) else {})


def _distinct(message: ModelMessage) -> ModelMessage:
    """Returns the message. Raises ModelFailure if its tool calls cannot be told apart: it is no answer to build on."""
    ids = [block.get("id") for block in message.tool_uses()]
    if not all(isinstance(call_id, str) and call_id for call_id in ids) or len(set(ids)) < len(ids):
        raise call_errors.failure(ErrorKind.BAD_RESPONSE, detail="its tool calls lack ids of their own")
    return message


def to_application_error(failure: ModelFailure, failures: int) -> ApplicationError:
    """Returns the failure as Temporal sees it: its kind, whether and when to try again.

    `failures` counts those of this kind in this call: the wait grows with them if the provider named none.
    """
    retryable = failure.retryable and not (failure.kind in ODD and failures >= limits.ODD_REPLY_ATTEMPTS)
    details: Json = {"status": failure.status, "request_id": failure.request_id}
    if failure.kind == ErrorKind.CIRCUIT_OPEN:
        details = {"remaining": failure.retry_after}
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
