"""Questions over several short texts, played by quoting the sentences of those that hold the answer."""

import re
from dataclasses import dataclass
from pathlib import Path

from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from tests.oracle.plays import Call, Source, Told
from tests.oracle.written import misread

_STRANGER = "Ottokar Petersen"
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)+")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d{2}\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n+")


def musique(question: EvalQuestion, folder: Path) -> Source | None:
    """Returns a question with its author; None if no supporting text has the words of its answer."""
    names = question.supporting
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    sentences = [(name, sentence) for name, text in texts.items() for sentence in _SENTENCE.split(text)]
    truths = [str(question.answer.value), *question.answer.aliases]
    holding = [(name, " ".join(each.split())) for name, each in sentences if any(truth in each for truth in truths)]
    if not holding:
        return None
    name, sentence = holding[-1]
    written = next(truth for truth in truths if truth in sentence)
    others = [file.read_text(encoding="utf-8") for file in sorted(folder.iterdir()) if file.name not in names]
    return Source(question, "reader", _Author(question, written, name, sentence, tuple(others)).write)


@dataclass(frozen=True)
class _Author:
    question: EvalQuestion
    value: str
    name: str
    sentence: str
    others: tuple[str, ...]

    def write(self, fault: str) -> Told | None:
        """Returns the words with this fault."""
        value, sentence = self.value, self.sentence
        match fault:
            case "figure":
                value = misread(value) if re.search(r"\d", value) else _STRANGER
                sentence = sentence.replace(self.value, value)
            case "row":
                value = self._name_elsewhere()
                if not value:
                    return None
                sentence = sentence.replace(self.value, value)
            case "period":
                year = _YEAR.search(sentence)
                if year is None or year[0] in value:
                    return None
                sentence = sentence.replace(year[0], str(int(year[0]) - 7))
            case _ if fault:
                return None
        calls: tuple[Call, ...] = tuple(("read_document", {"document_id": name}) for name in self.question.supporting)
        finding = f'"{sentence}" [{self.name}]\n\nThe answer is {value}.'
        return Told(calls, finding, f'{value}. The text says: "{sentence}" [t1]', {"value": value})

    def _name_elsewhere(self) -> str:
        """Returns a name that stands in another text than those that hold the answer."""
        for text in self.others:
            for name in _NAME.findall(text):
                if name not in self.sentence and name not in self.question.question:
                    return str(name)
        return ""
