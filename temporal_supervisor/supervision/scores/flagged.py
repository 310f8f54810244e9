"""The flags of an answer: every reason not to take it for granted.

This is their only definition.
"""

from typing import Literal

from temporal_supervisor.supervision.contract.result import RunResult

Flag = Literal["unsupported", "gap", "contradiction", "partial", "knowledge", "confidence"]

LOW_CONFIDENCE = 0.5  # below it a reader looks twice


def flags(result: RunResult) -> list[Flag]:
    """Returns the flags that screen, page and JSON of a run show with its answer.

    Hidden fields do not count.
    """
    shown: dict[Flag, bool] = {
        "unsupported": bool(result.unsupported),
        "gap": bool(result.gaps),
        "contradiction": bool(result.contradictions),
        "partial": result.status == "partial",
        "knowledge": result.grounding == "knowledge",
        "confidence": _is_low(result.confidence),
    }
    return [flag for flag, is_shown in shown.items() if is_shown]


def own_flags(result: RunResult) -> list[Flag]:
    """Returns the flags that a worker agent without a supervisor sets on its own answer.

    No code has checked that answer.
    """
    findings = [report.finding for report in result.subtasks if report.finding]
    shown: dict[Flag, bool] = {
        "partial": any(finding.outcome == "partial" for finding in findings),
        "confidence": any(_is_low(finding.confidence) for finding in findings),
    }
    return [flag for flag, is_shown in shown.items() if is_shown]


def _is_low(confidence: float | None) -> bool:
    return confidence is not None and confidence < LOW_CONFIDENCE
