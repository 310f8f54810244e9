"""Answers: a worker agent's finding, the synthesis of findings, and plain text."""

import re

from standin.extract import arguments, prompt_parts
from standin.extract.findings_text import FOOTER, joined, key_lines, sections, strip
from standin.extract.text.figures import result_of, statements
from standin.extract.text.tables import parse_grids, parse_tables
from standin.extract.text.words import clip, sentences
from standin.server.api_request import ApiRequest, Json, PastCall
from supervision import prompt_marks as marks

_CONFIDENCE = re.compile(r"^\s*Confidence:\s*([01](?:\.\d+)?)", re.IGNORECASE | re.MULTILINE)
_CITED = re.compile(r"(.+?)\s*\[([\w-]+(?:,\s*[\w-]+)*)\]", re.DOTALL)
_DIGEST_ROOM = 12_000  # characters: a digest of many findings is a third of what they may take
_SHOWN_ROWS = 15  # longer tables are told in sentences
_CLAIMS = 3  # of one finding
_MOST_CLAIMS = 60


def worker_finding(request: ApiRequest) -> Json:
    """Returns the fields of a finding: what the tools returned about the subtask, and how far to trust it."""
    known = arguments.know(request)
    calls = request.calls()
    good = [call for call in calls if not call.is_error]
    question = f"{known.focus} {known.context}"
    composing = {tool["name"] for tool in request.tools if arguments.composes(tool)}
    parts = [call.output for call in good if call.name in composing] or _parts(good, question)
    parts = parts or [section["body"] for section in sections(known.findings, question) if known.findings]
    failed = [f"{call.name} failed ({clip(call.output, 120)})" for call in calls if call.is_error]
    text = "\n\n".join(part for part in parts if part.strip())
    return {
        "outcome": "done" if text else "partial",
        "summary": clip((sentences(text) or [text])[0], 300),
        "finding": f"{text or f'The tools returned nothing about: {clip(known.focus, 300)}'}\n\n{FOOTER}",
        "confidence": 0.2 if not text else 0.6 if failed else 0.8,
        "limitations": [*failed, "extracted from tool results, not interpreted"],
    }


def synthesis(request: ApiRequest) -> Json:
    """Returns the fields of an answer: Markdown out of the findings, each claim with the subtasks that hold it."""
    goal = prompt_parts.focus(prompt_parts.block(request.prompt, marks.GOAL) or "")
    findings = prompt_parts.findings(request.prompt)
    documents = [text for finding in findings if (text := strip(finding.text)).startswith("# ")]
    draft = strip(prompt_parts.block(request.prompt, marks.DRAFT) or "")
    parts = [draft] if draft and not documents else []
    parts += documents[-1:] or ([joined(sections(findings, goal, cited=True))] if findings or not draft else [])
    text = "\n\n".join(parts)
    stated = [float(match[1]) for finding in findings if (match := _CONFIDENCE.search(finding.text))]
    mean = sum(stated) / len(stated) if stated else 0.6
    share = len(findings) / max(1, len(findings) + prompt_parts.missing(request.prompt))
    return {
        "answer": f"{text}\n\n{FOOTER}",
        "confidence": round(max(0.1, mean * share), 2),
        "citations": [*_cited(draft), *_citations(findings, goal)][:_MOST_CLAIMS],
        "contradictions": [],
    }


def plain_answer(request: ApiRequest) -> str:
    """Returns a digest of the findings, else a few sentences of the prompt that matter to its goal."""
    goal = prompt_parts.block(request.prompt, marks.GOAL) or request.user_text
    if findings := prompt_parts.findings(request.prompt):
        return f"{joined(sections(findings, goal, cited=True, room=_DIGEST_ROOM))}\n\n{FOOTER}"
    source = re.sub(
        rf"<({marks.GOAL}|{marks.SUBTASK})\b[^>]*>.*?</\1>|</?[\w-]+[^>]*>", "", request.user_text, flags=re.S
    )
    lines = key_lines(source, goal, 3) or [goal]
    return "\n".join(clip(line, 400) for line in lines) + f"\n\n{FOOTER}"


def _parts(calls: list[PastCall], question: str) -> list[str]:
    """Sentences with the figures of tables, the tables, and sentences of other outputs with their sources."""
    calculated = {
        str(value): call.output for call in calls for value in call.arguments.values() if result_of(call.output)
    }
    grids = [grid for call in calls for grid in parse_grids(call.output)]
    parts = ["\n".join(f"- {line}" for line in statements(grids, calculated))]
    parts += [grid.markdown() for grid in grids if len(grid.rows) <= _SHOWN_ROWS]
    for at, call in enumerate(calls):
        table = parse_grids(call.output) or parse_tables(call.output) or call.output in calculated.values()
        shown = arguments.ids_in(call.output)  # a text that was opened is worth more than its mention
        if not table and not any(value in shown for later in calls[at:] for value in later.arguments.values()):
            source = next((value for value in call.arguments.values() if isinstance(value, str)), call.name)
            parts.append("\n".join(f"- {line} [{clip(source, 60)}]" for line in key_lines(call.output, question)))
    return [part for part in parts if part] or [f"- {output.strip()}" for output in calculated.values()]


def _citations(findings: list[prompt_parts.FindingText], goal: str) -> list[Json]:
    """Key sentences with the findings that hold them; sentences of a digest name theirs at their end."""
    own = {finding.subtask_id: strip(finding.text) for finding in findings if finding.role != marks.DIGEST}
    lines = dict.fromkeys(line for text in own.values() for line in key_lines(text, goal)[:_CLAIMS])
    claims = [{"claim": line, "subtask_ids": [id for id, text in own.items() if line in text]} for line in lines]
    digests = [cited for finding in findings if finding.role == marks.DIGEST for cited in _cited(finding.text)]
    return [*digests, *(claim for claim in claims if claim["subtask_ids"])]


def _cited(text: str) -> list[Json]:
    """The sentences of a text that name their subtasks in brackets at their end."""
    matches = [match for line in sentences(text) if (match := _CITED.fullmatch(line))]
    return [{"claim": match[1].strip(), "subtask_ids": re.split(r",\s*", match[2])} for match in matches]
