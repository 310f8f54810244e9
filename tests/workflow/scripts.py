"""Scripts of runs: plans, revisions, reviews and turns as a model would write them."""

from collections.abc import Callable
from typing import Any

from tests.scripted_model import Reply, Script, Step, answer, as_json, script, text, tools

Turns = dict[str, Callable[[Step], Reply]]

FOUND = text("found it\n\nConfidence: 0.8\nLimitations: none")
GIVES_UP = tools(("none", {}))
"""A turn that asks for a tool: the end of an attempt that has one turn only."""
IMPOSSIBLE = tools(("finish", {"finding": "", "confidence": 0, "outcome": "impossible", "summary": "there is no data"}))


def item(subtask_id: str, role: str = "hand", **more: Any) -> dict[str, Any]:
    """A subtask of a plan."""
    return {"id": subtask_id, "description": f"Find out about part {subtask_id} of garden 1", "role": role, **more}


def subtasks(*items: dict[str, Any], **more: Any) -> Reply:
    """A plan, or a revision, of those subtasks."""
    return as_json({"subtasks": list(items), "new_roles": [], **more})


def in_order(*replies: Reply) -> Callable[[Step], Reply]:
    """Answers calls with one reply after the other, the last one again and again."""
    left = list(replies)
    return lambda step: left.pop(0) if len(left) > 1 else left[0]


def with_replies(usual: Script, **kinds: Callable[[Step], Reply]) -> Script:
    """The script `usual`, with other replies to calls of those kinds."""
    return lambda step: kinds[step.kind](step) if step.kind in kinds else usual(step)


def plans(*replies: Reply, turns: Turns | None = None, answer_reply: Reply | None = None) -> Script:
    """A run whose plan calls are answered one after the other."""
    return with_replies(script(replies[0], turns, answer_reply), plan=in_order(*replies))


def reviewed(shape: Reply, *reviews: Reply, turns: Turns | None = None, judge: Reply | None = None) -> Script:
    """A run whose reviews are answered one after the other."""
    judged = {"judge": in_order(judge)} if judge else {}
    return with_replies(script(shape, turns, answer()), review=in_order(*reviews), **judged)


def verdicts(conflicts: list[dict[str, Any]] | None = None, **feedback: str) -> Reply:
    """A review that finds fault with those subtasks."""
    listed = [{"subtask_id": subtask_id, "ok": False, "feedback": words} for subtask_id, words in feedback.items()]
    return as_json({"verdicts": listed, "conflicts": conflicts or []})
