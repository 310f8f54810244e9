"""A kind of question of a supervisor to its model: its activity, and the form of its answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError
from temporalio import activity

from activities.contracts.run_contracts import SupervisorCall, SupervisorReply
from activities.model.conversation import Opening
from activities.model.journalled_call import Answered, CallOptions, ModelCalls
from activities.model.port import CacheUse, ModelMessage, user_message
from activities.model.prompt_fit import PromptWriter
from activities.prompts.prompt_blocks import steering
from activities.questions.other_runs import OtherRuns
from activities.store.artifacts import ArtifactStore
from activities.teams.stored_teams import StoredTeams
from temporal_supervisor.supervision.agent.turn_rules import CUT
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.request import describe_errors
from temporal_supervisor.supervision.replies.loose_form import read_form
from temporal_supervisor.supervision.replies.loose_json import first_value

C = TypeVar("C", bound=SupervisorCall)
R = TypeVar("R", bound=SupervisorReply)
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Desk:
    """The means of answering questions: the model calls and the teams of this process.

    Without `others` a planner sees only the load of its own run.
    """

    calls: ModelCalls
    teams: StoredTeams
    others: OtherRuns | None = None

    @property
    def store(self) -> ArtifactStore:
        """The store of conversations, plans and findings."""
        return self.calls.store


def goal_of_people(goal: str, run_id: str) -> list[str]:
    """Returns the goal if people wrote it; a nested run's goal is a subtask, written by a model."""
    return [goal] if activity.info().workflow_id == run_id else []


@dataclass(frozen=True)
class Question(Generic[C, R]):
    """One kind of question, answered by the activity `name`.

    It takes a `call` and returns its `reply`, computed by `answer`.
    """

    name: str
    call: type[C]
    reply: type[R]
    answer: Callable[[Desk, C], Awaitable[R]]

    def activity(self, desk: Desk) -> Callable[[C], Awaitable[R]]:
        """Returns the activity that answers the question."""

        async def answer_call(call: C) -> R:
            return await self.answer(desk, call)

        # Temporal decodes payloads by them.
        answer_call.__annotations__ = {"call": self.call, "return": self.reply}
        return activity.defn(name=self.name)(answer_call)


async def send_to_model(
    desk: Desk,
    call: SupervisorCall,
    system: str,
    form: type[Model] | None,
    text: PromptWriter,
    back: tuple[str, str] | None = None,
    cache: CacheUse = "none",
) -> Answered:
    """Asks for a `form`, else for plain text, in a new conversation.

    With `back`, a head and a text, it continues the conversation at that head instead.
    """
    dated = f"Today is {call.run.date}.\n\n{system}" if call.run.date else system
    said = [steering(call.steers)] if call.steers else []
    opening = Opening(
        system="\n\n".join([dated, *said]),
        model=call.model,
        effort=call.effort,
        output_schema=desk.calls.model.output_schema(form) if form else None,
    )
    if back is None:
        return await desk.calls.begin(call, opening, text, CallOptions(cache))
    head, words = back
    added = [user_message("\n\n".join([words, *said]))]
    return await desk.calls.follow_up(call, head, added, CallOptions(cache))


async def ask_model(
    desk: Desk,
    call: SupervisorCall,
    reply: type[R],
    system: str,
    form: type[M],
    text: PromptWriter,
) -> tuple[R, M | None]:
    """Asks for a `form` in a new conversation. Returns the reply, and the answer in that form.

    The answer is None if it could not be read: then the reply has a `problem`.
    """
    answered = await send_to_model(desk, call, system, form, text)
    begun = reply(head=answered.head, refusal=answered.message.refusal, usage=answered.usage)
    try:
        return begun, read_reply(form, answered.message)
    except ValueError as error:
        begun.problem = cut(str(error), limits.ERROR_BYTES)
    return begun, None


def read_reply(form: type[M], message: ModelMessage, root: str = "reply") -> M:
    """Returns the `form` in a reply. Raises ValueError with words that its author can act on."""
    if message.refusal:
        raise ValueError(f"the model refused: {message.refusal}")
    if message.stop_reason in CUT:
        raise ValueError(f"the {root} was cut off: make it shorter")
    return read_json(form, message.text(), root)


def read_json(form: type[M], text: str, root: str = "reply") -> M:
    """Returns the `form` in a text. Raises ValueError with the problem."""
    try:
        return read_form(form, first_value(text))
    except ValidationError as error:
        problem = describe_errors(error, root=root)
    except ValueError as error:
        problem = str(error)
    raise ValueError(f"the reply is not the JSON asked for: {problem}")
