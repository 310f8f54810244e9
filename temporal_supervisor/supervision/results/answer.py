"""The answer of a run, and facts about it that code determines."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, one_line
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import FindingRecord, Grounding
from temporal_supervisor.supervision.contract.result import (
    Citation,
    Gap,
    RunResult,
    SubtaskReport,
    Unsupported,
)
from temporal_supervisor.supervision.results.shown_links import without_links, without_own_links

ANSWER = "answer"
"""In place of a subtask's id, in the gap of an answer that could not be written."""

ANSWER_JSON = "answer_json"
"""The same, in the gap of a structured answer that does not fit its schema."""

_SHORT_REASON = 40  # characters of one that may be repeated
_DESCRIPTION_BYTES = 120  # of a subtask, where a reader has to know only which one it was


class Answer(Model):
    """The answer: `text` may be shortened, `ref` leads to all of it.

    `unsupported` are claims of text and JSON that no finding contains. `grounding` is "knowledge"
    if its author recalled it; the findings have their own grounding. `model` wrote the answer.
    `is_findings` is True if the findings take the place of an answer that could not be written.
    `json_ref` leads to JSON that is too long to be kept here.
    """

    text: str = ""
    ref: str | None = None
    as_json: JsonValue = None
    confidence: float | None = None
    citations: list[Citation] = []
    unsupported: list[Unsupported] = []
    grounding: Annotated[Grounding, Field(exclude_if=lambda grounding: grounding == "tools")] = (
        "tools"
    )
    is_findings: bool = False
    json_ref: str | None = None
    model: str | None = None

    def with_json(self, as_json: JsonValue, unsupported: Sequence[Unsupported]) -> "Answer":
        """Returns the answer with its JSON, and with the unsupported claims in that."""
        claims = [*self.unsupported, *unsupported]
        return self.model_copy(update={"as_json": as_json, "unsupported": claims})

    def with_table(self, as_json: JsonValue, json_ref: str | None) -> "Answer":
        """Returns the answer with a table as its JSON, all of it at `json_ref` if it was cut."""
        return self.model_copy(update={"as_json": as_json, "json_ref": json_ref})


def grounding_of(answer: Answer, reports: Sequence[SubtaskReport]) -> Grounding:
    """Returns the grounding of an answer: knowledge if it or part of its basis is recalled.

    Its basis is the cited findings, or all findings if none is cited.
    """
    cited = {subtask_id for citation in answer.citations for subtask_id in citation.subtask_ids}
    behind = [report.finding for report in reports if report.id in cited or not cited]
    recalled = any(finding.grounding == "knowledge" for finding in behind if finding)
    return "knowledge" if recalled else answer.grounding


def answer_record(result: RunResult) -> FindingRecord:
    """Returns the record of an answer that is a finding of the parent run.

    Gaps become limitations.
    """
    findings = [report.finding for report in result.subtasks if report.finding]
    sources = dict.fromkeys(source for finding in findings for source in finding.sources)
    missing = [f"missing: {gap.subtask_id}: {gap.reason}" for gap in result.gaps]
    unsupported = dict.fromkeys(claim.text for claim in result.unsupported)
    doubts = dict.fromkeys(doubt.text for doubt in result.doubts)
    return FindingRecord(
        grounding=result.grounding,
        confidence=result.confidence,
        sources=[*sources][: limits.FINDING_SOURCES],
        limitations=[*result.warnings, *missing][: limits.LIMITATIONS],
        unsupported=[*unsupported][: limits.UNSUPPORTED_SHOWN],
        doubts=[*doubts],
    )


def findings_as_answer(reports: list[SubtaskReport], why: str) -> str:
    """Returns the findings as an answer, in place of one that could not be written."""
    found = [(report.id, report.finding.summary) for report in reports if report.finding]
    room = limits.ANSWER_INLINE_BYTES // (len(found) + 1)
    parts = []
    for subtask_id, summary in found:
        parts.append(f"**{subtask_id}**\n\n{cut(without_own_links(summary), room)}")
    first = f"No answer could be written: {why}. These are the findings as they came."
    return "\n\n".join([first, *parts])


def with_gaps(answer: str, gaps: list[Gap]) -> str:
    """Returns the answer followed by the list of gaps; unchanged without gaps."""
    if not gaps:
        return answer
    # A reason may be a model's own words.
    lines = [without_links(line, frozenset()) for line in _gap_lines(gaps)]
    return "\n".join([answer.rstrip(), "", "**Missing from this answer**", "", *lines])


def _whole_words(text: str) -> str:
    """Returns a cut text without the partial word at its end."""
    if not text.endswith("…") or " " not in text:
        return text
    whole, _, _ = text.rpartition(" ")
    return f"{whole.rstrip('.,;:')} …"


def _gap_lines(gaps: list[Gap]) -> Iterator[str]:
    """Yields a line for each gap; a long reason is written once and then referred to."""
    first_with: dict[str, str] = {}
    for gap in gaps:
        reason = one_line(gap.reason, limits.PARAGRAPH_BYTES)
        first = first_with.setdefault(reason, gap.subtask_id)
        if first != gap.subtask_id and len(reason) > _SHORT_REASON:
            reason = f"for the same reason as `{first}`"
        yield _gap_line(gap, reason)


def _gap_line(gap: Gap, reason: str) -> str:
    description = _whole_words(one_line(gap.description, _DESCRIPTION_BYTES))
    if not description:
        return f"- `{gap.subtask_id}`: {reason}"
    return f"- {description} (`{gap.subtask_id}`: {reason})"
