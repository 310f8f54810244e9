"""The conclusion of a worker agent as it is stored: checked against all that its author read."""

import asyncio
import contextlib
import json
import re
from typing import NamedTuple, cast

from pydantic import JsonValue

from activities.agent.agent_doubts import doubts_of, read_others
from activities.agent.grounds import (
    Grounds,
    instructions_of,
    needs_data,
    subtask_of,
)
from activities.agent.query_first import AFTER_DATA
from activities.agent.role_turn import RoleTurn
from activities.agent.search_first import AFTER_READING
from activities.model.conversation import Entry
from activities.model.journalled_call import Answered
from activities.replies import answer_schema
from temporal_supervisor.supervision.agent import agent_tools, policy
from temporal_supervisor.supervision.agent.empty_words import (
    Emptiness,
    is_echo,
    is_empty,
    only_asks_to_query,
)
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.contract.finding import CheckedClaim, Finding, FindingRecord
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.grounding.claims import claims as all_claims
from temporal_supervisor.supervision.grounding.support import check, found_nowhere
from temporal_supervisor.supervision.replies.loose_json import first_json
from temporal_supervisor.supervision.results.shown_links import without_images, without_links

_EVIDENCE_CALLS = 60  # the last ones of a worker agent: what it concluded from
_SOURCES = 50  # of one finding, and as many artifacts: each has a line on a screen
_CHECKED_CLAIMS = 40  # of one finding, for those who judge it
_QUOTED_FIELDS = ("quotation", "quote")  # the ends of names of fields that hold quotations
_QUOTES = '“”„«»" '
_PLAIN_QUOTES = str.maketrans("“”", '""')
_YEAR = re.compile(r"[12]\d{3}")  # found somewhere, it tells a judge nothing


class StoredConclusion(NamedTuple):
    """A conclusion as it was stored: the finding, and the faults of its form in `misfit`.

    `is_ungrounded`: it had to rest on data, and rests on nothing. `empty`: why it is no finding at
    all.
    """

    finding: Finding
    misfit: list[str]
    is_ungrounded: bool
    empty: Emptiness | None


async def store_conclusion(
    turn: RoleTurn,
    answered: Answered,
    conclusion: agent_tools.Conclusion,
) -> StoredConclusion:
    """Stores a conclusion, checked.

    Of a quarantined role that has read untrusted text the output alone is kept: other words may
    be the attacker's.
    """
    calls, role, keep = turn.calls, turn.role, turn.keep_output
    output, misfit = await _output(role, conclusion, turn.asked.run.run_id)
    labels = answered.labels
    is_whole = isinstance(output, dict) and not misfit
    if labels.untrusted and policy.is_quarantined(role) and is_whole:
        conclusion = agent_tools.Conclusion("", conclusion.confidence, [], conclusion.outcome)
        labels = labels.model_copy(update={"untrusted": ""})
    text = _with_cells(conclusion.text, output)

    chain = await calls.conversations.chain(answered.head)
    grounds = await turn.grounds(answered.head)
    claims: list[CheckedClaim] = []
    doubts: list[str] = []
    if role.grounding == "tools" and conclusion.text:
        claims = await asyncio.to_thread(check, text, grounds.texts)
        others = await read_others(turn)
        question = subtask_of(chain)
        doubts = await doubts_of(calls, answered.head, question, grounds.texts, others, text)

    is_ungrounded = needs_data(role, turn.toolbox) and not grounds.has_any
    known = grounds.links(untrusted=bool(answered.labels.untrusted))
    shown_text = without_links(text, known)  # claims are those of what was written
    record = FindingRecord(
        outcome="done" if conclusion.outcome == "done" and not misfit else "partial",
        grounding="knowledge" if is_ungrounded else role.grounding,
        summary=without_links(conclusion.summary or conclusion.text or text, known),
        confidence=conclusion.confidence,
        limitations=[*misfit, *conclusion.limitations][: limits.LIMITATIONS],
        sources=[*grounds.sources][:_SOURCES],
        supported=grounds.supported(claims),
        unsupported=found_nowhere(claims),
        doubts=doubts,
        checked=_shown_claims(claims),
        evidence=grounds.calls[-_EVIDENCE_CALLS:],
        labels=labels,
    )

    finding = Finding(
        **record.model_dump(exclude={"checked", "evidence"}),
        artifacts=grounds.artifacts[:_SOURCES],
        text_ref=await keep(shown_text),
        text_bytes=size(shown_text),
        record_ref=await keep(record.model_dump_json()),
    )
    if conclusion.items is not None:
        finding.items_ref = await keep(json.dumps([*conclusion.items]))
    if isinstance(output, dict):
        finding.output_ref = await keep(json.dumps(output))
    empty = None
    if not conclusion.items and not output:
        empty = _emptiness(text, chain, grounds, is_ungrounded, role)
    return StoredConclusion(finding, misfit, is_ungrounded, empty)


def _with_cells(text: str, output: JsonValue) -> str:
    """Returns the text of a finding with a line for each value of its output."""
    cells: list[str] = []
    for path, cell in agent_tools.cells_of(output):
        cells.append(f"- {path or 'output'}: {_cell(path, cell)}")
    return "\n\n".join(filter(None, [text, "\n".join(cells)]))


def _shown_claims(claims: list[CheckedClaim]) -> list[CheckedClaim]:
    """Returns the claims for those who judge a finding, first those found nowhere."""
    telling = [claim for claim in claims if not claim.source or not _YEAR.fullmatch(claim.text)]
    telling.sort(key=lambda claim: bool(claim.source))
    shown: list[CheckedClaim] = []
    for claim in telling[:_CHECKED_CLAIMS]:
        text = cut(claim.text, limits.SENTENCE_BYTES)
        shown.append(claim.model_copy(update={"text": text}))
    return shown


def _emptiness(
    text: str,
    chain: list[Entry],
    grounds: Grounds,
    is_ungrounded: bool,
    role: Role,
) -> Emptiness | None:
    """Returns the fault that makes a conclusion no finding; None without one."""
    if is_ungrounded and grounds.last_failed:
        return "failed_call"
    if is_ungrounded and grounds.last_matched_nothing and only_asks_to_query(text):
        return "no_rows"

    opening = chain[0].opening
    rules = [opening.system] if opening else []
    if is_echo(text, "\n".join([*rules, AFTER_DATA, AFTER_READING])):
        return "says_nothing"

    instructions = instructions_of(chain)
    # Read one by one: a long report is never empty, and its claims take long to read.
    made = (claim.text for claim in all_claims(text))
    hands_in_code = role.grounding == "knowledge"  # it has no data to query
    if is_empty(text, instructions, made, hands_in_code=hands_in_code):
        return "says_nothing"
    return None


async def _output(
    role: Role,
    conclusion: agent_tools.Conclusion,
    run_id: str,
) -> tuple[JsonValue, list[str]]:
    """Returns the output of a conclusion, and its faults in the form of its role.

    Models write JSON as a text.
    """
    schema, value = role.output_schema, conclusion.output
    if schema is None or conclusion.outcome == "impossible":
        return None, []
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = first_json(value)
    if value is None:
        return None, ["the field output is missing"]
    value = without_images(await answer_schema.value_of(schema, value, run_id))
    if isinstance(value, dict):
        # A field that may be left out is left out, not null.
        needed = cast("list[str]", schema.get("required", []))
        value = {name: part for name, part in value.items() if part is not None or name in needed}
    return value, await answer_schema.problems(schema, value, run_id, "output")


def _cell(path: str, text: str) -> str:
    """Returns a plain value of an output as the finding's text has it.

    A quotation is looked up as one.
    """
    line = " ".join(text.split())
    if not path.endswith(_QUOTED_FIELDS):
        return line
    return f"“{line.strip(_QUOTES).translate(_PLAIN_QUOTES)}”"
