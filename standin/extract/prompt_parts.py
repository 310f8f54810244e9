"""The marked parts of a prompt: goal, subtask, roles, findings, attachments."""

import re
from html import unescape
from typing import NamedTuple

from supervision.base import prompt_marks as marks

_ROLE = re.compile(r"^\s*[-*]\s*([A-Za-z][\w-]*):\s*+(.+?)(?:(?<!\s)\s*+\((tools:[^()]*+)\))?(?<!\s)\s*+$")
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)\s*+=\s*+"([^"]*+)"')
_QUESTION = re.compile(r"^.*?\bQuestion:\s*(.+)$", re.MULTILINE)

Block = tuple[dict[str, str], str]
"""A tag's attributes and the text between it and its end."""


class RoleLine(NamedTuple):
    """A role as the planner's prompt lists it; `extras` are its tools and capabilities."""

    name: str
    description: str = ""
    extras: str = ""


class FindingText(NamedTuple):
    """A finding as a prompt shows it."""

    subtask_id: str
    role: str
    text: str


def blocks(prompt: str, tag: str) -> list[Block]:
    """Returns attributes and text of each `<tag ...>...</tag>`, in order."""
    name = re.escape(tag)  # a tag that is only mentioned has no end, or another beginning before its end
    parts = re.findall(rf"<{name}(\s(?:(?!<{name}[\s>])[^>])*+)?>((?:(?!<{name}[\s>]).)*?)</{name}>", prompt, re.DOTALL)
    return [({k: unescape(v) for k, v in _ATTRIBUTE.findall(head)}, unescape(text).strip()) for head, text in parts]


def block(prompt: str, tag: str) -> str | None:
    """Returns the text of the last `<tag>...</tag>` of the prompt; None if there is none."""
    return next((text for _, text in reversed(blocks(prompt, tag))), None)


def focus(text: str) -> str:
    """Returns the question inside a description that the stand-in's planner wrote, else the whole text."""
    match = _QUESTION.search(text)
    return match[1].strip() if match else text.strip()


def roles(prompt: str) -> list[RoleLine]:
    """Returns the roles that are listed after the heading of roles, up to a line that is none."""
    listed: list[RoleLine] = []
    for line in prompt.partition(f"{marks.ROLES}\n")[2].splitlines():
        if match := _ROLE.match(line):
            listed.append(RoleLine(match[1], match[2], match[3] or ""))
        elif listed and line.strip() and not line.startswith((" ", "\t")):
            break
    return listed


def findings(prompt: str) -> list[FindingText]:
    """Returns the findings, in order."""
    parts = blocks(prompt, marks.FINDING)
    return [FindingText(head.get("subtask_id", ""), head.get("role", ""), text) for head, text in parts]


def ended_subtasks(prompt: str) -> list[Block]:
    """Returns the subtasks of a plan that has been worked on, in order."""
    return blocks(prompt, marks.PLANNED)


def attachments(prompt: str) -> list[str]:
    """Returns the names of the attachments: one a line, with or without a size, or with their texts."""
    listed = block(prompt, marks.ATTACHMENTS) or ""
    named = [head.get("name", "") for head, _ in blocks(prompt, marks.ATTACHMENT)]
    lines = re.sub(rf"<{marks.ATTACHMENT}\s.*?</{marks.ATTACHMENT}>", "", listed, flags=re.DOTALL).splitlines()
    return named + [re.sub(r"^[-*]\s+|(?<!\s)\s*+\([^()]*+\)$", "", line.strip()) for line in lines if line.strip()]
