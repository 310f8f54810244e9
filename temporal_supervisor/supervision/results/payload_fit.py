"""Fitting of values into a payload: long texts and lists are cut."""

from typing import Any, TypeVar

from pydantic import BaseModel

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.contract.result import Gap, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage

# At most so many bytes of each text, and so many items of each list; of a list in a list's item a
# tenth.
_STEPS = ((2048, 200), (600, 200), (200, 100), (24, 10))
_TEXTS = frozenset(
    (
        *(
            "claim",
            "description",
            "final_instruction",
            "limitations",
            "message",
            "reason",
            "reasoning",
            "resolution",
        ),
        *("doubts", "summary", "system_prompt", "text", "unsupported", "warnings"),
    )
)
_LISTS = frozenset(
    (
        "artifacts",
        "citations",
        "contradictions",
        "doubts",
        "limitations",
        "sources",
        "subtask_ids",
        "unsupported",
        "warnings",
    )
)
_ANSWERS = ("answer", "direct_answer")
_LEAST_ANSWER_BYTES = 2048
# The rest is for what a payload has around its value.
PAYLOAD_ROOM_BYTES = limits.PAYLOAD_HARD_BYTES * 7 // 8
# Of the descriptions, and of the reasons, of all gaps in a result without other texts.
_GAP_BYTES = 8 * 1024
_LEAST_GAP_BYTES = 24  # of one of them: less says nothing
_BARE_TABLES = 10  # of templates, in a result without texts

M = TypeVar("M", bound=BaseModel)


def cut_to(value: M, limit: int) -> M:
    """Returns `value` in at most `limit` bytes of JSON, or as short as it can be cut.

    Ids, states, references and the rows of subtasks and gaps stay. An answer keeps half of the
    limit; its JSON stays whole or is left out.
    """
    if _bytes(value) <= limit:
        return value
    answer = max(limit // 2, _LEAST_ANSWER_BYTES)
    shortest: M = _shorter(value, "", *_STEPS[-1], answer)
    if _bytes(shortest) > limit:  # as in large runs: the other steps would only take time
        return shortest
    steps: Any = (_shorter(value, "", *step, answer) for step in _STEPS[:-1])
    return next((shorter for shorter in steps if _bytes(shorter) <= limit), shortest)


def fit(result: RunResult, limit: int = limits.PAYLOAD_AIM_BYTES) -> RunResult:
    """Returns `result` in at most `limit` bytes of JSON; `truncated` is set if it was cut.

    Ids and states of all subtasks and gaps stay below PAYLOAD_HARD_BYTES: 1,000 of them are above
    PAYLOAD_AIM_BYTES. Above that the first STATUS_PAGE stay, and there is a warning.
    """
    if _bytes(result) <= limit:
        return result
    shorter = cut_to(result.model_copy(update={"truncated": True}), limit)
    if _bytes(shorter) <= limit:
        return shorter
    fields = dict(shorter) | {
        "citations": [],
        "contradictions": [],
        "doubts": [],
        "unsupported": [],
    }
    fields |= {
        "artifacts": shorter.tables[:_BARE_TABLES],
        "answer": cut(result.answer, _LEAST_ANSWER_BYTES),
    }
    unknown = Usage(usd=None)  # not 0
    reports = [
        SubtaskReport(id=r.id, state=r.state, counts=r.counts, usage=unknown)
        for r in result.subtasks
    ]
    # What is missing, and why, comes before what else there is to say of the rows: few gaps keep
    # their words.
    share = min(_GAP_BYTES // max(1, len(result.gaps)), limits.SENTENCE_BYTES)
    with_words, without = (
        RunResult.model_construct(
            **fields | {"gaps": [_short_gap(gap, room) for gap in result.gaps], "subtasks": reports}
        )
        for room in (share, 0)
    )
    bare = _bytes(without)
    # Of many subtasks the rows alone are above the aim: there the few words of gaps are no matter.
    most = max(limit, PAYLOAD_ROOM_BYTES) if bare > limits.PAYLOAD_AIM_BYTES else limit
    if _bytes(with_words) <= most:
        return with_words
    if bare <= max(limit, PAYLOAD_ROOM_BYTES):
        return without
    gaps = without.gaps
    few = limits.STATUS_PAGE
    counted = (
        f"of {len(reports)} subtasks and {len(gaps)} gaps the first {few} are here, "
        "all in the stored result"
    )
    fields |= {
        "gaps": gaps[:few],
        "subtasks": reports[:few],
        "warnings": [counted, *shorter.warnings],
    }
    return RunResult.model_construct(**fields)


def _short_gap(gap: Gap, room: int) -> Gap:
    """Returns a gap whose description and reason have at most `room` bytes each.

    If there is hardly any room, both are empty.
    """
    if room < _LEAST_GAP_BYTES:
        return Gap(subtask_id=gap.subtask_id, reason="")
    return gap.model_copy(
        update={"description": cut(gap.description, room), "reason": cut(gap.reason, room)}
    )


def pages(items: list[M], limit: int) -> list[list[M]]:
    """Returns the items in pages of at most `limit` bytes of JSON, at least one to a page.

    Without items there is one empty page.
    """
    result: list[list[M]] = [[]]
    room = limit
    for item in items:
        room -= _bytes(item) + 1
        if room < 0 and result[-1]:
            result.append([])
            room = limit - _bytes(item) - 1
        result[-1].append(item)
    return result


def _shorter(value: Any, name: str, text: int, items: int, answer: int) -> Any:
    """Returns the value of the field `name` with its texts and lists cut."""
    if isinstance(value, str):
        if name in _ANSWERS:
            return cut(value, answer)
        return cut(value, text) if name in _TEXTS else value
    if name == "answer_json":
        return value if text == _STEPS[0][0] else None
    if isinstance(value, list):
        kept = value[:items] if name in _LISTS else value
        return [_shorter(item, name, text, items // 10, answer) for item in kept]
    if isinstance(value, BaseModel) and not isinstance(value, Usage):
        return value.model_copy(
            update={field: _shorter(part, field, text, items, answer) for field, part in value}
        )
    return value


def _bytes(value: BaseModel) -> int:
    return size(value.model_dump_json())
