"""Reading a reply that should be JSON of some model, and saying what is wrong with one that is not."""

from typing import TypeVar

from pydantic import ValidationError

from activities.model.port import ModelMessage
from activities.model.structured import first_json
from supervision.contract.base import Model
from supervision.contract.request import describe_errors

M = TypeVar("M", bound=Model)


def read_reply(kind: type[M], message: ModelMessage, root: str = "reply") -> M:
    """The `kind` in a reply; ValueError says what is wrong with it in words its author can act on."""
    if refusal := refusal_of(message):
        raise ValueError(f"the model refused: {refusal}")
    if message.stop_reason == "max_tokens":
        raise ValueError(f"the {root} was cut off: make it shorter")
    try:
        return kind.model_validate(first_json(message.text()))
    except ValidationError as error:
        problem = describe_errors(error, root=root)
    except ValueError as error:
        problem = str(error)
    raise ValueError(f"the reply is not the JSON asked for: {problem}")


def refusal_of(message: ModelMessage) -> str | None:
    """Why the model refused; None when it did not."""
    if message.stop_reason != "refusal":
        return None
    details = message.stop_details or {}
    return str(details.get("explanation") or details.get("category") or "no reason given")
