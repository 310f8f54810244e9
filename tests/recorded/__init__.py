"""Replies of a real small model, recorded, as a brain of the test server.

Qwen2.5-Coder-1.5B-Instruct (4 bits) behind llama.cpp's Messages API wrote them to requests of this project: calls as
text, outputs made up beside them, copies of schemas and examples, announcements in place of findings. Long ones are
shortened. What was recorded in different runs of one question may stand together.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.scripted_model import Reply, Script, Step, text

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("replies.json").read_text(encoding="utf-8"))


def script_of(case: Mapping[str, Any]) -> Script:
    """Returns the script that plays a case: its replies in their order by kind of call, the last one again and again.

    To other calls the model says what it said to most of them: nothing that helps.
    """
    left = {kind: list(case[kind]) for kind in ("plan", "turn", "synthesis") if kind in case}

    def reply(step: Step) -> Reply:
        words = left.get(step.kind, ["There is no tool call or finding."])
        return text(words.pop(0) if len(words) > 1 else words[0])

    return reply
