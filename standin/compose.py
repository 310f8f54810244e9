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


def body(text: str, question: str) -> str:
    """A finding's key sentences and its tables, as Markdown."""
    plain = strip(text)
    lines = key_lines(plain, question)
    tables = [grid.markdown() for grid in parse_grids(plain)]
    return "\n\n".join(["\n".join(f"- {line}" for line in lines), *tables]).strip() or clip(plain, 600)


def sections(findings: list[FindingText], question: str) -> list[dict[str, str]]:
    """One section per finding, those with figures first."""
    made = []
    for finding in findings:
        text = body(finding.text, question)
        figures = bool(parse_grids(finding.text)) or len(_NUMBER.findall(text)) >= 2 * len(text.splitlines())
        made.append((not figures, "Figures" if figures else "Background", finding.subtask_id, text))
    made.sort(key=lambda one: one[0])
    repeated = len({heading for _, heading, _, _ in made}) < len(made)
    named = [(f"{heading} ({id})" if repeated else heading, text) for _, heading, id, text in made]
    return [{"heading": heading, "body": text} for heading, text in named] or [
        {"heading": "Findings", "body": "No findings were handed over."}
    ]
