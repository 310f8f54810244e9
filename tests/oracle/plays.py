"""A play: everything that a model says to one question, honest or with one fault in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from temporal_supervisor.supervision.scores.question_sets import EvalQuestion

Call = tuple[str, dict[str, Any]]
"""The name and the arguments of a tool call."""

FINDING, ANSWER = "finding", "answer"
"""The places of a fault: in the finding, which the answer repeats, or in the answer alone."""


@dataclass(frozen=True)
class Part:
    """A subtask: the role that takes it, its tool calls, and its finding."""

    role: str
    description: str
    calls: tuple[Call, ...]
    finding: str


@dataclass(frozen=True)
class Play:
    """The replies to a question: the subtasks with their findings, the answer, and its fields."""

    question: EvalQuestion
    parts: tuple[Part, ...]
    answer: str
    fields: JsonValue
    fault: str = ""
    place: str = ""

    @property
    def name(self) -> str:
        """The id of the question, and the fault that is in it."""
        return "-".join(filter(None, (self.question.id, self.fault, self.place)))


@dataclass(frozen=True)
class Told:
    """The words of an author: of the finding, and of the answer with its fields."""

    calls: tuple[Call, ...]
    finding: str
    answer: str
    fields: JsonValue


Author = Callable[[str], Told | None]
"""Writes the words with a kind of fault in them, honest ones without a kind; None if it cannot have that fault."""


@dataclass(frozen=True)
class Source:
    """A question with its author; `more` are subtasks beside the one that the author works on."""

    question: EvalQuestion
    role: str
    write: Author
    more: tuple[Part, ...] = ()

    def honest(self) -> Play:
        """Returns the play without a fault."""
        told = self.write("")
        if told is None:
            raise ValueError(f"{self.question.id} has no honest words")
        return self._play(told, told)

    def planted(self, fault: str, place: str) -> Play | None:
        """Returns the play with a fault in this place; None if the question cannot have it."""
        honest, wrong = self.write(""), self.write(fault)
        if honest is None or wrong is None or wrong.answer == honest.answer:
            return None
        found = self._play(wrong if place == FINDING else honest, wrong)
        return Play(found.question, found.parts, found.answer, found.fields, fault, place)

    def _play(self, found: Told, answered: Told) -> Play:
        part = Part(self.role, self.question.question, found.calls, found.finding)
        return Play(self.question, (part, *self.more), answered.answer, answered.fields)
