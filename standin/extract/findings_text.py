"""Texts put together from findings: titles, sections, documents."""

import re

from standin.extract.prompt_parts import FindingText
from standin.extract.text.tables import parse_grids
from standin.extract.text.words import best_sentences, clip, key_stems, sentences
from supervision.prompt_marks import DIGEST

FOOTER = "_Written by the stand-in model: it extracts, it does not reason._"

_CLOSING = re.compile(r"^\s*(confidence|limitations?)\s*:.*$", re.IGNORECASE | re.MULTILINE)
_FIGURE = re.compile(r"\d")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*")
_SENTENCES = 6
_ROOM = 40_000  # characters of a text made of findings: a third of what one reply may hold
_LEAST_ROOM = 80  # of one finding among very many


def strip(text: str) -> str:
    """Returns a finding's text without the stand-in's footer and the closing lines."""
    return re.sub(r"\n{3,}", "\n\n", _CLOSING.sub("", text.replace(FOOTER, ""))).strip()


def title(goal: str) -> str:
    """Returns a title for the goal."""
    return clip((sentences(goal) or [goal])[0].rstrip("?.! "), 120)


def key_lines(text: str, question: str, most: int = _SENTENCES) -> list[str]:
    """Returns the sentences that answer a question: those sharing words with it, else those with figures."""
    best = best_sentences(text, key_stems(question), most)
    return best or [sentence for sentence in sentences(text) if _FIGURE.search(sentence)][:most]


def sections(
    findings: list[FindingText], question: str, cited: bool = False, room: int = _ROOM
) -> list[dict[str, str]]:
    """Returns one section per finding, those with figures first; `cited`: with its subtask's id after each line."""
    made = []
    for finding in findings:
        mark = f" [{finding.subtask_id}]" if cited and finding.role != DIGEST else ""
        text = _body(finding.text, question, max(_LEAST_ROOM, room // len(findings)), mark)
        heading = "Figures" if parse_grids(finding.text) or _is_figures(text) else "Background"
        made.append((heading, finding.subtask_id, text))
    made.sort(key=lambda section: section[0] != "Figures")
    repeated = len({heading for heading, _, _ in made}) < len(made)
    return [{"heading": f"{head} ({id})" if repeated else head, "body": text} for head, id, text in made] or [
        {"heading": "Findings", "body": "No findings were handed over."}
    ]


def joined(parts: list[dict[str, str]]) -> str:
    """Returns sections as one Markdown text."""
    return "\n\n".join(f"## {part['heading']}\n\n{part['body']}" for part in parts)


def figures_in(text: str) -> int:
    """Returns how many numbers a text holds."""
    return len(_NUMBER.findall(text))


def _body(text: str, question: str, room: int, mark: str) -> str:
    """A finding's key sentences and its tables, as Markdown, in about `room` characters."""
    plain = strip(text)
    lines = [f"- {line}{mark}" for line in key_lines(plain, question)]
    parts: list[str] = []
    for part in [*lines, *(f"\n{grid.markdown()}" for grid in parse_grids(plain))]:
        if sum(map(len, parts)) + len(part) <= room:
            parts.append(part)
    return "\n".join(parts).strip() or clip(plain, room)


def _is_figures(text: str) -> bool:
    """True if lines hold two numbers each and more; sentences quoted from a source, `... [source]`, are background."""
    lines = [line for line in text.splitlines() if line.strip()]
    quoted = sum(line.rstrip().endswith("]") for line in lines)
    return quoted * 2 < len(lines) and figures_in(text) >= 2 * len(lines)
