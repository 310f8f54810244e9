"""The marked parts of a prompt: goal, subtask, roles, findings, attachments; and words, what a text is about."""

import re
from html import unescape
from os.path import commonprefix
from typing import NamedTuple

from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.supervision.base import prompt_marks as marks

_STOP_WORDS = """
a about across answer following after all also an and any are around as at be been before between by can
compare compared did do does during each explain figure figures find for from give had has have how i if in
into is it its list long many me more most much need of on one or other our over please question report
same show since so some state such table tables tell than that the their them then there these they this those
through to two until up us use using very was we were what when where which while who whom whose why will with
within would should could must might may shall know write you your change changed changes summarise summarize describe
data information short brief document documents results result part
"""
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\bp\.)\s+(?=[\"'(\[]?[A-Z0-9])")
_ITEM = re.compile(r"^(?:[-*>]|\d{1,2}[.)])\s+")
_LABELS = re.compile(r"^(confidence|limitations?|sources?)\s*:|^[#|_]|^---", re.IGNORECASE)
_FIGURE = re.compile(r"(?<![\w.])\d[\d.,]*")
_ALIKE = 6  # letters that two forms of a word have in common
_SENTENCES = 6


def stem(word: str) -> str:
    """Returns `word` in lower case without its plural ending."""
    low = word.lower()
    if low.endswith("ies"):
        return f"{low[:-3]}y"
    return low[:-1] if len(low) > 3 and low.endswith("s") else low


def stems(text: str) -> list[str]:
    """Returns the stems of all words, stop words included: for matching phrases."""
    return [stem(word) for word in _WORD.findall(_POSSESSIVE.sub("", text))]


def key_words(text: str) -> list[str]:
    """Returns the words that say what `text` is about, as written: no stop words, no single letters."""
    words = _WORD.findall(_POSSESSIVE.sub("", text))
    return [word for word in words if word.lower() not in _STOP and (len(word) > 1 or word.isdigit())]


def key_stems(text: str) -> list[str]:
    """Returns the stems of the key words, each once."""
    return list(dict.fromkeys(map(stem, key_words(text))))


def shared(wanted: list[str], text: str) -> set[str]:
    """Returns the stems in `wanted` that occur in `text`, as they are or with another ending."""
    present = key_stems(text)
    return {one for one in wanted if any(_alike(one, other) for other in present)}


def sentences(text: str) -> list[str]:
    """Returns the sentences of a Markdown text; headings, tables, rules and closing labels are left out."""
    lines = ("" if _LABELS.match(line) else _ITEM.sub("\n", line) for line in map(str.strip, text.splitlines()))
    paragraphs = (" ".join(paragraph.split()) for paragraph in "\n".join(lines).split("\n\n"))
    return [part for paragraph in paragraphs for part in _SENTENCE.split(paragraph) if part]


def key_lines(text: str, question: str, most: int = _SENTENCES) -> list[str]:
    """Returns the sentences that share most words with a question, in the text's order; else those with figures."""
    wanted, every = key_stems(question), list(dict.fromkeys(sentences(text)))
    scores = {sentence: len(shared(wanted, sentence)) for sentence in every}
    best = sorted(filter(scores.get, every), key=lambda sentence: -scores[sentence])[:most]
    return [sentence for sentence in every if sentence in best] or list(filter(figures_in, every))[:most]


def figures_in(text: str) -> int:
    """Returns how many numbers a text holds."""
    return len(_FIGURE.findall(text))


def clip(text: str, limit: int) -> str:
    """Returns `text` on one line in at most `limit` characters, cut at a word."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 2].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _alike(one: str, other: str) -> bool:
    common = len(commonprefix([one, other]))
    return one == other or (common >= _ALIKE and common >= 0.6 * max(len(one), len(other)))


_ROLE = re.compile(r"^\s*[-*]\s*([A-Za-z][\w-]*):\s*+(.+?)(?:(?<!\s)\s*+\((tools:[^()]*+)\))?(?<!\s)\s*+$")
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)\s*+=\s*+"([^"]*+)"')
_COMPOSES = re.compile(r"(?:\b|_)(writ|format|compos|draft|edit)", re.IGNORECASE)
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
        """True if it writes up the findings of others: by its name, the first word about it, and its tools."""
        tools = self.extras.partition(";")[0]
        return bool(_COMPOSES.search(f"{self.name} {self.description.partition(' ')[0]} {tools}"))

    def fit(self, goal: str) -> int:
        """Returns how many words it shares with a goal."""
        return len(shared(key_stems(goal), " ".join(self)))


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


def block(prompt: str, tag: str) -> str:
    """Returns the text of the last `<tag>...</tag>` of the prompt, empty if there is none."""
    return next((text for _, text in reversed(blocks(prompt, tag))), "")


def focus(text: str) -> str:
    """Returns the question inside a description that the stand-in's planner wrote, else the whole text."""
    match = _QUESTION.search(text)
    return match[1].strip() if match else text.strip()


def _roles(prompt: str) -> list[RoleLine]:
    """Returns the roles that are listed after the heading of roles, up to a line that is none."""
    listed: list[RoleLine] = []
    for line in prompt.partition(f"{marks.ROLES}\n")[2].splitlines():
        if match := _ROLE.match(line):
            listed.append(RoleLine(match[1], match[2], match[3] or ""))
        elif listed and line.strip() and not line.startswith((" ", "\t")):
            break
    return listed


def _attachments(prompt: str) -> list[str]:
    """Returns the names of the attachments: one a line, with or without a size, or with their texts."""
    named = [head.get("name", "") for head, _ in blocks(prompt, marks.ATTACHMENT)]
    whole = rf"<{marks.ATTACHMENT}\s(?:(?!<{marks.ATTACHMENT}\s).)*?</{marks.ATTACHMENT}>"
    listed = re.sub(whole, "", block(prompt, marks.ATTACHMENTS), flags=re.S)
    lines = filter(None, map(str.strip, listed.splitlines()))
    return named + [re.sub(r"^[-*]\s+|(?<!\s)\s*+\([^()]*+\)$", "", line) for line in lines]


class Parts:
    """What a request asks for: the marked parts of its text, each empty if there is none.

    `question` is that of the subtask, else of the goal, else all that users wrote; `item` is what a template's subtask
    is for; `planned` are the subtasks of the plan so far, with their states.
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
        self.findings = [FindingText(head.get("subtask_id", ""), head.get("role", ""), text) for head, text in parts]
