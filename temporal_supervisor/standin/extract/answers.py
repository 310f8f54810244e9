"""Answers: a worker agent's finding, the synthesis of findings, plain text."""

import re

from temporal_supervisor.standin.extract.prompt_parts import FindingText, Parts, clip, figures_in, key_lines, sentences
from temporal_supervisor.standin.extract.tables import parse_grids, parse_tables, result_of, statements
from temporal_supervisor.standin.server.api_request import Json, PastCall
from temporal_supervisor.supervision.base import prompt_marks as marks

FOOTER = "_An extract by the stand-in model, not an answer: it does not reason._"

_EMPTY = (marks.NO_HITS, marks.NO_TABLES)
_CLOSING = re.compile(r"^[^\S\n]*+(confidence|limitations?)\s*:.*$", re.IGNORECASE | re.MULTILINE)
NEEDS_MODEL = (
    "This needs a model. The stand-in only extracts what tools return, and they returned nothing for this. "
    "Start a Worker with one of three: "
    "`ANTHROPIC_API_KEY=... temporal-supervisor worker`; "
    "`ANTHROPIC_BASE_URL=http://localhost:11434 temporal-supervisor worker` (Ollama); "
    "`ANTHROPIC_BASE_URL=http://localhost:8080 temporal-supervisor worker` (`llama-server --jinja -m MODEL.gguf`)"
)
"""Why a subtask fails where there is nothing to extract, and what helps."""
_NOTHING = "The tools returned nothing about: "
_ROOM = 12_000  # characters of all findings in one text: a third of what a digest may be made of
_LEAST_ROOM = 80  # of one finding among very many
_REPLY_CHARS = 1000  # of a person's, who seldom writes more
_SHOWN_ROWS = 15  # longer tables become sentences


def worker_finding(prompt: Parts, composing: set[str]) -> Json:
    """Returns the fields of a finding: what the tools returned about the subtask; all of it if a tool composed it."""
    question = f"{prompt.question} {prompt.goal}"
    good = [call for call in prompt.request.calls if not call.is_error and not call.output.startswith(_EMPTY)]
    named = [call for call in good if prompt.item.startswith(tuple(filter(None, map(str, call.arguments.values()))))]
    failed = [f"{call.name} failed ({clip(call.output, 120)})" for call in prompt.request.calls if call.is_error]
    parts = [call.output for call in good if call.name in composing] or _parts(named or good, question)
    text = "\n\n".join(parts) or digest(prompt.findings, question)
    return {
        "outcome": "done" if text else "impossible",
        "summary": clip((sentences(text) or [text])[0], 300) if text else NEEDS_MODEL,
        "finding": f"{text or _NOTHING + clip(question, 300)}\n\n{FOOTER}",
        "confidence": None,
        "limitations": [*failed, *([] if text else [NEEDS_MODEL]), "extracted from tool results, not interpreted"],
    }


def synthesis(prompt: Parts) -> Json:
    """Returns the fields of an answer: Markdown out of the findings, each claim with the mark of its subtask."""
    documents = [text for finding in prompt.findings if (text := strip(finding.text)).startswith("# ")]
    text = "\n\n".join(filter(None, [strip(prompt.draft), digest(prompt.findings, prompt.goal, cited=True)]))
    return {
        "answer": f"{documents[-1] if documents else text or 'No findings were handed over.'}\n\n{FOOTER}",
        "confidence": None,
        "contradictions": [],
    }


def source_text(prompt: Parts) -> str:
    """Returns the draft and the findings; without any, all user text."""
    texts = [prompt.draft, *(finding.text for finding in prompt.findings)]
    return "\n\n".join(filter(None, map(strip, texts))) or prompt.request.user_text


def strip(text: str) -> str:
    """Returns a finding's text without the stand-in's footer and the closing lines."""
    return re.sub(r"\n{3,}", "\n\n", _CLOSING.sub("", text.replace(FOOTER, ""))).strip()


def digest(findings: list[FindingText], question: str, cited: bool = False) -> str:
    """Returns findings as one Markdown text, most figures first; `cited`: its subtask's id after each line."""
    made = []
    for finding in sorted(findings, key=lambda finding: -figures_in(finding.text)):
        mark = f" [{finding.subtask_id}]" if cited and finding.role != marks.DIGEST else ""
        body = _body(strip(finding.text), question, max(_LEAST_ROOM, _ROOM // len(findings)), mark)
        made.append(f"## {finding.role.capitalize()} ({finding.subtask_id})\n\n{body}")
    return "\n\n".join(made)


def _body(text: str, question: str, room: int, mark: str) -> str:
    """A finding's key sentences and its tables, as Markdown, in about `room` characters."""
    lines = [f"- {line}{mark}" for line in key_lines(text, question)]
    parts: list[str] = []
    for part in [*lines, *(f"\n{grid.markdown()}" for grid in parse_grids(text))]:
        if sum(map(len, parts)) + len(part) <= room:
            parts.append(part)
    return "\n".join(parts).strip() or clip(text, room)


def _parts(calls: list[PastCall], question: str) -> list[str]:
    """Sentences with the figures of tables, the tables, and sentences of other outputs with their sources."""
    grids = [grid for call in calls for grid in parse_grids(call.output)]
    calculated = {str(v): call.output for call in calls for v in call.arguments.values() if result_of(call.output)}
    parts = ["\n".join(f"- {line}" for line in statements(grids, calculated))]
    parts += [grid.markdown() for grid in grids if len(grid.rows) <= _SHOWN_ROWS]
    parts += [f"- A person said: {clip(call.output, _REPLY_CHARS)}" for call in calls if call.name == marks.ASK_TOOL]
    calls = [call for call in calls if call.name != marks.ASK_TOOL]
    for at, call in enumerate(calls):
        table = parse_grids(call.output) or parse_tables(call.output) or call.output in calculated.values()
        opened = [str(value) for later in calls[at + 1 :] for value in later.arguments.values()]
        if not table and not any(f"[{value}]" in call.output for value in opened):  # a text is worth more than a list
            source = next((value for value in call.arguments.values() if isinstance(value, str)), call.name)
            parts.append("\n".join(f"- {line} [{clip(source, 60)}]" for line in key_lines(call.output, question)))
    return [part for part in parts if part] or [f"- {output.strip()}" for output in calculated.values()]
