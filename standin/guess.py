"""Guesses for the fields of a schema nobody foresaw, from the words of the prompt."""

import re
from collections.abc import Callable
from typing import Any

from standin import prompt
from standin.request import Json, Request
from standin.words import alike, key_stems, stem, words

_NEGATIVE = re.compile(r"revis|retry|redo|reject|fail|problem|missing|error|conflict|unsafe|needs?_|again|contradict")
_DONE = re.compile(r"finish|done|complete|stop")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")


class Guesses:
    """What a prompt suggests for a property, by the property's name."""

    def __init__(self, request: Request, text: Callable[[], str]) -> None:
        self._prompt = request.prompt
        self._text = text  # makes what a free string gets
        self._findings = prompt.findings(request.prompt)

    def __call__(self, name: str, schema: Json) -> Any:
        """A value, or None for no idea."""
        if "enum" in schema:
            return self._option(name, schema["enum"])
        kind = schema.get("type")
        if kind == "boolean":
            return self._flag(name)
        if kind in ("integer", "number"):
            return self._figure(name, str(kind))
        return self._string(name)

    def _flag(self, name: str) -> bool:
        if _DONE.search(name.lower()):
            return bool(self._findings)
        return _NEGATIVE.search(name.lower()) is None

    def _figure(self, name: str, kind: str) -> float | int | None:
        if "confidence" in name:
            return 0.6 if self._findings else 0.3
        wanted = key_stems(name.replace("_", " "))
        for line in "\n".join(finding.text for finding in self._findings).splitlines():
            present = key_stems(line)
            numbers = _NUMBER.findall(line)
            if numbers and all(any(alike(one, other) for other in present) for one in wanted):
                value = float(numbers[0].replace(",", ""))
                return int(value) if kind == "integer" else value
        return None

    def _string(self, name: str) -> str:
        low = name.lower()
        if low.endswith("id") and (found := re.search(rf'\b(?:{re.escape(low)}|id)\s*=\s*"([^"]+)"', self._prompt)):
            return found.group(1)
        for tag in (
            low,
            "subtask" if "description" in low or "instruction" in low else "",
            "goal" if low == "goal" else "",
        ):
            if tag and (text := prompt.block(self._prompt, tag)):
                return text
        return self._text()

    def _option(self, name: str, options: list[Any]) -> Any:
        """The role that is next; a finishing word once there are findings; else what the goal mentions."""
        listed = [role.name for role in prompt.roles(self._prompt)]
        used = {finding.role for finding in self._findings}
        candidates = [role for role in listed if role in options]
        if candidates and ("role" in name or "next" in name or "agent" in name):
            unused = [role for role in candidates if role not in used]
            return unused[0] if unused else self._ending(options) or candidates[0]
        if self._findings and (ending := self._ending(options)):
            return ending
        goal = [stem(word) for word in words(prompt.block(self._prompt, "goal") or "")]
        return next((option for option in options if isinstance(option, str) and stem(option) in goal), None)

    @staticmethod
    def _ending(options: list[Any]) -> Any:
        return next((option for option in options if isinstance(option, str) and _DONE.search(option.lower())), None)
