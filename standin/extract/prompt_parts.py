"""The marked parts of a prompt: goal, subtask, roles, findings, attachments."""

import re
from dataclasses import dataclass, field
from html import unescape

from supervision import prompt_marks as marks

_ROLE = re.compile(r"^\s*[-*]\s*`?([A-Za-z][\w-]*)`?\s*:\s*(.+?)\s*$")
_EXTRAS = re.compile(r"\(([^()]*(?:tools|capabilities):[^()]*)\)\s*$")
_ATTRIBUTE = re.compile(r'([\w-]+)\s*=\s*"([^"]*)"')
_QUESTION = re.compile(r"^.*?\bQuestion:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class RoleLine:
    """A role as the planner's prompt lists it."""

    name: str
    description: str = ""
    tools: list[str] = field(default_factory=list)
    capabilities: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Returns all words about the role."""
        return " ".join([self.name, self.description, *self.tools, *self.capabilities])


@dataclass(frozen=True)
class FindingText:
    """A finding as a prompt shows it."""

    subtask_id: str
    role: str
    text: str


@dataclass(frozen=True)
class EndedSubtask:
    """A subtask of the plan so far and its result."""

    subtask_id: str
    role: str
    state: str
    depends_on: list[str]
    description: str
    note: str
    replaced: bool


def blocks(prompt: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """Returns attributes and text of each `<tag ...>...</tag>`, in order."""
    name = re.escape(tag)  # a tag that is only mentioned has no end, or another beginning before its end
    parts = re.findall(rf"<{name}(\s[^>]*)?>((?:(?!<{name}[\s>]).)*?)</{name}>", prompt, re.DOTALL)
    return [(attributes(head), unescape(text).strip()) for head, text in parts]


def block(prompt: str, tag: str) -> str | None:
    """Returns the text of the last `<tag>...</tag>` of the prompt; None if there is none."""
    return next((text for _, text in reversed(blocks(prompt, tag))), None)


def attributes(head: str) -> dict[str, str]:
    """Returns the attributes of a tag."""
    return {key: unescape(value) for key, value in _ATTRIBUTE.findall(head)}


def focus(text: str) -> str:
    """Returns the question inside a description that the stand-in's planner wrote, else the whole text."""
    match = _QUESTION.search(text)
    return match[1].strip() if match else text.strip()


def roles(prompt: str) -> list[RoleLine]:
    """Returns the roles that are listed after the heading of roles, up to a line that is none."""
    listed: list[RoleLine] = []
    for line in prompt.partition(f"{marks.ROLES}\n")[2].splitlines():
        if match := _ROLE.match(line):
            listed.append(_role(match[1], match[2]))
        elif listed and line.strip() and not line.startswith((" ", "\t")):
            break
    return listed


def findings(prompt: str) -> list[FindingText]:
    """Returns the findings, in order."""
    parts = blocks(prompt, marks.FINDING)
    return [FindingText(head.get("subtask_id", ""), head.get("role", ""), text) for head, text in parts]


def ended_subtasks(prompt: str) -> list[EndedSubtask]:
    """Returns the subtasks of a plan that has been worked on, in order."""
    ended = []
    for head, text in blocks(prompt, marks.SUBTASK):
        if "state" in head:
            description, _, note = text.partition(f"\n{marks.OUTCOME}")
            after = [id for id in re.split(r",\s*", head.get("depends_on", "")) if id]
            replaced = "replaced_by" in head
            ended.append(
                EndedSubtask(
                    head.get("id", ""), head.get("role", ""), head["state"], after, description, note, replaced
                )
            )
    return ended


def missing(prompt: str) -> int:
    """Returns how many findings are said to be missing."""
    return len(re.findall(rf"<{marks.MISSING}\b[^>]*>", prompt))


def attachments(prompt: str) -> list[str]:
    """Returns the names of the attachments: one a line, with or without a size."""
    lines = (block(prompt, marks.ATTACHMENTS) or "").splitlines()
    return [re.sub(r"^[-*]\s+|\s*\([^()]*\)$", "", line.strip()) for line in lines if line.strip()]


def _role(name: str, rest: str) -> RoleLine:
    extras = _EXTRAS.search(rest)
    if extras is None:
        return RoleLine(name, rest)
    lists: dict[str, list[str]] = {}
    for part in extras[1].split(";"):
        key, _, values = part.partition(":")
        lists[key.strip().lower()] = [v.strip() for v in values.split(",") if v.strip() not in ("", "none")]
    return RoleLine(name, rest[: extras.start()].strip(), lists.get("tools", []), lists.get("capabilities", []))
