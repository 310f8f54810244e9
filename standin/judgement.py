"""Reviews and judgements: by what can be counted, as nothing here understands a finding."""

import re

from standin import prompt
from standin.compose import strip
from standin.request import Json, Request

_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*")
_SAYS = re.compile(r"[^\W_]")


def review(request: Request) -> Json:
    """Every finding that says anything is ok; an empty one is not."""
    return {"verdicts": [_verdict(finding) for finding in prompt.findings(request.prompt)], "conflicts": []}


def select(request: Request) -> Json:
    """The candidate with most figures, the longest of several, the first of several as long."""
    candidates = prompt.candidates(request.prompt)
    best = max(range(len(candidates)), key=lambda at: (*_weight(candidates[at]), -at), default=0)
    return {"choice": best + 1, "reason": "It holds the most figures; they were counted, not understood."}


def settle(request: Request) -> Json:
    """The side with most figures."""
    found = prompt.findings(request.prompt)
    best = max(found, key=lambda finding: _weight(finding.text), default=None)
    if best is None:
        return {"prefer": None, "resolution": "No finding was handed over."}
    return {
        "prefer": best.subtask_id,
        "resolution": f"The finding of {best.subtask_id} holds the most figures; they were counted, not understood.",
    }


def _verdict(finding: prompt.FindingText) -> Json:
    empty = not _SAYS.search(strip(finding.text))
    feedback = "The finding is empty: write down what the tools returned." if empty else ""
    return {"subtask_id": finding.subtask_id, "ok": not empty, "feedback": feedback}


def _weight(text: str) -> tuple[int, int]:
    plain = strip(text)
    return len(_NUMBER.findall(plain)), len(plain)
