"""The marked parts of a prompt: goal, subtask, roles, findings, attachments."""

import re
from dataclasses import dataclass, field
from html import unescape

_ROLE = re.compile(r"^\s*[-*]\s*`?([A-Za-z][\w-]*)`?\s*:\s*(.+?)\s*$")
_EXTRAS = re.compile(r"\(([^()]*(?:tools|capabilities):[^()]*)\)\s*$")
_FINDING = re.compile(r"<finding\b([^>]*)>((?:(?!<finding\b).)*?)</finding>", re.DOTALL)
_MISSING = re.compile(r"<missing\b([^>]*?)/?>")
_ATTRIBUTE = re.compile(r'([\w-]+)\s*=\s*"([^"]*)"')
_CANDIDATE = re.compile(r"<candidate\b[^>]*>((?:(?!<candidate\b).)*?)</candidate>", re.DOTALL)
_OUTCOME = re.compile(r"<subtask\b([^>]*\bstate=[^>]*)>((?:(?!<subtask\b).)*?)</subtask>", re.DOTALL)
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
        """All words about the role."""
        return " ".join([self.name, self.description, *self.tools, *self.capabilities])


@dataclass(frozen=True)
class FindingText:
    """A finding as a prompt shows it."""

    subtask_id: str
    role: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """A subtask of the plan so far and what became of it."""

    subtask_id: str
    role: str
    state: str
    depends_on: list[str]
    description: str
    note: str = ""
    replaced: bool = False


def block(prompt: str, tag: str) -> str | None:
    """The text of the last `<tag>...</tag>` of the prompt; None when there is none."""
    mark = re.escape(tag)  # a mark that is only mentioned has no end, or another beginning before its end
    found = re.findall(rf"<{mark}(?:\s[^>]*)?>((?:(?!<{mark}[\s>]).)*?)</{mark}>", prompt, re.DOTALL)
    return unescape(found[-1]).strip() if found else None


def focus(text: str) -> str:
    """The question inside a description that the stand-in's planner wrote, else the whole text."""
    found = _QUESTION.search(text)
    return found.group(1).strip() if found else text.strip()


def roles(prompt: str) -> list[RoleLine]:
    """The lines under a heading `Roles:`, until a line that is none of them."""
    found: list[RoleLine] = []
    inside = False
    for line in prompt.splitlines():
        if line.strip().strip("#* ").lower().rstrip(":") == "roles":
            inside = True
        elif inside and (match := _ROLE.match(line)):
            found.append(_role(match.group(1), match.group(2)))
        elif inside and found and line.strip() and not line.startswith((" ", "\t")):
            inside = False
    return found


def findings(prompt: str) -> list[FindingText]:
    """The `<finding>` blocks, in order."""
    found = []
    for head, text in _FINDING.findall(prompt):
        marks = attributes(head)
        found.append(
            FindingText(marks.get("subtask_id", marks.get("id", "")), marks.get("role", ""), unescape(text).strip())
        )
    return found


def candidates(prompt: str) -> list[str]:
    """The texts of the `<candidate>` blocks, in order."""
    return [unescape(text).strip() for text in _CANDIDATE.findall(prompt)]


def outcomes(prompt: str) -> list[Outcome]:
    """The subtasks of a plan that has been worked on, in order."""
    found = []
    for head, text in _OUTCOME.findall(prompt):
        marks = attributes(head)
        description, _, note = unescape(text).strip().partition("\nOutcome: ")
        depends_on = [one.strip() for one in marks.get("depends_on", "").split(",") if one.strip()]
        found.append(
            Outcome(
                subtask_id=marks.get("id", ""),
                role=marks.get("role", ""),
                state=marks.get("state", ""),
                depends_on=depends_on,
                description=description,
                note=note,
                replaced="replaced_by" in marks,
            )
        )
    return found


def missing(prompt: str) -> list[dict[str, str]]:
    """The attributes of the `<missing>` marks."""
    return [attributes(head) for head in _MISSING.findall(prompt)]


def attachments(prompt: str) -> list[str]:
    """The names listed in `<attachments>`: one a line, with or without a size, or as `name=` marks."""
    text = block(prompt, "attachments") or ""
    if named := [value for key, value in _ATTRIBUTE.findall(text) if key == "name"]:
        return named
    lines = [re.sub(r"\s*\([^()]*\)$", "", re.sub(r"^[-*]\s+", "", line.strip())) for line in text.splitlines()]
    return [line.strip("`") for line in lines if line]


def attributes(head: str) -> dict[str, str]:
    """The attributes of a mark."""
    return {key: unescape(value) for key, value in _ATTRIBUTE.findall(head)}


def _role(name: str, rest: str) -> RoleLine:
    extras = _EXTRAS.search(rest)
    if extras is None:
        return RoleLine(name, rest)
    lists: dict[str, list[str]] = {}
    for part in extras.group(1).split(";"):
        key, _, values = part.partition(":")
        lists[key.strip().lower()] = [v.strip() for v in values.split(",") if v.strip() not in ("", "none")]
    return RoleLine(name, rest[: extras.start()].strip(), lists.get("tools", []), lists.get("capabilities", []))
