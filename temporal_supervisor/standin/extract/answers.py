"""Answers: a worker agent's finding, the synthesis of findings, plain text."""

import re

from temporal_supervisor.standin.extract.part_answers import PartAnswers, part_answers
from temporal_supervisor.standin.extract.prompt_parts import FindingText, Parts
from temporal_supervisor.standin.extract.refusal import refusal, refusal_line
from temporal_supervisor.standin.extract.standin_words import NEEDS_MODEL
from temporal_supervisor.standin.lookup.tables import parse_grids
from temporal_supervisor.standin.lookup.word_forms import clip, figures_in, sentences
from temporal_supervisor.supervision.base import prompt_marks as marks
from temporal_supervisor.supervision.base.json_object import JsonObject

FOOTER = "_An extract by the stand-in model, not an answer: it does not reason._"

_BESIDE = f"{marks.UNSUPPORTED}|{marks.DOUBT}".replace(
    ": ", ""
)  # lines about a finding, no part of it
_CLOSING = re.compile(
    rf"^[^\S\n]*+(confidence|limitations?|outcome|{_BESIDE})\s*:.*$", re.IGNORECASE | re.MULTILINE
)
_EMPTY = (marks.NO_HITS, marks.NO_TABLES)
_ROOM = 12_000  # characters of all findings in one text: a third of what a digest may be made of
_LEAST_ROOM = 80  # of one finding among very many
_PART_CHARS = 120


def worker_finding(prompt: Parts, composing: set[str]) -> JsonObject:
    """Returns the fields of a finding: the tools' answers, or all of a composed text.

    Without any answer the subtask is impossible: its finding states that it needs a model.
    """
    tried = [call for call in prompt.request.calls if call.name != marks.FINISH_TOOL]
    good = [call for call in tried if not call.is_error and not call.output.startswith(_EMPTY)]
    named = [
        call
        for call in good
        if prompt.item.startswith(tuple(filter(None, map(str, call.arguments.values()))))
    ]
    failed = [
        f"{call.name} failed ({clip(call.output, 120)})"
        for call in prompt.request.calls
        if call.is_error
    ]
    composed = [call.output for call in good if call.name in composing]
    found = PartAnswers(composed, []) if composed else part_answers(prompt, named or good)
    is_finder = any(
        tool["name"] not in {*marks.OWN_TOOLS, *composing} for tool in prompt.request.tools
    )
    text = "\n\n".join(found.texts) or ("" if is_finder else findings_text(prompt.findings))
    if not text:
        return _impossible_finding(prompt, failed)
    open_parts = [] if composed or not found.texts else found.open_parts
    lacking = [f"{NEEDS_MODEL}: “{clip(part, _PART_CHARS)}”" for part in open_parts]
    return {
        "outcome": "partial" if lacking else "done",
        "summary": clip((sentences(text) or [text])[0], 300),
        "finding": f"{text}\n\n{FOOTER}",
        "confidence": None,
        "limitations": [*failed, *lacking, "extracted from tool results, not interpreted"],
    }


def _impossible_finding(prompt: Parts, failed: list[str]) -> JsonObject:
    """Returns the fields of a finding without answers."""
    return {
        "outcome": "impossible",
        "summary": refusal_line(prompt.question),
        "finding": f"{refusal(prompt.question)}\n\n{FOOTER}",
        "confidence": None,
        "limitations": [*failed, "found nothing"],
    }


def synthesis(prompt: Parts) -> JsonObject:
    """Returns the fields of an answer: the findings as Markdown, with citation marks."""
    texts = [without_footer(finding.text) for finding in prompt.findings]
    documents = [text for text in texts if text.startswith("# ")]
    parts = [without_footer(prompt.draft), findings_text(prompt.findings, cited=True)]
    text = "\n\n".join(filter(None, parts)) or "No findings were handed over."
    return {
        "answer": f"{documents[-1] if documents else text}\n\n{FOOTER}",
        "confidence": None,
        "contradictions": [],
    }


def source_text(prompt: Parts) -> str:
    """Returns the draft and the findings; without any, all user text."""
    texts = [prompt.draft, *(finding.text for finding in prompt.findings)]
    return "\n\n".join(filter(None, map(without_footer, texts))) or prompt.request.user_text


def without_footer(text: str) -> str:
    """Returns a finding's text without the stand-in's footer and the closing lines."""
    return re.sub(r"\n{3,}", "\n\n", _CLOSING.sub("", text.replace(FOOTER, ""))).strip()


def findings_text(findings: list[FindingText], cited: bool = False) -> str:
    """Returns findings as one Markdown text, those with most figures first.

    If `cited`, each line ends with its subtask's id.
    """
    made = []
    for finding in sorted(findings, key=lambda finding: -figures_in(finding.text)):
        mark = f" [{finding.subtask_id}]" if cited and finding.role != marks.DIGEST else ""
        body = _body(without_footer(finding.text), max(_LEAST_ROOM, _ROOM // len(findings)), mark)
        head = (
            f"## {finding.role.capitalize()} ({finding.subtask_id})\n\n"
            if len(findings) > 1
            else ""
        )
        made.append(f"{head}{body}")
    return "\n\n".join(made)


def _body(text: str, room: int, mark: str) -> str:
    """Returns a finding's sentences and tables in about `room` characters of Markdown."""
    lines = [f"- {line}{mark}" for line in dict.fromkeys(sentences(text))]
    parts: list[str] = []
    for part in [*lines, *(f"\n{grid.markdown()}" for grid in parse_grids(text))]:
        if sum(map(len, parts)) + len(part) <= room:
            parts.append(part)
    return "\n".join(parts).strip() or clip(text, room)
