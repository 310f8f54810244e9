"""Questions whose answer has a fixed form: asking one, reading the reply, saying what is wrong with it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from activities.contracts.run_contracts import SupervisorCall
from activities.model.conversation import Opening
from activities.model.journalled_call import CallName, CallOptions, ModelCalls
from activities.model.port import ModelMessage
from activities.model.prompt_fit import PromptWriter
from activities.model.structured import first_json
from supervision.contract.base import Model
from supervision.contract.request import describe_errors
from supervision.contract.usage import Usage

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class StructuredQuestion(Generic[M]):
    """One question to the model: its prompt, and the form that the answer must have."""

    step: str
    system: str
    text: str | PromptWriter
    form: type[M]
    max_tokens: int


@dataclass(frozen=True)
class StructuredReply(Generic[M]):
    """The model's answer to a question; without one that can be read, `answer` is None and `problem` says why."""

    head: str
    usage: Usage
    answer: M | None
    problem: str = ""


async def ask(calls: ModelCalls, call: SupervisorCall, question: StructuredQuestion[M]) -> StructuredReply[M]:
    """Asks the supervisor's model in a new conversation. Returns its answer, or why there is none."""
    opening = Opening(
        system=question.system,
        model=call.model,
        effort=call.effort,
        output_schema=calls.model.output_schema(question.form),
    )
    name, options = CallName.of(call, question.step), CallOptions(question.max_tokens)
    answered = await calls.begin(name, opening, question.text, options)
    try:
        answer = read_reply(question.form, answered.message)
    except ValueError as error:
        return StructuredReply(answered.head, answered.usage, None, str(error))
    return StructuredReply(answered.head, answered.usage, answer)


def read_reply(form: type[M], message: ModelMessage, root: str = "reply") -> M:
    """Returns the `form` in a reply. Raises ValueError with what is wrong, in words its author can act on."""
    if refusal := refusal_of(message):
        raise ValueError(f"the model refused: {refusal}")
    if message.stop_reason == "max_tokens":
        raise ValueError(f"the {root} was cut off: make it shorter")
    try:
        return form.model_validate(first_json(message.text()))
    except ValidationError as error:
        problem = describe_errors(error, root=root)
    except ValueError as error:
        problem = str(error)
    raise ValueError(f"the reply is not the JSON asked for: {problem}")


def refusal_of(message: ModelMessage) -> str | None:
    """Returns why the model refused; None if it did not."""
    if message.stop_reason != "refusal":
        return None
    details = message.stop_details or {}
    return str(details.get("explanation") or details.get("category") or "no reason given")
