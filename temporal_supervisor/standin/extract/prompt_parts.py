"""The marked parts of a prompt: goal, subtask, roles, findings, attachments."""

import re
from html import unescape
from typing import NamedTuple

from temporal_supervisor.standin.lookup.word_forms import key_stems, shared_stems
from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.supervision.base import prompt_marks as marks

# "- analyst: reads tables (tools: query_data)": the name, the purpose, the tools.
_ROLE = re.compile(
    r"^\s*[-*]\s*([A-Za-z][\w-]*):\s*+(.+?)(?:(?<!\s)\s*+\((tools:[^()]*+)\))?(?<!\s)\s*+$"
)
# 'id="t1"', 'role = "analyst"'; not 'id=t1'.
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)\s*+=\s*+"([^"]*+)"')
# "write_report", "formatter"; not "rewrite".
_COMPOSES = re.compile(r"(?:\b|_)(writ|format|compos|draft|edit)", re.IGNORECASE)
_QUERIES = re.compile(r"query|queries|sql|tables?(?![a-z])", re.IGNORECASE)
_QUESTION = re.compile(r"^.*?\bQuestion:\s*(.+)$", re.MULTILINE)

Block = tuple[dict[str, str], str]
"""A tag's attributes and the text between it and its end."""


class RoleLine(NamedTuple):
    """A role as the planner's prompt lists it; `extras` are its tools and capabilities."""

    name: str
    description: str = ""
    extras: str = ""

    @property
    def composes(self) -> bool:
        """True if it combines others' findings: by its name, its purpose and its tools."""
        tools = self.extras.partition(";")[0]
        return bool(_COMPOSES.search(f"{self.name} {self.description.partition(' ')[0]} {tools}"))

    @property
    def queries(self) -> bool:
        """True if it queries tables: by its tools, else by its description."""
        return bool(_QUERIES.search(self.tools or self.description))

    @property
    def computes(self) -> bool:
        """True if one of its tools calculates."""
        return "calc" in self.tools

    @property
    def tools(self) -> str:
        """The names of its tools; empty if none are listed."""
        return self.extras.partition(";")[0].partition("tools:")[2]

    def fit(self, goal: str) -> int:
        """Returns the number of words that it shares with a goal."""
        return len(shared_stems(key_stems(goal), " ".join(self)))


class FindingText(NamedTuple):
    """A finding in a prompt."""

    subtask_id: str
    role: str
    text: str


def blocks(prompt: str, tag: str) -> list[Block]:
    """Returns attributes and text of each `<tag ...>...</tag>` in order."""
    name = re.escape(
        tag
    )  # a tag that is only mentioned has no end, or another beginning before its end
    parts = re.findall(
        rf"<{name}(\s(?:(?!<{name}[\s>])[^>])*+)?>((?:(?!<{name}[\s>]).)*?)</{name}>",
        prompt,
        re.DOTALL,
    )
    return [
        ({k: unescape(v) for k, v in _ATTRIBUTE.findall(head)}, unescape(text).strip())
        for head, text in parts
    ]


def block(prompt: str, tag: str) -> str:
    """Returns the text of the last `<tag>...</tag>`; empty without one."""
    return next((text for _, text in reversed(blocks(prompt, tag))), "")


def focus(text: str) -> str:
    """Returns the question in a description by the stand-in's planner, else the whole text."""
    match = _QUESTION.search(text)
    return match[1].strip() if match else text.strip()


def _roles(prompt: str) -> list[RoleLine]:
    """Returns the roles in the lines below the heading of roles."""
    listed: list[RoleLine] = []
    for line in prompt.partition(f"{marks.ROLES}\n")[2].splitlines():
        if match := _ROLE.match(line):
            listed.append(RoleLine(match[1], match[2], match[3] or ""))
        elif listed and line.strip() and not line.startswith((" ", "\t")):
            break
    return listed


def _attachments(prompt: str) -> list[str]:
    """Returns the names of the attachments, from lines with or without sizes or texts."""
    named = [head.get("name", "") for head, _ in blocks(prompt, marks.ATTACHMENT)]
    whole = rf"<{marks.ATTACHMENT}\s(?:(?!<{marks.ATTACHMENT}\s).)*?</{marks.ATTACHMENT}>"
    listed = re.sub(whole, "", block(prompt, marks.ATTACHMENTS), flags=re.S)
    lines = filter(None, map(str.strip, listed.splitlines()))
    return named + [re.sub(r"^[-*]\s+|(?<!\s)\s*+\([^()]*+\)$", "", line) for line in lines]


class Parts:
    """The marked parts of a request's text, each empty if there is none.

    `question` is that of the subtask, else of the goal, else all that users wrote; `item` is what a
    template's subtask is for; `planned` are the subtasks of the plan so far, with their states.
    """

    def __init__(self, request: ApiRequest) -> None:
        self.request = request
        self.text = request.prompt
        self.goal = block(self.text, marks.GOAL)
        self.question = focus(block(self.text, marks.SUBTASK) or self.goal or request.user_text)
        self.item = block(self.text, marks.ITEM)
        self.draft = block(self.text, marks.DRAFT)
        self.planned = blocks(self.text, marks.PLANNED)
        self.roles = _roles(self.text)
        self.attachments = _attachments(self.text)
        parts = blocks(self.text, marks.FINDING)
        self.findings = [
            FindingText(head.get("subtask_id", ""), head.get("role", ""), text)
            for head, text in parts
        ]
