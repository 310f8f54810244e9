"""Answers: a worker agent's last turn, the synthesis of findings, and plain text."""

import re

from standin import arguments, prompt
from standin.compose import FOOTER, is_document, key_lines, sections, strip
from standin.figures import result_of, statements
from standin.request import Json, Request, ToolCall
from standin.tables import parse_grids, parse_tables
from standin.words import clip, sentences

_CONFIDENCE = re.compile(r"^\s*Confidence:\s*([01](?:\.\d+)?)", re.IGNORECASE | re.MULTILINE)
_DRAFT = re.compile(r"\bdraft of the answer\b", re.IGNORECASE)
_MARK = re.compile(r"(.+?)\s*\[([\w-]+(?:,\s*[\w-]+)*)\]", re.DOTALL)
_LAST_WORDS = 600  # of a prompt: what it asks for, after all material
DIGEST = "digest"  # the role of a finding that condenses others
_DIGEST_ROOM = 12_000  # characters: a digest of many findings is a third of what they may take
_LEAST_ROOM = 80  # of one finding among very many
_SHOWN_ROWS = 15  # longer tables are told in sentences
_CLAIMS = 3  # of one finding
_MOST_CLAIMS = 60


def worker_answer(request: Request) -> str:
    """What the tools returned about the subtask, the footer, then confidence and limitations."""
    known = arguments.know(request)
    calls = request.calls()
    question = f"{known.focus} {known.context}"
    composed = [call.output for call in calls if not call.is_error and _composed(request, call)]
    parts = (
        composed
        or _parts(calls, question)
        or [one["body"] for one in sections(known.findings, question) if known.findings]
    )
    failed = [f"{call.name} failed ({clip(call.output, 120)})" for call in calls if call.is_error]
    text = "\n\n".join(part for part in parts if part.strip())
    confidence = 0.2 if not text else 0.6 if failed else 0.8
    text = text or f"The tools returned nothing about: {clip(known.focus, 300)}"
    lacking = "; ".join([*failed, "extracted from tool results, not interpreted"])
    return f"{text}\n\n{FOOTER}\n\nConfidence: {confidence}\nLimitations: {lacking}"


def synthesis(request: Request) -> Json:
    """The fields of an answer: Markdown out of the findings, each claim with the subtasks that hold it."""
    goal = prompt.focus(prompt.block(request.prompt, "goal") or "")
    found = prompt.findings(request.prompt)
    texts = {finding.subtask_id: strip(finding.text) for finding in found}
    if _DRAFT.search(request.last_text[-_LAST_WORDS:]):
        return {
            "answer": digest(found, goal),
            "confidence": _confidence(request, found),
            "citations": _citations(found, goal),
            "contradictions": [],
        }
    document = next((text for text in reversed(texts.values()) if is_document(text)), None)
    draft = prompt.block(request.prompt, "draft")
    text = document or "\n\n".join(f"## {one['heading']}\n\n{one['body']}" for one in sections(found, goal))
    if draft and not document:
        text = f"{strip(draft)}\n\n{text}" if found else strip(draft)
    return {
        "answer": f"{text}\n\n{FOOTER}",
        "confidence": _confidence(request, found),
        "citations": [*_marked(draft or ""), *_citations(found, goal)][:_MOST_CLAIMS],
        "contradictions": [],
    }


def digest(found: list[prompt.FindingText], goal: str) -> str:
    """The key sentences and tables of all findings, each with the ids of the findings that hold it."""
    room = max(_LEAST_ROOM, _DIGEST_ROOM // max(1, len(found)))
    parts = []
    for finding in found:
        mark = "" if finding.role == DIGEST else f" [{finding.subtask_id}]"
        grids = [f"\n{grid.markdown()}\n\nFrom{mark}." for grid in parse_grids(finding.text) if mark]
        lines = [f"- {line}{mark}" for line in key_lines(strip(finding.text), goal)]
        parts.append(_within([*lines, *grids], room))
    return "\n".join(part for part in parts if part) + f"\n\n{FOOTER}"


def _within(parts: list[str], room: int) -> str:
    """The parts that fit, the first in any case."""
    kept = parts[:1]
    for part in parts[1:]:
        if sum(map(len, kept)) + len(part) <= room:
            kept.append(part)
    return "\n".join(kept)


def plain_answer(request: Request) -> str:
    """A few sentences of the prompt that matter to its goal."""
    found = prompt.findings(request.prompt)
    goal = prompt.block(request.prompt, "goal") or request.user_text
    if found:
        return digest(found, goal)
    source = request.user_text
    for tag in ("goal", "subtask"):
        source = re.sub(rf"<{tag}\b[^>]*>.*?</{tag}>", "", source, flags=re.DOTALL)
    lines = key_lines(re.sub(r"</?[\w-]+[^>]*>", "", source), goal, 3) or [clip(goal, 400)]
    return "\n".join(clip(line, 400) for line in lines) + f"\n\n{FOOTER}"


def _composed(request: Request, call: ToolCall) -> bool:
    tool = next((tool for tool in request.tools if tool["name"] == call.name), None)
    return tool is not None and arguments.composes(tool) and len(call.output) > 80


def _parts(calls: list[ToolCall], question: str) -> list[str]:
    good = [call for call in calls if not call.is_error]
    calculated = {
        str(value): call.output for call in good for value in call.arguments.values() if result_of(call.output)
    }
    grids = [grid for call in good for grid in parse_grids(call.output)]
    told = [f"- {line}" for line in statements(grids, calculated)]
    parts = ["\n".join(told), *(grid.markdown() for grid in grids if len(grid.rows) <= _SHOWN_ROWS)]
    for at, call in enumerate(good):
        table = parse_grids(call.output) or parse_tables(call.output) or call.output in calculated.values()
        if table or _followed(call, good[at + 1 :]):
            continue
        source = next((value for value in call.arguments.values() if isinstance(value, str)), call.name)
        parts.append("\n".join(f"- {line} [{clip(source, 60)}]" for line in key_lines(call.output, question)))
    if not grids and calculated:
        parts.append("\n".join(f"- {output.strip()}" for output in calculated.values()))
    return [part for part in parts if part]


def _followed(call: ToolCall, later: list[ToolCall]) -> bool:
    """Whether something that the call showed was looked at later: then that is worth more than its own text."""
    shown = arguments.ids_in(call.output)
    return any(value in shown for other in later for value in other.arguments.values())


def _confidence(request: Request, found: list[prompt.FindingText]) -> float:
    """The mean of what the findings say of themselves, less the share that is missing."""
    if not found:
        return 0.1
    said = [float(match.group(1)) for finding in found if (match := _CONFIDENCE.search(finding.text))]
    mean = sum(said) / len(said) if said else 0.6
    return round(mean * len(found) / (len(found) + len(prompt.missing(request.prompt))), 2)


def _citations(found: list[prompt.FindingText], goal: str) -> list[Json]:
    """Key sentences with the findings that hold them; sentences of a digest name theirs at their end."""
    own = {finding.subtask_id: strip(finding.text) for finding in found if finding.role != DIGEST}
    claims: dict[str, list[str]] = {}
    for text in list(own.values())[:_MOST_CLAIMS]:
        for line in key_lines(text, goal)[:_CLAIMS]:
            claims[line] = [id for id, other in own.items() if id and line in other]
    digests = [cited for finding in found if finding.role == DIGEST for cited in _marked(finding.text)]
    return [*digests, *({"claim": line, "subtask_ids": ids} for line, ids in claims.items() if ids)][:_MOST_CLAIMS]


def _marked(text: str) -> list[Json]:
    """The sentences of a text that name their subtasks in brackets at their end."""
    return [
        {"claim": found.group(1).strip(), "subtask_ids": re.split(r",\s*", found.group(2))}
        for line in sentences(text)
        if (found := _MARK.fullmatch(line))
    ]
