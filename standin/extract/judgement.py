"""Reviews and judgements: by what can be counted, as nothing here understands a finding."""

import re

from standin.extract import prompt_parts
from standin.extract.findings_text import figures_in, strip
from standin.server.api_request import ApiRequest, Json
from supervision import prompt_marks as marks

_COUNTED = "holds the most figures; they were counted, not understood."


def review(request: ApiRequest) -> Json:
    """Returns a verdict on every finding: ok unless it is empty."""
    verdicts = []
    for finding in prompt_parts.findings(request.prompt):
        empty = not re.search(r"[^\W_]", strip(finding.text))
        feedback = "The finding is empty: write down what the tools returned." if empty else ""
        verdicts.append({"subtask_id": finding.subtask_id, "ok": not empty, "feedback": feedback})
    return {"verdicts": verdicts, "conflicts": []}


def select(request: ApiRequest) -> Json:
    """Returns the candidate with most figures, the longest of several, the first of several as long."""
    texts = [text for _, text in prompt_parts.blocks(request.prompt, marks.CANDIDATE)]
    best = max(range(len(texts)), key=lambda at: (*_weight(texts[at]), -at), default=0)
    return {"choice": best + 1, "reason": f"It {_COUNTED}"}


def settle(request: ApiRequest) -> Json:
    """Returns the side with most figures."""
    best = max(prompt_parts.findings(request.prompt), key=lambda finding: _weight(finding.text), default=None)
    if best is None:
        return {"prefer": None, "resolution": "No finding was handed over."}
    return {"prefer": best.subtask_id, "resolution": f"The finding of {best.subtask_id} {_COUNTED}"}


def _weight(text: str) -> tuple[int, int]:
    plain = strip(text)
    return figures_in(plain), len(plain)
