"""Texts put together from findings: titles, sections, documents."""

import re

from standin.prompt import FindingText
from standin.tables import parse_grids
from standin.words import best_sentences, clip, key_stems, sentences

FOOTER = "_Written by the stand-in model: it extracts, it does not reason._"

_CLOSING = re.compile(r"^\s*(confidence|limitations?)\s*:.*$", re.IGNORECASE | re.MULTILINE)
_DOCUMENT = re.compile(r"^# \S", re.MULTILINE)
_FIGURE = re.compile(r"\d")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*")
_SENTENCES = 6
_ROOM = 40_000  # characters of a text made of findings: a third of what one reply may hold
_LEAST_ROOM = 80  # of one finding among very many


def strip(text: str) -> str:
    """A finding's text without the stand-in's footer and the closing lines."""
    return re.sub(r"\n{3,}", "\n\n", _CLOSING.sub("", text.replace(FOOTER, ""))).strip()


def title(goal: str) -> str:
    """A title for the goal."""
    return clip((sentences(goal) or [goal])[0].rstrip("?.! "), 120)


def is_document(text: str) -> bool:
    """Whether a text is already formatted as a whole document."""
    return bool(_DOCUMENT.match(text.strip()))


def key_lines(text: str, question: str, most: int = _SENTENCES) -> list[str]:
    """The sentences that answer a question: those sharing words with it, else those with figures."""
    best = best_sentences(text, key_stems(question), most)
    return best or [one for one in sentences(text) if _FIGURE.search(one)][:most]


def body(text: str, question: str, room: int) -> str:
    """A finding's key sentences and its tables, as Markdown, in about `room` characters."""
    plain = strip(text)
    parts: list[str] = []
    for part in [*(f"- {line}" for line in key_lines(plain, question)), *(g.markdown() for g in parse_grids(plain))]:
        if sum(map(len, parts)) + len(part) > room:
            break
        parts.append(part if part.startswith("- ") else f"\n{part}")
    return "\n".join(parts).strip() or clip(plain, room)


def sections(findings: list[FindingText], question: str) -> list[dict[str, str]]:
    """One section per finding, those with figures first."""
    made = []
    room = max(_LEAST_ROOM, _ROOM // max(1, len(findings)))
    for finding in findings:
        text = body(finding.text, question, room)
        figures = bool(parse_grids(finding.text)) or _is_figures(text)
        made.append((not figures, "Figures" if figures else "Background", finding.subtask_id, text))
    made.sort(key=lambda one: one[0])
    repeated = len({heading for _, heading, _, _ in made}) < len(made)
    named = [(f"{heading} ({id})" if repeated else heading, text) for _, heading, id, text in made]
    return [{"heading": heading, "body": text} for heading, text in named] or [
        {"heading": "Findings", "body": "No findings were handed over."}
    ]


def _is_figures(text: str) -> bool:
    """Whether lines hold two numbers each and more; sentences quoted from a source, `... [source]`, are background."""
    lines = [line for line in text.splitlines() if line.strip()]
    quoted = sum(line.rstrip().endswith("]") for line in lines)
    return quoted * 2 < len(lines) and len(_NUMBER.findall(text)) >= 2 * len(lines)
