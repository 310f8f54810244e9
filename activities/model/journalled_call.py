"""One model call within an activity: journal first, then the provider, then the journal again.

The stored object is both journal and conversation entry, written right after the answer is read.
Its key contains the workflow, the step and the hash of the question, and every attempt looks for it
first, so that a stored answer is never requested again. A failed attempt leaves its counts in the
heartbeat's details for the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import SystemRandom
from typing import Any

from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.exceptions import ApplicationErrorCategory as _Category

from activities.activity_telemetry import add_facts, count_usage, show_text
from activities.contracts.run_contracts import RunRef, SupervisorCall
from activities.contracts.turn_contracts import FailedCall, OtherQuery, TurnInput, arguments_sha256
from activities.heartbeat import set_details, until_stored, waiting
from activities.model.conversation import ConversationStore, ConversationView, Entry, Opening
from activities.model.gate import ModelGate
from activities.model.port import (
    CacheUse,
    ModelEndpoint,
    ModelFailure,
    ModelMessage,
    ModelRequest,
    ModelUsage,
    StreamProgress,
    Window,
)
from activities.model.prompt_fit import CallDraft, FirstPrompt, NextPrompt, PromptWriter
from activities.model.text_calls import is_made_by_program
from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from activities.store.grants import granted_traits
from activities.store.spending import DailySpend
from temporal_supervisor.supervision.base import limits, spans
from temporal_supervisor.supervision.base.errors import RETRIED, WAITING, ErrorKind
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.store_keys import call_header, call_key
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.budget.ledger import USUAL_REPLY_TOKENS
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.provider.endpoint_facts import ModelTraits

# Unreadable answers (HTML, no content): two more tries, then a typed failure.
ODD_REPLY_ATTEMPTS = 3

# Failures after which an endpoint is asked until the call's time is up.
_ASKED_ON = (RETRIED - {ErrorKind.BAD_RESPONSE}) | {ErrorKind.CIRCUIT_OPEN}
_jitter = SystemRandom()
CALL_HEADER = "x-supervisor-call"
_UNASKED: Any = {"run": True, "brief": {"labels"}}

Asked = SupervisorCall | TurnInput
"""The input of an activity that makes a model call."""


def earlier_attempts() -> FailedCall:
    """Returns the record that earlier attempts at this call left."""
    details = activity.info().heartbeat_details
    try:
        return FailedCall.model_validate(details[0]) if details else FailedCall()
    except ValidationError:  # of another version: raised, it would fail every further attempt alike
        return FailedCall()


def to_application_error(failure: ModelFailure, failed: FailedCall) -> ApplicationError:
    """Returns the failure as an ApplicationError for Temporal.

    The wait grows with the call's failures of the same kind.
    """
    failures = failed.failures[failure.kind]
    # An endpoint that answers nonsense, or that asks for another attempt at what it has rejected,
    # is asked a few times.
    is_odd = failure.kind not in _ASKED_ON
    retryable = failure.retryable and not (is_odd and failures >= ODD_REPLY_ATTEMPTS)
    growth = limits.MODEL_RETRY_FACTOR ** min(failures - 1, 20)  # a power of thousands overflows
    grown = min(limits.MODEL_RETRY_INITIAL * growth, limits.MODEL_RETRY_MAX)
    wait = timedelta(seconds=failure.retry_after) if failure.retry_after else grown
    last = {"request_id": failure.request_id, "remaining": failure.retry_after or 0.0}
    is_expected = failure.kind in WAITING
    return ApplicationError(
        cut(failure.message, limits.ERROR_BYTES),
        failed.model_copy(update=last).model_dump(),
        type=failure.kind,
        non_retryable=not retryable,
        next_retry_delay=wait * (1 + limits.RETRY_JITTER * _jitter.random()) if retryable else None,
        category=_Category.BENIGN if is_expected else _Category.UNSPECIFIED,
    )


def key_of(asked: Asked, workflow_id: str) -> str:
    """Returns the key of the entry for an activity's input: its step, and the hash of the input.

    The hash excludes run, labels and the sent texts: a Worker of another version finds it, too.
    """
    sha256 = arguments_sha256(asked.model_dump(mode="json", exclude=_UNASKED))
    return call_key(asked.run.run_id, asked.run.first_run_id, workflow_id, asked.terms.step, sha256)


@dataclass(frozen=True)
class CallOptions:
    """The options of a call: its cached parts, whether it concludes, the `withheld` tools.

    A first call may replace the conversation at `anew_from`; `others` are other queries that were
    written before it.
    """

    cache: CacheUse = "none"
    concludes: bool = False
    withheld: Sequence[str] = ()
    labels: Labels = Labels()
    anew_from: str = ""
    others: Sequence[OtherQuery] = ()


@dataclass(frozen=True)
class Answered:
    """The answer to a call, the new head, the usage of all attempts, and the view for the model."""

    head: str
    message: ModelMessage
    usage: Usage
    view: ConversationView
    labels: Labels


class ModelCalls:
    """The model calls of a process's activities.

    `daily_usd` is the operator's ceiling over all Workers of the store.
    """

    def __init__(
        self,
        model: ModelEndpoint,
        store: ArtifactStore,
        at_once: int = limits.MODEL_SLOTS,
        *,
        call_header: bool = True,
        daily_usd: float | None = None,
    ) -> None:
        self.model = model
        self.store = store
        self.conversations = ConversationStore(store)
        self._gate = ModelGate(model, at_once)
        self._daily = DailySpend(store, daily_usd)
        self._call_header = call_header

    async def begin(
        self,
        asked: Asked,
        opening: Opening,
        text: str | PromptWriter,
        how: CallOptions,
        note: str | None = None,
        call: JsonObject | None = None,
    ) -> Answered:
        """Makes the first call of a conversation; `note` is a second text after the prompt.

        With a tool `call` that is the reply, and the model is not asked. Raises ApplicationError if
        the call fails.
        """
        key = key_of(asked, activity.info().workflow_id or "")
        stored = await self._stored_answer(key)
        if stored is not None:
            return stored
        window = await self.window(asked.run, opening.model)
        prompt = FirstPrompt(window, opening, text, note, how.withheld)
        if call is not None:
            return await self._store_made_call(key, prompt, how, call)
        return await self._make_call(asked, key, prompt, how)

    async def follow_up(
        self,
        asked: Asked,
        head: str,
        added: list[JsonObject],
        how: CallOptions,
    ) -> Answered:
        """Makes a later call, which adds messages to the conversation at `head`.

        Raises ApplicationError if the call fails.
        """
        key = key_of(asked, activity.info().workflow_id or "")
        stored = await self._stored_answer(key)
        if stored is not None:
            return stored
        past = await self.conversations.load(head)
        whole = await self.conversations.resolve(added)
        window = await self.window(asked.run, past.opening.model)
        prompt = NextPrompt(window, past, added, whole, how.withheld)
        return await self._make_call(asked, key, prompt, how)

    async def window(self, run: RunRef, model: str) -> Window:
        """Returns the window of a model, by the traits that the run knows."""
        return self.model.window(model, await self._traits(run, model))

    async def _traits(self, run: RunRef, model: str) -> ModelTraits:
        return await granted_traits(self.store, run.run_id, run.grant_ref, model)

    async def _stored_answer(self, key: str) -> Answered | None:
        """Returns the stored answer of an earlier attempt, or None."""
        # A heartbeat replaces what the attempts before left behind.
        set_details(earlier_attempts().model_dump)
        entry = await self.conversations.find(key)
        if entry is None:
            return None
        add_facts({spans.JOURNAL: True, spans.RESPONSE_MODEL: entry.reply.model})
        return self._answered(key, entry)

    async def _store_made_call(
        self,
        key: str,
        prompt: FirstPrompt,
        how: CallOptions,
        call: JsonObject,
    ) -> Answered:
        """Stores a first entry whose reply is a tool call of the program."""
        draft = await prompt.first_draft()
        reply = ModelMessage(
            content=[call],
            stop_reason="tool_use",
            usage=ModelUsage(),
            model=prompt.opening.model,
        )
        entry = Entry(
            opening=prompt.opening,
            input=draft.added,
            reply=reply,
            view=draft.view,
            labels=how.labels,
            at=datetime.now(UTC).isoformat(),
        )
        return await self._save(key, entry)

    async def _make_call(
        self,
        asked: Asked,
        key: str,
        prompt: FirstPrompt | NextPrompt,
        how: CallOptions,
    ) -> Answered:
        """Makes a call and stores its entry. Raises ApplicationError if it fails."""
        workflow_id = activity.info().workflow_id or ""
        earlier = earlier_attempts()
        headers = {CALL_HEADER: call_header(workflow_id, asked.terms.step)}
        request = ModelRequest(
            **dict(prompt.opening),
            messages=[],
            max_tokens=prompt.window.output_tokens(asked.terms.max_tokens),
            cache=how.cache,
            concludes=how.concludes,
            headers=headers if self._call_header else {},
            run=asked.run.run_id,
            traits=await self._traits(asked.run, prompt.opening.model),
            call=f"{workflow_id}/{asked.terms.step}",
        )
        try:
            message, draft = await self._complete_fitted(prompt, request, earlier)
        except ModelFailure as failure:
            # Temporal counts attempts that were held back as well: an outage would use up all
            # patience.
            earlier.failures[failure.kind] = earlier.failures.get(failure.kind, 0) + 1
            set_details(earlier.model_dump)  # the last heartbeat of the attempt takes it along
            raise to_application_error(failure, earlier) from failure

        facts = {spans.RESPONSE_MODEL: message.model, spans.FINISH_REASONS: [message.stop_reason]}
        add_facts(facts)
        show_text(spans.SYSTEM_TEXT, prompt.opening.system)
        show_text(spans.INPUT_MESSAGES, draft.added)
        show_text(spans.OUTPUT_MESSAGES, message.content)
        past = draft.past
        entry = Entry(
            opening=None if past else prompt.opening,
            ancestors=[*past.last_entry.ancestors, past.head] if past else [],
            input=draft.added,
            reply=message,
            view=draft.view,
            labels=how.labels,
            spent=earlier.spent,
            at=datetime.now(UTC).isoformat(),
            anew_from=how.anew_from,
            others=[*how.others],
        )
        return await self._save(key, entry)

    async def _save(self, key: str, entry: Entry) -> Answered:
        """Stores the entry of a call. Returns its answer."""
        saved = await until_stored(partial(self.conversations.save, key, entry))
        return self._answered(key, saved)

    def _estimate(self, model: str, draft: CallDraft) -> float | None:
        """Returns the estimated cost of a call in dollars.

        Raises ModelFailure if there is a ceiling and the price is unknown.
        """
        tokens = ModelUsage(input_tokens=draft.tokens, output_tokens=USUAL_REPLY_TOKENS)
        estimate = self.model.price(model, tokens)
        if self._daily.ceiling is not None and estimate is None:
            words = f"not sent: SUPERVISOR_DAILY_USD is set, and the price of '{model}' is unknown"
            raise ModelFailure(ErrorKind.MODEL_NOT_SERVED, words)
        return estimate

    async def _complete_fitted(
        self,
        prompt: FirstPrompt | NextPrompt,
        request: ModelRequest,
        earlier: FailedCall,
    ) -> tuple[ModelMessage, CallDraft]:
        """Returns the answer to a call, and its draft: a shorter one if the first was too long."""
        draft = await prompt.first_draft()
        try:
            return await self._complete_draft(request, draft, earlier), draft
        except ModelFailure as failure:
            if failure.kind is not ErrorKind.CONTEXT_OVERFLOW:
                raise
            shorter = await prompt.shorter(draft)
            if shorter is None:
                raise
        return await self._complete_draft(request, shorter, earlier), shorter

    async def _complete_draft(
        self,
        request: ModelRequest,
        draft: CallDraft,
        earlier: FailedCall,
    ) -> ModelMessage:
        """Returns the answer to a draft. Whatever happens, its cost counts for the day."""
        request = replace(
            request,
            messages=draft.messages,
            tools=[tool for tool in request.tools if tool["name"] not in draft.view.withheld],
            room=self.model.window(request.model, request.traits).reply_tokens(draft.tokens),
            tokens=draft.tokens,
        )
        progress = StreamProgress()

        def facts_so_far() -> JsonObject:
            """Returns the facts for the next attempt, if this one ends now."""
            spent = earlier.spent + usage_of(self.model, request.model, progress.usage, calls=0)
            return {
                "tokens": progress.usage.output_tokens,
                "tail": progress.tail,
                "stage": progress.stage,
                **earlier.model_copy(update={"spent": spent}).model_dump(),
            }

        set_details(facts_so_far)
        model = request.model
        tokens: ModelUsage | None = None
        try:
            async with self._daily.call(self._estimate(model, draft)) as refused:
                if refused is not None:
                    # Over for the day is like an outage; a call that only others in flight hold
                    # back is tried soon.
                    kind = ErrorKind.CIRCUIT_OPEN if refused.is_over else ErrorKind.RATE_LIMITED
                    raise ModelFailure(kind, refused.why, refused.wait.total_seconds())
                async with waiting():
                    message = await self._gate.complete(request, progress)
            model = message.model
            tokens = message.usage
            return message
        except ModelFailure:
            earlier.spent += usage_of(self.model, request.model, progress.usage, calls=0)
            set_details(earlier.model_dump)  # `facts_so_far` would count it twice
            raise
        finally:
            usage = usage_of(self.model, model, tokens or progress.usage)
            count_usage(model, usage)
            try:  # a store that is away gets it with that of the next call
                await self._daily.add(usage.usd)
            except ArtifactUnavailable as error:
                activity.logger.warning("the day's spend can't be stored: %s", error)

    def limit_calls(self, most: int) -> None:
        """Limits the calls of a model in flight to `most` from now on."""
        self._gate.limit_calls(most)

    def _answered(self, key: str, entry: Entry) -> Answered:
        calls = 0 if _is_made_by_program(entry.reply) else 1
        usage = usage_of(self.model, entry.reply.model, entry.reply.usage, calls=calls)
        usage += entry.spent
        return Answered(key, entry.reply, usage, entry.view, entry.labels)


def _is_made_by_program(reply: ModelMessage) -> bool:
    """True if the program made the calls of a reply, and no model was asked."""
    return any(is_made_by_program(str(use["id"])) for use in reply.tool_uses())


def usage_of(endpoint: ModelEndpoint, model: str, tokens: ModelUsage, *, calls: int = 1) -> Usage:
    """Returns the usage and the cost of a model's answers."""
    return Usage(
        model_calls=calls,
        **tokens.model_dump(exclude={"web_searches"}),
        usd=0.0 if tokens == ModelUsage() else endpoint.price(model, tokens),
    )
